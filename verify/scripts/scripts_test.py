#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""The scripts a developer types, on made-up trees and machines: each check is seen to fail."""
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

from script_case import ROOT, ScriptTest


class HelpTest(unittest.TestCase):
    # One is wbench, which it builds first; two need what a machine may lack.
    OTHERS = {"wbench", "check_exported_models", "statistics_vectors.py"}

    def test_asked_for_help_a_script_says_what_it_does_and_does_nothing(self):
        scripts = [path for path in sorted((ROOT / "scripts").iterdir()) if path.is_file() and os.access(path, os.X_OK)]
        for script in scripts:
            if script.name in self.OTHERS:
                continue
            with self.subTest(script.name):
                result = subprocess.run([script, "--help"], capture_output=True, text=True, timeout=20, cwd="/")
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertGreater(len(result.stdout.split()), 10, result.stdout)
                self.assertNotIn("violations", result.stdout.splitlines()[-1])


class MutateTest(ScriptTest):
    """A simulated GPU and two kernels, of two barriers and of one."""

    def setUp(self):
        super().setUp()
        self.put("scripts/mutate", (ROOT / "scripts/mutate").read_text(), 0o755)
        self.put("verify/simt/machine.cpp", "old")

    def mutate(self, killed, *words, code="0x1", line=7):
        """By drivers that kill these, of a first kernel with this code and these lines."""
        listed = 'echo \'synchroniser: {"kernel": "%s", "code": "%s", "index": %d, "instruction": "bar.sync 0", "at": "k.cu:%d"}\''
        wbench = self.program("wbench", 'if [ "$WIDE_SIM_LIST_SYNCHRONISERS" ]; then',
                              *(listed % one for one in (("a", code, 0, line), ("a", code, 1, line + 1), ("b", "0x2", 0, 20))), "exit 0; fi",
                              "echo synchroniser deleted", 'case "$WIDE_SIM_MUTATE" in',
                              *(f"{one}) echo 'finding: race: k'; exit 86 ;;" for one in killed), "esac")
        code, output = self.run_script("scripts/mutate", wbench, *words)
        return code, output.splitlines()[-1]

    def test_what_a_report_says_was_killed_is_not_judged_again(self):
        full, again = ("--full", "--report", "r.txt"), ("--full", "--again", "r.txt")
        self.assertEqual(self.mutate(["0:a", "0:b"], *full), (1, "3 mutants: 2 killed, 0 excused, 1 survived, 0 broken"))
        report = (self.root / "r.txt").read_text()
        self.assertEqual(self.mutate(["1:a"], "--full"), (1, "3 mutants: 1 killed, 0 excused, 2 survived, 0 broken"))
        self.assertEqual(self.mutate(["1:a"], *again), (0, "3 mutants: 3 killed, 0 excused, 0 survived, 0 broken"))
        self.assertEqual(self.mutate(["1:a"], *again, "--report", "r2.txt", line=9)[0], 0)
        rows = [(self.root / name).read_text().splitlines()[2] for name in ("r.txt", "r2.txt")]
        self.assertEqual(rows[1], rows[0].replace("k.cu:7", "k.cu:9"))
        self.assertEqual(self.mutate(["1:a"], *again, code="0x3"), (1, "3 mutants: 2 killed, 0 excused, 1 survived, 0 broken"))
        self.put("r.txt", report.replace("a\n", "b\n", 1))  # of other synchronisers
        self.assertEqual(self.mutate(["1:a"], *again), (1, "3 mutants: 2 killed, 0 excused, 1 survived, 0 broken"))

    def test_a_report_that_says_nothing_of_today_is_refused(self):
        full, again = ("--full", "--report", "r.txt"), ("--full", "--again", "r.txt")
        self.mutate(["0:a"], *full)
        report = (self.root / "r.txt").read_text()
        self.put("verify/simt/machine.cpp", "new")
        code, said = self.mutate(["1:a"], *again)
        self.assertEqual((code, said.split(",")[0]), (1, "mutate: r.txt is of kernels that were executed by other sources"))
        self.put("verify/simt/machine.cpp", "old")
        self.put("r.txt", report + "killed\n")
        self.assertEqual(self.mutate([], *again), (1, "mutate: r.txt: expected a mutant's row, got: killed"))
        self.assertEqual(self.mutate([], "--again", "r.txt")[0], 2)
        self.assertEqual(self.mutate([], "--full", "--again", "none.txt"), (1, "mutate: --again none.txt: No such file or directory"))


