#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""counters_test.py [WBENCH]: what counters.py reads of Nsight Compute, which is played by a program of the same words, and what
it makes of the difference to the simulated GPU's counters."""
import concurrent.futures
import contextlib
import ctypes
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from tree_case import TreeCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import counters  # noqa: E402
import ncu  # noqa: E402

WBENCH = sys.argv.pop() if len(sys.argv) > 1 and not sys.argv[-1].startswith("-") else str(ROOT / "build/release/bench/wbench")
KERNEL = {"op": "linear", "strategy": "simt", "axes": {"n": 2, "batch": 16, "d": 64}}
NAME = "void wide::kernels::<unnamed>::linear_simt<float, float, (wide::kernels::LinearSimtTile)0>(wide::LinearParams, unsigned int)"
COLUMNS = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]
# Nsight Compute's, which says what lies beside it.
NCU = """#!/bin/sh
cd "$(dirname "$0")/.."
echo "$LC_ALL: $*" >>words
case "$*" in
  --version) echo "NVIDIA (R) Nsight Compute Command Line Profiler"; echo "Version 2025.3.1.0 (build 36398880) (public-release)" ;;
  --query-metrics) cat names ;;
  "--query-metrics --query-metrics-collection source") cat source ;;
  *) cat says; exit "$(cat code)" ;;
esac
"""
HEADING = "==PROF== Connected to process 4711 (/usr/bin/wbench)\nwbench run --profile\n\nlinear  batch=16\n"
REFUSED = HEADING + "==ERROR== {}\n==PROF== Disconnected from process 4711\n==WARNING== No kernels were profiled.\n"
PROFILED = HEADING + """==PROF== Profiling "linear_simt" - 0: 0%....50%....100% - 9 passes
"quoted" words of the program
==PROF== Disconnected from process 4711
"""


def raw_page(columns, launches):
    """With its line of units; all values are quoted."""
    columns = columns + sorted({name for launch in launches for name in launch if "__" in name})
    units = ["byte" if "bytes" in name else "sector" if "__" in name else "" for name in columns]
    cells = [{"ID": index, "Process ID": 4711, "CC": "9.0"} | launch for index, launch in enumerate(launches)]
    return "".join(",".join(f'"{value}"' for value in row) + "\n"
                   for row in [columns, units, *([one.get(name, "n/a") for name in columns] for one in cells)])


def metrics_of(simulated, taken):
    """What ncu would say of a launch if the hardware counted as the simulation does."""
    numbers = {}
    for quantity in counters.QUANTITIES:
        total = sum(simulated[name] for name in quantity.simulated) / quantity.per
        for index, metric in enumerate(taken[quantity.name] or ()):
            numbers[metric + ".sum"] = f"{total if index == 0 else 0:,.2f}"
    return numbers


