#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""counters.py measure WBENCH [--out FILE] [--kernels FILE] [--seconds S] | tolerances: a GPU's counters against the simulated GPU's.

measure runs the kernels of bench/counters.json under Nsight Compute (ncu), and the same calls on the simulated GPU
(wbench --sim inspect), and compares the counters of both, launch by launch; in that file's order: first a kernel of each way to
move and to multiply data, so that little time tells most. tolerances prints what may differ and why, which was written down
before any device was measured. A number is

  same            within its tolerance
  differs         not; both numbers are shown, and either the simulation or its reading of a counter is wrong
  not comparable  shown, and why: ncu has no such counter here, or the simulated GPU lacks what it counts

--out writes all of it as JSON, kernel after kernel, or that there are no counters here and why. --metrics stores the names of
ncu's metrics, which take long to query, for the next call. Exit 0: all the same; 4: some differ; 1: a kernel could not be
measured; 77: no ncu, no GPU, or no permission to read its counters.
"""
import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import NamedTuple

sys.dont_write_bytecode = True
import ncu  # noqa: E402
from evidence import read_json  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = {"name": "wide.counters", "version": "1.1.0"}
NO_DEVICE = 7  # wbench's exit code
INSTRUCTIONS = tuple("instructions_" + kind for kind in ("integer", "fp32", "fp64", "half", "special", "convert", "move", "memory",
                                                         "control", "synchronise", "tensor"))
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_"
WAVEFRONTS = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_"
OPERATIONS = "sm__ops_path_tensor_src_"
FLOATS = "smsp__sass_thread_inst_executed_op_"
PASSES = ("shared_load_passes", "shared_store_passes", "matrix_passes")
NO_CACHE = "the simulated GPU has no cache: its number is of what is asked for, of L2's sectors without bulk copies"
BY_REQUEST = "both count the 32-byte sectors of each warp's request before any cache; ptxas may merge, move or drop a request"
BY_BYTE = "the simulation counts bytes inside the tensor; the hardware fetches and writes whole sectors, and the tensor maps"
BY_PASS = "both count what a warp's request takes of passes over the banks; ptxas may merge requests or widen them"


class Quantity(NamedTuple):
    name: str
    simulated: tuple  # counters of a launch, to be summed
    metrics: tuple  # of ncu: groups; the first one that is complete is summed
    tolerance: float  # allowed difference as a share of the larger number, or of `of`; None: not judged
    why: str
    of: tuple = ()
    per: int = 1  # `simulated` counts this many times what ncu does


# TMA and bulk copies bypass the LSU: their sectors are not among its. Bank conflicts are compared in sum, since the L1's
# counters count those of ldmatrix as loads', and of stmatrix as stores'. The first groups are GH100's.
QUANTITIES = (
    Quantity("load sectors", ("load_sectors",), ((SECTORS + "ld",),), 0.02, BY_REQUEST),
    Quantity("store sectors", ("store_sectors",), ((SECTORS + "st",),), 0.02, BY_REQUEST),
    Quantity("cp.async sectors", ("async_copy_sectors",),
             (("smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts",),
              (SECTORS + "ldgsts_cache_access", SECTORS + "ldgsts_cache_bypass")), 0.02, BY_REQUEST),
    Quantity("TMA bytes loaded", ("bulk_load_bytes",), (("l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld",),), 0.05, BY_BYTE),
    Quantity("TMA bytes stored", ("bulk_store_bytes",), (("l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st",),), 0.05, BY_BYTE),
    Quantity("bank conflicts", ("shared_load_extra", "shared_store_extra", "matrix_extra"),
             (("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st"),),
             0.05, "of all passes: the hardware counts turns that other traffic of the data stage took, too", of=PASSES),
    Quantity("passes of loads", PASSES[:1], ((WAVEFRONTS + "ld",),), 0.05, BY_PASS),
    Quantity("passes of stores", PASSES[1:2], ((WAVEFRONTS + "st",),), 0.05, BY_PASS),
    Quantity("passes of matrices", PASSES[2:], ((WAVEFRONTS + "ldsm", WAVEFRONTS + "stsm"), (WAVEFRONTS + "ldsm",)), 0.05, BY_PASS),
    Quantity("tensor operations", ("mma_flops", "wgmma_flops"),
             tuple(tuple(OPERATIONS + kind for kind in kinds) for kinds in (
                 ("bf16_dst_fp32", "fp16", "tf32_dst_fp32"), ("bf16_dst_fp32", "fp16_dst_fp32", "tf32_dst_fp32"))), 0.01,
             "mma and wgmma are the hardware's own instructions; two operations a product"),
    Quantity("tensor instructions", ("instructions_tensor",), (("sm__inst_executed_pipe_tensor",),), None,
             "of how many instructions a product is, ptxas decides, and whether a warpgroup's counts four times is not documented", per=32),
    Quantity("fp32 instructions", ("instructions_fp32",),
             (tuple(FLOATS + kind + "_pred_on" for kind in ("fadd", "fmul", "ffma")),), 0.25,
             "the simulation counts PTX: ptxas makes one of two, does least, greatest and absolute elsewhere, and divides in many steps"),
    Quantity("thread instructions", INSTRUCTIONS, (("smsp__thread_inst_executed_pred_on",), ("smsp__thread_inst_executed",)), 0.5,
             "the simulation counts PTX: a move is often none of the hardware's instructions, an address of 64 bits two"),
    Quantity("DRAM bytes read", ("unique_read_bytes",), (("dram__bytes_read",),), None, NO_CACHE),
    Quantity("DRAM bytes written", ("unique_write_bytes",), (("dram__bytes_write",),), None, NO_CACHE),
    Quantity("L2 sectors read", ("load_sectors", "async_copy_sectors"), (("lts__t_sectors_op_read",),), None, NO_CACHE),
    Quantity("L2 sectors written", ("store_sectors",), (("lts__t_sectors_op_write",),), None, NO_CACHE),
)


def taken_of(quantity, names):
    """The first group of metrics that are all among `names`; None: there is none."""
    return next((group for group in quantity.metrics if all(name in names for name in group)), None)


def compare_number(quantity, taken, launch, counters):
    simulated = sum(counters[name] for name in quantity.simulated) / quantity.per
    result = {"name": quantity.name, "simulated": simulated, "measured": None, "tolerance": quantity.tolerance}
    if taken is None:
        missing = ", or ".join(" + ".join(group) for group in quantity.metrics)
        return result | {"outcome": "not comparable", "why": f"ncu has here no {missing}"}
    numbers = [launch.numbers.get(name) for name in taken]
    if None in numbers:
        return result | {"outcome": "not comparable", "why": "ncu gave no number"}
    result["measured"] = measured = sum(numbers)
    if quantity.tolerance is None:
        return result | {"outcome": "not comparable", "why": quantity.why}
    whole = max([measured, simulated] if not quantity.of else [sum(counters[name] for name in quantity.of)])
    is_same = abs(measured - simulated) <= quantity.tolerance * whole
    return result | {"outcome": "same" if is_same else "differs", "why": quantity.why}


def shape_of(name, grid, block):
    return f"{ncu.base_name(name)} {'x'.join(map(str, grid))} of {'x'.join(map(str, block))}"


def compare_launches(taken, measured, simulated):
    """Launches in order; other launches than the simulation's are not comparable."""
    there = [shape_of(launch.kernel, launch.grid, launch.block) for launch in measured]
    here = [shape_of(launch["kernel"], launch["grid"], launch["block"]) for launch in simulated]
    if there != here:
        return [{"kernel": "launches", "counters": [{
            "name": "launches", "measured": there, "simulated": here, "tolerance": 0, "outcome": "differs",
            "why": "the same call launches the same kernels, so nothing else of it is comparable"}]}]
    return [{"kernel": shape, "counters": [compare_number(quantity, taken[quantity.name], launch, one["counters"])
                                           for quantity in QUANTITIES]}
            for shape, launch, one in zip(here, measured, simulated)]


