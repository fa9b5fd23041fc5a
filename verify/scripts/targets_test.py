#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What targets.py makes of measured times, which are made up here."""
import contextlib
import io
import itertools
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import expectation  # noqa: E402
import measured  # noqa: E402
import targets  # noqa: E402


def say(*arguments):
    """(exit code, output) of targets.py"""
    output = io.StringIO()
    with mock.patch.object(sys, "argv", ["targets.py", *map(str, arguments)]), contextlib.redirect_stdout(output):
        return targets.main(), output.getvalue()


def measurement(regime, us, spread_pct=0, doubts=(), floor=95.0, flops=1.6e15, bound="compute"):
    """Of a median whose interval reaches so far to either side."""
    ns, spread = us * 1e3, spread_pct / 100
    stats = {"median_ns": ns, "ci": {"lo_ns": ns * (1 - spread), "hi_ns": ns * (1 + spread)}, "reliable": not doubts,
             "doubts": list(doubts)}
    return {"regime": regime, "below_resolution": False, "stats": stats,
            "rates": {"pct_of_floor": floor, "flops_per_s": flops, "roofline_bound": bound}}


def strategy(name, us, status="ok", cold=None, floor=95.0, **facts):
    measurements = [measurement("stream", 1e-3, floor=floor, **facts), measurement("graph", us, floor=floor, **facts)]
    if cold is not None:
        measurements.append(measurement("cold", us, floor=cold, **facts))
    return {"name": name, "status": status, "policy": "m16n64", "measurements": measurements if status == "ok" else []}


