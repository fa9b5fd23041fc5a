#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What gpu_check runs, keeps and says, in a tree of its own: a GPU is played by stubs in PATH."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import time
import unittest

from gpu_check_case import GpuCheckCase
from kernel_tree import HEADER, ROOT, run


# A wbench on a device that its primitives hang and lose. Two cases of each: the first is good, and so is what "last" has.
DEVICE = """#!/usr/bin/env python3
import json, os, signal, sys, time
if sys.argv[1] == "list":
    sys.exit(print(open("ROOT/strategies.json").read()))
signal.signal(signal.SIGINT, signal.SIG_IGN)
ops = sys.argv[sys.argv.index("--op") + 1].split(",")
events = open(sys.argv[sys.argv.index("--events") + 1], "w")
say = lambda **line: print(json.dumps(line), file=events, flush=True)
say(reason="run-started", result={"run": {"complete": False}})
why = None
for number, op in enumerate(op for op in ops for _ in range(2)):
    print(f"[{number + 1}/{2 * len(ops)}] 0.1 s  {op} n=4", file=sys.stderr, flush=True)
    if number % 2 and op == "hangs":
        time.sleep(1000)
    if number % 2 and op == "crashes":
        os._exit(134)
    case = {"op": op, "status": "failed" if why else "ok", "reason": why, "strategies": [], "baselines": []}
    if number % 2 and op == "loses":
        case |= {"status": "failed", "reason": "unspecified launch failure"}
        why = "not run: the device failed before: unspecified launch failure"
    say(reason="case-finished", case=case)
say(reason="run-finished", result={"run": {"complete": True}, "op_summaries": [ops[0]]})
sys.exit(bool(why))
"""


def case(op, *samples):
    """A case of a result, with a measurement where there are samples."""
    measured = [{"samples": {"time_ns": times, "round": [0]}, "stats": {}} for times in samples]
    return {"op": op, "status": "ok", "strategies": [{"measurements": measured}], "baselines": []}


def is_running(pid):
    """Whether that process is more than an entry that nobody asks for, some moments from now."""
    for _ in range(50):
        try:
            state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state in "ZX":
            return False
        time.sleep(0.1)
    return True


