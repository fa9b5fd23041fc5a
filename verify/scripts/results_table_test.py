#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""The tables that results_table.py makes of a result, which is the golden one with made-up strategies, and what it refuses."""
import contextlib
import copy
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import results_table  # noqa: E402

GOLDEN = json.loads((ROOT / "verify/bench/results/1.8.json").read_text())
KINDS = [{"op": "linear", "strategy": name, "device": "cuda", "kind": kind} for name, kind in (
    ("sequential", "sequential"), ("simt", "hand_written"), ("wgmma", "hand_written"), ("cublas_batched", "vendor"),
    ("cublaslt", "vendor"))]
BEGIN, END = results_table.BEGIN, results_table.END


def strategy(name, us=0.0, status="ok", regimes=("graph",), reliable=True, **keys):
    """The golden one's, with a median, and 10 % to either side of it."""
    made = copy.deepcopy(GOLDEN["cases"][0]["strategies"][1]) | {"name": name, "strategy": name.split(":")[0], "status": status} | keys
    (measured,) = made["measurements"]
    measured["rates"]["pct_of_floor"] = 61.6
    measured["stats"] |= {"median_ns": us * 1e3, "reliable": reliable, "ci": {"lo_ns": us * 0.9e3, "hi_ns": us * 1.1e3}}
    made["measurements"] = [measured | {"regime": regime} for regime in regimes] if status == "ok" else []
    made["vs_baseline"] = []
    return made


def speedup(name, value, regime="graph", **keys):
    return keys | {"baseline": name, "regime": regime, "speedup_ratio": value, "ci_lo": value - 0.5, "ci_hi": value + 0.5}


class ResultsTableTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "kinds.json").write_text(json.dumps(KINDS))
        self.result = copy.deepcopy(GOLDEN)
        self.result["devices"][0] |= {"device": "cuda:0", "name": "Toy GPU", "cuda_driver": 13010}
        self.result["config"]["regimes"] = ["stream", "graph"]
        self.result["cases"] = self.result["cases"][:1]

    def tables(self, *strategies, options=(), baselines=()):
        """(exit code, output)"""
        self.result["cases"][0] |= {"strategies": list(strategies), "baselines": list(baselines)}
        path = self.root / "result.json"
        path.write_text(json.dumps(self.result))
        return self.run_script(path, *options)

    def run_script(self, *words):
        text = io.StringIO()
        argv = ["results_table.py", *map(str, words), "--strategies", str(self.root / "kinds.json")]
        with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            return results_table.main(), text.getvalue()

    def cells(self, *strategies, **more):
        """The only row's, by column."""
        code, output = self.tables(*strategies, **more)
        self.assertEqual(code, 0, output)
        head, _, row = [line for line in output.splitlines() if line.startswith("|")]
        return dict(zip(*([cell.strip() for cell in line[1:-1].split("|")] for line in (head, row))))

    def test_a_row_has_all_that_a_time_is_compared_with(self):
        own = strategy("simt", 2.5) | {"vs_baseline": [
            speedup("loop", 9, "stream"), speedup("loop", 4), speedup("streams", 3), speedup("graph", 1.5),
            speedup("peer", 4, peer="torch:bmm")]}
        others = [strategy("cublas_batched", 5), strategy("cublaslt", 7), strategy("sequential", 0.5)]
        peers = [strategy("torch:bmm", 10, peer="torch 2.6"), strategy("torch:loop", 20, peer="torch 2.6")]
        self.assertEqual(self.cells(strategy("wgmma", 3), own, *others, baselines=peers), {
            "primitive": "`linear`", "case": "n=4 batch=16 d=64", "regime": "graph", "ours": "`simt`", "time": "2.5 us", "of floor": "62 %",
            "vs loop": "4.00x [3.50, 4.50]", "vs streams": "3.00x [2.50, 3.50]", "vs graph": "1.50x [1.00, 2.00]",
            "vs vendor": "`cublas_batched` 2.00x [1.64, 2.44]", "vs peer": "`torch:bmm` 4.00x [3.50, 4.50]"})

    def test_the_title_says_of_what(self):
        title = self.tables(strategy("simt", 1))[1].splitlines()[0]
        self.assertEqual(title, f"**Toy GPU**, driver for CUDA 13.1, toolkit 13.0.88, 2026-11-22, `{self.root}/result.json`")
        self.result["run"]["complete"] = False
        self.assertIn("; the run did not come to its end", self.tables(strategy("simt", 1))[1])

    def test_each_regime_has_a_row_and_columns_without_words_go(self):
        code, output = self.tables(strategy("simt", 2, regimes=("graph", "stream")), strategy("wgmma", 1, regimes=("stream",)))
        self.assertEqual(output.splitlines()[2:], [
            "| primitive | case | regime | ours | time | of floor |", "|---|---|---|---|---|---|",
            "| `linear` | n=4 batch=16 d=64 | stream | `wgmma` | 1 us | 62 % |",
            "| `linear` | n=4 batch=16 d=64 | graph | `simt` | 2 us | 62 % |"])
        both = (strategy("simt", 2, regimes=("graph", "stream")),)
        self.assertEqual(self.cells(*both, options=["--regime", "stream"])["regime"], "stream")
        self.assertEqual(self.tables(*both, options=["--op", "softmax"])[0], 1)

    def test_doubt_has_a_mark_and_a_legend(self):
        code, output = self.tables(strategy("simt", 2, verified=False, reliable=False))
        self.assertIn("| `simt`\\* | 2 us (?) |", output)
        self.assertRegex(output, r"(?m)^\\\* no evidence .*; \(\?\) one of the times")
        self.assertNotIn("one of the times", self.tables(strategy("simt", 2))[1])
        own = strategy("simt", 2) | {"vs_baseline": [speedup("loop", 2), speedup("peer", 2, peer="t:a")]}
        doubtful = [strategy("loop", 4, reliable=False), strategy("t:b", 9, peer="t"), strategy("t:a", 4, peer="t", reliable=False)]
        cells = self.cells(own, strategy("cublaslt", 2, reliable=False), baselines=doubtful)
        self.assertEqual([cells[name] for name in ("vs loop", "vs vendor", "vs peer")],
                         ["2.00x [1.50, 2.50] (?)", "`cublaslt` 1.00x [0.82, 1.22] (?)", "`t:a` 2.00x [1.50, 2.50] (?)"])

    def test_what_failed_is_named(self):
        wrong = strategy("wgmma", 1) | {"status": "verify_failed"}  # only in the end, so that it has times
        cells = self.cells(strategy("simt", 2), wrong, strategy("cublaslt", status="failed"), baselines=[
            strategy("loop", status="failed"), strategy("torch:bmm", status="timeout", peer="torch 2.6")])
        self.assertEqual([cells[name] for name in ("ours", "vs loop", "vs vendor", "vs peer")],
                         ["`simt`; wgmma verify_failed", "loop failed", "cublaslt failed", "torch:bmm timeout"])
        cells = self.cells(strategy("simt", status="skipped"), strategy("wgmma", status="implausible"), strategy("cublaslt", 3),
                           baselines=[strategy("torch:bmm", 4, peer="torch 2.6")])
        self.assertEqual((cells["ours"], cells["vs vendor"], cells["vs peer"]),
                         ("wgmma implausible; simt skipped", "`cublaslt` 3 us", "`torch:bmm` 4 us"))
        self.assertNotIn("time", cells)
        self.result["cases"][0] |= {"status": "oom", "reason": "3 GB"}
        self.assertEqual(self.tables()[1].count("| oom: 3 GB |"), 2)  # in both regimes that were asked for

    def test_a_part_that_was_not_run_is_said(self):
        path = self.root / "peers.json"
        path.write_text(json.dumps({"not_run": "no torch"}))
        self.assertEqual(self.run_script(path), (0, f"`{path}`: not run: no torch\n"))

    def test_whole_models(self):
        self.result["cases"][0]["op"] = "model:mlp"
        self.assertEqual(self.cells(strategy("sequential", 1), strategy("compiled", 2))["ours"], "`compiled`")

    def test_what_is_refused(self):
        for text in ("{", "[]", '{"schema": {"name": "wide.evidence"}}', '{"schema": null}'):
            path = self.root / "bad.json"
            path.write_text(text)
            code, output = self.run_script(path)
            self.assertEqual((code, output.startswith(f"results_table: {path}: no ")), (1, True), output)
        self.assertIn("linear has no strategy other on cuda", self.tables(strategy("other", 1))[1])

    def test_the_readme_has_what_the_files_give(self):
        readme = self.root / "README.md"
        def put(*options):
            return self.tables(strategy("simt", 2), options=["--readme", readme, *options])
        readme.write_text(f"a\n{BEGIN}\nold\n{END}\nb\n")
        code, output = put("--check")
        self.assertEqual((code, readme.read_text()), (1, f"a\n{BEGIN}\nold\n{END}\nb\n"))
        self.assertIn("are not what the files give", output)
        self.assertEqual(put()[0], 0)
        self.assertEqual(put("--check"), (0, ""))
        text = readme.read_text()
        self.assertTrue(text.startswith(f"a\n{BEGIN}\n**Toy GPU**") and text.endswith(f"|\n{END}\nb\n"), text)
        for broken in (f"{BEGIN}\n", f"{END}\n{BEGIN}\n", f"{BEGIN}\n{BEGIN}\n{END}\n"):
            readme.write_text(broken)
            code, output = put()
            self.assertEqual((code, readme.read_text()), (1, broken))
            self.assertIn("has not the lines", output)

    def test_a_real_result(self):
        with mock.patch.object(results_table, "kinds_of", return_value={("linear", name, "cpu"): kind for name, kind in (
                ("sequential", "sequential"), ("wide", "hand_written"))}):
            code, output = self.run_script(ROOT / "verify/bench/results/1.8.json")
        self.assertEqual(code, 0, output)
        self.assertIn("**a CPU**, toolkit 13.0.88, 2026-11-22, `verify/bench/results/1.8.json`", output)
        self.assertIn("| `linear` | n=4 batch=16 d=64 | cpu | `wide` | 11.7 us (?) | 22 % | 1.07x [1.06, 2.49] (?) |", output)

    def test_durations(self):
        self.assertEqual([results_table.duration(ns) for ns in (0.5, 999, 999.6, 12345, 1e6, 2.5e9)],
                         ["0.5 ns", "999 ns", "1 us", "12.3 us", "1 ms", "2.5 s"])


if __name__ == "__main__":
    unittest.main()