class RunTestsTest(ScriptTest):
    REPORT = ('<Catch2TestRun>{body}<OverallResultsCases successes="{passed}" failures="{failed}" '
              'expectedFailures="0" skips="{skipped}"/></Catch2TestRun>')

    def run_tests(self, **programs):
        """Runs made-up programs as the tests of a build; each is the lines of a shell script."""
        tests = ""
        for name, lines in programs.items():
            path = self.program(f"build/{name}", *lines)
            tests += f'add_test({name} "{path}")\n'
        self.put("build/CTestTestfile.cmake", tests)
        code, output = self.run_script(ROOT / "scripts/run_tests.py", "--timeout", "4", self.root / "build")
        return code, output.splitlines()[-1], output

    def report(self, passed=0, failed=0, skipped=0, body="", then="exit 0"):
        text = self.REPORT.format(passed=passed, failed=failed, skipped=skipped, body=body)
        return [f"for last; do :; done; echo '{text}' > ${{last#xml::out=}}", then]

    def test_counts_are_added_up(self):
        skip = '<TestCase><Skip filename="f" line="1">\n no device\n</Skip></TestCase>'
        code, last, output = self.run_tests(a_test=self.report(3), b_test=self.report(2, 0, 1, skip), example=["exit 0"])
        self.assertEqual((code, last), (0, "6 passed, 0 failed, 1 skipped"), output)
        self.assertIn("skipped 1: no device", output)

    def test_all_skipped_is_no_failure_of_a_program_but_of_a_run(self):
        skipped = self.report(0, 0, 2, then="exit 4")
        self.assertEqual(self.run_tests(a_test=skipped, b_test=self.report(1))[:2], (0, "1 passed, 0 failed, 2 skipped"))
        self.assertEqual(self.run_tests(a_test=skipped)[0], 1)

    def test_what_counts_as_failed(self):
        for lines in (
            self.report(2, 1, then="exit 42"),
            self.report(3, then="exit 1"),  # the report is fine, the program is not
            self.report(3, then="kill -SEGV $$"),
            self.report(0),  # no test case at all
            self.report(0, 0, 0, then="exit 4"),
            ["exit 0"],  # no report
            ["for last; do :; done; echo '<Catch2TestRun>' > ${last#xml::out=}"],
            ["exec sleep 60"],
        ):
            code, last, output = self.run_tests(a_test=lines, b_test=self.report(1))
            self.assertEqual(code, 1, output)
            self.assertRegex(last, r"^\d+ passed, 1 failed, 0 skipped$")
            self.assertIn("a_test", output.split("failed: ")[-1])
        self.assertIn("failed: a_test: no end within 4 s", output)  # of the last
        self.assertEqual(self.run_tests(example=["exit 3"])[:2], (1, "0 passed, 1 failed, 0 skipped"))

    def test_what_is_marked_serial_runs_alone(self):
        busy = ["mkdir busy || exit 1; sleep 0.3; rmdir busy"]
        self.put("build/CTestTestfile.cmake", "".join(
            f'add_test({name} "{self.program("build/" + name, "cd " + str(self.root), *lines)}")\n'
            for name, lines in {"a": busy, "b": busy, "c": ["sleep 0.1; mkdir busy && rmdir busy"]}.items())
            + 'set_tests_properties(a b PROPERTIES RUN_SERIAL TRUE)\n')
        code, output = self.run_script(ROOT / "scripts/run_tests.py", self.root / "build")
        self.assertEqual((code, output.splitlines()[-1]), (0, "3 passed, 0 failed, 0 skipped"), output)

    def test_what_is_wanted_first_begins_first(self):
        self.put("build/CTestTestfile.cmake", "".join(
            f'add_test({name} "{self.program("build/" + name, f"echo {name} >>{self.root}/order")}")\n' for name in ("any", "alone", "wanted"))
            + "set_tests_properties(alone PROPERTIES RUN_SERIAL TRUE)\n")
        for words, order in (((), ["any", "wanted", "alone"]), (("--first", "^wan"), ["wanted", "alone", "any"])):
            self.put("order", "")
            self.run_script(ROOT / "scripts/run_tests.py", *words, self.root / "build")
            ran = (self.root / "order").read_text().split()
            self.assertEqual(ran if words else [*sorted(ran[:2]), *ran[2:]], order)

    def test_out_of_time_it_says_what_ran_and_what_did_not(self):
        left = self.root / "left"
        programs = {"quick": "echo no GPU; exit 77", "wrong": "exit 3", "long": f"(sleep 1.2; touch {left}) & wait", "alone": "exit 0", "sim_x": "exit 5"}
        self.put("build/CTestTestfile.cmake", "".join(f'add_test({name} "{self.program("build/" + name, line)}")\n'
                                                      for name, line in programs.items())
                 + "set_tests_properties(alone PROPERTIES RUN_SERIAL TRUE)\nset_tests_properties(quick PROPERTIES SKIP_RETURN_CODE 77)\n")
        first = self.run_script(ROOT / "scripts/run_tests.py", "--seconds", "0.8", "--first", "^quick", self.root / "build")[1]
        self.assertEqual(first.splitlines()[-2], "out of time: 1 of 5 programs did not come to their end: long")
        code, output = self.run_script(ROOT / "scripts/run_tests.py", "--seconds", "0.8", "--leave-out", "^sim_", self.root / "build")
        lines = output.splitlines()
        self.assertEqual((code, lines[-1]), (1, "0 passed, 1 failed, 1 skipped"), output)
        self.assertEqual(lines[-2], "out of time: 2 of 4 programs did not come to their end: long alone")
        self.assertIn("left out 1: ^sim_", lines)
        self.assertIn("failed: wrong: exit code 3", lines)
        time.sleep(0.8)
        self.assertFalse(left.exists())  # what a program started ends with it

    def test_an_interrupt_ends_it_with_a_report(self):
        self.put("build/CTestTestfile.cmake", f'add_test(long "{self.program("build/long", "sleep 0.3; kill -INT $PPID; exec sleep 60")}")\n'
                 f'add_test(quick "{self.program("build/quick", "exit 0")}")\n')
        code, output = self.run_script(ROOT / "scripts/run_tests.py", self.root / "build")
        self.assertEqual((code, output.splitlines()[-1]), (1, "1 passed, 0 failed, 0 skipped"))  # green so far, but not all
        self.assertIn("out of time: 1 of 2 programs did not come to their end: long", output)

    def test_a_test_says_by_its_exit_code_that_it_was_skipped(self):
        program = self.program("build/fuzz", "echo no clang", "exit 77")
        self.put("build/CTestTestfile.cmake", f'add_test(fuzz "{program}")\nadd_test(other "{self.program("build/other", "exit 0")}")\n'
                 'set_tests_properties(fuzz PROPERTIES SKIP_RETURN_CODE 77)\n')
        code, output = self.run_script(ROOT / "scripts/run_tests.py", self.root / "build")
        self.assertEqual((code, output.splitlines()[-1]), (0, "1 passed, 0 failed, 1 skipped"), output)
        self.assertIn("skipped 1: no clang", output)

    def test_no_test_is_a_failure(self):
        self.assertEqual(self.run_tests()[:2], (1, "0 passed, 1 failed, 0 skipped"))

    def test_a_program_that_was_not_built(self):
        self.put("build/CTestTestfile.cmake", 'add_test(gone_test "gone_test")\n')
        code, output = self.run_script(ROOT / "scripts/run_tests.py", self.root / "build")
        self.assertEqual((code, output.splitlines()[-1]), (1, "0 passed, 1 failed, 0 skipped"))

    def test_no_shim_stands_before_the_interpreter(self):
        self.program("bin/python3", f'exec {sys.executable} "$@"')
        where = self.program("build/where", f'command -v python3 >{self.root}/where')
        self.put("build/CTestTestfile.cmake", f'add_test(where "{where}")\n')
        self.run_script(ROOT / "scripts/run_tests.py", self.root / "build", PATH=f"{self.root}/bin:{os.environ['PATH']}")
        self.assertEqual((self.root / "where").read_text().strip(), f"{os.path.dirname(sys.executable)}/python3")

    def test_unittest_programs_count_too(self):
        for ending, expected in (
            ("Ran 5 tests in 0.1s\n\nOK (skipped=2)", (0, "3 passed, 0 failed, 2 skipped")),
            ("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=2)", (1, "2 passed, 3 failed, 0 skipped")),
            ("Ran 0 tests in 0.1s\n\nOK", (1, "0 passed, 1 failed, 0 skipped")),
            ("Traceback", (1, "0 passed, 1 failed, 0 skipped")),
        ):
            self.put("build/toy_test.py", f"print('''{ending}''')\n")
            self.put("build/CTestTestfile.cmake", f'add_test(toy_test "{shutil.which("python3")}" "{self.root}/build/toy_test.py")\n')
            code, output = self.run_script(ROOT / "scripts/run_tests.py", self.root / "build")
            self.assertEqual((code, output.splitlines()[-1]), expected, output)