class TargetsTest(unittest.TestCase):
    """targets.py with a device that runs what is asked for, and takes the times that it is told to."""

    OURS = {"simt": 3, "wgmma": 1, "weight_only": 1, "decoded": 0.5, "tf32x3": 3, "shared_input": 2,
            "wide": 1, "indexed": 1, "direct": 1, "implicit_gemm": 1, "tensor_core": 1, "short": 1, "decode": 1, "fused": 1, "layerwise": 4, "stepwise": 4}

    def measure(self, own_us, vendor_us, *options, ours=OURS, **facts):
        """Quantised weights and an mlp take half of own_us; the second case of a preset three times of it."""
        def case(op, axes, factor):
            is_packed = axes.get("weights", "packed") == "packed"
            own = own_us * factor * (1 if is_packed and op != "mlp" else 0.5)
            # Of quantised weights sequential is our own kernel, and no vendor's.
            known = {"cublas_batched", "cudnn", "grouped"} & targets.VENDORS.get(op, set())
            vendor = [strategy("sequential", 2 * vendor_us), *(strategy(name, vendor_us) for name in known)]
            vendor = vendor if is_packed else [strategy("sequential", 1e-3)]
            return {"axes": {axis: str(value) for axis, value in axes.items()},
                    "strategies": vendor + [strategy(name, own * times, **facts) for name, times in ours.items()
                                           if name != "decoded" or axes.get("rounded") == "yes"]}

        def run_cases(_, wanted, *__):
            return [cases_of(target) for target in wanted]

        def cases_of(target):
            if "least_vs_sequential" in target:
                return [{"axes": {"n": "4"}, "strategies": [strategy("auto", own_us, **facts), strategy("sequential", vendor_us)]}], ""
            if "preset" in target:
                return [case(target["op"], {"n": 4}, 1), case(target["op"], {"n": 8}, 3)], ""
            axes, others = target["axes"], target.get("vendor_axes", {})
            values = [(value, others[axis]) if axis in others else (value,) for axis, value in axes.items()]
            return [case(target["op"], dict(zip(axes, point)), 1) for point in itertools.product(*values)], ""

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(targets, "run_cases", run_cases), \
                mock.patch.object(targets, "primitives", lambda _: ["linear", "softmax"]):
            path = pathlib.Path(folder) / "out.json"
            code, output = say("measure", "wbench", "--out", path, *options)
            return code, output, {result["name"]: result for result in json.loads(path.read_text())["targets"]}

    def test_met(self):
        code, output, results = self.measure(3, 15)
        self.assertEqual(code, 0, output)
        goals = {name: result for name, result in results.items() if result["goals"]}
        self.assertEqual({result["verdict"] for result in goals.values()}, {"met"}, output)
        met = results["100 members, 32 x 64 x 64"]
        self.assertEqual((met["strategy"], met["vendor"], met["vs_vendor"]), ("wgmma", "cublas_batched", 5))
        self.assertNotIn("full preset", results)

    def test_a_sweep_is_judged_by_mean_and_least(self):
        preset = self.measure(10, 50, "--full")[2]["full preset"]
        self.assertEqual((preset["verdict"], preset["cases"]), ("met", 2))
        self.assertAlmostEqual(preset["geomean_vs_vendor"], (5 * 5 / 3) ** 0.5)
        self.assertEqual((preset["least_vs_vendor"], preset["least_at"]), (5 / 3, {"n": "8"}))
        self.assertEqual(self.measure(10, 25)[2]["quick preset"]["missed"], ["least_vs_vendor"])
        self.assertEqual(self.measure(10, 50, ours={})[2]["quick preset"]["verdict"], "not measured")

    def test_every_primitives_automatic_choice_is_a_target(self):
        for own, vendor, verdict in ((10, 50, "met"), (50, 10, "missed")):
            for option in (("--full",), ("--only", "automatic")):
                code, output, results = self.measure(own, vendor, *option)
                chosen = {name: result["verdict"] for name, result in results.items() if name.startswith("automatic")}
                self.assertEqual((code, chosen), (0, {"automatic choice, linear": verdict, "automatic choice, softmax": verdict}), output)
                self.assertEqual(len(results) > 2, option == ("--full",))
        self.assertNotIn("automatic", self.measure(10, 50)[1])  # it takes minutes

    def test_quantised_weights_compare_with_the_vendor_on_packed_ones(self):
        _, _, results = self.measure(10, 10)
        int8, int4 = results["int8 weights, 16 rows"], results["int4 weights, 16 rows"]
        self.assertEqual((int8["median_us"], int8["vendor"], int8["vendor_us"], int8["vs_vendor"]), (5, "cublas_batched", 10, 2))
        self.assertEqual((int8["verdict"], int4["verdict"]), ("met", "missed"))

    def test_the_strategy_that_is_meant_counts(self):
        fp32 = "strict fp32, 8 x 1024^3"
        result = self.measure(10, 20)[2][fp32]
        self.assertEqual((result["strategy"], result["verdict"]), ("simt", "missed"))
        code, output, results = self.measure(10, 20, ours={"wgmma": 1})
        self.assertEqual((code, results[fp32]["verdict"], results["4096^3"]["verdict"]), (1, "not measured", "met"))
        self.assertIn("simt did not run", output)

    def test_every_vendor_strategy_counts_as_one(self):
        for op, path, calls_in_sequential in (("linear", "linear/linear", True), ("attention", "attention/attention", True), ("mlp", "fused/mlp", True),
                                              ("conv2d", "conv/conv", True), ("batchnorm2d", "norm/batchnorm", True),
                                              ("instancenorm2d", "norm/groupnorm", True),
                                              ("flash_attention", "attention/flash_attention", True), ("softmax", "pointwise/softmax", True),
                                              ("pooling", "pooling/pooling", True), ("ragged_linear", "linear/ragged_linear", True),
                                              ("routed_linear", "linear/routed_linear", False), ("routed_mlp", "fused/routed_mlp", False),
                                              ("layernorm", "norm/layernorm", False), ("rmsnorm", "norm/rmsnorm", False)):
            spec = (ROOT / f"host/{path}_spec.cpp").read_text()
            if "with_cudnn(" in spec:
                spec += (ROOT / "host/spec.hpp").read_text()
            named = set(re.findall(r'{"(\w+)",\s*(?:DeviceType::)?cuda,\s*(?:StrategyKind::)?vendor,', spec))
            self.assertEqual(targets.VENDORS.get(op, set()), named | ({"sequential"} if calls_in_sequential else set()), op)

    def test_a_vendors_strategy_is_its_own_by_any_policy(self):
        for name, is_vendors in (("grouped", True), ("grouped:h1", True), ("implicit_gemm", False), ("direct", False)):
            self.assertEqual((targets.is_vendors("conv2d", name), targets.is_ours("conv2d", name)), (is_vendors, not is_vendors))

    def test_our_own_sequential_is_neither_ours_to_judge_nor_the_vendors(self):
        results = self.measure(10, 0.1, ours={"wide": 1})[2]
        added, layernorm = results["x + y, 67 MB"], results["layernorm, 67 MB"]
        self.assertEqual((added["strategy"], added["verdict"]), ("wide", "met"))
        self.assertNotIn("vendor", added)
        self.assertEqual(layernorm["vendor"], "cudnn")
        core = self.measure(10, 50)[2]["attention core, 2048 keys"]
        self.assertEqual((core["strategy"], core["vendor"], core["vs_vendor"]), ("wgmma", "cudnn", 5))

    def test_missed_is_a_result(self):
        code, _, results = self.measure(10, 9.9, floor=60)
        self.assertEqual(code, 0)
        self.assertEqual(results["8 x 1024^3"]["verdict"], "missed")
        self.assertEqual(results["fp8, 4096^3"]["verdict"], "met")
        self.assertEqual(results["67 MB of weights, 16 rows"]["missed"], ["vs_vendor", "of_floor_pct"])
        self.assertEqual(results["tf32x3, 8 x 1024^3"]["verdict"], "measured")

    def test_a_time_and_a_strategy_of_ours_bound_a_target(self):
        name = "mlp 64-128-64, 100 members"
        met = self.measure(10, 50)[2][name]
        self.assertEqual((met["verdict"], met["median_us"], met["vs_other"]), ("met", 5, 4))
        self.assertEqual(self.measure(10.2, 50)[2][name]["missed"], ["most_us"])
        self.assertEqual(self.measure(10, 50, ours=self.OURS | {"layerwise": 2})[2][name]["missed"], ["vs_other"])
        alone = self.measure(10, 50, ours={"fused": 1})[2][name]
        self.assertEqual((alone["verdict"], alone["why"]), ("not measured", "nothing to say of vs_other"))

    def test_memorys_floor_is_reached_cold_or_not_at_all(self):
        name = "67 MB of weights, 16 rows"
        warm = self.measure(10, 50, floor=110, bound="memory", cold=80)[2]  # fed by the cache
        self.assertEqual((warm[name]["missed"], warm[name]["of_floor_pct"], warm[name]["floor_regime"], warm[name]["regime"]),
                         (["of_floor_pct"], 80, "cold", "graph"))
        self.assertEqual(warm["8 x 1024^3"]["of_floor_pct"], 110)  # nobody asks
        self.assertEqual(self.measure(10, 50, floor=60, bound="memory", cold=90)[2][name]["verdict"], "met")
        never = self.measure(10, 50, bound="memory")[2][name]
        self.assertEqual((never["verdict"], never["why"]), ("not measured", "nothing to say of of_floor_pct"))
        small = self.measure(10, 50, floor=90, bound="launch", cold=1)[2][name]
        self.assertEqual((small["verdict"], small["floor_regime"]), ("met", "graph"))

    def test_nan_and_null_are_no_numbers(self):
        name = "67 MB of weights, 1 row"
        for floor in (float("nan"), None):
            result = self.measure(10, 25, floor=floor)[2][name]
            self.assertEqual((result["verdict"], result["why"]), ("not measured", "nothing to say of of_floor_pct"))

    def test_undecided_is_a_result(self):
        code, output, results = self.measure(10, 11, spread_pct=0.5, ours={"wgmma": 1, "tensor_core": 1, "small_m": 1})
        self.assertEqual(code, 1)  # strategies that others mean did not run
        self.assertEqual(results["67 MB of weights, 64 rows"]["verdict"], "undecided")
        self.assertIn("undecided wgmma            10.00 us, 1.10x cublas_batched, 95 % of floor\n"
                      f"{'':32}vs_vendor: 1.095 to 1.106, wanted 1.1\n", output)
        everything = self.measure(3, 15, doubts=("drift",))
        self.assertEqual(everything[0], 0, everything[1])
        self.assertEqual({result["verdict"] for result in everything[2].values() if result["goals"]}, {"undecided"})

    def test_what_could_not_be_measured_says_so(self):
        code, output, results = self.measure(10, 25, status="skipped")
        self.assertEqual((code, {result["verdict"] for result in results.values()}), (1, {"not measured"}))
        self.assertIn("no strategy of ours ran", output)

    def test_times_are_compared_with_what_was_expected_of_the_tile(self):
        _, output, results = self.measure(1000, 25)
        one = results["int4 weights, 16 rows"]["strategies"]["weight_only"]
        self.assertEqual(one["tile"], "m16n64")
        self.assertAlmostEqual(one["of_expected"], 500 / one["expected_us"])
        self.assertIn("weight_only m16n64 takes", output)
        self.assertNotIn("takes", self.measure(1, 25)[1])

    def test_expected_is_the_device_that_was_measured(self):
        self.addCleanup(expectation.assume, "NVIDIA H200")

        def strategies(device, name):
            with mock.patch.object(targets, "device_in", lambda _: {"name": device}):
                _, output, results = self.measure(1000, 25)
            return results[name]["strategies"], output
        name = "softmax, 67 MB"
        (on_h200, words), (on_h100, _) = strategies("NVIDIA H200", name), strategies("NVIDIA H100 80GB HBM3", name)
        self.assertNotIn("nothing is expected", words)
        moved = {device: one["wide"]["expected_us"] - 1e6 * expectation.LAUNCH_S for device, one in (("h200", on_h200), ("h100", on_h100))}
        self.assertAlmostEqual(moved["h100"] / moved["h200"], 4.3 / 3)
        unknown, words = strategies("NVIDIA H100 NVL", name)
        self.assertEqual(set(unknown["wide"]), {"median_us"})
        self.assertIn("nothing is expected of NVIDIA H100 NVL", words)
        self.assertNotIn("times the", words)