def words_of(kernel):
    return ["--op", kernel["op"], "--strategy", kernel["strategy"],
            *(word for axis, value in kernel["axes"].items() for word in (f"--{axis}", str(value)))]


def profile_words(wbench, kernel):
    return [wbench, "profile", "--tool", "none", "--launches", "1", "--device", "cuda", *words_of(kernel)]


def simulate(wbench, kernel, capability):
    """The same call's launches on a simulated GPU of the same kind."""
    architecture = "90" if capability.startswith("9") else "80"
    done = subprocess.run([wbench, "--sim", "inspect", *words_of(kernel), "--json", "-"], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, env=os.environ | {"WIDE_SIM_ARCH": architecture})
    try:
        (case,) = json.loads(done.stdout)["cases"]
        (strategy,) = case["strategies"]
        if strategy["status"] != "ok":
            raise ncu.NcuError(f"on the simulated GPU: {strategy['status']}: {strategy['reason']}")
        return strategy["launches"]
    except (ValueError, KeyError):
        raise ncu.NcuError(f"wbench --sim inspect: exit code {done.returncode}: {ncu.last_line(done.stdout + done.stderr)}") from None


def measure_kernel(tool, wbench, kernel, taken, seconds):
    metrics = sorted({name for group in taken.values() if group for name in group})
    try:
        if seconds < 1:
            raise ncu.NcuError("no time was left")
        measured = ncu.measure(tool, metrics, profile_words(wbench, kernel), seconds)
        return kernel | {"launches": compare_launches(taken, measured, simulate(wbench, kernel, measured[0].capability))}
    except ncu.NcuError as error:
        return kernel | {"not_measured": str(error)}