class SetupTest(ScriptTest):
    """setup.sh on machines made of stubs; what it would do is in the log."""
    LIBRARIES = ("libcli11-dev", "nlohmann-json3-dev", "libfmt-dev", "libvalijson-dev", "libdlpack-dev", "libboost-dev",
                 "libsqlite3-dev", "zlib1g-dev", "libonnx-testdata", "locales")

    def setUp(self):
        super().setUp()
        self.log = self.root / "log"
        for name in ("cmake", "ninja", "git", "python3", "c++"):
            self.program(f"bin/{name}", "exit 0")
        for name in ("apt-get", "apt-cache", "sudo", "tee"):
            self.program(f"bin/{name}", f'echo "{name} $*" >>{self.log}')
        self.machine(installed=self.LIBRARIES)

    def machine(self, installed, catch2="3.7.1-1", user=0):
        lines = [f"ii  {name} 1.0" for name in installed] + ([f"ii  catch2 {catch2}"] if catch2 else [])
        self.program("bin/dpkg-query", *(f"echo '{line}'" for line in lines), "exit 1")
        self.program("bin/id", f"echo {user}")

    def setup(self, *words):
        self.log.write_text("")
        code, output = self.run_script(ROOT / "scripts/setup.sh", *words, PATH=f"{self.root}/bin:{os.environ['PATH']}")
        return code, output, self.log.read_text()

    def test_nothing_missing_does_nothing(self):
        self.assertEqual(self.setup(), (0, "", ""))

    def test_an_unknown_argument_is_refused(self):
        self.machine(installed=[])
        self.assertEqual(self.setup("--brower"), (2, 'setup: unknown argument "--brower", expected --browser or none\n', ""))

    def test_only_what_is_missing_is_installed(self):
        self.machine(installed=[name for name in self.LIBRARIES if name != "nlohmann-json3-dev"])
        code, output, log = self.setup()
        self.assertEqual(code, 0, output)
        self.assertIn("apt-get -q update", log)
        self.assertIn("apt-get -q install -y --no-install-recommends nlohmann-json3-dev\n", log)
        self.assertNotIn("catch2", log)

    def test_catch2_2_is_replaced_by_the_offered_3(self):
        self.machine(installed=self.LIBRARIES,
                     catch2="2.13.10-1")
        self.program("bin/apt-cache", "echo ' catch2 | 2.13.10-1 | a'", "echo ' catch2 | 3.7.1-0.4 | b'")
        code, output, log = self.setup()
        self.assertEqual(code, 0, output)
        self.assertIn("install -y --no-install-recommends catch2=3.7.1-0.4\n", log)
        self.assertNotIn("tee", log)

    def test_without_root_it_says_what_to_type(self):
        self.machine(installed=(), catch2="", user=1000)
        self.program("bin/sudo", f'echo "sudo $*" >>{self.log}', "exit 1")
        code, output, log = self.setup()
        self.assertEqual(code, 1)
        self.assertIn("sudo apt-get install -y --no-install-recommends libcli11-dev nlohmann-json3-dev", output)
        self.assertIn("catch2", output)
        self.assertNotIn("apt-get", log)

    def test_with_sudo_it_installs(self):
        self.machine(installed=(), user=1000)
        code, output, log = self.setup()
        self.assertEqual(code, 0, output)
        self.assertRegex(log, r"sudo -n env \S+ apt-get -q install -y --no-install-recommends libcli11-dev")