class IntervalTest(unittest.TestCase):
    """One target, and what its strategies' times are made to leave of it."""

    TARGET = {"name": "toy", "op": "linear", "axes": {"n": 8, "batch": 16, "d": 2048, "dtype": "bf16"}, "strategy": "wgmma", "vs_vendor": 1.5}

    def judge(self, own, vendors, **goals):
        """Times by regime, (us, spread or doubts) each."""
        def of(name, times):
            return {"name": name, "status": "ok", "measurements": [measurement(regime, *facts) for regime, facts in times.items()]}

        target = self.TARGET | goals
        case = {"axes": self.TARGET["axes"], "strategies": [of("wgmma", own)] + [of(name, times) for name, times in vendors.items()]}
        result = targets.judged(target, [case], "")
        targets.line(result)
        return result

    def test_the_bound_lies_beyond_the_interval_or_within(self):
        def verdict(own_spread, vendor_spread, vendor_us=15.3):
            return self.judge({"graph": (10, own_spread)}, {"cublaslt": {"graph": (vendor_us, vendor_spread)}})["verdict"]

        self.assertEqual(verdict(0.5, 0.5), "met")
        self.assertEqual((verdict(3, 0.5), verdict(0.5, 3), verdict(1.5, 1.5)), ("undecided",) * 3)
        self.assertEqual((verdict(0.5, 0.5, 14.7), verdict(1.5, 1.5, 14.7)), ("missed", "undecided"))

    def test_a_rate_and_a_time_have_their_medians_interval(self):
        def verdict(spread, **goals):
            return self.judge({"graph": (10, spread)}, {"cublaslt": {"graph": (20, 0)}}, **goals)["verdict"]

        self.assertEqual((verdict(1, most_us=10.2), verdict(1, most_us=10.05), verdict(1, most_us=9.8)), ("met", "undecided", "missed"))
        self.assertEqual((verdict(1, of_floor_pct=94), verdict(1, of_floor_pct=95), verdict(1, of_floor_pct=96)), ("met", "undecided", "missed"))
        self.assertEqual((verdict(1, flops_per_s=1.58e15), verdict(1, flops_per_s=1.61e15)), ("met", "undecided"))

    def test_a_miss_is_worse_than_what_is_undecided(self):
        result = self.judge({"graph": (10, 1)}, {"cublaslt": {"graph": (15, 1)}}, most_us=9)
        self.assertEqual((result["verdict"], result["missed"], list(result["undecided"])), ("missed", ["most_us"], ["vs_vendor"]))

    def test_both_sides_are_of_one_regime(self):
        result = self.judge({"stream": (20, 0), "graph": (10, 0)}, {"cublas_batched": {"stream": (24, 0)}})
        self.assertEqual((result["regime"], result["median_us"], result["vs_vendor"], result["verdict"]), ("stream", 20, 1.2, "missed"))
        result = self.judge({"stream": (20, 0), "graph": (10, 0)},
                            {"sequential": {"stream": (12, 0)}, "cublaslt": {"stream": (24, 0), "graph": (16, 0)}})
        self.assertEqual((result["regime"], result["vendor"], result["verdict"]), ("graph", "cublaslt", "met"))
        result = self.judge({"graph": (10, 0)}, {"cublaslt": {"stream": (24, 0)}})
        self.assertEqual((result["verdict"], result["why"]), ("not measured", "nothing to say of vs_vendor"))

    def test_a_time_in_doubt_decides_nothing(self):
        own, vendor = {"graph": (10, 0)}, {"graph": (30, 0)}
        result = self.judge({"graph": (10, 0, ["drift", "few_rounds"])}, {"cublaslt": vendor})
        self.assertEqual((result["verdict"], result["undecided"]), ("undecided", {"vs_vendor": "wgmma, graph: drift, few_rounds"}))
        # These say that the interval is wide, which it says itself.
        wide = {"graph": (10, 2, ["wide_interval", "timed_out"])}
        self.assertEqual([self.judge(wide, {"cublaslt": {"graph": (us, 0)}})["verdict"] for us in (30, 15.1)], ["met", "undecided"])
        # The vendor's fastest might be faster still: the next is no stand-in.
        result = self.judge(own, {"cublas_batched": {"graph": (12, 0, ["multimodal"])}, "cublaslt": vendor})
        self.assertEqual((result["verdict"], result["vendor"]), ("undecided", "cublas_batched"))
        slower = self.judge(own, {"cublas_batched": {"graph": (40, 0, ["multimodal"])}, "cublaslt": vendor})
        self.assertEqual((slower["verdict"], slower["vendor"]), ("met", "cublaslt"))

    def test_results_that_name_no_doubts_are_still_below_resolution(self):
        for change, why in (({"below_resolution": True}, "below_resolution"), ({"ci": {"lo_ns": None, "hi_ns": None}}, "no interval")):
            old = measurement("graph", 10)
            del old["stats"]["reliable"], old["stats"]["doubts"]
            (old if "below_resolution" in change else old["stats"]).update(change)
            self.assertEqual(measured.Time("wgmma", old).refused, f"wgmma, graph: {why}")

    def test_a_strategy_without_a_median_did_not_run(self):
        never = {"name": "wgmma", "status": "ok", "measurements": [measurement("graph", 10)]}
        never["measurements"][0]["stats"]["median_ns"] = None
        result = targets.judged(self.TARGET, [{"axes": self.TARGET["axes"], "strategies": [never]}], "")
        self.assertEqual((result["verdict"], result["why"]), ("not measured", "wgmma did not run"))

    def test_a_sweep_is_as_wide_as_its_cases(self):
        def sweep(least, *cases):
            def of(name, us, *facts):
                return {"name": name, "status": "ok", "measurements": [measurement("graph", us, *facts)]}

            made = [{"axes": {"n": n}, "strategies": [of("wgmma", 10, *facts), of("cublaslt", us)]} for n, (us, *facts) in enumerate(cases)]
            return targets.judged({"name": "toy", "op": "linear", "preset": "quick", "geomean_vs_vendor": 1.25, "least_vs_vendor": least}, made, "")

        self.assertEqual(sweep(0.97, (12, 1), (15, 1))["verdict"], "met")
        wide = sweep(0.97, (12, 1), (13.2, 1))
        self.assertEqual((wide["verdict"], list(wide["undecided"])), ("undecided", ["geomean_vs_vendor"]))
        self.assertEqual(list(sweep(1.2, (12, 1), (15, 1))["undecided"]), ["least_vs_vendor"])
        self.assertEqual(sweep(1.3, (12, 1), (15, 1))["missed"], ["least_vs_vendor"])
        doubtful = sweep(0.97, (12, 1), (15, 1, ["throttled"]))
        self.assertEqual((doubtful["verdict"], doubtful["undecided"]["least_vs_vendor"]), ("undecided", "wgmma, graph: throttled in {'n': 1}"))
        self.assertIn("undecided 1.34x the vendor over 2 cases", targets.line(doubtful))


