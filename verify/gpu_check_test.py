#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What gpu_check runs, keeps and says, in a tree of its own: a GPU is played by stubs in PATH."""
import json
import os
import re
import shutil
import tarfile
import unittest

from gpu_check_case import GpuCheckCase
from kernel_tree import CLEAN, HEADER, ROOT, evidence, run


class Near(float):
    """Equal to what is up to two seconds less."""

    def __eq__(self, other):
        return self - 2 <= other <= self

    __hash__ = float.__hash__


class GpuCheck(GpuCheckCase):
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

    @unittest.skipUnless(shutil.which("cmake") and shutil.which("git"), "needs CMake and git")
    def test_the_commit_is_carried(self):
        def built():
            run("cmake", f"-DSOURCE_DIR={self.root}", f"-DOUTPUT={self.root}/info.hpp", "-P", ROOT / "scripts/cmake/WriteBuildInfo.cmake")
            return re.findall(r"WIDE_GIT_(?:SHA|DIRTY) (.*)", (self.root / "info.hpp").read_text())
        self.put("scripts/cmake/wide_build_info.hpp.in", (ROOT / "scripts/cmake/wide_build_info.hpp.in").read_text())
        self.put("bin/cmake", "#!/bin/sh\n", 0o755)
        self.assertEqual(built(), ['""', "false"])

        def git(*words):
            return run("git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", *words).stdout.strip()
        git("init")
        git("add", "kernels")
        git("commit", "-m", "Begin")
        sha = git("rev-parse", "HEAD")
        write = f"cd {self.root}; say() {{ :; }}; . scripts/gpu_check.d/carry.sh; write_commit"
        for text, state in [("", "clean"), ("// more\n", "dirty")]:
            self.put("kernels/toy/twice.cuh", HEADER + text)
            run("bash", "-c", write)
            (self.root / ".git").rename(self.root / "history")  # as on the other machine
            self.check("build")
            self.assertEqual(built(), [f'"{sha}"', "true" if state == "dirty" else "false"])
            (self.root / "history").rename(self.root / ".git")
        self.put("kernels/toy/twice.cuh", HEADER)
        run("bash", "-c", write)
        self.put("kernels/toy/twice.cuh", HEADER + "// other\n")
        (self.root / ".git").rename(self.root / "history")
        self.assertIn("written for other sources", self.check("build").stdout)
        self.assertEqual(built(), [f'"{sha}"', "true"])

    def test_tests_that_run_out_of_time_say_what_they_gave(self):
        self.put("scripts/run_tests.py", """import sys
open("words", "w").write(" ".join(sys.argv[1:]))
print("a_test  3 passed\\nskipped 2: no cuDNN\\nfailed: b_test: exit code 1\\nout of time: 1 of 9 programs: c_test\\n7 passed, 1 failed, 2 skipped")
sys.exit(1)
""")
        out = self.check("tests", WIDE_GPU_CHECK_S="100").stdout
        for words in ("skipped 2: no cuDNN", "failed: b_test", "out of time: 1 of 9 programs: c_test", "7 passed, 1 failed", "FAILED (exit code 1)"):
            self.assertIn(words, out)
        _, seconds, alone, option, pattern, _ = (self.root / "words").read_text().split()
        self.assertLess(int(seconds), 85 - 4)  # so that it can say so
        self.assertEqual((alone, option), ("--alone-first", "--leave-out"))
        for name in ("sim_lazy_0_linear_cuda_test", "simt_engine_test", "ptx_float_test", "mutate", "scripts", "readme", "report_browser", "evidence"):
            self.assertRegex(name, pattern)
        needs_gpu = [p.stem for p in (ROOT / "verify").glob("*_cuda_test.cpp")] + ["isolation_test", "catalog_test", "model_test", "c_api", "timer_test"]
        self.assertIn("golden_cuda_test", needs_gpu)
        for name in needs_gpu:
            self.assertNotRegex(name, pattern)

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
        self.assertEqual((found["cases_passed"], found["cases_failed"], found["driver"]), (9, 0, "580.1"))  # one of each run
        self.assertEqual(found["sanitizer"], CLEAN)
        self.assertEqual(evidence.state_of(self.root, found), "verified")
        self.assertEqual(len(list(self.root.glob("bench/results/Toy-GPU/quick-*.json"))), 1)
        self.assertEqual(len(list(self.root.glob("verify/evidence/*.json"))), 1)  # none for sequential

    def test_a_missing_run_costs_its_primitives_their_evidence(self):
        self.check("sanitize", "verify")
        for name in ("ci", "bags"):
            path = self.root / f"build/check/verify-{name}.json"
            text = path.read_text()
            path.write_text(text.replace('"complete": true', '"complete": false'))
            result = self.check("evidence")
            self.assertEqual(result.returncode, 1 if name == "ci" else 0, result.stdout)
            self.assertIn(f"verify's run {name} did not come to its end: no evidence for {'all' if name == 'ci' else 'embedding'}", result.stdout)
            path.write_text(text)
        self.assertEqual(self.read_evidence()["cases_passed"], 8)
        runs = self.root / "scripts/gpu_check.d/verify_runs"
        runs.write_text(runs.read_text().replace("--op embedding", "--op other,toy"))
        (self.root / "build/check/verify-bags.json").unlink()
        self.forget()
        self.assertIn("no case of a hand-written strategy", self.check("evidence").stderr)

    def in_archive(self, name):
        with tarfile.open(self.root / f"out/{name}.tar.gz") as archive:
            return {member.name for member in archive if not member.isdir()}

    def test_what_is_taken_away_is_three_files(self):
        self.put("bench/results/NOTES.md", "notes")
        self.check("verify", "bench", "evidence")
        self.assertEqual(sorted(os.listdir(self.root / "out")), ["keep.tar.gz", "logs.tar.gz", "summary.txt"])
        kept, logs = self.in_archive("keep"), self.in_archive("logs")
        self.assertLess({"verify/evidence/toy_simt_sm90.json", "bench/results/NOTES.md"}, kept)
        self.assertTrue(any(name.startswith("bench/results/Toy-GPU/quick-") for name in kept))
        self.assertLess({"./verify-ci.json", "./quick.json", "./wbench-run.log"}, logs)
        # Ended half way, by whoever started it: what was there before is there.
        self.put("build/bench/wbench", f"#!/bin/sh\n[ $1 != info ] || cp -r {self.root}/out {self.root}/then\n", 0o755)
        shutil.rmtree(self.root / "out")
        self.check("evidence", "selfcheck")
        self.assertEqual(sorted(os.listdir(self.root / "then")), ["keep.tar.gz", "logs.tar.gz", "summary.txt"])
        self.assertIn("evidence: ok", (self.root / "then/summary.txt").read_text())
        self.put("bench/results/large.json", "x" * 5_000_001)
        self.assertIn("large.json is over 5 MB", self.check("evidence").stdout)
        self.assertNotIn("bench/results/large.json", self.in_archive("keep"))

    def kept(self, name):
        return len(list(self.root.glob(f"bench/results/Toy-GPU/{name}-*.json")))

    def test_the_self_check_is_kept_whatever_it_found(self):
        self.assertEqual(self.check("selfcheck").returncode, 0)
        self.assertEqual(self.kept("self_check"), 1)
        self.assertIn("info --self-check --device cuda", (self.root / "words").read_text())
        self.forget()
        failed = self.check("selfcheck", WBENCH_EXIT="7")
        self.assertEqual((failed.returncode, self.kept("self_check")), (1, 1), failed.stdout)
        self.assertIn("selfcheck: FAILED (exit code 7)", failed.stdout)
        self.forget()
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
        self.put("bin/cmake", f"#!/bin/sh\necho cmake $* >>{self.root}/words\n", 0o755)
        good = self.check("models")
        self.assertRegex((self.root / "words").read_text(), r"^cmake --build \S+ --target wbench\nsuite run")
        self.assertEqual((good.returncode, self.kept("end_to_end-mlp-n20"), self.kept("end_to_end-vit-n8")), (0, 1, 0), good.stdout)
        self.assertEqual(self.kept("end_to_end"), 2)  # the suite's own, too
        self.assertIn("models: 1 of 9 came to their end", good.stdout)
        suite = json.loads((self.root / "build/check/end_to_end.suite.json").read_text())
        self.assertEqual(suite["defaults"]["regimes"], ["stream", "graph"])
        self.assertLess(suite["defaults"]["budget_s"] * len(suite["entries"]), 570)
        missed = self.check("models", WBENCH_EXIT="5")
        self.assertIn("models: FAILED (exit code 5)", missed.stdout)
        self.forget()
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
        self.forget()
        self.put_regimes(regimes, {"sm_mhz_median": 1980}, complete=False)
        self.assertEqual((self.check("regimes").returncode, self.kept("regimes")), (1, 0))

    def test_every_sample_of_a_long_product(self):
        samples = {"time_ns": [2000] * 10 + [1000] * 80 + [1500] * 10}
        self.put("result.json", json.dumps({"run": {"complete": True}, "cases": [{"strategies": [{"measurements": [{"samples": samples}]}]}]}))
        good = self.check("droop")
        self.assertEqual((good.returncode, self.kept("droop")), (0, 1), good.stdout)
        self.assertIn("100 samples; medians of their tenths, of the first: 1.000 0.500 0.500", good.stdout)
        self.assertIn("0.750\n", good.stdout)
        self.assertIn("--warmup-time 0 --verify off --throttle warn", (self.root / "words").read_text())
        self.forget()
        self.put("result.json", json.dumps({"run": {"complete": False}, "cases": []}))
        self.assertEqual((self.check("droop").returncode, self.kept("droop")), (1, 0))

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
        self.assertEqual(self.limits("selfcheck", "bench"), about(555 * 45 / 110, 555))
        self.assertEqual(self.limits("verify"), about(*(555 / runs for runs in range(9, 0, -1))))
        self.put("scripts/run_tests.py", "")
        self.assertEqual(self.limits("tests", "bench"), about(555 * 100 / 165, 555))
        self.assertEqual(self.limits("droop", "selfcheck"), about(30, 555))
        self.assertEqual(self.limits("selfcheck", "tests")[-1:], about(555))  # the last has all that is left

    def order(self, *words):
        """The parts of a call, each by its first word about its end."""
        out = self.check(*words).stdout
        return list(dict.fromkeys(re.findall(r"^gpu_check: ([a-z]+): (?:ok|FAILED|not run)", out, re.MULTILINE)))

    def test_groups(self):
        self.put("bin/cmake", "#!/bin/sh\n", 0o755)
        self.assertEqual(self.order("second"), ["verify", "sanitize", "evidence"])  # what there is no result of yet
        self.assertEqual(self.order("second"), ["sanitize", "evidence"])
        (self.root / "build/check/verify-bags.json").unlink()
        self.assertEqual(self.order("second"), ["verify", "sanitize", "evidence"])
        self.assertEqual(self.order("first"), ["build", "golden", "verify", "selfcheck", "evidence", "tests"])
        third = ["droop", "targets", "bench", "regimes", "peers"]
        self.assertEqual(self.order("third"), third)
        self.assertEqual(self.order("third", "golden"), [*third, "golden"])
        (self.root / "build/bench/wbench").unlink()
        self.assertEqual(self.order("third"), ["build", *third])

    def test_a_group_of_all_has_every_part_once(self):
        text = (ROOT / "scripts/gpu_check").read_text()
        everything = re.search(r'\[all\]="([a-z ]+)"', text).group(1).split()
        defined = {name for path in (ROOT / "scripts/gpu_check.d").glob("*.sh") for name in re.findall(r"^part_([a-z]+)\(\)", path.read_text(), re.MULTILINE)}
        self.assertEqual(sorted(everything), sorted(defined - {"carry"}))
        self.assertLess(everything.index("evidence"), everything.index("models"))
        for name in defined:
            self.assertRegex(text, rf"(?m)^#   {name} +[a-z0-9/]")

    def test_a_sweep_that_its_time_ends_keeps_whole_cases(self):
        self.put("result.json", json.dumps({"run": {"complete": False}, "cases": ["first", "second", "half"]}))
        result = self.check("bench", WBENCH_EXIT="130")
        self.assertEqual((result.returncode, self.kept("quick")), (1, 0), result.stdout)
        self.assertIn("quick did not come to its end: 2 of its cases are kept", result.stdout)
        (kept,) = self.root.glob("bench/results/Toy-GPU/quick_partial-*.json")
        self.assertEqual(json.loads(kept.read_text()), {"run": {"complete": False}, "cases": ["first", "second"]})
        self.forget()
        self.put("result.json", json.dumps({"run": {"complete": False}, "cases": ["half"]}))
        self.assertIn("0 of its cases are kept", self.check("bench").stdout)
        self.assertFalse((self.root / "bench/results").exists())

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
        short = self.check("peers", PYTHONPATH=str(self.root / "python"), WIDE_GPU_CHECK_S="360")  # but for evidence's
        self.assertEqual(short.returncode, 1, short.stdout)
        self.assertIn("-p ci --peer", (self.root / "words").read_text())

    def test_out_of_time_is_not_run(self):
        result = self.check("sanitize", "verify", "evidence", WIDE_GPU_CHECK_S="16")
        self.assertEqual(result.returncode, 1)
        self.assertIn("verify: FAILED (not run: out of time)", result.stdout)
        self.assertIn("null", (self.root / "build/check/sanitize.txt").read_text())
        self.assertFalse((self.root / "verify/evidence").exists())

    def test_a_partial_run_is_no_evidence(self):
        self.put("result.json", (self.root / "result.json").read_text().replace('"complete": true', '"complete": false'))
        result = self.check("verify", "bench", "evidence", WBENCH_EXIT="130")
        self.assertEqual(result.returncode, 1)
        for part in ("verify", "bench", "evidence"):
            self.assertIn(f"{part}: FAILED", result.stdout)
        self.assertFalse((self.root / "verify/evidence").exists() or (self.root / "bench/results").exists())


if __name__ == "__main__":
    unittest.main()