class AnalyzeTest(ScriptTest):
    """Two files whose numbers are counted by hand."""

    def setUp(self):
        super().setUp()
        self.put("include/wide/x.hpp", "")
        self.put("host/a.hpp", """#include "wide/x.hpp"
namespace w {
struct Base { virtual ~Base() = default; };
class Derived : public Base {
 public:
  int f(int x) const {
    if (x > 1 && x < 7 || x == 9) return 1;
    for (int i = 0; i < x; ++i) x += i > 3 ? 1 : 2;
    switch (x) { case 1: return 2; default: return x & 3; }
  }
};
template <class T> T twice(T x) { return x + x; }
}
""")
        for name in "ab":  # what both include is counted once
            self.put(f"host/{name}.cpp", f'#include "host/a.hpp"\nint {name}() {{ return w::twice(2); }}\n')
        self.put("build/test/compile_commands.json", json.dumps(
            [{"directory": str(self.root), "file": f"host/{name}.cpp",
              "command": f"c++ -I. -Iinclude -std=c++20 -c host/{name}.cpp"} for name in "ab"]))

    def analyze(self, *more, **variables):
        return self.run_script(ROOT / "scripts/analyze_ast", "--root", self.root, *more, **variables)

    def needs_libclang(self):
        if self.analyze()[0] == 7:
            self.skipTest("no libclang: apt-get install python3-clang")

    def test_classes_functions_and_includes(self):
        self.needs_libclang()
        code, text = self.analyze("--json", "-")
        self.assertEqual(code, 0, text)
        found = json.loads(text)
        self.assertEqual([(c["name"], c["bases"], c["line"]) for c in found["classes"]],
                         [("w::Base", [], 3), ("w::Derived", ["w::Base"], 4)])
        functions = {f["name"]: (f["signature"], f["lines"], f["complexity"]) for f in found["functions"]}
        self.assertEqual(len(functions), len(found["functions"]))
        self.assertEqual(functions["w::Derived::f"], ("int f(int)", 5, 7))
        self.assertEqual(functions["w::twice"], ("T twice(T)", 1, 1))
        self.assertEqual(set(functions), {"w::Base::~Base", "w::Derived::f", "w::twice", "a", "b"})
        self.assertEqual(found["includes"], [{"from": "host", "to": "host", "includes": 2},
                                             {"from": "host", "to": "include", "includes": 1}])

    def test_limits(self):
        self.needs_libclang()
        self.assertEqual(self.analyze("--max-lines", "5", "--max-complexity", "7")[0], 0)
        for limit in ("--max-lines", "4"), ("--max-complexity", "6"):
            code, text = self.analyze(*limit)
            self.assertEqual(code, 1)
            self.assertIn("host/a.hpp:6: w::Derived::f has 5 lines, complexity 7", text)

    def test_what_cannot_be_read_is_said(self):
        self.needs_libclang()
        self.put("host/b.cpp", "int b( {\n")
        code, text = self.analyze()
        self.assertEqual(code, 0)
        self.assertRegex(text, "host/b.cpp.*error")
        self.assertIn("Not understood whole: 1 files.", text)

    def test_without_a_build(self):
        code, text = self.analyze("--build", "nowhere")
        self.assertEqual(code, 7)
        self.assertRegex(text, "nowhere/compile_commands.json|needs libclang")