class AutomaticTest(unittest.TestCase):
    """The automatic choice beside one call per member."""

    def sweep(self, *cases):
        """Of (auto's time, spread or doubts, sequential's, what auto chose)."""
        def of(name, chosen, us, *facts):
            return {"name": name, "strategy": chosen, "status": "ok", "measurements": [measurement("graph", us, *facts)]}

        made = [{"axes": {"n": n}, "strategies": [of("auto", chosen, *own), of("sequential", "sequential", *other)]}
                for n, (own, other, chosen) in enumerate(cases)]
        result = targets.judged({"name": "toy", "op": "linear", "preset": "quick", "least_vs_sequential": 1.0}, made, "")
        return result, targets.line(result)

    def test_it_never_loses_as_far_as_intervals_tell(self):
        win, tie, loss = ((10, 1), (15, 1), "wide"), ((10, 1), (10.1, 1), "wide"), ((10, 1), (9.7, 1), "wide")
        self.assertEqual([self.sweep(win, one)[0]["verdict"] for one in (win, tie, loss)], ["met", "undecided", "missed"])
        result, words = self.sweep(win, tie, loss)  # a loss is worse than what is undecided
        self.assertEqual((result["verdict"], result["lost"], result["least_at"], result["cases"]), ("missed", [{"n": 2}], {"n": 2}, 3))
        self.assertIn("missed    0.97x sequential at the least of 3 cases\n" + " " * 32 + "it loses in {'n': 2}", words)
        self.assertIn("0.99 to 1.03, wanted 1", self.sweep(tie)[1])

    def test_what_it_chooses_may_be_sequential(self):
        result, _ = self.sweep(((10, 1), (9, 1), "sequential"), ((10, 1), (15, 1), "wide"))
        self.assertEqual((result["verdict"], result["least_vs_sequential"]), ("met", 1))

    def test_doubts_decide_nothing_but_hide_no_loss(self):
        doubtful = ((10, 1, ["drift"]), (15, 1), "wide")
        result, words = self.sweep(doubtful, ((10, 1), (15, 1), "wide"))
        self.assertEqual(result["verdict"], "undecided")
        self.assertIn("auto, graph: drift in {'n': 0}", words)
        self.assertEqual(self.sweep(doubtful, ((10, 1), (9, 1), "wide"))[0]["verdict"], "missed")

    def test_a_case_without_both_is_not_measured(self):
        for name in targets.AUTOMATIC:
            case = {"axes": {"n": 8}, "strategies": [strategy(one, 1, status="failed" if one == name else "ok") for one in targets.AUTOMATIC]}
            result = targets.judged({"name": "toy", "op": "linear", "preset": "quick", "least_vs_sequential": 1.0}, [case], "")
            self.assertEqual(result["verdict"], "not measured")
            self.assertIn("nothing to compare in {'n': 8}", targets.line(result))

    def test_all_are_the_primitives_that_wbench_lists(self):
        target = {"name": "toy", "op": "all", "preset": "quick", "least_vs_sequential": 1.0}
        other = {"name": "other", "op": "linear", "axes": {"n": 2}}
        with tempfile.TemporaryDirectory() as folder:
            wbench = pathlib.Path(folder) / "wbench"
            wbench.write_text("""#!/bin/sh\n[ "$*" = "list ops --json -" ] && echo '[{"op": "softmax"}, {"op": "conv2d"}]'\n""")
            wbench.chmod(0o755)
            made = targets.each_primitive([other, target], wbench)
        self.assertEqual(made, [other, *(target | {"name": f"toy, {op}", "op": op} for op in ("softmax", "conv2d"))])
        self.assertEqual(targets.entry_of(3, made[1], mock.Mock(of=lambda op: ["wide"])), {
            "name": "t03", "op": "softmax", "axes": {}, "regimes": ["stream", "graph"], "preset": "quick", "strategies": ["auto", "sequential"]})


