#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What targets.py makes of measured times, which are made up here, and what expectation.py works out beforehand."""
import contextlib
import io
import itertools
import json
import pathlib
import re
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import expectation  # noqa: E402
import roofline  # noqa: E402
import targets  # noqa: E402


def say(*arguments):
    """(exit code, output) of targets.py"""
    output = io.StringIO()
    with mock.patch.object(sys, "argv", ["targets.py", *map(str, arguments)]), contextlib.redirect_stdout(output):
        return targets.main(), output.getvalue()


def strategy(name, us, status="ok", floor=95.0, flops=1.6e15, bound="compute", cold=None):
    rates = {"pct_of_floor": floor, "flops_per_s": flops, "roofline_bound": bound}
    measurements = [{"regime": "stream", "stats": {"median_ns": 1.0}, "rates": rates},
                    {"regime": "graph", "stats": {"median_ns": us * 1e3}, "rates": rates}]
    if cold is not None:
        measurements.append({"regime": "cold", "stats": {"median_ns": us * 1e3}, "rates": rates | {"pct_of_floor": cold}})
    return {"name": name, "status": status, "policy": "m16n64", "measurements": measurements if status == "ok" else []}


class TargetsTest(unittest.TestCase):
    """targets.py with a device that runs what is asked for, and takes the times that it is told to."""

    OURS = {"simt": 3, "wgmma": 1, "weight_only": 1, "tf32x3": 3, "shared_input": 2,
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
                    "strategies": vendor + [strategy(name, own * times, **facts) for name, times in ours.items()]}

        def run_cases(_, wanted, __):
            return [cases_of(target) for target in wanted]

        def cases_of(target):
            if "preset" in target:
                return [case(target["op"], {"n": 4}, 1), case(target["op"], {"n": 8}, 3)], ""
            axes, others = target["axes"], target.get("vendor_axes", {})
            values = [(value, others[axis]) if axis in others else (value,) for axis, value in axes.items()]
            return [case(target["op"], dict(zip(axes, point)), 1) for point in itertools.product(*values)], ""

        with tempfile.TemporaryDirectory() as folder, mock.patch.object(targets, "run_cases", run_cases):
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
                                              ("flash_attention", "attention/flash_attention", True), ("softmax", "pointwise/softmax", False)):
            spec = (ROOT / f"host/{path}_spec.cpp").read_text()
            if "with_cudnn(" in spec:
                spec += (ROOT / "host/norm/norm_spec.hpp").read_text()
            named = set(re.findall(r'{"(\w+)",\s*(?:DeviceType::)?cuda,\s*(?:StrategyKind::)?vendor,', spec))
            self.assertEqual(targets.VENDORS.get(op, set()), named | ({"sequential"} if calls_in_sequential else set()), op)

    def test_our_own_sequential_is_neither_ours_to_judge_nor_the_vendors(self):
        softmax = self.measure(10, 0.1, ours={"wide": 1})[2]["softmax, 67 MB"]
        self.assertEqual((softmax["strategy"], softmax["verdict"]), ("wide", "met"))
        self.assertNotIn("vendor", softmax)
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

    def test_nan_is_missed(self):
        self.assertEqual(self.measure(10, 25, floor=float("nan"))[2]["67 MB of weights, 1 row"]["verdict"], "missed")

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


class RunTest(unittest.TestCase):
    """What targets.py asks of wbench, and makes of what it leaves."""

    TARGETS = [{"name": "toy", "op": "linear", "axes": {"n": 2, "weights": "int8"}, "vendor_axes": {"weights": "packed"}},
               {"name": "sweep", "op": "linear", "preset": "quick"}, {"name": "floor", "op": "softmax", "axes": {"n": 3}, "of_floor_pct": 9}]

    def run_cases(self, script, seconds=6):
        """What wbench was given, and what became of each target."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "wbench").write_text(f"#!/bin/sh\ncp $3 {folder}/given\necho $* >{folder}/words\nmkdir -p $7\n{script}")
            (folder / "wbench").chmod(0o755)
            cases = targets.run_cases(str(folder / "wbench"), self.TARGETS, seconds)
            return json.loads((folder / "given").read_text()), (folder / "words").read_text(), cases

    def test_one_process_runs_all(self):
        write = """for i in 0 1 2; do echo '{"run": {"complete": true}, "cases": ['$i']}' > $7/t0$i.json; done\n"""
        suite, words, cases = self.run_cases(write)
        self.assertEqual(cases, [([0], ""), ([1], ""), ([2], "")])
        self.assertRegex(words, r"^suite run \S+ --device cuda --results \S+ --json \S+$")
        self.assertEqual(suite["defaults"], {"baselines": "none", "max_samples": 300, "budget_s": 1.2})
        self.assertEqual(suite["entries"], [
            {"name": "t00", "op": "linear", "axes": {"n": 2, "weights": ["int8", "packed"]}, "regimes": ["stream", "graph"]},
            {"name": "t01", "op": "linear", "axes": {}, "regimes": ["stream", "graph"], "preset": "quick"},
            {"name": "t02", "op": "softmax", "axes": {"n": 3}, "regimes": ["stream", "graph", "cold"]}])

    def test_no_result_or_half_of_one(self):
        self.assertEqual(self.run_cases("echo no device\nexit 7\n")[2], [([], "exit code 7: no device")] * 3)
        half = """echo '{"run": {"complete": false}, "cases": []}' >$7/t00.json
