#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What evidence.py and gpu_check count as proved, on made-up trees in a temporary folder: what they
must refuse matters more than what they accept. A GPU is played by stubs in PATH."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from tree_case import TreeCase

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import evidence  # noqa: E402

KERNEL = '#include "kernels/toy/twice.cuh"\n__global__ void toy(int* y) { *y = twice(21); }\n'
HEADER = '#pragma once\n#include "wide/toy.hpp"\n__device__ int twice(int x) { return 2 * x; }  // doubles\n'
PUBLIC = "#pragma once\nconstexpr int kToy = 1;\n"
CLEAN = {tool: 0 for tool in evidence.TOOLS}


def run(*command, **env):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=os.environ | env)


class Near(float):
    """Equal to what is up to two seconds less."""

    def __eq__(self, other):
        return self - 2 <= other <= self

    __hash__ = float.__hash__


class Tree(TreeCase):
    """A small repository with one kernel, toy/simt, that includes two headers."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.put("kernels/toy/toy_simt.cu", KERNEL)
        self.put("kernels/toy/twice.cuh", HEADER)
        self.put("include/wide/toy.hpp", PUBLIC)


class EvidenceTable(Tree):
    def setUp(self):
        super().setUp()
        self.good = {"schema": evidence.SCHEMA, "op": "toy", "strategy": "simt",
                     "source_hash": evidence.source_hash(self.root, "toy", "simt"), "compute_capability": 90,
                     "cases_passed": 5, "cases_failed": 0, "worst_error_ratio": 0.5, "sanitizer": CLEAN}

    def table(self, *documents):
        for i, document in enumerate(documents):
            self.put(f"evidence/{i}.json", document if isinstance(document, str) else json.dumps(document))
        result = run(sys.executable, ROOT / "scripts/evidence.py", "--root", self.root, "table",
                     self.root / "evidence", self.root / "out/table.inc")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("Traceback", result.stderr)
        return (self.root / "out/table.inc").read_text(), result.stderr

    def assert_refused(self, document, *words):
        text, message = self.table(document)
        self.assertEqual(text, "")
        for word in words:
            self.assertIn(word, message)

    def test_matching_evidence_counts(self):
        self.assertEqual(self.table(self.good), ('{"toy", "simt", 90},\n', ""))

    def test_no_evidence_is_an_empty_table(self):
        self.assertEqual(self.table(), ("", ""))

    def test_an_unchanged_table_keeps_its_time(self):
        self.table(self.good)
        path = self.root / "out/table.inc"
        os.utime(path, (1, 1))
        self.table(self.good)
        self.assertEqual(path.stat().st_mtime, 1)
        self.table(self.good, self.good | {"compute_capability": 80})
        self.assertNotEqual(path.stat().st_mtime, 1)

    def hashes(self):
        output = self.root / "out/hashes.inc"
        result = run(sys.executable, ROOT / "scripts/evidence.py", "--root", self.root, "hashes", output)
        self.assertEqual(result.returncode, 0, result.stderr)
        return output.read_text()

    def test_a_primitive_has_one_hash_of_all_its_kernels(self):
        self.assertEqual(self.hashes(), "")  # no primitive without a spec
        self.put("host/toy/toy_spec.cpp", "")
        self.put("host/toy/bare_spec.cpp", "")  # and none without kernels
        first = self.hashes()
        self.assertRegex(first, r'^\{"toy", "[0-9a-f]{64}"\},\n$')
        self.put("kernels/toy/twice.cuh", HEADER + "// a comment\n")
        self.assertEqual(self.hashes(), first)
        self.put("kernels/toy/toy_other.cu", "int other;")
        self.assertNotEqual(self.hashes(), first)

    def test_one_byte_of_code_makes_it_stale(self):
        for name, text, old, new in [("kernels/toy/toy_simt.cu", KERNEL, "21", "22"), ("kernels/toy/twice.cuh", HEADER, "2 *", "3 *"),
                                     ("include/wide/toy.hpp", PUBLIC, "= 1", "= 2")]:
            self.put(name, text.replace(old, new))
            self.assert_refused(self.good, "toy/simt", "stale")
            self.put(name, text)

    def test_another_source_or_none_makes_it_stale(self):
        more = self.put("kernels/toy/toy_simt_half.cu", "")
        self.assert_refused(self.good, "stale")
        more.unlink()
        (self.root / "kernels/toy/toy_simt.cu").unlink()
        self.assert_refused(self.good, "stale")

    def test_comments_and_blanks_do_not_matter(self):
        self.put("kernels/toy/twice.cuh", HEADER.replace("// doubles", "/* two\n lines */").replace("{ return", "{\n  return"))
        self.assertEqual(self.table(self.good)[0], '{"toy", "simt", 90},\n')

    def test_failures_do_not_count(self):
        self.assert_refused(self.good | {"cases_failed": 1}, "toy/simt", "failed")
        self.assert_refused(self.good | {"worst_error_ratio": 1.5}, "failed")
        for tool in evidence.TOOLS:
            self.assert_refused(self.good | {"sanitizer": CLEAN | {tool: 1}}, "toy/simt", "failed")

    def test_what_was_not_run_is_not_passed(self):
        self.assert_refused(self.good | {"cases_passed": 0}, "toy/simt", "incomplete")
        self.assert_refused(self.good | {"worst_error_ratio": None}, "incomplete")
        for tool in evidence.TOOLS:
            self.assert_refused(self.good | {"sanitizer": CLEAN | {tool: None}}, "toy/simt", "incomplete")
        self.assert_refused(self.good | {"sanitizer": {}}, "incomplete")
        self.assert_refused(self.good | {"sanitizer": CLEAN | {"memcheck": False}}, "incomplete")

    def test_unreadable_files_are_named_and_stop_nothing(self):
        for broken in ['{"schema": ', "", "[]", json.dumps(self.good | {"schema": "wide.evidence 0"}),
                       json.dumps(self.good | {"cases_failed": "0"}), json.dumps(self.good | {"op": 'toy", "x'})]:
            text, message = self.table(broken, self.good)
            self.assertEqual(text, '{"toy", "simt", 90},\n')
            self.assertIn("0.json", message)

    def test_a_failure_outweighs_a_pass_of_the_same_sources(self):
        self.assertEqual(self.table(self.good, self.good | {"cases_failed": 1})[0], "")
        self.assertNotEqual(self.table(self.good, self.good | {"cases_failed": 1, "source_hash": "old"})[0], "")


class Normalized(unittest.TestCase):
    def test_same_program(self):
        for a, b in [("a+b", "a  +\n b"), ("int x;  // c\n", "int x;"), ("int/**/x", "int x"), ("a\r\nb", "a\nb"),
                     ("#define A \\\n x\ny", "#define A   x // k\n y"), ("x\n#if A\ny", "x\n\n  #if A /* c */\ny\n")]:
            self.assertEqual(evidence.normalized(a), evidence.normalized(b), (a, b))

    def test_other_program(self):
        for a, b in [("a + +b", "a ++b"), ("#define F (x)\nb", "#define F(x)\nb"), ("#define A x\ny", "#define A x y"), ("a b", "ab"),
                     ('"// no"', '"// yes"'), ("1'000", "1000"), ('R"(a // b)"', 'R"(a // c)"'), ('"a b"', '"a  b"')]:
            self.assertNotEqual(evidence.normalized(a), evidence.normalized(b), (a, b))


class GpuCheck(Tree):
    """gpu_check in a tree of its own, with stubs for the driver's tool, the sanitizer and wbench."""

    def setUp(self):
        super().setUp()
        for path in (*(ROOT / "scripts/gpu_check.d").iterdir(), ROOT / "scripts/gpu_check", ROOT / "scripts/evidence.py"):
            self.put(path.relative_to(ROOT), path.read_text(), 0o755)
        self.put("bin/nvidia-smi", '#!/bin/sh\ncase "$*" in -L) echo GPU 0 ;; *driver*) echo 580.1 ;; *) echo Toy GPU ;; esac\n', 0o755)
        self.put("bin/compute-sanitizer", '#!/bin/sh\necho "========= ERROR SUMMARY: ${FINDINGS:-0} errors"\n'
                                          'exit ${SANITIZER_EXIT:-0}\n', 0o755)
        check = {"before": "pass", "elements_compared": 4, "worst_error_ratio": 0.25}
        result = {"schema": {"name": "wbench.result"}, "run": {"complete": True, "tool": {"cuda_toolkit": "13.0"}},
                  "devices": [{"device": "cuda:0", "name": "Toy GPU", "compute_capability": 90, "cuda_driver": 13000}],
                  "cases": [{"op": "toy", "strategies": [{"name": "simt", "status": "ok", "verify": check},
                                                         {"name": "sequential", "status": "ok", "verify": check}]}]}
        self.put("result.json", json.dumps(result))
        self.put("self_check.json", json.dumps({"self_check": {"failed": 0, "checks": [{"name": "event_quantum"}]}}))
        self.put("build/bench/wbench", '#!/bin/bash\nfile=result.json\n[ "$1" != info ] || file=self_check.json\n'
                                       f'echo "$*" >>{self.root}/words\n[ "$1" != suite ] || file=suite.json\nwhile [ "$1" != --json ]; do\n'
                                       f'  [ "$1" != --results ] || {{ mkdir -p "$2" && cp {self.root}/entries/*.json "$2"; }}\n  shift\ndone\n'
                                       f'cp {self.root}/$file "$2"\nexit ${{WBENCH_EXIT:-0}}\n', 0o755)
        self.put("build/verify/isolation_test", "#!/bin/sh\n", 0o755)

    def check(self, *parts, **env):
        env["PATH"] = f"{self.root}/bin:{os.environ['PATH']}"
        return run(self.root / "scripts/gpu_check", "--out", self.root / "out", "--build", self.root / "build", *parts, **env)

    def test_what_the_build_asks_for_is_carried(self):
        carry = (ROOT / "scripts/gpu_check.d/carry.sh").read_text()
        asked = {name for path in ("CMakeLists.txt", "bench/CMakeLists.txt", "verify/CMakeLists.txt", "verify/simcuda/CMakeLists.txt",
                                   *(f.relative_to(ROOT) for f in (ROOT / "scripts/cmake").glob("Wide*.cmake")))
                 for name in re.findall(r"^ *find_package\((\w+)[^)]*REQUIRED", (ROOT / path).read_text(), re.MULTILINE)}
        self.assertLess({"ZLIB", "Catch2", "CLI11"}, asked)
        self.assertEqual(asked - {"CUDAToolkit", "Threads"}, set(re.findall(r"\[(\w+)\]=[a-z]", carry)))

    def test_a_build_that_stops_says_why(self):
        noise = "".join(f"-- Detecting {i}\\n" for i in range(60))
        self.put("bin/cmake", f'#!/bin/sh\nprintf "CMake Error at CMakeLists.txt:37:\\n  Could NOT find ZLIB\\n{noise}"\nexit 1\n', 0o755)
        configured = self.check("build", "tests")
        summary = (self.root / "out/summary.txt").read_text()
        self.assertEqual(configured.returncode, 1)
        self.assertIn("Could NOT find ZLIB", summary)
        self.assertIn("build: FAILED (exit code 1)", summary)
        self.assertNotIn("Detecting 30", summary)
        self.assertIn(f"found cmake: {self.root}/bin/cmake\n", summary)
        for name in ("nvcc", "ncu", "nsys", "compute-sanitizer", "libcublas", "libz", "libcudnn", "torch"):
            self.assertRegex(summary, f"found {name}: .")
        self.assertNotIn("\nnone", summary)  # what is found is a line each
        self.assertNotIn("tests:", summary)
        self.put("bin/cmake", '#!/bin/sh\nprintf "FAILED: a.o\\na.cpp:1:1: error: no such thing\\n' + noise + '"\nexit 1\n', 0o755)
        self.assertIn("error: no such thing", self.check("build").stdout)

    @unittest.skipUnless(shutil.which("cmake"), "needs CMake")
    def test_a_library_of_a_wheel(self):
        for name in ("lib/libcublas.so.13", "include/cublas_v2.h", "lib/libcublasLt.so.13"):
            self.put(f"site/nvidia/cu13/{name}", "")
        script = self.put("find.cmake", f'include({ROOT}/scripts/cmake/WideWheels.cmake)\n' + "".join(
            f"wide_find_in_wheels({name} {version} {header} library headers)\nmessage(\"${{library}} ${{headers}}\")\n"
            for name, version, header in [("cublas", 13, "cublas_v2.h"), ("cublasLt", 13, "cublasLt.h"), ("cublas", 14, "cublas_v2.h")]))
        found = run("cmake", "-P", script, PYTHONPATH=str(self.root / "site")).stderr.splitlines()
        folder = self.root / "site/nvidia/cu13"
        self.assertEqual(found, [f"{folder}/lib/libcublas.so.13 {folder}/include",
                                 "cublasLt-NOTFOUND cublasLt-NOTFOUND", "cublas-NOTFOUND cublas-NOTFOUND"])

    def test_tests_that_run_out_of_time_say_what_they_gave(self):
        self.put("scripts/run_tests.py", """import sys
open("words", "w").write(" ".join(sys.argv[1:]))
print("a_test  3 passed\\nskipped 2: no cuDNN\\nfailed: b_test: exit code 1\\nout of time: 1 of 9 programs: c_test\\n7 passed, 1 failed, 2 skipped")
sys.exit(1)
""")
        out = self.check("tests", WIDE_GPU_CHECK_S="100").stdout
        for words in ("skipped 2: no cuDNN", "failed: b_test", "out of time: 1 of 9 programs: c_test", "7 passed, 1 failed", "FAILED (exit code 1)"):
            self.assertIn(words, out)
        _, seconds, option, pattern, _ = (self.root / "words").read_text().split()
        self.assertLess(int(seconds), 85 - 4)  # so that it can say so
        self.assertEqual(option, "--leave-out")
        for name in ("sim_lazy_0_linear_cuda_test", "simt_engine_test", "ptx_float_test", "mutate", "scripts", "readme", "report_browser", "evidence"):
            self.assertRegex(name, pattern)
        needs_gpu = [p.stem for p in (ROOT / "verify").glob("*_cuda_test.cpp")] + ["isolation_test", "catalog_test", "model_test", "c_api", "timer_test"]
        self.assertIn("golden_cuda_test", needs_gpu)
        for name in needs_gpu:
            self.assertNotRegex(name, pattern)

    def read_evidence(self):
        return json.loads((self.root / "verify/evidence/toy_simt_sm90.json").read_text())

    def test_help_needs_no_gpu(self):
        result = run(ROOT / "scripts/gpu_check", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("sanitize", result.stdout)

    def test_an_unknown_part(self):
        self.assertEqual(run(ROOT / "scripts/gpu_check", "everything").returncode, 2)

    @unittest.skipIf(os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi"), "there is a GPU")
    def test_without_a_gpu(self):
        result = run(ROOT / "scripts/gpu_check", "--out", self.root / "out", "verify")
        self.assertEqual(result.returncode, 77)
        self.assertIn("no GPU", result.stdout)

    def test_a_good_device_verifies_the_strategy(self):
        result = self.check("sanitize", "verify", "bench", "evidence")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = self.read_evidence()
        self.assertEqual((found["cases_passed"], found["cases_failed"], found["driver"]), (3, 0, "580.1"))
        self.assertEqual(found["sanitizer"], CLEAN)
        self.assertEqual(evidence.state_of(self.root, found), "verified")
        self.assertEqual(len(list(self.root.glob("bench/results/Toy-GPU/quick-*.json"))), 1)
        self.assertEqual(len(list(self.root.glob("verify/evidence/*"))), 1)  # none for sequential

    def kept(self, name):
        return len(list(self.root.glob(f"bench/results/Toy-GPU/{name}-*.json")))

    def test_the_self_check_is_kept_whatever_it_found(self):
        self.assertEqual(self.check("selfcheck").returncode, 0)
        self.assertEqual(self.kept("self_check"), 1)
        self.assertIn("info --self-check --device cuda", (self.root / "words").read_text())
        shutil.rmtree(self.root / "bench")
        failed = self.check("selfcheck", WBENCH_EXIT="7")
        self.assertEqual((failed.returncode, self.kept("self_check")), (1, 1), failed.stdout)
        self.assertIn("selfcheck: FAILED (exit code 7)", failed.stdout)
        shutil.rmtree(self.root / "bench")
        self.put("self_check.json", '{"self_check": {"checks": []}}')
        empty = self.check("selfcheck")
        self.assertEqual((empty.returncode, self.kept("self_check")), (1, 0), empty.stdout)
        self.assertIn("no check was made", empty.stdout)

    def put_suite(self):
        self.put("bench/suites/end_to_end.json", (ROOT / "bench/suites/end_to_end.json").read_text())
        for name, complete in [("mlp-n20", True), ("vit-n8", False)]:
            self.put(f"entries/{name}.json", json.dumps({"run": {"complete": complete}}))
        self.put("suite.json", json.dumps({"complete": False}))

    def test_models_that_came_to_their_end_are_kept(self):
        self.put_suite()
        good = self.check("models")
        self.assertEqual((good.returncode, self.kept("end_to_end-mlp-n20"), self.kept("end_to_end-vit-n8")), (0, 1, 0), good.stdout)
        self.assertEqual(self.kept("end_to_end"), 2)  # the suite's own, too
        self.assertIn("models: 1 of 9 came to their end", good.stdout)
        suite = json.loads((self.root / "out/end_to_end.suite.json").read_text())
        self.assertEqual(suite["defaults"]["regimes"], ["stream", "graph"])
        self.assertLess(suite["defaults"]["budget_s"] * len(suite["entries"]), 470)
        missed = self.check("models", WBENCH_EXIT="5")
        self.assertIn("models: FAILED (exit code 5)", missed.stdout)
        shutil.rmtree(self.root / "bench/results")
        shutil.rmtree(self.root / "entries")
        none = self.check("models", "verify")
        self.assertEqual((none.returncode, (self.root / "bench/results").exists()), (1, False), none.stdout)
        self.assertIn("verify: ok", none.stdout)  # of a wbench without models no other part suffers
        (self.root / "bench/suites/end_to_end.json").unlink()
        self.assertIn("models: FAILED", self.check("models").stdout)

    def put_regimes(self, regimes, clocks, reasons=(), complete=True):
        made = [{"regime": name, "clocks": clocks, "energy": {"valid": True}} for name in regimes]
        self.put("result.json", json.dumps({
            "run": {"complete": complete}, "environment_checks": [{"text": text} for text in reasons],
            "cases": [{"strategies": [{"measurements": made}], "baselines": [{"measurements": []}]}]}))

    def test_every_regime_with_clocks_or_a_reason(self):
        regimes = ["cold", "graph", "stream", "cpu"]
        self.put_regimes(regimes, {"sm_mhz_median": 1980})
        good = self.check("regimes")
        self.assertEqual((good.returncode, self.kept("regimes"), self.kept("rotate")), (0, 1, 1), good.stdout)
        self.assertIn("4 measurements, 4 with clocks, 4 with energy", good.stdout)
        words = (self.root / "words").read_text()
        for option in ("--regime cold,graph,stream,cpu", "--energy", "--aa", "--cache rotate"):
            self.assertIn(option, words)
        self.put_regimes(regimes, None)
        self.assertEqual(self.check("regimes").returncode, 1)
        self.put_regimes(regimes, None, ["clocks are unknown: no library"])
        told = self.check("regimes")
        self.assertEqual(told.returncode, 0, told.stdout)
        self.assertIn("clocks are unknown: no library", told.stdout)
        self.put_regimes(regimes[1:], {"sm_mhz_median": 1980})
        less = self.check("regimes")
        self.assertEqual(less.returncode, 1)
        self.assertIn("nothing was measured in regime cold", less.stdout)
        shutil.rmtree(self.root / "bench")
        self.put_regimes(regimes, {"sm_mhz_median": 1980}, complete=False)
        self.assertEqual((self.check("regimes").returncode, self.kept("regimes")), (1, 0))

    def limits(self, *parts, **env):
        """The seconds that each command was given."""
        log = self.root / "limits"
        log.unlink(missing_ok=True)
        self.put("bin/timeout", f'#!/bin/sh\necho "$5" >>{log}\nshift 5\nexec "$@"\n', 0o755)
        self.check(*parts, **env)
        return [int(line) for line in log.read_text().split()]

    def test_parts_share_what_time_there_is(self):
        def about(*seconds):
            return [Near(n) for n in seconds]
        self.assertEqual(self.limits("selfcheck", WIDE_GPU_CHECK_S="2015"), about(2000))
        self.assertEqual(self.limits("selfcheck", "bench"), about(455 * 45 / 110, 455))
        self.assertEqual(self.limits("verify"), about(455 / 3, 455 / 2, 455))
        self.put("scripts/run_tests.py", "")
        self.assertEqual(self.limits("tests", "bench"), about(150, 455))

    def put_counters(self, **document):
        self.put("scripts/counters.py", f"""import os, pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("--out") + 1]).write_text({json.dumps(document)!r})
print("    load sectors  2  1  differs: why")
sys.exit(int(os.environ["COUNTERS_EXIT"]))
""")

    def test_counters_are_kept_and_no_permission_is_no_failure(self):
        self.put_counters(not_run="no permission")
        none = self.check("counters", COUNTERS_EXIT="77")
        self.assertEqual((none.returncode, self.kept("counters")), (0, 1), none.stdout)
        self.assertIn("counters: not run: no permission", none.stdout)
        self.assertRegex(none.stdout, r"counters: not run, \d+ s")
        self.put_counters(kernels=[])
        differs = self.check("counters", COUNTERS_EXIT="4")
        self.assertEqual(differs.returncode, 0, differs.stdout)
        self.assertIn("differs: why", differs.stdout)
        self.put_counters(not_run="no permission")
        self.check("counters", COUNTERS_EXIT="77")
        (kept,) = self.root.glob("bench/results/Toy-GPU/counters-*.json")
        self.assertEqual(json.loads(kept.read_text()), {"kernels": []})  # a reason replaces no result
        self.put("scripts/counters.py", "import sys; sys.exit('no such thing')")
        self.assertEqual(self.check("counters").returncode, 1)

    def put_torch(self, has_cuda):
        self.put("python/torch.py", f"class cuda:\n    is_available = staticmethod(lambda: {has_cuda})\n")

    def test_peers_need_torch(self):
        self.put("python/torch.py", "raise ModuleNotFoundError(\"No module named 'torch'\")\n")
        without = self.check("peers", PYTHONPATH=str(self.root / "python"))
        self.assertEqual((without.returncode, self.kept("peers")), (0, 1), without.stdout)
        self.assertIn("peers: not run: ModuleNotFoundError: No module named 'torch'", without.stdout)
        (kept,) = self.root.glob("bench/results/Toy-GPU/peers-*.json")
        self.assertEqual(json.loads(kept.read_text())["device"], "Toy GPU")
        self.put_torch(has_cuda=False)
        self.assertIn("peers: not run: torch finds no CUDA device", self.check("peers", PYTHONPATH=str(self.root / "python")).stdout)
        self.put_torch(has_cuda=True)
        good = self.check("peers", PYTHONPATH=str(self.root / "python"))
        self.assertEqual(good.returncode, 0, good.stdout)
        self.assertTrue(json.loads(kept.read_text())["run"]["complete"])
        words = (self.root / "words").read_text()
        self.assertIn("run --op all -p quick --peer python3 scripts/peers/torch_peer.py --no-compile --device cuda --regime stream,graph,cold", words)
        self.put("result.json", '{"run": {"complete": false}}')
        short = self.check("peers", PYTHONPATH=str(self.root / "python"), WIDE_GPU_CHECK_S="100")
        self.assertEqual(short.returncode, 1, short.stdout)
        self.assertIn("-p ci --peer", (self.root / "words").read_text())

    def test_findings_and_what_gave_no_verdict(self):
        for env, expected in [({"FINDINGS": "3", "SANITIZER_EXIT": "1"}, 3), ({"SANITIZER_EXIT": "42"}, None)]:
            result = self.check("sanitize", "verify", "evidence", **env)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("sanitize: FAILED", result.stdout)
            self.assertEqual(self.read_evidence()["sanitizer"], {tool: expected for tool in evidence.TOOLS})
        (self.root / "out/sanitize.txt").unlink()
        self.assertEqual(self.check("evidence").returncode, 0)
        self.assertEqual(self.read_evidence()["sanitizer"], {tool: None for tool in evidence.TOOLS})

    def test_out_of_time_is_not_run(self):
        result = self.check("sanitize", "verify", "evidence", WIDE_GPU_CHECK_S="16")
        self.assertEqual(result.returncode, 1)
        self.assertIn("verify: FAILED (not run: out of time)", result.stdout)
        self.assertIn("null", (self.root / "out/sanitize.txt").read_text())
        self.assertFalse((self.root / "verify/evidence").exists())

    def test_what_counts_as_a_case(self):
        def case(status, before, elements, worst):
            verify = {"before": before, "elements_compared": elements, "worst_error_ratio": worst}
            return {"op": "toy", "strategies": [{"name": "simt", "status": status, "verify": verify}]}
        good, empty, skipped = case("ok", "pass", 1, 0.5), case("ok", "pass", 0, 0), case("skipped", "not_run", 0, None)
        wrong, late, threw = case("verify_failed", "fail", 1, 9), case("verify_failed", "pass", 1, 0.1), case("failed", "not_run", 0, 0)
        for cases, expected in [([good, empty, skipped], [1, 0, 0.5]), ([good, wrong, late, threw], [1, 3, 9]),
                                ([good, case("ok", "not_run", 1, 0)], [1, 1, 0.5]),
                                ([case("verify_failed", "fail", 1, None), good], [1, 1, None])]:
            self.assertEqual(evidence.tally([{"cases": cases}]), {("toy", "simt"): expected})
        self.assertEqual(evidence.tally([{"cases": [skipped, empty]}]), {})

    def test_a_partial_run_is_no_evidence(self):
        self.put("result.json", (self.root / "result.json").read_text().replace('"complete": true', '"complete": false'))
        result = self.check("verify", "bench", "evidence", WBENCH_EXIT="130")
        self.assertEqual(result.returncode, 1)
        for part in ("verify", "bench", "evidence"):
            self.assertIn(f"{part}: FAILED", result.stdout)
        self.assertFalse((self.root / "verify/evidence").exists() or (self.root / "bench/results").exists())


if __name__ == "__main__":
    unittest.main()