class RunTest(unittest.TestCase):
    """What targets.py asks of wbench, and makes of what it leaves."""

    TARGETS = [{"name": "toy", "op": "linear", "axes": {"n": 2, "weights": "int8"}, "vendor_axes": {"weights": "packed"}},
               {"name": "sweep", "op": "linear", "preset": "quick"}, {"name": "floor", "op": "softmax", "axes": {"n": 3}, "of_floor_pct": 9}]

    def run_cases(self, script, seconds=6, lost=()):
        """What wbench was given, and what became of each target."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "wbench").write_text(f"#!/bin/sh\ncp $3 {folder}/given\necho $* >{folder}/words\nmkdir -p $7\n{script}")
            (folder / "wbench").chmod(0o755)
            cases = targets.run_cases(str(folder / "wbench"), self.TARGETS, seconds, folder, mock.Mock(of=lambda op: lost if op == "linear" else []))
            return json.loads((folder / "given").read_text()), (folder / "words").read_text(), cases

    def test_one_process_runs_all(self):
        write = """for i in 0 1 2; do echo '{"run": {"complete": true}, "cases": ['$i']}' > $7/t0$i.json; done\n"""
        suite, words, cases = self.run_cases(write, lost=["wgmma"])
        self.assertEqual(cases, [([0], ""), ([1], ""), ([2], "")])
        self.assertRegex(words, r"^suite run \S+ --device cuda --results \S+ --json \S+ -v$")
        self.assertEqual(suite["defaults"], {"baselines": "none", "verify": "before", "max_samples": 300, "budget_s": 1})
        self.assertEqual(suite["entries"], [
            {"name": "t00", "op": "linear", "axes": {"n": 2, "weights": ["int8", "packed"]}, "regimes": ["stream", "graph"], "skip": ["wgmma"], "budget_s": 2},
            {"name": "t01", "op": "linear", "axes": {}, "regimes": ["stream", "graph"], "preset": "quick", "skip": ["wgmma"], "budget_s": 4},
            {"name": "t02", "op": "softmax", "axes": {"n": 3}, "regimes": ["stream", "graph", "cold"]}])

    def test_no_result_or_half_of_one(self):
        self.assertEqual(self.run_cases("echo no device\nexit 7\n")[2], [([], "exit code 7: no device")] * 3)
        half = """echo '{"run": {"complete": false}, "cases": []}' >$7/t00.json