class CountersTest(TreeCase):
    COUNTERS = {name: 0 for quantity in counters.QUANTITIES for name in quantity.simulated + quantity.of} | {
        "load_sectors": 1000, "store_sectors": 2_000_000, "instructions_fp32": 4096, "instructions_tensor": 96,
        "shared_load_passes": 1000, "shared_load_extra": 100}

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.names = {name for quantity in counters.QUANTITIES for name in quantity.metrics[0]}
        self.put("bin/ncu", NCU, 0o755)
        self.put("bin/nvidia-smi", "#!/bin/sh\necho Toy GPU, 580.1\n", 0o755)
        self.put("kernels.json", json.dumps({"kernels": [KERNEL]}))
        self.launch = {"kernel": NAME, "grid": [4, 1, 1], "block": [128, 1, 1], "counters": self.COUNTERS}
        self.simulate([self.launch])
        self.said = {"columns": COLUMNS, "error": "", "code": 0, "launches": [self.row()]}

    def simulate(self, launches, status="ok"):
        strategy = {"status": status, "reason": "why", "launches": launches}
        self.put("sim.json", json.dumps({"cases": [{"strategies": [strategy]}]}))
        self.put("wbench", f'#!/bin/sh\n[ "$1" != --sim ] || {{ echo "$WIDE_SIM_ARCH" >>{self.root}/words; cat {self.root}/sim.json; }}\n', 0o755)

    def row(self, **numbers):
        taken = {quantity.name: counters.taken_of(quantity, self.names) for quantity in counters.QUANTITIES}
        return {"Kernel Name": NAME, "Grid Size": "(4, 1, 1)", "Block Size": "(128, 1, 1)"} | metrics_of(self.COUNTERS, taken) | numbers

    def measure(self, *options, **environment):
        """(exit code, output, document)"""
        said = self.said
        self.put("says", REFUSED.format(said["error"]) if said["error"] else PROFILED + raw_page(said["columns"], said["launches"]))
        self.put("code", "1" if said["error"] else str(said["code"]))
        for place in ("names", "source"):
            self.put(place, "Device NVIDIA H200 (GH100)\nMetric Name  Metric Type  Metric Unit  Metric Description\n" + "".join(
                f"{name:60} Counter  sector  # of things\n{'':60} that are counted\n" for name in sorted(self.names)
                if ("__sass_" in name) == (place == "source")))
        out = self.root / "out/counters.json"
        words = ["counters.py", "measure", self.root / "wbench", "--out", out, "--kernels", self.root / "kernels.json", *options]
        text = io.StringIO()
        with mock.patch.object(sys, "argv", [str(word) for word in words]), contextlib.redirect_stdout(text), \
             contextlib.redirect_stderr(text), mock.patch.dict(os.environ, {"PATH": f"{self.root}/bin:{os.environ['PATH']}"} | environment):
            code = counters.main()
        return code, text.getvalue(), json.loads(out.read_text()) if out.exists() else None

    def outcome(self, document, name):
        (launch,) = document["kernels"][0]["launches"]
        (one,) = [one for one in launch["counters"] if one["name"] == name]
        return one["outcome"]

    def test_the_same_numbers_are_the_same(self):
        code, output, document = self.measure()
        self.assertEqual(code, 0, output)
        self.assertEqual((document["ncu"], document["device"], document["driver"]), ("2025.3.1.0", "Toy GPU", "580.1"))
        self.assertEqual(document["outcomes"], {"same": 12, "differs": 0, "not comparable": 5, "not measured": 0})
        (launch,) = document["kernels"][0]["launches"]
        tensor = next(one for one in launch["counters"] if one["name"] == "tensor instructions")
        self.assertEqual((tensor["simulated"], tensor["outcome"]), (3, "not comparable"))  # of warps, not of threads
        self.assertRegex(output, r"store sectors +2,000,000 +2,000,000  same")
        words = (self.root / "words").read_text()
        self.assertIn("profile --tool none --launches 1 --device cuda --op linear --strategy simt --n 2", words)
        self.assertIn("C: --csv --page raw", words)
        self.assertTrue(words.endswith("\n90\n"), words)

    def test_columns_in_any_order(self):
        self.said["columns"] = COLUMNS[::-1]
        self.assertEqual(self.measure()[0], 0)

    def test_a_difference_is_shown_with_both_numbers(self):
        for name, metric, within, beyond in (("load sectors", counters.SECTORS + "ld", 1020, 1021),
                                             ("fp32 instructions", counters.FLOATS + "fadd_pred_on", 3072, 3071),
                                             ("bank conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld", 150, 151)):
            self.said["launches"] = [self.row(**{metric + ".sum": within})]
            self.assertEqual(self.measure()[0], 0, name)
            self.said["launches"] = [self.row(**{metric + ".sum": f"{beyond:,}"})]
            code, output, document = self.measure()
            self.assertEqual((code, self.outcome(document, name)), (4, "differs"), output)
            self.assertRegex(output, rf"{name} +{beyond:,} +[\d,]+  differs: ")

    def test_which_metrics_there_are_is_asked(self):
        first = "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts"
        second = [counters.SECTORS + "ldgsts_cache_access", counters.SECTORS + "ldgsts_cache_bypass"]
        self.names = self.names - {first, "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld"} | {*second}
        self.said["launches"] = [self.row()]
        code, output, document = self.measure()
        self.assertEqual((code, document["metrics"]["cp.async sectors"]), (0, second), output)
        self.assertEqual(self.outcome(document, "TMA bytes loaded"), "not comparable")
        self.assertNotIn(first + ".sum", (self.root / "words").read_text())

    def test_a_number_that_is_none_is_not_compared(self):
        self.said["launches"] = [self.row(**{counters.SECTORS + "ld.sum": "n/a"})]
        self.assertEqual(self.outcome(self.measure()[2], "load sectors"), "not comparable")

    def test_other_launches_differ(self):
        for rows in ([self.row(), self.row()], [self.row(**{"Grid Size": "(5, 1, 1)"})], [self.row(**{"Kernel Name": "void other<1>()"})]):
            self.said["launches"] = rows
            code, output, document = self.measure()
            self.assertEqual((code, self.outcome(document, "launches")), (4, "differs"), output)

    def test_launches_are_compared_in_order(self):
        other = {"kernel": "wide::add_up<2>", "grid": [1, 1, 1], "block": [32, 1, 1], "counters": self.COUNTERS | {"load_sectors": 7}}
        self.simulate([self.launch, other])
        row = self.row(**{"Kernel Name": "wide::add_up<2>(int)", "Grid Size": "(1, 1, 1)", "Block Size": "(32, 1, 1)"})
        self.said["launches"] = [self.row(), row | {counters.SECTORS + "ld.sum": "7"}]
        self.assertEqual(self.measure()[0], 0)
        self.said["launches"].reverse()
        self.assertEqual(self.measure()[0], 4)

    def test_it_is_written_after_each_kernel(self):
        self.put("kernels.json", json.dumps({"kernels": [KERNEL, KERNEL | {"op": "ended"}]}))
        made = counters.measure_kernel

        def measure_kernel(tool, wbench, kernel, *rest):
            if kernel["op"] == "ended":
                raise KeyboardInterrupt
            return made(tool, wbench, kernel, *rest)
        with mock.patch.object(counters, "measure_kernel", measure_kernel), self.assertRaises(KeyboardInterrupt):
            self.measure()
        document = json.loads((self.root / "out/counters.json").read_text())
        self.assertEqual((len(document["kernels"]), document["complete"]), (1, False))
        self.assertGreater(document["outcomes"]["same"], 0)
        self.put("kernels.json", json.dumps({"kernels": [KERNEL]}))
        self.assertTrue(self.measure()[2]["complete"])

    def test_metrics_are_asked_for_once(self):
        def asked():
            self.put("words", "")
            self.assertEqual(self.measure("--metrics", str(self.root / "metrics.json"))[0], 0)
            return (self.root / "words").read_text().count("--query-metrics\n")
        self.assertEqual((asked(), asked()), (1, 0))
        self.put("bin/ncu", NCU.replace("2025.3", "2026.1"), 0o755)
        self.assertEqual((asked(), asked()), (1, 0))
        self.put("metrics.json", "half of")
        self.assertEqual((asked(), asked()), (1, 0))

    def test_no_permission_is_explained_and_written(self):
        self.said["error"] = "ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"
        code, output, document = self.measure()
        self.assertEqual(code, 77)
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", output)
        self.assertIn("ERR_NVGPUCTRPERM", document["not_run"])

    def test_no_ncu_and_no_device(self):
        self.put("wbench", "#!/bin/sh\necho wbench: cuda: no NVIDIA driver is installed >&2\nexit 7\n", 0o755)
        code, _, document = self.measure()
        self.assertEqual((code, document["not_run"]), (77, "wbench: cuda: no NVIDIA driver is installed"))
        (self.root / "bin/ncu").unlink()
        with mock.patch.object(ncu.glob, "glob", return_value=[]):
            self.assertIn("ncu is neither", self.measure(PATH=f"{self.root}/bin")[2]["not_run"])

    def test_what_could_not_be_measured_is_a_failure(self):
        self.said["error"] = "The application returned an error code (11)."
        code, output, document = self.measure()
        self.assertEqual((code, document["outcomes"]["not measured"]), (1, 1), output)
        self.assertIn("not measured: ncu: exit code 1, 0 launches: ==ERROR== The application", output)
        self.said["error"] = ""
        self.assertIn("not measured: no time was left", self.measure("--seconds", "0")[1])
        self.said["code"] = 9  # with launches: which of them there are not is unknown
        self.assertEqual(self.measure()[0], 1)
        self.said["code"] = 0
        self.simulate([], "failed")
        self.assertIn("on the simulated GPU: failed: why", self.measure()[1])

    def test_names_of_kernels(self):
        for name in (NAME, "wide::kernels::(anonymous namespace)::linear_simt<int>", "linear_simt", "linear_simt(int)",
                     "wide::_GLOBAL__N__1::linear_simt<(a::B)1>(c::D<e>)"):
            self.assertEqual(ncu.base_name(name), "linear_simt")


