#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""targets.py expect | measure WBENCH [--out FILE] [--seconds S]: bench/targets.json, before and after a device has its say.

expect prints what each target should take on an H200 by arithmetic alone: 2 us for a launch and one trip to memory, and the
longer of bytes at 4.3 TB/s (what a copy reaches) and operations at 790 TFLOP/s in 16 bits (what cuBLAS reaches), 50 in fp32.
measure runs wbench on the CUDA device, S seconds at most (90), and says of each target whether it is met: the fastest
strategy of ours against the fastest of the vendor's in the same run. --out writes that as JSON beside the expectation.

Exit 1 where something could not be measured; a target that is missed is a result.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENDOR = {"sequential", "cublas_batched", "cublaslt", "cublas_grouped"}
LATENCY_S, BYTES_PER_S = 2e-6, 4.3e12
FLOPS_PER_S = {"bf16": 790e12, "fp16": 790e12, "fp32": 50e12}
REGIMES = ("graph", "stream", "cpu")  # the first that was measured: launches are not what is compared


def expected_us(target):
    axes = target["axes"]
    n, batch, d = axes["n"], axes["batch"], axes["d"]
    element = 4 if axes["dtype"] == "fp32" else 2
    moved = element * n * (2 * batch * d + d * d + d)
    flops = n * batch * d * (2 * d + 1)
    return 1e6 * (LATENCY_S + max(moved / BYTES_PER_S, flops / FLOPS_PER_S[axes["dtype"]]))


def fastest(case, is_vendor):
    """(strategy, seconds, measurement) of the fastest that ran right; None where none did."""
    best = None
    for strategy in case["strategies"]:
        if (strategy["name"] in VENDOR) != is_vendor or strategy["status"] != "ok":
            continue
        for regime in REGIMES:
            measured = next((m for m in strategy["measurements"] if m["regime"] == regime), None)
            if measured is not None:
                seconds = measured["stats"]["median_ns"] * 1e-9
                if best is None or seconds < best[1]:
                    best = strategy["name"], seconds, measured
                break
    return best


def judge(target, case):
    """What was reached of a target."""
    result = {"name": target["name"], "axes": target["axes"], "expected_us": expected_us(target)}
    own, vendor = fastest(case, False), fastest(case, True)
    if own is None:
        return result | {"verdict": "not measured", "why": "no strategy of ours ran"}
    name, seconds, measured = own
    reached = {"of_floor_pct": measured["rates"]["pct_of_floor"], "flops_per_s": measured["rates"]["flops_per_s"]}
    result |= {"strategy": name, "regime": measured["regime"], "median_us": seconds * 1e6, **reached}
    if vendor is not None:
        reached["vs_vendor"] = vendor[1] / seconds
        result |= {"vendor": vendor[0], "vendor_us": vendor[1] * 1e6, "vs_vendor": reached["vs_vendor"]}
    goals = {goal: target[goal] for goal in ("vs_vendor", "of_floor_pct", "flops_per_s") if goal in target}
    missing = [goal for goal in goals if reached.get(goal) is None]
    if missing:
        return result | {"goals": goals, "verdict": "not measured", "why": f"nothing to say of {', '.join(missing)}"}
    missed = [goal for goal, least in goals.items() if not reached[goal] >= least]
    return result | {"goals": goals, "verdict": "missed" if missed else "met", "missed": missed}


def measure(wbench, target, seconds):
    command = [wbench, "run", "--op", target["op"], "--device", "cuda", "--baseline", "none", "--max-samples", "300",
               "--budget", f"{seconds:.1f}"]
    for axis, value in target["axes"].items():
        command += [f"--{axis}", str(value)]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "result.json"
        done = subprocess.run([*command, "--json", str(path)], capture_output=True, text=True, errors="replace")
        try:
            case = json.loads(path.read_text())["cases"][0]
        except (OSError, ValueError, KeyError, IndexError):
            why = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
            return {"name": target["name"], "verdict": "not measured", "why": f"exit code {done.returncode}: {why[-1]}"}
    return judge(target, case)


def line(result):
    if result["verdict"] == "not measured":
        return f"{result['name']:30}  not measured: {result['why']}"
    ratio = f"{result['vs_vendor']:.2f}x {result['vendor']}" if "vendor" in result else "no vendor"
    return (f"{result['name']:30}  {result['verdict']:7} {result['strategy']:12} {result['median_us']:9.2f} us "
            f"(expected {result['expected_us']:.2f})  {ratio}, {result['of_floor_pct']:.0f} % of floor")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("expect")
    run = commands.add_parser("measure")
    run.add_argument("wbench")
    run.add_argument("--out", type=pathlib.Path)
    run.add_argument("--seconds", type=float, default=90)
    arguments = parser.parse_args()
    targets = json.loads((ROOT / "bench/targets.json").read_text())["targets"]
    if arguments.command == "expect":
        for target in targets:
            print(f"{target['name']:30}  {expected_us(target):9.2f} us")
        return 0
    begin, results = time.monotonic(), []
    for index, target in enumerate(targets):
        left = arguments.seconds - (time.monotonic() - begin)
        share = left / (len(targets) - index)
        results.append(measure(arguments.wbench, target, share) if share > 0.5 else
                       {"name": target["name"], "verdict": "not measured", "why": "no time was left"})
        print(line(results[-1]), flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"targets": results}, indent=1) + "\n")
    return 1 if any(result["verdict"] == "not measured" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