class BuildTest(ScriptTest):
    """build.sh with a ninja that only prints."""

    def build(self, *printed):
        shutil.copy(ROOT / "scripts/build.sh", self.put("scripts/build.sh", ""))
        (self.root / "scripts/build.sh").chmod(0o755)
        self.put("CMakePresets.json", "{}")
        self.put("build/test/CMakeCache.txt", f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root.resolve()}\n")
        self.put("build/test/build.ninja", "")
        self.program("bin/ninja", *printed)
        return self.run_script("scripts/build.sh", "test", PATH=f"{self.root / 'bin'}:{os.environ['PATH']}")

    def test_of_a_build_that_fails_the_end_of_the_log_is_shown(self):
        code, output = self.build("echo 'FAILED: k/b.cu.o'", "exit 1")
        self.assertEqual(code, 1, output)
        self.assertIn("building failed", output)
        self.assertIn("FAILED: k/b.cu.o", output)

    def test_nothing_to_say_of_a_build_that_is_right(self):
        self.assertEqual(self.build("echo '[1/1] Building CUDA object k/a.cu.o'"), (0, ""))


class ToolkitTest(ScriptTest):
    """Which CUDA toolkit the build takes; a too old one is refused with a reason, not with a failure."""

    def configure(self, *options):
        nvcc = self.program("old/bin/nvcc", "echo 'Cuda compilation tools, release 11.8, V11.8.89'")
        return self.run_script("cmake", "-S", ROOT, "-B", self.root / "build", "-DWIDE_BENCH=OFF", "-DWIDE_TESTS=OFF",
                               *options, CUDACXX=str(nvcc))

    def test_an_old_toolkit_is_refused_and_the_build_goes_on(self):
        code, output = self.configure()
        self.assertEqual(code, 0, output)
        self.assertIn("nvcc is CUDA 11.8, expected 13.0 or newer", output)
        self.assertIn("building without CUDA", output)

    def test_an_old_toolkit_is_an_error_where_cuda_is_demanded(self):
        code, output = self.configure("-DWIDE_CUDA=ON")
        self.assertNotEqual(code, 0)
        self.assertIn("nvcc is CUDA 11.8, expected 13.0 or newer", " ".join(output.split()))

    def test_without_cuda_no_toolkit_is_looked_for(self):
        code, output = self.configure("-DWIDE_CUDA=OFF")
        self.assertEqual(code, 0, output)
        self.assertNotIn("11.8", output)


if __name__ == "__main__":
    unittest.main()
