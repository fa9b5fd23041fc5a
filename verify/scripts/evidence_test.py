#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What evidence.py counts as proved, on made-up trees in a temporary folder: what it must refuse matters more than what
it accepts."""
import json
import os
import re
import shutil
import sys
import unittest

from kernel_tree import CLEAN, HEADER, KERNEL, PUBLIC, ROOT, Tree, evidence, run
import vendor_error


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

    def test_the_hash_is_of_what_strategies_run_of_others(self):
        for op in ("conv", "mlp", "linear"):
            self.put(f"host/{op}/{op}_spec.cpp", "")
            self.put(f"kernels/{op}/{op}_simt.cu", f"int {op};")
        def by_op():
            return dict(re.findall(r'"(\w+)", "(\w+)"', self.hashes()))
        first = by_op()
        self.put("kernels/linear/linear_simt.cu", "int other;")
        self.assertEqual({op for op, value in by_op().items() if value != first[op]}, {"conv", "conv1d", "conv2d", "conv3d", "linear", "mlp"})
        first = by_op()
        self.put("kernels/conv/conv_simt.cu", "int other;")
        self.assertEqual({op for op, value in by_op().items() if value != first[op]}, {"conv", "conv1d", "conv2d", "conv3d"})

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

    def test_launches_that_did_not_overlap_say_nothing_of_those_that_do(self):
        self.assert_refused(self.good | {"programmatic_launch": False}, "is serial")
        self.assertEqual(self.table(self.good | {"programmatic_launch": True})[1], "")

    def test_unreadable_files_are_named_and_stop_nothing(self):
        for broken in ['{"schema": ', "", "[]", json.dumps(self.good | {"schema": "wide.evidence 0"}),
                       json.dumps(self.good | {"cases_failed": "0"}), json.dumps(self.good | {"op": 'toy", "x'})]:
            text, message = self.table(broken, self.good)
            self.assertEqual(text, '{"toy", "simt", 90},\n')
            self.assertIn("0.json", message)

    def test_a_failure_outweighs_a_pass_of_the_same_sources(self):
        self.assertEqual(self.table(self.good, self.good | {"cases_failed": 1})[0], "")
        self.assertNotEqual(self.table(self.good, self.good | {"cases_failed": 1, "source_hash": "old"})[0], "")


class EvidenceWrite(Tree):
    def write(self, *more_cases, options=(), **device):
        device = {"device": "cuda:0", "name": "Toy GPU", "compute_capability": 90, "cuda_driver": 13000} | device
        check = {"before": "pass", "elements_compared": 4, "worst_error_ratio": 0.25}
        self.put("result.json", json.dumps({
            "schema": {"name": "wbench.result"}, "run": {"complete": True, "tool": {"cuda_toolkit": "13.0"}}, "devices": [device],
            "cases": [{"op": "toy", "status": "ok", "strategies": [{"name": "simt", "status": "ok", "verify": check}]}, *more_cases]}))
        result = run(sys.executable, ROOT / "scripts/evidence.py", "--root", self.root, "write", self.root / "result.json",
                     "--out", self.root / "evidence", *options)
        return result.returncode, result.stderr, (self.root / "evidence").exists()

    def test_only_devices_give_evidence(self):
        for device, why in [({"name": "simulated sm_90a"}, "simulated GPU makes is no evidence"), ({"device": "cpu"}, "not from a CUDA device")]:
            code, words, has_written = self.write(**device)
            self.assertEqual((code, has_written), (1, False))
            self.assertIn(why, words)
        self.assertEqual(self.write()[0::2], (0, True))

    def test_a_case_that_no_strategy_came_to_costs_its_primitive_the_evidence(self):
        for status in ("failed", "oom"):  # behind a lost device a run is complete all the same
            code, words, has_written = self.write({"op": "toy", "status": status, "strategies": []})
            self.assertEqual((code, has_written), (1, False))
            self.assertIn("no case of a hand-written strategy", words)
        for op, status in [("other", "failed"), ("toy", "skipped"), ("toy", "ok")]:
            self.assertEqual(self.write({"op": op, "status": status, "strategies": []})[0::2], (0, True))

    def test_in_the_case_that_lost_the_device_all_fail_and_none_is_to_blame(self):
        check = {"before": "not_run", "elements_compared": 0, "worst_error_ratio": 0}
        failed, good = ({"name": "simt", "status": status, "verify": check} for status in ("failed", "ok"))
        for baseline, has_written in ((failed, False), (good, True)):
            case = {"op": "toy", "status": "failed", "strategies": [failed], "baselines": [baseline]}
            self.assertEqual(self.write(case)[2], has_written)

    def test_what_fails_its_process_is_no_gap_but_a_failure(self):
        for options, failed in (("--without", "toy/simt"), None), (("--without", "other,toy"), None), (("--lost", "toy/simt"), 1), (("--without", "toy/other"), 0):
            code, _, has_written = self.write(options=options)
            self.assertEqual((code, has_written), (0, True) if failed is not None else (1, False))
            if has_written:
                self.assertEqual(json.loads((self.root / "evidence/toy_simt_sm90.json").read_text())["cases_failed"], failed)
                shutil.rmtree(self.root / "evidence")

    def test_whether_launches_overlapped_is_written_down(self):
        for options in ((), ("--serial",)):
            self.write(options=options)
            self.assertEqual(json.loads((self.root / "evidence/toy_simt_sm90.json").read_text())["programmatic_launch"], not options)


class VendorError(Tree):
    """Of results and evidence with made-up errors."""

    @staticmethod
    def case(op="linear", dtype="fp32", d="255", status="ok", **errors):
        def strategy(name, error):
            verify = {"before": "fail" if status == "failed" else "pass", "elements_compared": 4, "worst_error_ratio": error}
            return {"name": name, "status": status, "verify": verify}
        return {"op": op, "status": "ok", "axes": {"d": d, "dtype": dtype}, "strategies": [strategy(*pair) for pair in errors.items()]}

    def compare(self, *cases):
        return vendor_error.compare([{"cases": cases}])

    def test_twice_the_vendors_error_and_an_ulp_pass(self):
        ulp = 2 / (8 * 256 ** 0.5 + 1)  # of a sum of 255 products
        for ours, exceeded in ((2 * 0.1 + 0.99 * ulp, 0), (2 * 0.1 + 1.01 * ulp, 1)):
            found = self.compare(self.case(simt=ours, cublaslt=0.1))["linear", "simt"]
            self.assertEqual((found["cases"], found["judged"], found["exceeded"], found["worst"]["vendor"]), (1, 1, exceeded, "cublaslt"))

    def test_the_least_accurate_vendor_counts(self):
        found = self.compare(self.case(simt=0.5, cublaslt=0.1, cublas_batched=0.3, sequential=0.9))
        self.assertEqual(found["linear", "simt"]["exceeded"], 0)
        self.assertEqual(found["linear", "simt"]["worst"]["vendor"], "cublas_batched")
        self.assertNotIn(("linear", "cublaslt"), found)

    def test_a_convolution_sums_over_channels_and_taps(self):
        for more, count in (({}, 32 * 9), ({"groups": 8}, 4 * 9), ({"form": "depthwise"}, 9)):
            self.assertEqual(vendor_error.terms("conv2d", {"channels": 32, "kernel": 3, "groups": 1} | more), count)
        self.assertEqual(vendor_error.terms("linear", {"in": "7", "d": "5"}), 7)

    def test_only_sums_of_products_in_fp32_are_judged(self):
        for facts in ({"dtype": "bf16"}, {"op": "layernorm"}):
            found = self.compare(self.case(wide=0.9, cudnn=0.1, **facts))
            (entry,) = found.values()
            self.assertEqual((entry["cases"], entry["judged"], entry["exceeded"]), (1, 0, 0))
            self.assertEqual(vendor_error.words(entry)[0], "9.00x `cudnn`'s")
        both = self.compare(self.case(wide=0.2, cudnn=0.1), self.case(wide=0.9, cudnn=0.1, dtype="bf16"))["linear", "wide"]
        self.assertEqual((both["cases"], both["judged"], both["worst"]["axes"]["dtype"]), (2, 1, "fp32"))

    def test_what_is_wrong_or_alone_is_not_compared(self):
        self.assertEqual(self.compare(self.case(simt=0.5), self.case(cublaslt=0.5), self.case(simt=9, cublaslt=0.1, status="verify_failed"),
                                      self.case(simt=9, cublaslt=0.1, status="failed"), self.case(simt=0.5, cublaslt=None)), {})

    def test_a_vendor_without_an_error(self):
        one = self.compare(self.case(simt=0.5, cublaslt=0))["linear", "simt"]
        self.assertEqual((one["exceeded"], vendor_error.words(one)[0]), (1, "infx `cublaslt`'s"))
        self.assertEqual(vendor_error.words(self.compare(self.case(simt=0, cublaslt=0))["linear", "simt"])[0], "1.00x `cublaslt`'s")

    def test_the_vendors_calls_are_the_catalogues(self):
        named = set()
        for path in ROOT.glob("host/**/*spec*"):
            named |= set(re.findall(r'{"(\w+)",\s*(?:DeviceType::)?cuda,\s*(?:StrategyKind::)?vendor,', path.read_text()))
        self.assertEqual(vendor_error.VENDOR_CALLS, named)

    def evidence_with(self, ours):
        """After a run on a device in which a vendor's error is 0.1."""
        self.put("kernels/linear/linear_simt.cu", KERNEL)
        device = {"device": "cuda:0", "name": "Toy GPU", "compute_capability": 90, "cuda_driver": 13000}
        self.put("result.json", json.dumps({
            "schema": {"name": "wbench.result"}, "run": {"complete": True, "tool": {"cuda_toolkit": "13.0"}}, "devices": [device],
            "cases": [self.case(simt=ours, cublaslt=0.1)]}))
        self.put("sanitizer.txt", "".join(f"{tool} {program} 0 0 all\n" for tool in evidence.TOOLS
                                          for program in ("linear_cuda_test", "isolation_test:linear")))
        done = run(sys.executable, ROOT / "scripts/evidence.py", "--root", self.root, "write", self.root / "result.json",
                   "--out", self.root / "verify/evidence", "--sanitizer", self.root / "sanitizer.txt")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def status(self):
        self.put("strategies.json", json.dumps([{"op": "linear", "strategy": "simt", "device": "cuda", "kind": "hand_written", "verified": "unverified"}]))
        done = run(sys.executable, ROOT / "scripts/evidence.py", "--root", self.root, "status", self.root / "strategies.json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, done.stderr

    def test_a_kernel_that_errs_more_is_not_verified_and_status_says_so(self):
        self.assertEqual(self.status()[0].count("\n"), 3)  # without evidence no more than the strategies
        self.assertIn("0 failed: verified", self.evidence_with(0.15))
        self.assertIn("| linear `simt` on sm_90 | 1.50x `cublaslt`'s | 0 of 1 | d=255 dtype=fp32 |\n", self.status()[0])
        words = self.evidence_with(0.4)
        self.assertIn("0 failed: failed\n", words)
        self.assertIn("less accurate than a vendor's call in 1 of 1 cases: its error is 4.00x `cublaslt`'s in d=255 dtype=fp32", words)
        self.assertIn("| 4.00x `cublaslt`'s | 1 of 1, **failed** |", self.status()[0])

    def test_doctored_evidence_is_refused(self):
        self.evidence_with(0.15)
        path = self.root / "verify/evidence/linear_simt_sm90.json"
        good = json.loads(path.read_text())
        entry = good["vendor_error"]
        for doctored in (None, [], entry | {"exceeded": -1}, entry | {"exceeded": True}, entry | {"judged": "1"}, entry | {"worst": {}},
                         entry | {"worst": entry["worst"] | {"ours": "low"}}, {key: entry[key] for key in ("cases", "judged", "worst")}):
            path.write_text(json.dumps(good | {"vendor_error": doctored}))
            shown, words = self.status()
            self.assertNotIn("sm_90", shown)
            self.assertIn("linear_simt_sm90.json: vendor_error is", words)


class Normalized(unittest.TestCase):
    def test_same_program(self):
        for a, b in [("a+b", "a  +\n b"), ("int x;  // c\n", "int x;"), ("int/**/x", "int x"), ("a\r\nb", "a\nb"),
                     ("#define A \\\n x\ny", "#define A   x // k\n y"), ("x\n#if A\ny", "x\n\n  #if A /* c */\ny\n")]:
            self.assertEqual(evidence.normalized(a), evidence.normalized(b), (a, b))

    def test_other_program(self):
        for a, b in [("a + +b", "a ++b"), ("#define F (x)\nb", "#define F(x)\nb"), ("#define A x\ny", "#define A x y"), ("a b", "ab"),
                     ('"// no"', '"// yes"'), ("1'000", "1000"), ('R"(a // b)"', 'R"(a // c)"'), ('"a b"', '"a  b"')]:
            self.assertNotEqual(evidence.normalized(a), evidence.normalized(b), (a, b))


class Tally(unittest.TestCase):
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


class Sanitizer(unittest.TestCase):
    """Which verdicts a strategy's evidence takes."""
    PROGRAMS = ("isolation_test:linear", "isolation_test:attention", "isolation_test:conv1d", "isolation_test:softmax",
                "linear_cuda_test", "attention_test", "flash_attention_test", "conv_test", "softmax_test", "model_test")

    def findings(self, op, strategy, **others):
        """Of programs that found nothing, but for `others`, by the program's name with an underscore for the colon."""
        verdicts = [evidence.Verdict("memcheck", program, others.get(program.replace(":", "_"), 0), 0, "all")
                    for program in self.PROGRAMS]
        return evidence.findings_of(verdicts, op, strategy)

    def blamed(self, **others):
        strategies = [("linear", "simt"), ("attention", "fused"), ("conv1d", "direct"), ("conv1d", "pointwise"), ("softmax", "wide")]
        found = {f"{op}/{strategy}": self.findings(op, strategy, **others) for op, strategy in strategies}
        return {name for name, count in found.items() if count != 0}

    def test_a_missing_verdict_costs_the_kernels_that_the_program_is_about(self):
        self.assertEqual(self.blamed(), set())
        self.assertEqual(self.blamed(softmax_test=None), {"softmax/wide"})
        self.assertEqual(self.blamed(linear_cuda_test=None), {"linear/simt", "attention/fused", "conv1d/pointwise"})
        self.assertEqual(self.blamed(isolation_test_conv1d=None), {"conv1d/direct", "conv1d/pointwise"})
        self.assertEqual(self.blamed(model_test=None), set())
        self.assertIsNone(self.findings("softmax", "wide", softmax_test=None))
        self.assertIsNone(self.findings("pooling", "wide"))  # it has no share

    def test_a_finding_counts_against_all_that_runs_there(self):
        self.assertEqual(self.blamed(softmax_test=2), {"softmax/wide"})
        self.assertEqual(self.blamed(linear_cuda_test=2), {"linear/simt", "attention/fused", "conv1d/pointwise"})
        self.assertEqual(self.blamed(isolation_test_attention=2), {"linear/simt", "attention/fused", "conv1d/pointwise"})
        self.assertEqual(self.blamed(conv_test=2), {"conv1d/direct", "conv1d/pointwise", "linear/simt", "attention/fused"})
        self.assertEqual(len(self.blamed(model_test=2)), 5)
        self.assertEqual(self.findings("softmax", "wide", softmax_test=2, isolation_test_softmax=None), 2)

    def test_every_primitive_has_a_program(self):
        text = (ROOT / "scripts/gpu_check.d/sanitize.sh").read_text()
        programs = text[text.index("programs=("):text.index(")", text.index("programs=("))].removeprefix("programs=(").split()
        self.assertIn("linear_cuda_test", programs)
        for program in programs:
            self.assertEqual(len(list((ROOT / "verify").glob(f"*/{program}.cpp"))), 1, program)
        specs = {path.name.removesuffix("_spec.cpp") for path in (ROOT / "host").glob("*/*_spec.cpp")}
        for op in {*specs, *evidence.KERNELS_OF}:
            self.assertTrue(any(evidence.is_about(program, op, {evidence.KERNELS_OF.get(op, op)}) for program in programs), op)


if __name__ == "__main__":
    unittest.main()
