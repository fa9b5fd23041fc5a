#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What gpu_check makes of a build, of the runs that prove kernels right and of what they leave undone."""
import json
import re
import shutil
import unittest

from gpu_check_case import NUM_RUNS, WBENCH, GpuCheckCase
from kernel_tree import CLEAN, ROOT, evidence


# A wbench on a device which strategies hang or lose: "bad.json" says how, {"OP/STRATEGY": "hangs"}, at the second of three cases.
DEVICE = """#!/usr/bin/env python3
import json, os, signal, sys, time
words = sys.argv[1:]
listed = json.load(open("ROOT/strategies.json"))
if words[0] == "list":
    sys.exit(print(json.dumps(listed)))
signal.signal(signal.SIGINT, signal.SIG_IGN)
open("ROOT/words", "a").write(" ".join(words) + "\\n")
value = lambda option: words[words.index(option) + 1] if option in words else ""
op, bad = value("--op"), json.load(open("ROOT/bad.json"))
named = [row["strategy"] for row in listed if row["op"] == op and row["strategy"] not in value("--skip").split(",")]
named = ["sequential", *named] if not value("--strategy") else [value("--strategy")]
troubles = [bad[f"{op}/{name}"] for name in named if f"{op}/{name}" in bad]
troubles = [how.removeprefix("overlapping ") for how in troubles if "overlapping" not in how or os.environ.get("WIDE_PROGRAMMATIC_LAUNCH") != "0"]
time.sleep(1000 if "is silent" in troubles else 0)
cases, why = [], None
check = {"before": "pass", "elements_compared": 4, "worst_error_ratio": 0.25}
for number in range(1, 4):
    print(f"[{number}/3] 0.1 s  {op} n={number}", file=sys.stderr, flush=True)
    if number == 2 and "hangs" in troubles:
        time.sleep(1000)
    if number == 2 and "crashes" in troubles:
        os._exit(134)
    lost = number == 2 and "loses" in troubles or number == 3 and "loses last" in troubles
    ran = [] if why else [{"name": name, "status": "failed" if lost else "ok", "verify": check} for name in named]
    cases.append({"op": op, "status": "failed" if lost or why else "ok", "reason": why, "strategies": ran, "baselines": []})
    why = "not run: the device failed before: unspecified launch failure" if lost else why
result = json.load(open("ROOT/result.json"))
result["run"]["exit_code"] = int(any(case["status"] == "failed" for case in cases))
result["cases"] = cases
open(value("--json"), "w").write(json.dumps(result))
time.sleep(1000 if "hangs in the end" in troubles else 0)
sys.exit(result["run"]["exit_code"])
"""