def require_device(wbench, kernel):
    done = subprocess.run([*profile_words(wbench, kernel), "--dry-run"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode == NO_DEVICE:
        raise ncu.NotRun(ncu.last_line(done.stderr))


def device_facts():
    try:
        done = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    except OSError:
        return {"device": None, "driver": None}
    name, _, driver = (done.stdout.splitlines() or [""])[0].rpartition(",")
    return {"device": name.strip() or None, "driver": driver.strip() or None}


def show(number):
    return str(number) if not isinstance(number, (int, float)) else f"{number:,.0f}"


def print_kernel(kernel):
    print(f"{kernel['op']} {kernel['strategy']}  {' '.join(f'{axis}={value}' for axis, value in kernel['axes'].items())}")
    if "not_measured" in kernel:
        print(f"  not measured: {kernel['not_measured']}")
    for launch in kernel.get("launches", []):
        print(f"  {launch['kernel']:24} {'measured':>14} {'simulated':>14}")
        for one in launch["counters"]:
            if one["measured"] or one["simulated"]:
                why = "" if one["outcome"] == "same" else f": {one['why']}"
                measured = "" if one["measured"] is None else show(one["measured"])
                print(f"    {one['name']:22} {measured:>14} {show(one['simulated']):>14}  {one['outcome']}{why}")
    sys.stdout.flush()


def outcomes_of(kernels):
    counts = {"same": 0, "differs": 0, "not comparable": 0, "not measured": sum("not_measured" in kernel for kernel in kernels)}
    for kernel in kernels:
        for launch in kernel.get("launches", []):
            for one in launch["counters"]:
                counts[one["outcome"]] += 1
    return counts


def available(tool, version, path):
    """The names of ncu's metrics: those in the file of a call with the same ncu, else those that ncu lists, then stored there."""
    known = (read_json(path) if path else None) or {}
    if known.get("ncu") != version or not known.get("names"):
        known = {"ncu": version, "names": sorted(ncu.available(tool))}
        write(path, known)
    return set(known["names"])


def write(path, document):
    """Writes all or nothing, however this process ends."""
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(document, indent=1) + "\n")
        part.replace(path)


def measure(arguments, document):
    """The exit code; fills the document, and writes it after each kernel."""
    begin = time.monotonic()
    kernels = json.loads(arguments.kernels.read_text())["kernels"]
    tool = ncu.find()
    require_device(arguments.wbench, kernels[0])
    version = ncu.version(tool)
    names = available(tool, version, arguments.metrics)
    taken = {quantity.name: taken_of(quantity, names) for quantity in QUANTITIES}
    document |= {"ncu": version, "metrics": taken, "complete": False, "kernels": []}
    for quantity, group in taken.items():
        print(f"{quantity:22} {' + '.join(group) if group else 'ncu has none of its metrics here'}")
    for kernel in kernels:
        left = arguments.seconds - (time.monotonic() - begin)
        document["kernels"].append(measure_kernel(tool, arguments.wbench, kernel, taken, left))
        print_kernel(document["kernels"][-1])
        document["outcomes"] = counts = outcomes_of(document["kernels"])
        write(arguments.out, document)
    document["complete"] = True
    print(f"{len(kernels)} kernels: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["not measured"] else 4 if counts["differs"] else 0


def print_tolerances():
    for quantity in QUANTITIES:
        tolerance = "shown" if quantity.tolerance is None else f"{100 * quantity.tolerance:.0f} %"
        print(f"{quantity.name:22} {tolerance:>5}  {quantity.why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("tolerances")
    command = commands.add_parser("measure")
    command.add_argument("wbench")
    command.add_argument("--out", type=pathlib.Path)
    command.add_argument("--metrics", type=pathlib.Path)
    command.add_argument("--kernels", type=pathlib.Path, default=ROOT / "bench/counters.json")
    command.add_argument("--seconds", type=float, default=600, help="for all kernels")
    arguments = parser.parse_args()
    if arguments.command == "tolerances":
        print_tolerances()
        return 0
    document = {"schema": SCHEMA, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), **device_facts()}
    try:
        code = measure(arguments, document)
    except ncu.NotRun as reason:
        print(f"counters: not run: {reason}", file=sys.stderr)
        document["not_run"] = str(reason)
        code = 77
    except ncu.NcuError as error:
        print(f"counters: {error}", file=sys.stderr)
        return 1
    write(arguments.out, document)
    return code


if __name__ == "__main__":
    sys.exit(main())
