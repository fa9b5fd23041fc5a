#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""verify_runs_test.py WBENCH: that the runs which make evidence run every strategy of ours, on the simulated GPU."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
WBENCH = pathlib.Path(sys.argv.pop(1)).resolve()
# Smaller than the runs have it, where an interpreter would take long; no size is one that a kernel asks for.
FEWER = {"conv1d": ("--length", "32"), "conv2d": ("--batch", "2", "--height", "8"),
         "conv3d": ("--batch", "2", "--depth", "3", "--height", "5"), "attention": ("--batch", "1"),
         "flash_attention": ("--batch", "1", "--heads", "2")}


def runs():
    lines = (ROOT / "scripts/gpu_check.d/verify_runs").read_text().splitlines()
    return [line.split()[1:] for line in lines if not line.startswith("#")]


def scouts():
    lines = (ROOT / "scripts/gpu_check.d/scouts").read_text().splitlines()
    return [line.split() for line in lines if not line.startswith("#")]


def strategies_of_ours():
    rows = json.loads(subprocess.run([WBENCH, "list", "strategies", "--json", "-"], check=True, capture_output=True, text=True).stdout)
    return {(row["op"], row["strategy"]) for row in rows if row["device"] == "cuda" and row["kind"] == "hand_written"}


class VerifyRuns(unittest.TestCase):
    def compared(self, op, words, strategies):
        """Of these strategies, those that a run with these words compares with the reference."""
        options = [*words, *FEWER.get(op, ()), "--n", "2", "--baseline", "none", "--strategy", ",".join(sorted(strategies))]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "result.json"
            done = subprocess.run([WBENCH, "--sim", "verify", "-p", "ci", "--op", op, *options, "--json", path], capture_output=True,
                                  text=True, stdin=subprocess.DEVNULL)
            self.assertIn(done.returncode, (0, 6), done.stdout + done.stderr)  # 6: this run is not for them
            cases = json.loads(path.read_text())["cases"] if path.exists() else []
        return {(op, one["name"]) for case in cases for one in case["strategies"]
                if one["status"] == "ok" and one["verify"]["elements_compared"] > 0}

    def test_every_strategy_of_ours_is_run(self):
        missing = strategies_of_ours()
        self.assertGreater(len(missing), 30)
        for option, ops, *words in runs():
            self.assertEqual(option, "--op")
            if "--adversarial" in words:  # other operands for what the other runs run
                continue
            all_ops, _, without = ops.partition("-")
            ops_of_run = {op for op, _ in missing} - {without} if all_ops == "all" else set(ops.split(","))
            for op in {op for op, _ in missing} & ops_of_run:
                missing -= self.compared(op, words, {strategy for one, strategy in missing if one == op})
        self.assertEqual(missing, set())

    def begins(self, program, *words):
        """A test that says what it does, on the simulated GPU with simulated vendors."""
        verify = WBENCH.parents[1] / "verify"
        simulated = {"LD_LIBRARY_PATH": str(verify / "simcuda/lib"), "LD_PRELOAD": str(verify / "simvendors/libwide_simvendors.so")}
        done = subprocess.run([verify / program, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL, env=os.environ | simulated)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"(?m)^begins  \S+")

    def test_every_scout_is_one_case_of_a_kernel_of_its_own(self):
        kernels, ours = {}, strategies_of_ours()
        for name, *words in scouts():
            environment = dict(word.split("=") for word in words[:words.index("--op")] if "=" in word)
            strategy, *words = words[len(environment):]
            if "--test" in words:
                self.begins(*words[words.index("--test") + 1:])
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "result.json"
                done = subprocess.run([WBENCH, "--sim", "verify", "-p", "ci", *words, "--strategy", strategy, "--baseline", "none", "--json", path],
                                      capture_output=True, text=True, stdin=subprocess.DEVNULL, env=os.environ | environment)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                (case,) = json.loads(path.read_text())["cases"]
            (one,) = case["strategies"]
            self.assertGreater(one["verify"]["elements_compared"], 0, name)
            if (words[1], strategy) not in ours:  # a vendor's
                continue
            own, *others = one["kernels"]
            if name in ("overlapping", "serial"):
                self.assertEqual(len(others), 3, name)
                continue
            self.assertEqual(len(others), name == "decoded", name)  # whose weights another kernel multiplies
            kernels[name] = own["name"]
        # A step is an operand of the same kernel.
        self.assertEqual(kernels.pop("conv_stride"), kernels["conv"])
        self.assertEqual(len(set(kernels.values())), len(kernels), kernels)


if __name__ == "__main__":
    unittest.main()