class Prove(GpuCheckCase):
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
        self.assertIn("tests:", summary)  # by the wbench that there is
        self.put("bin/cmake", '#!/bin/sh\nprintf "FAILED: a.o\\na.cpp:1:1: error: no such thing\\n' + noise + '"\nexit 1\n', 0o755)
        self.assertIn("error: no such thing", self.check("build").stdout)
        (self.root / "build/bench/wbench").unlink()
        self.assertNotIn("tests:", self.check("build", "tests").stdout)

    def test_a_file_that_is_refused_costs_what_is_made_of_it(self):
        refused = self.put("refused", "")
        self.put("bin/cmake", f"#!/bin/sh\necho cmake $* >>{self.root}/words\n[ ! -e {refused} ] || [ $1 != --build ]\n", 0o755)
        self.put("bench/tool.cpp", "int main() {}\n")
        first = self.check("build", "verify", "evidence")
        self.assertIn("build: FAILED", first.stdout)
        self.assertIn("verify: ok", first.stdout)
        self.assertEqual((first.returncode, self.read_evidence()["cases_passed"]), (1, NUM_RUNS))
        self.assertRegex((self.root / "words").read_text(), r"cmake --build \S+ -- -k 0\n")
        self.assertEqual(self.order("third", WIDE_GPU_CHECK_S="1")[0], "droop")  # it would be refused again
        self.put("bench/tool.cpp", "int main() { return 2; }\n")
        self.assertEqual(self.order("third", WIDE_GPU_CHECK_S="1")[0], "build")  # which has no time to come to its end
        self.assertEqual(self.order("third", WIDE_GPU_CHECK_S="1")[0], "build")
        self.put("build/bench/wbench", WBENCH.replace("ROOT", str(self.root)), 0o755)  # of other sources it was dropped
        refused.unlink()
        self.check("build")
        self.assertEqual(self.order("third", WIDE_GPU_CHECK_S="1")[0], "droop")
        # What is there of other sources is none of these.
        self.put("bench/tool.cpp", "int main() { return 1; }\n")
        refused.touch()
        again = self.check("build", "verify")
        self.assertNotIn("verify:", again.stdout)

    def test_a_build_may_bring_other_primitives(self):
        later = self.put("later.json", json.dumps([{"op": op, "strategy": "simt", "device": "cuda", "kind": "hand_written"} for op in ("toy", "new")]))
        self.put("bin/cmake", f"#!/bin/sh\ncp {later} {self.root}/strategies.json\n", 0o755)
        self.put("scripts/gpu_check.d/verify_runs", "ci --op all -a dtype=fp32\n")
        self.check("verify", "build", "verify")
        self.assertEqual(re.findall(r"^verify .*(--op \w+)", (self.root / "words").read_text(), re.MULTILINE), ["--op toy", "--op new"])

    def test_only_developers_warnings_are_errors(self):
        for line in (ROOT / "verify/CMakeLists.txt").read_text().splitlines():
            self.assertTrue("-Werror" not in line or "$<BOOL:${WIDE_WERROR}>" in line, line)

    def test_tests_that_run_out_of_time_say_what_they_gave(self):
        for path in (ROOT / "verify").glob("*/*.[ch]pp"):
            self.put(path.relative_to(ROOT), path.read_text())
        self.put("scripts/run_tests.py", """import sys
open("words", "w").write(" ".join(sys.argv[1:]))
print("a_test  3 passed\\nskipped 2: no cuDNN\\nfailed: b_test: exit code 1\\nout of time: 1 of 9 programs: c_test\\n7 passed, 1 failed, 2 skipped")
sys.exit(1)
""")
        out = self.check("tests", WIDE_GPU_CHECK_S="100", **self.still()).stdout
        for words in ("skipped 2: no cuDNN", "failed: b_test", "out of time: 1 of 9 programs: c_test", "7 passed, 1 failed", "FAILED (exit code 1)"):
            self.assertIn(words, out)
        _, seconds, _, timeout, _, first, option, pattern, _ = (self.root / "words").read_text().split()
        self.assertEqual(int(seconds), 85 - 5)  # so that it can say so
        self.assertEqual(int(timeout), 85 // 2)
        self.assertEqual(option, "--leave-out")
        for name in ("model_test", "conv_test", "golden_cuda_test"):  # devices.hpp, included by conv_case.hpp, and by its name
            self.assertIn(name, re.findall(r"\^(\w+)\$", first))
        self.assertNotIn("npy_test", first)
        for name in ("sim_lazy_0_linear_cuda_test", "simt_engine_test", "ptx_float_test", "mutate", "scripts", "readme", "report_browser", "evidence",
                     "cli_test", "events_test", "exit_code_test", "history_test", "tune_test"):
            self.assertRegex(name, pattern)
        for path in (ROOT / "verify").glob("*/*_test.cpp"):
            if re.search(pattern, path.stem):
                self.assertNotIn("support/devices.hpp", path.read_text(), path)
        needs_gpu = [p.stem for p in (ROOT / "verify").glob("*/*_cuda_test.cpp")] + ["isolation_test", "catalog_test", "model_test", "c_api", "timer_test"]
        self.assertIn("golden_cuda_test", needs_gpu)
        for name in needs_gpu:
            self.assertNotRegex(name, pattern)

    def test_a_test_that_hangs_costs_no_other(self):
        tests = []
        for name, line in (("hangs", "exec sleep 1000"), ("alone", "exit 0"), ("other", "exit 0")):
            program = self.put(f"build/{name}", f"#!/bin/sh\n{line}\n", 0o755)
            tests.append({"name": name, "command": [str(program)], "properties": [{"name": "RUN_SERIAL", "value": name != "other"}]})
        listing = self.put("tests.json", json.dumps({"tests": tests}))
        self.put("bin/ctest", f"#!/bin/sh\ncat {listing}\n", 0o755)
        self.put("scripts/run_tests.py", (ROOT / "scripts/run_tests.py").read_text())
        script = self.root / "scripts/gpu_check.d/prove.sh"
        self.assertIn("--timeout $((limit / 2))", script.read_text())
        script.write_text(script.read_text().replace("--timeout $((limit / 2))", "--timeout $((limit / 40))"))
        out = self.check("tests", WIDE_GPU_CHECK_S="135", **self.still()).stdout
        self.assertIn("failed: hangs: no end within 3 s", out)
        self.assertIn("2 passed, 1 failed, 0 skipped", out)

    def test_a_good_device_verifies_the_strategy(self):
        result = self.check("sanitize", "verify", "bench", "evidence")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        found = self.read_evidence()
        self.assertEqual((found["cases_passed"], found["cases_failed"], found["driver"]), (NUM_RUNS, 0, "580.1"))  # one of each run
        self.assertEqual(found["sanitizer"], CLEAN)
        self.assertEqual(evidence.state_of(self.root, found), "verified")
        self.assertEqual(len(list(self.root.glob("bench/results/Toy-GPU/quick-*.json"))), 1)
        self.assertEqual(len(list(self.root.glob("verify/evidence/*.json"))), 1)  # none for sequential

    def test_a_missing_run_costs_its_primitives_their_evidence(self):
        self.check("sanitize", "verify")
        for name, op in (("ci-toy", "toy"), ("bags-embedding", "embedding")):
            path = self.root / f"build/check/verify-{name}.json"
            text = path.read_text()
            path.write_text(text.replace('"complete": true', '"complete": false'))
            result = self.check("evidence")
            self.assertEqual(result.returncode, 1 if op == "toy" else 0, result.stdout)
            self.assertIn(f"verify's run {name} did not come to its end: no evidence for {op}", result.stdout)
            path.write_text(text)
        self.assertEqual(self.read_evidence()["cases_passed"], NUM_RUNS - 1)
        runs = self.root / "scripts/gpu_check.d/verify_runs"
        runs.write_text(runs.read_text().replace("--op embedding", "--op other,toy"))
        self.forget()
        self.assertIn("no case of a hand-written strategy", self.check("evidence").stderr)

    def verified(self, **env):
        """What verify ran, as words between "--device cuda" and "--json", and what it said."""
        (self.root / "words").unlink(missing_ok=True)
        out = self.check("verify", **env).stdout
        words = (self.root / "words").read_text() if (self.root / "words").exists() else ""
        return re.findall(r"^verify .*--device cuda (.*) --events", words, re.MULTILINE), out

    def test_what_crashes_is_one_primitive_and_the_next_call_repeats_no_other(self):
        self.put_strategies(("toy", "simt"), ("bad", "simt"))
        self.put("broken", "--op bad")
        ran, out = self.verified()
        self.assertEqual(len(ran), NUM_RUNS + 2, out)  # bad's, and once more its strategy by itself
        self.assertEqual(ran[-1], "--op bad -a dtype=fp32,fp16,bf16 --strategy simt --baseline none")
        self.assertEqual(ran.count("--op toy -a dtype=fp32,fp16,bf16"), 1)
        self.assertIn("verify's run ci-bad: exit code 134 before its first case", out)
        self.assertIn("verify: FAILED (exit code 1)", out)
        self.assertIn("verify's run ci-bad did not come to its end: no evidence for bad\n", self.check("evidence").stdout)
        self.assertEqual(self.read_evidence()["cases_passed"], NUM_RUNS)
        (self.root / "broken").unlink()
        self.put("bin/cmake", "#!/bin/sh\n", 0o755)
        self.assertEqual(self.order("second"), ["build", "verify", "sanitize", "evidence"])
        self.assertEqual(self.verified()[0], [])
        self.put("build/bench/wbench", (self.root / "build/bench/wbench").read_text(), 0o755)  # another one's results are to come
        self.assertEqual(len(self.verified()[0]), NUM_RUNS + 1)

    def put_device(self, *strategies, **bad):
        """A device with these strategies of the primitive toy, which some hang, crash or lose."""
        for name, was, now in (("watched.py", "FIRST_CALLS_S = 15", "FIRST_CALLS_S = 3"),
                               ("gpu_check.d/verify.py", "SCOUT_STALL_S = 8", "SCOUT_STALL_S = 2")):
            text = (ROOT / "scripts" / name).read_text()
            self.assertIn(was, text)
            (self.root / "scripts" / name).write_text(text.replace(was, now))
        self.put("scripts/gpu_check.d/scouts", "# a comment\nkind wgmma --op toy --n 7\n")
        self.put_strategies(*(("toy", name) for name in strategies))
        self.put("bad.json", json.dumps({f"toy/{name}": how.replace("_", " ") for name, how in bad.items()}))
        self.put("build/bench/wbench", DEVICE.replace("ROOT", str(self.root)), 0o755)
        self.put("scripts/gpu_check.d/verify_runs", "fp8 --op toy -a dtype=fp8\nci --op toy,other -a dtype=fp32\n")
        for name in strategies:
            self.put(f"kernels/toy/toy_{name}.cu", "int toy;")

    def states(self):
        """By strategy, the cases of its evidence that passed and failed."""
        found = [json.loads(path.read_text()) for path in (self.root / "verify/evidence").glob("toy_*.json")]
        return {one["strategy"]: (one["cases_passed"], one["cases_failed"]) for one in found}

    def test_a_strategy_that_fails_its_process_costs_no_other_its_evidence(self):
        for how, why in (("hangs", "came to no end"), ("crashes", "exit code 134"), ("loses", "lost the device")):
            self.put_device("simt", "wgmma", "other", wgmma=how)
            ran, out = self.verified()
            self.assertIn(f"verify's run fp8-toy: {why} at toy n=2\n", out)
            self.assertIn(f"verify's run fp8-toy-wgmma: {why} at toy n=2\n", out)
            self.assertIn("verify: FAILED (exit code 1)", out)
            alone = [words for words in ran if "--op toy" in words and "--strategy" in words]
            self.assertEqual(sum("--strategy wgmma --baseline none" in words for words in alone), 1, ran)  # once is enough
            self.assertIn("--op other -a dtype=fp32", ran)
            out = self.check("evidence").stdout
            self.assertIn(f"toy/wgmma fails the process that runs it: {why} at toy n=2", out)
            self.assertEqual(self.states(), {"simt": (6, 0), "wgmma": (0, 1), "other": (6, 0)}, out)
            self.assertEqual(self.verified()[0], [])  # not again by the same wbench
            shutil.rmtree(self.root / "build/check")
            self.forget()

    def lost(self):
        path = self.root / "build/check/lost.json"
        return json.loads(path.read_text()) if path.exists() else None

    def test_what_hangs_in_a_small_case_is_left_out_until_it_has_hung_again(self):
        self.put_device("simt", "wgmma", wgmma="hangs")
        out = self.check("scout").stdout
        self.assertIn("verify's run kind-wgmma: came to no end at toy n=2\n", out)
        self.assertIn("scout: FAILED (exit code 1)", out)
        self.assertEqual(self.lost(), {"toy/wgmma": {"why": "came to no end at toy n=2", "suspicion": "kind wgmma --op toy --n 7"}})
        ran, out = self.verified()
        self.assertEqual(sorted(ran), sorted(["--op toy -a dtype=fp8 --skip wgmma", "--op toy -a dtype=fp32 --skip wgmma", "--op other -a dtype=fp32",
                                              "--op toy --n 7 --strategy wgmma --baseline none"]), out)
        self.assertEqual(self.lost()["toy/wgmma"]["suspicion"], None)
        self.check("evidence")
        self.assertEqual(self.states(), {"simt": (6, 0), "wgmma": (0, 1)})

    def test_a_suspect_that_does_not_do_it_again_is_acquitted(self):
        self.put_device("simt", "wgmma", wgmma="crashes")
        self.check("scout")
        self.assertIn("toy/wgmma", self.lost())
        self.put("bad.json", "{}")
        ran, out = self.verified()
        self.assertEqual(len(ran), 3 + 3, ran)  # alone in its own case, and in both of toy's runs
        self.assertIn("verify: ok", out)
        self.assertEqual(self.lost(), {})
        self.check("evidence")
        self.assertEqual(self.states(), {"simt": (6, 0), "wgmma": (6, 0)})
        (self.root / "words").unlink()
        self.assertIn("scout: ok", self.check("scout").stdout)
        self.assertFalse((self.root / "words").exists())  # its result is there

    def test_a_vendors_call_that_crashes_is_tried_again_too(self):
        self.put_device("simt", cublas="crashes")
        self.put("scripts/gpu_check.d/scouts", "call cublas --op toy --n 7\n")
        self.check("scout")
        self.assertIn("--op toy --n 7 --strategy cublas --baseline none", self.verified()[0])
        self.assertEqual(self.lost(), {"toy/cublas": {"why": "exit code 134 at toy n=2", "suspicion": None}})
        self.check("evidence")
        self.assertEqual(self.states(), {"simt": (6, 0)})

    def test_a_program_of_the_tests_may_be_what_hangs(self):
        self.put_device("simt", "wgmma")
        self.put("scripts/gpu_check.d/scouts", "twice wgmma --op toy --test replay_test [toy]\nmissing simt --op toy --test no_test\n")
        for body, why in (("exec sleep 1000", "came to no end"), ("exit 1", "exit code 1"), ("", None)):
            self.put("build/verify/replay_test", f'#!/bin/sh\n[ "$*" = "[toy]" ] || exit 5\necho "begins  replay 2"\n{body}\n', 0o755)
            out = self.check("scout").stdout
            self.assertIn("verify's run missing-simt: exit code 127 before its first case\n", out)
            suspicion = "twice wgmma --op toy --test replay_test [toy]"
            self.assertEqual(self.lost() or {}, {"toy/wgmma": {"why": f"{why} at replay 2", "suspicion": suspicion}} if why else {}, out)
            ran, _ = self.verified()  # tried again
            self.assertEqual(self.lost() or {}, {"toy/wgmma": {"why": f"{why} at replay 2", "suspicion": None}} if why else {})
            self.assertFalse([words for words in ran if "--test" in words])
            shutil.rmtree(self.root / "build/check")
            self.forget()

    def test_where_only_overlapping_launches_fail_none_overlaps_any_more(self):
        scouts = "overlapping wgmma --op toy --n 7\nserial WIDE_PROGRAMMATIC_LAUNCH=0 wgmma --op toy --n 7\n"
        says = "gpu_check: WIDE_PROGRAMMATIC_LAUNCH=0: launches that may overlap fail"
        for how, heeds in (("overlapping_crashes", True), ("crashes", False)):
            self.put_device("simt", "wgmma", wgmma=how)
            self.put("scripts/gpu_check.d/scouts", scouts)
            out = self.check("scout", "verify", "evidence").stdout
            self.assertEqual((how, says in out), (how, heeds), out)
            self.assertEqual(says in self.check("evidence").stdout, heeds)  # in a later call, too
            self.assertEqual(self.states()["wgmma"], (0, 1) if how == "crashes" else (6, 0), out)
            written = [json.loads(path.read_text()) for path in (self.root / "verify/evidence").glob("toy_*.json")]
            self.assertEqual({one["programmatic_launch"] for one in written}, {not heeds})
            shutil.rmtree(self.root / "build/check")
            self.forget()

    def test_evidence_of_serial_runs_says_so_in_whatever_call_it_is_made(self):
        self.check("verify", WIDE_PROGRAMMATIC_LAUNCH="0")
        self.check("evidence")
        self.assertEqual(self.read_evidence()["programmatic_launch"], False)

    def test_what_came_to_no_case_is_no_suspect(self):
        self.put_device("simt", "wgmma", wgmma="is_silent")
        out = self.check("scout").stdout
        self.assertIn("verify's run kind-wgmma: came to no end before its first case\n", out)
        self.assertIn("scout: FAILED (exit code 1)", out)
        self.assertEqual(self.lost(), None)

    def test_in_the_case_that_loses_the_device_nobody_knows_who_failed(self):
        self.put_device("simt", "wgmma", wgmma="loses_last")
        self.assertIn("verify's run ci-toy-wgmma: lost the device at toy n=3\n".replace("ci", "fp8"), self.verified()[1])
        self.check("evidence")
        self.assertEqual(self.states(), {"simt": (6, 0), "wgmma": (0, 1)})

    def test_a_result_of_a_process_that_then_hangs_is_none(self):
        self.put_device("simt", "wgmma", wgmma="hangs_in_the_end")
        self.assertIn("verify's run fp8-toy-wgmma: came to no end at toy n=3\n", self.verified()[1])
        self.check("evidence")
        self.assertEqual(self.states(), {"simt": (6, 0), "wgmma": (0, 1)})

    def test_what_only_all_together_lose_is_no_success(self):
        self.put_device("simt", sequential="loses")
        out = self.verified()[1]
        self.assertIn("verify: FAILED (exit code 1)", out)
        self.check("evidence")
        self.assertEqual(self.states(), {"simt": (6, 0)})

    def test_time_that_ends_leaves_strategies_without_evidence_and_not_their_primitive(self):
        self.put_device("simt", "wgmma", wgmma="hangs")
        self.verified()
        for suspects in ({}, {"toy/wgmma": {"why": "exit code 1", "suspicion": "kind wgmma --op toy --n 7"}}):
            self.put("build/check/lost.json", json.dumps(suspects))
            out = self.check("evidence").stdout
            self.assertIn("verify's run fp8-toy did not come to its end: no evidence for toy/wgmma", out)
            self.assertEqual(self.states(), {"simt": (6, 0)})

    def test_a_result_of_failed_cases_is_whole_and_no_success(self):
        self.put("result.json", (self.root / "result.json").read_text().replace('"exit_code": 0', '"exit_code": 3'))
        for runs in (NUM_RUNS, 0):
            ran, out = self.verified(WBENCH_EXIT="3")
            self.assertEqual(len(ran), runs)
            self.assertIn("verify: FAILED (exit code 3)", out)

    def test_fixtures_are_kept_whatever_other_checks_say(self):
        writes = re.search(r'writes_fixtures="(.*)"', (ROOT / "scripts/gpu_check.d/prove.sh").read_text())[1]
        self.assertIn(f'TEST_CASE("{writes}")', (ROOT / "verify/simulator/golden_cuda_test.cpp").read_text())
        self.put("build/verify/golden_cuda_test", f'#!/bin/bash\n[[ "$1" == "{writes}" ]] || exit 1\n'
                                                  'for name in old new; do echo x >"$WIDE_GOLDEN_WRITE/$name.bin"; done\n', 0o755)
        old = self.put("verify/golden/fixtures/old.bin", "kept")
        result = self.check("golden")
        self.assertIn("golden: 1 new fixtures", result.stdout)
        self.assertIn("golden: FAILED (exit code 1)", result.stdout)
        self.assertEqual(old.read_text(), "kept")
        self.assertIn("verify/golden/fixtures/new.bin", self.in_archive("keep"))

    def test_a_golden_case_that_ends_its_process_costs_no_other(self):
        script = self.root / "scripts/gpu_check.d/prove.sh"
        self.assertIn("golden_s=10", script.read_text())
        script.write_text(script.read_text().replace("golden_s=10", "golden_s=4"))
        self.put("build/verify/golden_cuda_test", """#!/bin/bash
cd "$WIDE_GOLDEN_WRITE"
[[ $1 != "~"* ]] || exec touch checked
echo process >>processes
for name in a crashes b hangs c; do
  [ ! -e $name.part ] && [ ! -e $name.bin ] || continue
  echo half >$name.part
  [ $name != crashes ] || kill -SEGV $$
  [ $name != hangs ] || { trap "" INT; sleep 1000; }
  mv $name.part $name.bin
done
""", 0o755)
        out = self.check("golden", WIDE_GPU_CHECK_S="400").stdout
        self.assertIn("golden: 3 new fixtures, no end of crashes hangs\n", out)
        self.assertIn("golden: FAILED (exit code 1)", out)
        self.assertEqual(sorted(path.name for path in (self.root / "verify/golden/fixtures").iterdir()), ["a.bin", "b.bin", "c.bin"])
        self.assertEqual((self.root / "build/check/golden/processes").read_text(), "process\n" * 3)
        self.assertTrue((self.root / "build/check/golden/checked").exists())

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