class HostInitialize(ctypes.Structure):
    _fields_ = [("structSize", ctypes.c_size_t), ("pPriv", ctypes.c_void_p), ("profilerType", ctypes.c_int),
                ("pChipName", ctypes.c_char_p), ("pCounterAvailabilityImage", ctypes.c_void_p), ("pHostObject", ctypes.c_void_p)]


class HostGetBaseMetrics(ctypes.Structure):
    _fields_ = [("structSize", ctypes.c_size_t), ("pPriv", ctypes.c_void_p), ("pHostObject", ctypes.c_void_p),
                ("metricType", ctypes.c_int), ("ppMetricNames", ctypes.POINTER(ctypes.c_char_p)), ("numMetrics", ctypes.c_size_t)]


class CuptiTest(unittest.TestCase):
    """CUPTI knows the metrics of every chip, without one."""

    def names_on(self, chip):
        folders = [os.environ.get("CUDA_HOME", "/usr/local/cuda") + part for part in ("/lib64", "/lib", "/extras/CUPTI/lib64")]
        found = [path for folder in folders for path in pathlib.Path(folder).glob("libcupti.so*")]
        if not found:
            self.skipTest("no libcupti")
        cupti = ctypes.CDLL(str(found[0]))
        if not hasattr(cupti, "cuptiProfilerHostGetBaseMetrics"):
            self.skipTest("a libcupti before 12.6")
        begin = HostInitialize(ctypes.sizeof(HostInitialize), None, 0, chip, None, None)
        if cupti.cuptiProfilerHostInitialize(ctypes.byref(begin)) != 0:
            self.skipTest("libcupti lacks its libnvperf_host")
        get = HostGetBaseMetrics(ctypes.sizeof(HostGetBaseMetrics), None, begin.pHostObject, 0, None, 0)  # counters
        self.assertEqual(cupti.cuptiProfilerHostGetBaseMetrics(ctypes.byref(get)), 0)
        return {get.ppMetricNames[i].decode() for i in range(get.numMetrics)}

    def missing_on(self, chip):
        names = self.names_on(chip)
        return {quantity.name for quantity in counters.QUANTITIES if counters.taken_of(quantity, names) is None}

    def test_hopper_has_all_of_a_quantity_s_metrics(self):
        self.assertEqual(self.missing_on(b"GH100"), set())

    def test_ampere_has_all_but_those_of_bulk_copies(self):
        self.assertEqual(self.missing_on(b"GA100"), {"TMA bytes loaded", "TMA bytes stored"})


