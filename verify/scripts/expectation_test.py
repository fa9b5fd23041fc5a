#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What arithmetic says of the targets before any device has measured them."""
import contextlib
import io
import json
import pathlib
import re
import sys
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import expectation  # noqa: E402
import roofline  # noqa: E402
import targets  # noqa: E402

TARGETS = json.loads((ROOT / "bench/targets.json").read_text())["targets"]


def say(command):
    """The output of targets.py."""
    output = io.StringIO()
    with mock.patch.object(sys, "argv", ["targets.py", command]), contextlib.redirect_stdout(output):
        targets.main()
    return output.getvalue()


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

    def test_weights_are_decoded_for_every_tile_of_rows_or_once(self):
        axes = {"n": 8, "batch": 1000, "d": 2048, "dtype": "bf16", "weights": "int4"}
        again = self.of("weight_only", **axes)
        weights = 8 * 2048 * 2048
        self.assertEqual((again.tile, again.tiles), ("m64n64", 8 * 16 * 32))
        self.assertAlmostEqual(again.parts_us["decoding"], 16 * weights * 1.375 / (64 * 132 * 1755))
        self.assertIsNone(self.of("decoded", **axes))
        self.assertIsNone(self.of("decoded", **axes | {"weights": "packed"}, rounded="yes"))
        once, dense = self.of("decoded", **axes, rounded="yes"), self.of("wgmma", **axes | {"weights": "packed"})
        self.assertEqual((once.tile, once.limit, once.bytes - dense.bytes), (dense.tile, dense.limit, weights * (2 + 4.125 / 8)))
        self.assertAlmostEqual(once.us - dense.us, 2 + weights * (2 + 4.125 / 8) / 4.3e6)
        # By shapes that tensor maps do not support, on mma.sync.
        self.assertEqual(self.of("decoded", **axes | {"in": 2047}, rounded="yes").tile, "m128n128")

    def test_the_least_rows_that_auto_decodes_once_are_where_that_is_expected_to_pay(self):
        least = int(re.search(r"kMinDecodedBatch = (\d+);", (ROOT / "host/linear/linear_strategy.hpp").read_text())[1])

        def gain(rows, weights):
            axes = {"n": 8, "batch": rows, "d": 2048, "dtype": "bf16", "weights": weights, "rounded": "yes"}
            return self.of("weight_only", **axes).us / self.of("decoded", **axes).us

        gains = [gain(least, weights) for weights in expectation.BITS]
        self.assertTrue(all(1 < one < 1.4 for one in gains), gains)
        self.assertTrue(all(gain(least - 128, weights) < 1 for weights in expectation.BITS))

    def test_tiles_are_counted_whole(self):
        one = self.of("wgmma", n=8, batch=1024, d=1024, dtype="bf16")
        # 256 tiles of 128 x 256: a multiprocessor has two of them, and reads half of each one's weights.
        self.assertEqual((one.tile, one.tiles, round(one.parts_us["L2"], 6)), ("m128n256x2", 256, round(2 * 256 * 1024 * 256 / 5120 / 1755, 6)))
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
        images = {"n": 2, "batch": 3, "channels": 5, "height": 4, "width": 6, "dtype": "bf16"}
        self.assertEqual(of("interpolate", "wide", **images).bytes, 2 * 2 * 3 * 5 * 24 * (1 + 4))
        self.assertEqual(of("interpolate", "wide", **images, scale=300, layout="last").bytes, 2 * 2 * 3 * 5 * 24 * (1 + 9))
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

    def test_a_primitive_without_an_expectation_is_not_taken_for_another(self):
        with self.assertRaisesRegex(ValueError, "nothing is expected of dropout, a target's primitive, expected linear, ragged_linear"):
            roofline.of_target("dropout", {"n": 2})

    def test_rows_of_a_table_are_read_once(self):
        axes = {"n": 3, "batch": 2, "seq": 5, "vocab": 4, "dim": 16, "dtype": "bf16"}
        (one,) = roofline.of_target("embedding", axes).values()
        # Of four rows, ten ids name 4 (1 - 0.75^10); the ids are one set of int64.
        self.assertAlmostEqual(one.bytes, 3 * (4 * (1 - 0.75**10) + 10) * 32 + 10 * 8)
        (own,) = roofline.of_target("embedding", axes | {"ids": "own", "id_dtype": "int32"}).values()
        self.assertAlmostEqual(own.bytes - one.bytes, 3 * 10 * 4 - 10 * 8)
        (target,) = (target for target in TARGETS if target["name"] == "embedding, 67 MB")
        (one,) = roofline.of_target("embedding", target["axes"]).values()
        self.assertAlmostEqual(one.bytes / (28581888 + 67108864), 1, delta=0.001)  # by wbench, in the ids that it draws

    def test_ragged_members_are_those_that_wbench_draws(self):
        numbers = 4 * (65 + 2684)  # of routed rows and where members' begin, which wbench declares, too
        for op, work in (("ragged_linear", (79483760, 2691840)), ("routed_linear", (352484352, 9806580 + 1374208 - numbers))):
            target = next(target for target in TARGETS if target["op"] == op and target["axes"].get("spread") == 75)
            self.assertEqual({(one.flops, one.bytes) for one in expectation.of_target(op, target["axes"]).values()}, {work})
        values, sizes = ((ROOT / f"host/{path}").read_text() for path in ("operand_values.hpp", "linear_values.hpp"))
        own = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
        self.assertLessEqual({f"0x{constant:x}u" for constant in own}, set(re.findall("0x[0-9a-f]{16}u", values)))
        self.assertIn(f"kSeed = {expectation.RAGGED_SEED};", sizes)
        even = expectation.of_target(op, target["axes"] | {"spread": 0})["simt"].flops
        self.assertEqual(even, 64 * 64 * 256 * (2 * 256 + 1))

    def test_targets_leave_nothing_to_the_preset(self):
        """Which sets what a suite's entry does not name; expectations take axes' defaults."""
        swept = {}
        for path in (ROOT / "host").rglob("*_spec.cpp"):
            spec = path.read_text()
            quick = re.search(r'{"quick",(.*?){"full",', spec, re.DOTALL)
            for op in re.findall(r'\.name = "(\w+)"', spec) if quick else ():
                swept[op] = set(re.findall(r'{"(\w+)", ', quick.group(1)))
        self.assertLess({"n", "d", "hidden"}, swept["mlp"])
        for target in TARGETS:
            axes = set(target.get("axes", ()))
            known = axes | ({"d"} if {"in", "out"} <= axes else set())
            self.assertLessEqual(swept.get(target["op"], set()) if axes else set(), known, target["name"])

    def test_short_keeps_as_many_keys_as_its_strategy_says(self):
        source = (ROOT / "host/attention/flash_attention_strategy.cpp").read_text()
        self.assertIn("head_dim <= 64 ? 256 : problem.head_dim <= 128 ? 128 : 64", source)
        self.assertEqual(roofline.SHORT_KEYS, ((64, 256), (128, 128), (256, 64)))

    def test_the_notes_are_what_the_script_says(self):
        self.assertEqual(say("notes"), (ROOT / "bench/results/NOTES.md").read_text(), "run scripts/targets.py notes > bench/results/NOTES.md")

    def test_every_strategy_of_ours_has_an_expectation(self):
        """Where linear gets another, a target and its arithmetic belong to it."""
        output = say("expect")
        for path in ("linear/linear", "linear/ragged_linear", "fused/mlp"):
            spec = (ROOT / f"host/{path}_spec.cpp").read_text()
            if "with_cudnn(" in spec:
                spec += (ROOT / "host/norm/norm_spec.hpp").read_text()
            for strategy in re.findall(r'{"(\w+)",\s*(?:DeviceType::)?cuda,\s*hand_written,', spec):
                self.assertIn(f" {strategy} ", output)


if __name__ == "__main__":
    unittest.main()