class GpuCheck(GpuCheckCase):
    def test_what_the_build_asks_for_is_carried(self):
        carry = (ROOT / "scripts/gpu_check.d/carry.sh").read_text()
        asked = {name for path in ("CMakeLists.txt", "bench/CMakeLists.txt", "verify/CMakeLists.txt", "verify/simcuda/CMakeLists.txt",
                                   *(f.relative_to(ROOT) for f in (ROOT / "scripts/cmake").glob("Wide*.cmake")))
                 for name in re.findall(r"^ *find_package\((\w+)[^)]*REQUIRED", (ROOT / path).read_text(), re.MULTILINE)}
        self.assertLess({"ZLIB", "Catch2", "CLI11"}, asked)
        self.assertEqual(asked - {"CUDAToolkit", "Threads"}, set(re.findall(r"\[(\w+)\]=[a-z]", carry)))

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
        write = f"cd {self.root}; say() {{ :; }}; . scripts/gpu_check.d/carry.sh; write_commit carry/commit"
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

    def test_what_is_taken_away_is_three_files(self):
        self.put("bench/results/NOTES.md", "notes")
        self.check("verify", "bench", "evidence")
        self.assertEqual(sorted(os.listdir(self.root / "out")), ["keep.tar.gz", "logs.tar.gz", "summary.txt"])
        kept, logs = self.in_archive("keep"), self.in_archive("logs")
        self.assertLess({"verify/evidence/toy_simt_sm90.json", "bench/results/NOTES.md"}, kept)
        self.assertTrue(any(name.startswith("bench/results/Toy-GPU/quick-") for name in kept))
        self.assertLess({"./verify-ci-toy.json", "./quick.json", "./quick.log"}, logs)
        # Ended half way, by whoever started it: what was there before is there.
        wbench = self.root / "build/bench/wbench"
        wbench.write_text(wbench.read_text().replace("\n", f"\n[ $1 != info ] || exec cp -r {self.root}/out {self.root}/then\n", 1))
        os.utime(wbench, (1, 1))  # what it gave is still its own
        shutil.rmtree(self.root / "out")
        self.check("evidence", "selfcheck")
        self.assertEqual(sorted(os.listdir(self.root / "then")), ["keep.tar.gz", "logs.tar.gz", "summary.txt"])
        self.assertIn("evidence: ok", (self.root / "then/summary.txt").read_text())
        self.put("bench/results/large.json", "x" * 5_000_001)
        self.assertIn("large.json is over 5 MB", self.check("evidence").stdout)
        self.assertNotIn("bench/results/large.json", self.in_archive("keep"))

    def test_what_is_large_is_taken_away_as_far_as_archives_allow(self):
        self.put("build/check/large.json", "x" * 5_000_001)
        self.assertEqual(self.check("evidence").returncode, 1)  # of no result
        self.assertIn("./large.json", self.in_archive("logs"))
        script = self.root / "scripts/gpu_check"
        script.write_text(script.read_text().replace("max_archive=$((16 << 20))", "max_archive=100000"))
        for name in ("build/check/noise.log", "bench/results/noise.f64le"):
            self.put(name, "").write_bytes(os.urandom(200_000))
        result = self.check("verify")
        self.assertIn("logs.tar.gz would be over 0 MiB: it is without ./large.json", result.stdout)
        self.assertIn("it is without ./noise.log", result.stdout)
        self.assertIn("keep.tar.gz would be over 0 MiB: it is without bench/results/noise.f64le", result.stdout)
        self.assertEqual(result.returncode, 1)  # what is to be committed is not all there
        self.assertIn("./verify-ci-toy.json", self.in_archive("logs"))

    def test_samples_lie_beside_the_result_that_names_them(self):
        self.put("samples", "8 bytes.")
        self.put_torch(has_cuda=True)
        for complete in (True, False):
            self.put("result.json", json.dumps({"run": {"complete": complete}, "cases": [case("toy", [1, 2.5]), case("toy", [3])],
                                                "samples_file": {"file": "quick.json.samples.f64le"}}, indent=1))
            self.check("bench")
        for name, cases, samples in (("quick", 2, b"8 bytes."), ("quick_partial", 1, struct.pack("<3d", 1, 2.5, 0))):
            (path,) = self.root.glob(f"bench/results/Toy-GPU/{name}-*.json")
            self.assertNotIn(" ", path.read_text())
            result = json.loads(path.read_text())
            self.assertEqual(len(result["cases"]), cases)
            self.assertEqual(result["samples_file"]["file"], path.name + ".samples.f64le")
            self.assertEqual((path.parent / result["samples_file"]["file"]).read_bytes(), samples)
        self.assertEqual(result["samples_file"] | {"file": ""}, {"file": "", "dtype": "f64le", "bytes": 24, "sha256": hashlib.sha256(samples).hexdigest()})
        self.assertEqual(result["cases"][0]["strategies"][0]["measurements"][0]["samples"],
                         {"time_ns": {"offset": 0, "count": 2}, "round": {"offset": 2, "count": 1}})
        self.assertTrue(any(name.endswith(".samples.f64le") for name in self.in_archive("keep")))
        self.check("peers", PYTHONPATH=str(self.root / "python"))
        words = (self.root / "words").read_text().splitlines()
        self.assertEqual([line.split()[:3] for line in words if "--samples sidecar" in line], [["run", "-v", "--op"]] * 3)
        self.put("result.json", json.dumps({"run": {"complete": True}, "cases": [case("x" * 5_000_001)]}))
        self.forget()
        self.assertIn("quick.json is not kept, and lies in logs.tar.gz: it is over 5 MB", self.check("bench").stdout)

    def test_one_signal_and_nothing_that_outlives_it(self):
        told = self.root / "told"
        self.put("build/bench/wbench", f"""#!/usr/bin/env python3
import signal, subprocess, sys
signal.signal(signal.SIGINT, lambda *_: open("{told}", "a").write("wbench "))
child = subprocess.Popen(["bash", "-c", "trap 'echo child >>{told}' INT; echo $$ >{self.root}/pid; while :; do sleep 0.1; done"])
signal.pause()
signal.sigtimedwait([], 1)
""", 0o755)
        result = self.check("selfcheck", WIDE_GPU_CHECK_S="20")
        self.assertIn("selfcheck: FAILED", result.stdout)
        self.assertEqual(told.read_text(), "wbench ")
        self.assertFalse(is_running((self.root / "pid").read_text().strip()))

    def test_the_manual_tells_how_two_calls_fit_a_quarter_of_an_hour(self):
        manual = (ROOT / "verify/README.md").read_text()
        for words in ("gpu_check carry programs", "back to back", "WIDE_GPU_CHECK_S=$((left < 600 ? left - 30 : 570))", "one kind of device", "an H200's"):
            self.assertIn(words, manual)

    def test_the_device_is_held_open(self):
        script = self.root / "scripts/gpu_check"
        script.write_text(script.read_text().replace("/dev/nvidia[0-9]*", f"{self.root}/nvidia[0-9]*"))
        wbench = self.root / "build/bench/wbench"
        wbench.write_text(wbench.read_text().replace("\n", f"\nreadlink /proc/self/fd/9 >{self.root}/held || true\n", 1))
        self.assertEqual(self.check("selfcheck").returncode, 0)
        self.assertEqual((self.root / "held").read_text(), "")  # where there is none
        node = self.put("nvidia3", "")
        self.assertEqual(self.check("selfcheck").returncode, 0)
        self.assertEqual((self.root / "held").read_text(), f"{node}\n")

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
        suite = json.loads((self.root / "build/check/end_to_end.suite.json").read_text())
        self.assertIn(f"models: 1 of {len(suite['entries'])} came to their end", good.stdout)
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

    def test_targets_keep_the_device_and_what_they_were_judged_by(self):
        for name in ("scripts/targets.py", "scripts/measured.py", "scripts/expectation.py", "scripts/roofline.py"):
            self.put(name, (ROOT / name).read_text())
        (self.root / "kernels/linear").symlink_to(ROOT / "kernels/linear")  # whose tiles are expected
        self.put("bench/targets.json", json.dumps({"targets": [{"name": name, "op": "linear", "axes": {"n": 8}} for name in ("toy", "other")]}))
        device = {"name": "Toy GPU", "cuda_driver": 13000, "clocks": {"sm_max_mhz": 1980}}
        self.put("suite.json", json.dumps({"entries": []}))
        self.put("entries/t00.json", json.dumps({"run": {"complete": True}, "devices": [device], "cases": []}))
        self.check("targets")
        (self.root / "words").unlink()
        self.check("targets")
        self.assertRegex((self.root / "words").read_text(), "^suite run .* -v --entry t01\n$")  # what the first call left
        (kept,) = self.root.glob("bench/results/Toy-GPU/targets-*.json")
        result = json.loads(kept.read_text())
        self.assertEqual((result["device"], result["driver"]), (device, "580.1"))
        self.assertEqual(result["targets"][0]["why"], "its case is not in the result")
        self.assertLess({"./targets/results/t00.json", "./targets/suite.json", "./targets/log"}, self.in_archive("logs"))

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
        """The seconds that each command was given, where time stands still."""
        log = self.root / "limits"
        log.unlink(missing_ok=True)
        self.put("bin/timeout", f'#!/bin/sh\necho "$6" >>{log}\nshift 6\nexec "$@"\n', 0o755)
        self.check(*parts, **self.still(), **env)
        return [int(line) for line in log.read_text().split()]

    def test_parts_share_what_time_there_is(self):
        self.assertEqual(self.limits("selfcheck", WIDE_GPU_CHECK_S="2015"), [2000])
        self.assertEqual(self.limits("selfcheck", "bench"), [555 * 45 // 110, 555])
        self.assertEqual(self.limits("verify", "bench"), [555 * 110 // 175, 555])
        self.put("scripts/run_tests.py", "")
        self.assertEqual(self.limits("tests", "bench"), [555 * 100 // 165, 555])
        self.assertEqual(self.limits("droop", "selfcheck"), [30, 555])
        self.assertEqual(self.limits("selfcheck", "tests")[-1:], [555])  # the last has all that is left

    def test_groups(self):
        self.put("bin/cmake", "#!/bin/sh\n", 0o755)
        self.assertEqual(self.order("second"), ["build", "verify", "sanitize", "evidence"])  # what there is no result of yet
        self.assertEqual(self.order("second"), ["sanitize", "evidence"])
        half = self.root / "build/check/verify-bags-embedding.json"
        half.write_text(half.read_text().replace('"complete": true', '"complete": false'))
        self.assertEqual(self.order("second"), ["verify", "sanitize", "evidence"])
        self.assertEqual(self.order("first"), ["build", "golden", "scout", "verify", "evidence", "tests", "selfcheck", "targets", "bench"])
        third = ["droop", "regimes", "counters", "peers"]
        self.assertEqual(self.order("third"), third)
        self.assertEqual(self.order("third", "golden"), [*third, "golden"])
        for name in ("sources.txt", "ended.sum"):
            (self.root / "build" / name).unlink()
        self.assertEqual(self.order("third"), ["build", *third])

    def test_a_group_of_all_has_every_part_once(self):
        text = (ROOT / "scripts/gpu_check").read_text()
        everything = re.search(r'\[all\]="([a-z ]+)"', text).group(1).split()
        defined = {name for path in (ROOT / "scripts/gpu_check.d").glob("*.sh") for name in re.findall(r"^part_([a-z]+)\(\)", path.read_text(), re.MULTILINE)}
        self.assertEqual(sorted(everything), sorted(defined - {"carry", "programs"}))
        self.assertLess(everything.index("evidence"), everything.index("models"))
        for name in defined:
            self.assertRegex(text, rf"(?m)^#   {name} +[a-z0-9/]")

    def test_a_sweep_that_its_time_ends_keeps_whole_cases(self):
        self.put("result.json", json.dumps({"run": {"complete": False}, "cases": [case("first"), case("second"), case("half")]}))
        result = self.check("bench", WBENCH_EXIT="130")
        self.assertEqual((result.returncode, self.kept("quick")), (1, 0), result.stdout)
        self.assertIn("quick did not come to its end: 2 of its cases are kept", result.stdout)
        (kept,) = self.root.glob("bench/results/Toy-GPU/quick_partial-*.json")
        self.assertEqual((json.loads(kept.read_text())["run"], self.ops_in(kept)), ({"complete": False}, ["first", "second"]))
        self.forget()
        self.put("result.json", json.dumps({"run": {"complete": False}, "cases": [case("half")]}))
        self.assertIn("0 of its cases are kept", self.check("bench").stdout)
        self.assertFalse((self.root / "bench/results").exists())

    def ops_in(self, path):
        return [one["op"] for one in json.loads(path.read_text())["cases"]]

    def test_what_hangs_crashes_or_loses_the_device_costs_a_sweep_one_primitive(self):
        path = self.root / "scripts/watched.py"
        for was, now in (("FIRST_CALLS_S = 15", "FIRST_CALLS_S = 3"), ("seconds / 4", "seconds / 40"), ("WRITE_S = 5", "WRITE_S = 1")):
            self.assertIn(was, path.read_text())
            path.write_text(path.read_text().replace(was, now))
        ops = ["good", "hangs", "fine", "crashes", "loses", "late", "last"]
        self.put_strategies(*((op, "simt") for op in ops))
        self.put("build/bench/wbench", DEVICE.replace("ROOT", str(self.root)), 0o755)
        out = self.check("bench", WIDE_GPU_CHECK_S="120").stdout
        (kept,) = self.root.glob("bench/results/Toy-GPU/quick_partial-*.json")
        self.assertEqual(self.ops_in(kept), ["good", "good", "hangs", "fine", "fine", "crashes", "loses", "loses", "late", "late", "last", "last"], out)
        result = json.loads(kept.read_text())
        self.assertEqual((result["run"]["complete"], result["totals"]), (False, {"cases": 12, "unreliable": 0, "ok": 11, "failed": 1}))
        self.assertEqual(result["op_summaries"], ["loses", "late"])  # of what came to an end, once
        self.assertIn("hangs came to no end, exit code -9: 5 primitives behind it", out)
        self.assertIn("crashes came to no end, exit code 134: 3 primitives behind it", out)
        self.assertIn("loses came to no end, exit code 1: 2 primitives behind it", out)
        self.assertIn("quick did not come to its end: 12 of its cases are kept", out)
        self.assertIn("bench: FAILED", out)

    def test_a_sweep_leaves_out_what_is_lost_in_its_primitive_and_nowhere_else(self):
        self.put_strategies(("toy", "wgmma"), ("good", "wgmma"), ("fine", "simt"))
        self.put("result.json", json.dumps({"run": {"complete": True}, "cases": [case("toy", [1])]}))
        lost = self.put("build/check/lost.json", json.dumps({"toy/wgmma": {"why": "came to no end", "suspicion": None}}))
        for age, processes in ((1, ["--op good,fine -p", "--op toy --skip wgmma -p"]), (-1, ["--op toy,good,fine -p"])):
            made = (self.root / "build/bench/wbench").stat().st_mtime
            os.utime(lost, (made + age, made + age))  # one that is older than wbench is another one's
            self.check("bench")
            self.assertEqual(re.findall(r"^run -v (--op .* -p) quick", (self.root / "words").read_text(), re.MULTILINE), processes)
            self.assertEqual((self.kept("quick_partial"), self.kept("quick")), (1, 0) if age > 0 else (0, 1))
            (self.root / "words").unlink()
            self.forget()

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
        self.assertIn("run -v --op toy -p quick --peer python3 scripts/peers/torch_peer.py --no-compile --device cuda --regime stream,graph,cold", words)
        self.put("result.json", '{"run": {"complete": false}}')
        short = self.check("peers", PYTHONPATH=str(self.root / "python"), WIDE_GPU_CHECK_S="360")  # but for evidence's
        self.assertEqual(short.returncode, 1, short.stdout)
        self.assertIn("-p ci --peer", (self.root / "words").read_text())


if __name__ == "__main__":
    unittest.main()