echo '{"entries": [{"name": "t01", "status": "refused", "message": "no such axis"}, {"name": "t02", "status": "not_run", "message": null}]}' >$9\n"""
        self.assertEqual([why for _, why in self.run_cases(half)[2]],
                         ["the run did not come to its end", "no such axis", "no time was left"])

    def test_what_was_measured_before_time_ran_out_counts(self):
        slow = """echo '{"run": {"complete": true}, "cases": [5]}' >$7/t00.json\ntrap 'echo interrupted; exit 130' INT\nsleep 0.1 & wait
while :; do sleep 0.05; done\n"""
        cases = self.run_cases(slow, 0.4)[2]
        self.assertEqual(cases, [([5], ""), ([], "exit code 130: interrupted"), ([], "exit code 130: interrupted")])


class ExpectationTest(unittest.TestCase):
    """expectation.py: what arithmetic says, worked out by hand, and that the notes are of these very kernels."""

    def of(self, strategy, op="linear", **axes):
        return expectation.of_target(op, axes).get(strategy)

    def test_weights_are_read_once(self):
        one = self.of("weight_only", n=8, batch=16, d=2048, dtype="bf16", weights="int4")
        # x, y and bias of 16 bits; 4 bits a weight and 16 for every 128 of them.
        moved = 2 * 8 * (2 * 16 * 2048 + 2048) + 8 * 2048 * 2048 * (4 + 16 / 128) / 8
        self.assertEqual(one.bytes, moved)
        self.assertEqual((one.limit, one.tiles, one.tile), ("memory", 8 * 2048 // 64, "m16n64"))
        self.assertAlmostEqual(one.us, 2 + moved / 4.3e6)

    def test_tiles_are_counted_whole(self):
        one = self.of("wgmma", n=8, batch=1024, d=1024, dtype="bf16")
        # 256 tiles of 128 x 256: a multiprocessor has two of them.
        self.assertEqual((one.tile, one.tiles), ("m128n256", 256))
        self.assertAlmostEqual(one.parts_us["arithmetic"], 2 * 2 * 128 * 256 * 1024 * 132 / 790e6)

    def test_few_bytes_under_way_are_slow(self):
        one = self.of("small_m", n=1, batch=8, d=256, dtype="bf16")
        # Sixteen blocks of 16 x 16, five of six stages of 64 of k under way: but k has only four of them.
        self.assertEqual(one.limit, "memory")
        self.assertAlmostEqual(one.parts_us["memory"], one.bytes / (one.tiles * one.under_way / 0.7e-6) * 1e6)

    def test_who_runs_what(self):
        self.assertIsNone(self.of("wgmma", n=2, batch=64, d=140, dtype="bf16"))  # no tensor map
        self.assertIsNone(self.of("wgmma", n=2, batch=64, d=64, dtype="fp32"))
        self.assertIsNone(self.of("gemv", n=2, batch=5, d=64))
        self.assertIsNone(self.of("tf32x3", n=2, batch=5, d=64, dtype="bf16"))
        self.assertIsNone(self.of("simt", n=2, batch=5, d=64, dtype="bf16", weights="int8"))
        shared = self.of("shared_input", n=32, batch=64, d=512, dtype="bf16", shared="yes")
        self.assertEqual(shared.tiles, 2 * 32 * 512 // 64)
        self.assertIsNotNone(self.of("tensor_core", op="ragged_linear", n=4, batch=64, d=256, dtype="bf16", spread=75))

    def test_other_primitives_take_their_bytes_or_their_products(self):
        def of(op, strategy, **axes):
            return roofline.of_target(op, axes).get(strategy)

        softmax = of("softmax", "wide", n=2, batch=100, d=64, dtype="bf16")
        self.assertEqual((softmax.bytes, softmax.limit), (2 * 2 * 2 * 100 * 64, "memory"))
        self.assertAlmostEqual(softmax.us, 2 + softmax.bytes / 4.3e6)
        self.assertEqual(of("binary", "wide", n=2, batch=100, d=64).bytes, 3 * 4 * 2 * 100 * 64)
        # Four queries on six keys see 3, 4, 5 and 6 of them.
        core = {"n": 2, "batch": 3, "heads": 5, "seq": 4, "kv_seq": 6, "head_dim": 8, "dtype": "fp16"}
        self.assertEqual(of("flash_attention", "tensor_core", **core).flops, 4 * 30 * 24 * 8)
        self.assertEqual(of("flash_attention", "tensor_core", **core, causal="yes").flops, 4 * 30 * 18 * 8)
        self.assertIsNotNone(of("flash_attention", "short", **core))
        self.assertIsNone(of("flash_attention", "short", **core | {"kv_seq": 257}))
        self.assertIsNone(of("flash_attention", "tensor_core", **core | {"dtype": "fp32"}))
        self.assertEqual(of("flash_attention", "wgmma", **core).flops, 4 * 30 * 24 * 8)
        self.assertIsNone(of("flash_attention", "wgmma", **core | {"head_dim": 9}))
        self.assertIsNone(of("flash_attention", "wgmma", **core, bias="yes"))
        self.assertEqual(of("flash_attention", "decode", **core).flops, 4 * 30 * 24 * 8)
        self.assertIsNone(of("flash_attention", "decode", **core | {"seq": 17}))
        conv = {"n": 2, "batch": 3, "channels": 16, "out": 8, "height": 5, "width": 7, "kernel": 3}
        self.assertEqual(of("conv2d", "direct", **conv).flops, 2 * 2 * 3 * 8 * 35 * 16 * 9)
        self.assertEqual(of("conv2d", "direct", **conv).bytes, 4 * (2 * 3 * 24 * 35 + 2 * 8 * (16 * 9 + 1)))
        self.assertIsNone(of("conv2d", "implicit_gemm", **conv))
        self.assertIsNotNone(of("conv2d", "implicit_gemm", **conv, tf32="yes"))
        self.assertIsNone(of("conv2d", "wgmma", **conv, tf32="yes"))
        self.assertIsNotNone(of("conv2d", "wgmma", **conv, tf32="yes", layout="last"))
        self.assertEqual(of("conv2d", "direct", **conv | {"out": 0}, form="depthwise").flops, 2 * 2 * 3 * 16 * 35 * 9)
        mlp = {"n": 2, "batch": 20, "d": 8, "hidden": 16, "out": 4, "dtype": "bf16"}
        self.assertEqual(of("mlp", "fused", **mlp).bytes, 2 * 2 * (20 * 12 + 16 * 9 + 4 * 17))
        self.assertEqual(of("mlp", "layerwise", **mlp).bytes, of("mlp", "fused", **mlp).bytes + 2 * 2 * 2 * 20 * 16)
        self.assertEqual(of("mlp", "fused", **mlp).flops, 2 * 2 * 20 * (8 * 16 + 16 * 4))
        # Four warps' rows, each on a quarter of its own.
        self.assertAlmostEqual(of("mlp", "fused", **mlp).parts_us["chain"], 2 * 16 * 192 * 528 / (790 * 0.63) * 1e-6)
        self.assertAlmostEqual(of("mlp", "layerwise", **mlp).us, 2 * 2 + sum(of("mlp", "layerwise", **mlp).parts_us.values()))
        self.assertIsNone(of("mlp", "fused", **mlp | {"in": 257}))
        self.assertIsNone(of("mlp", "fused", **mlp | {"layers": 17}))
        rnn = {"n": 2, "cell": "gru", "batch": 16, "seq": 3, "d": 8, "dtype": "bf16"}
        step_us = 2 * 16 * 8 * 24 * 132 / (790 * 0.63) * 1e-6 + 0.4
        self.assertAlmostEqual(of("recurrent", "fused", **rnn).parts_us["chain"], 3 * step_us)
        self.assertEqual(of("recurrent", "stepwise", **rnn).flops, 2 * 2 * 16 * 3 * 24 * (8 + 8))
        self.assertGreater(of("recurrent", "stepwise", **rnn).us, 2 * (1 + 2 * 3))  # launches alone
        self.assertIsNone(of("recurrent", "fused", **rnn | {"d": 256}))
        module = of("attention", "fused", n=8, batch=8, seq=128, d_model=768, heads=12, dtype="bf16")
        self.assertAlmostEqual(module.us, 3 * 2 + sum(module.parts_us.values()))

    def test_short_keeps_as_many_keys_as_its_strategy_says(self):
        source = (ROOT / "host/attention/flash_attention_strategy.cpp").read_text()
        self.assertIn("head_dim <= 64 ? 256 : problem.head_dim <= 128 ? 128 : 64", source)
        self.assertEqual(roofline.SHORT_KEYS, ((64, 256), (128, 128), (256, 64)))

    def test_the_notes_are_what_the_script_says(self):
        self.assertEqual(say("notes")[1], (ROOT / "bench/results/NOTES.md").read_text(), "run scripts/targets.py notes > bench/results/NOTES.md")

    def test_every_strategy_of_ours_has_an_expectation(self):
        """Where linear gets another, a target and its arithmetic belong to it."""
        _, output = say("expect")
        for path in ("linear/linear", "linear/ragged_linear", "fused/mlp"):
            spec = (ROOT / f"host/{path}_spec.cpp").read_text()
            if "with_cudnn(" in spec:
                spec += (ROOT / "host/norm/norm_spec.hpp").read_text()
            for strategy in re.findall(r'{"(\w+)",\s*(?:DeviceType::)?cuda,\s*hand_written,', spec):
                self.assertIn(f" {strategy} ", output)


if __name__ == "__main__":
    unittest.main()