class WbenchTest(unittest.TestCase):
    def test_the_simulated_gpu_counts_what_is_compared(self):
        taken = {quantity.name: quantity.metrics[0] for quantity in counters.QUANTITIES}
        try:
            simulated = counters.simulate(WBENCH, KERNEL, "9.0")
        except ncu.NcuError as error:
            if not any(why in str(error) for why in ("built where a CUDA toolkit is found", 'unknown command "--sim"')):
                raise
            self.skipTest(f"this build has no simulated GPU: {error}")
        launches = [ncu.Launch(one["kernel"], one["grid"], one["block"], "9.0", {
            name.removesuffix(".sum"): ncu.number(value) for name, value in metrics_of(one["counters"], taken).items()})
            for one in simulated]
        (launch,) = counters.compare_launches(taken, launches, simulated)
        self.assertEqual({one["outcome"] for one in launch["counters"]}, {"same", "not comparable"})
        self.assertGreater(sum(one["simulated"] for one in launch["counters"]), 10_000)
        self.assertEqual(set(counters.INSTRUCTIONS), {name for name in simulated[0]["counters"] if name.startswith("instructions_")})

    def test_each_kernel_is_one_case_of_a_strategy_that_there_is(self):
        kernels = json.loads((ROOT / "bench/counters.json").read_text())["kernels"]
        listed = json.loads(subprocess.run([WBENCH, "list", "strategies", "--json", "-"], capture_output=True, text=True).stdout)
        hand_written = {(row["op"], row["strategy"]) for row in listed if row["kind"] == "hand_written" and row["device"] == "cuda"}
        self.assertGreaterEqual(len(kernels), 12)
        self.assertEqual({(kernel["op"], kernel["strategy"]) for kernel in kernels} - hand_written, set())

        def selected(kernel):
            return subprocess.run([WBENCH, "run", "--dry-run", "--device", "cpu", "--strategy", "sequential", "--op", kernel["op"],
                                   *counters.words_of(kernel)[4:]], capture_output=True, text=True).stdout

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            for kernel, said in zip(kernels, pool.map(selected, kernels)):
                self.assertRegex(said, r"(?m)^1 cases?$", kernel)


if __name__ == "__main__":
    unittest.main()