echo '{"entries": [{"name": "t01", "status": "refused", "message": "no such axis"}, {"name": "t02", "status": "not_run", "message": null}]}' >$9\n"""
        self.assertEqual([why for _, why in self.run_cases(half)[2]],
                         ["the run did not come to its end", "no such axis", "no time was left"])

    def test_what_comes_behind_trouble_is_run_by_another_process(self):
        result = """echo '{"run": {"complete": true}, "cases": [7]}' >$7/$name.json\n"""
        names = "for name in $(echo ${12:-t00,t01,t02} | tr , ' '); do\n"
        hangs = f"trap '' INT\n{names}echo at $name\n[ $name != t01 ] || exec sleep 1000\n{result}done\n"
        with mock.patch("watched.FIRST_CALLS_S", 0.5), mock.patch("watched.TO_WRITE_S", 0.2), mock.patch.object(targets, "LEAST_S", 0.1):
            _, words, cases = self.run_cases(hangs, 2)
        self.assertEqual(cases, [([7], ""), ([], "exit code -9: at t01"), ([7], "")])
        self.assertRegex(words, " --entry t02$")
        lost = names + """word=ok; [ -z "$lost" ] || word=no_device; [ $name.$# != t01.10 ] || { word=failed; lost=yes; }
[ $word != ok ] || """ + result + """entries="$entries${entries:+, }{\\"name\\": \\"$name\\", \\"status\\": \\"$word\\", \\"message\\": null}"
done
echo "{\\"entries\\": [$entries]}" >$9
"""
        _, words, cases = self.run_cases(lost)
        self.assertEqual(cases, [([7], ""), ([], "failed"), ([7], "")])
        self.assertRegex(words, " --entry t02$")

    def test_a_second_call_measures_what_the_first_has_left(self):
        def result(number, status="ok"):
            case = {"op": "linear", "axes": {}, "status": status, "strategies": [{"status": status}], "number": number}
            return json.dumps({"run": {"complete": True}, "cases": [case]})

        def call(number, *, status="ok", wanted=self.TARGETS, lost=None):
            wbench.write_text(f"""#!/bin/sh\n[ "${{11}}" != --entry ] || echo $* >{folder}/words\nmkdir -p $7
for name in $(echo ${{12:-t00,t01,t02}} | tr , ' '); do\n[ $name != $(cat {folder}/without) ] || continue
echo '{result(number, status)}' >$7/$name.json\ndone\n""")
            wbench.chmod(0o755)
            os.utime(wbench, (1, 1))
            (folder / "words").write_text("all")
            cases = targets.run_cases(str(wbench), wanted, 70, folder, lost)
            budget = json.loads((folder / "suite.json").read_text())["defaults"]["budget_s"]
            return [case[0]["number"] if case else None for case, _ in cases], (folder / "words").read_text().split()[-1], budget

        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            wbench, without = folder / "wbench", folder / "without"
            without.write_text("t02")
            self.assertEqual(call(1), ([1, 1, None], "all", 6))
            without.write_text("none")
            self.assertEqual(call(2), ([1, 1, 2], "t02", 42))  # one case has all of the time
            self.assertEqual(call(3, status="failed"), ([3, 3, 3], "all", 6))  # nothing was missing
            self.assertEqual(call(4), ([4, 4, 4], "all", 6))  # the device was lost
            other = self.TARGETS[:2] + [self.TARGETS[2] | {"axes": {"n": 4}}]
            self.assertEqual(call(5, wanted=other), ([4, 4, 5], "t02", 42))
            newer = folder / "results/t00.json"
            os.utime(newer, (0, 0))  # of an older wbench
            self.assertEqual(call(6, wanted=other), ([6, 4, 5], "t00", 21))
            self.assertEqual(call(7, wanted=other, lost=mock.Mock(of=lambda op: ["wgmma"] * (op == "linear"))), ([7, 7, 5], "t00,t01", 7))

    def test_where_to_go_on(self):
        for statuses, behind in [(["ok", "missed"], 2), (["ok", False, "ok"], 2), (["ok", "interrupted", "not_run"], 2),
                                 (["failed", "no_device", "failed"], 1), (["failed", "ok"], 2), (["ok", "failed"], 2), (["no_device"] * 2, 2)]:
            self.assertEqual(targets.behind_trouble(list(enumerate(statuses))), list(range(len(statuses)))[behind:], statuses)

    def test_what_was_measured_before_time_ran_out_counts(self):
        slow = """echo '{"run": {"complete": true}, "cases": [5]}' >$7/t00.json\ntrap 'echo interrupted; exit 130' INT\nsleep 0.1 & wait
while :; do sleep 0.05; done\n"""
        cases = self.run_cases(slow, 0.4)[2]
        self.assertEqual(cases, [([5], ""), ([], "exit code 130: interrupted"), ([], "exit code 130: interrupted")])


if __name__ == "__main__":
    unittest.main()
