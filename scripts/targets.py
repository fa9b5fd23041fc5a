#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""targets.py expect | notes | measure WBENCH [--out FILE] [--seconds S] [--full]: bench/targets.json, before and after a device.

expect prints what each strategy of ours should take on an H200 by arithmetic alone (expectation.py, roofline.py), target by target; notes
prints the same with all of its parts, which is bench/results/NOTES.md. measure runs wbench on the CUDA device, S seconds at
most (90), says of each target whether it is met, and of each strategy how its time compares with what was expected. --out
writes that as JSON.

A target is a case ("axes") or a sweep ("preset"), and the least of what it is to reach:

  vs_vendor           the vendor's fastest strategy's time over that of ours, in the same run; "vendor_axes" are those in which
                      the vendor's case differs: packed weights, say, for one of ours with quantised weights
  of_floor_pct        of the run's own floor; where that is memory's, in regime cold: 67 MB are little more than an L2 of 60, and what
                      that still holds of the call before comes faster than any floor
  flops_per_s         the rate
  most_us             no longer than that
  vs_other            the time of the strategy that "other" names, one of ours, over that of the one that is meant
  geomean_vs_vendor,  of a preset: vs_vendor's geometric mean over its cases, and the smallest
  least_vs_vendor

"strategy" names the one that is meant; without, the fastest of ours counts. A target without goals is there to be compared
with its expectation. What "takes_minutes" is left out unless --full asks for it. Exit 1 where something could not be
measured; a target that is missed is a result.
"""
import argparse
import json
import math
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import expectation  # noqa: E402
import roofline  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
# `sequential` calls the vendor where it stands among these; elsewhere it is our own kernel member by member, and no contender.
LINEARS = {"sequential", "cublas_batched", "cublaslt", "cublas_grouped"}
CONVOLUTIONS = {"sequential", "grouped", "channels_last"}
BATCHED = {"sequential", "cublas_batched"}
CUDNN = {"sequential", "cudnn"}
VENDORS = {"linear": LINEARS, "ragged_linear": LINEARS, "attention": BATCHED, "mlp": BATCHED, "recurrent": BATCHED,
           "conv1d": CONVOLUTIONS, "conv2d": CONVOLUTIONS, "batchnorm1d": CUDNN, "batchnorm2d": CUDNN,
           "instancenorm1d": CUDNN, "instancenorm2d": CUDNN, "flash_attention": CUDNN}
REGIMES = ("graph", "stream", "cpu")  # the first that was measured: launches are not what is compared
GOALS = ("vs_vendor", "of_floor_pct", "flops_per_s", "most_us", "vs_other", "geomean_vs_vendor", "least_vs_vendor")


def measured_of(strategy):
    """The measurement that counts; None where it did not run right."""
    if strategy["status"] != "ok":
        return None
    by_regime = {m["regime"]: m for m in strategy["measurements"]}
    return next((by_regime[regime] for regime in REGIMES if regime in by_regime), None)


def floor_of(strategy, measured):
    """(regime, percent of the floor) by which a target is judged; None for a percentage that was not measured."""
    counts = measured
    if measured["rates"].get("roofline_bound") == "memory":
        counts = next((m for m in strategy["measurements"] if m["regime"] == "cold"), None)
    return ("cold", None) if counts is None else (counts["regime"], counts["rates"]["pct_of_floor"])


def median_us(measured):
    return measured["stats"]["median_ns"] * 1e-3


def fastest(case, names):
    """(strategy, measurement) of the fastest that ran right among those whose name passes; None where none did."""
    ran = [(strategy, measured_of(strategy)) for strategy in case["strategies"] if names(strategy["name"])]
    return min(((s, m) for s, m in ran if m), key=lambda pair: median_us(pair[1]), default=None)


def is_vendors(op, name):
    return name in VENDORS.get(op, ())


def is_ours(op, name):
    return not is_vendors(op, name) and name != "sequential"


def compare(target, case):
    """Of each strategy of ours: its time, what was expected of the tile that it took, and the ratio."""
    compared = {}
    for strategy in case["strategies"]:
        measured = measured_of(strategy)
        if not is_ours(target["op"], strategy["name"]) or measured is None:
            continue
        expected = roofline.of_target(target["op"], target["axes"], strategy.get("policy")).get(strategy["name"])
        us = median_us(measured)
        compared[strategy["name"]] = {"median_us": us} | ({} if expected is None else {
            "tile": expected.tile, "expected_us": expected.us, "limit": expected.limit, "of_expected": us / expected.us})
    return compared


def judge_goals(target, result, reached):
    goals = {goal: target[goal] for goal in GOALS if goal in target}
    missing = [goal for goal in goals if reached.get(goal) is None]
    if missing:
        return result | {"goals": goals, "verdict": "not measured", "why": f"nothing to say of {', '.join(missing)}"}
    missed = [goal for goal, bound in goals.items()
              if not (reached[goal] <= bound if goal == "most_us" else reached[goal] >= bound)]
    return result | {"goals": goals, "verdict": "missed" if missed else "met" if goals else "measured", "missed": missed}


def judge(target, own_case, vendor_case):
    """What was reached of a target that is one case."""
    result = {"name": target["name"], "axes": target["axes"]}
    op = target["op"]
    is_meant = (lambda name: name == target["strategy"]) if "strategy" in target else (lambda name: is_ours(op, name))
    own, vendor = fastest(own_case, is_meant), fastest(vendor_case, lambda name: is_vendors(op, name))
    if own is None:
        why = f"{target['strategy']} did not run" if "strategy" in target else "no strategy of ours ran"
        return result | {"verdict": "not measured", "why": why}
    strategy, measured = own
    reached = {"of_floor_pct": measured["rates"]["pct_of_floor"], "flops_per_s": measured["rates"]["flops_per_s"]}
    if "of_floor_pct" in target:
        result["floor_regime"], reached["of_floor_pct"] = floor_of(strategy, measured)
    result |= {"strategy": strategy["name"], "regime": measured["regime"], "median_us": median_us(measured), **reached,
               "strategies": compare(target, own_case)}
    reached["most_us"] = median_us(measured)
    other = fastest(own_case, lambda name: name == target.get("other"))
    if other is not None:
        reached["vs_other"] = result["vs_other"] = median_us(other[1]) / median_us(measured)
    if vendor is not None:
        us = median_us(vendor[1])
        reached["vs_vendor"] = us / median_us(measured)
        result |= {"vendor": vendor[0]["name"], "vendor_us": us, "vs_vendor": reached["vs_vendor"]}
    return judge_goals(target, result, reached)


def judge_preset(target, cases):
    """What was reached of a target that is a sweep."""
    result = {"name": target["name"], "preset": target["preset"]}
    ratios = []
    for case in cases:
        own = fastest(case, lambda name: is_ours(target["op"], name))
        vendor = fastest(case, lambda name: is_vendors(target["op"], name))
        if own is None or vendor is None:
            return result | {"verdict": "not measured", "why": f"nothing to compare in {case['axes']}"}
        ratios.append((median_us(vendor[1]) / median_us(own[1]), case["axes"]))
    least, where = min(ratios, key=lambda pair: pair[0])
    reached = {"geomean_vs_vendor": math.exp(sum(math.log(ratio) for ratio, _ in ratios) / len(ratios)),
               "least_vs_vendor": least}
    return judge_goals(target, result | reached | {"cases": len(ratios), "least_at": where}, reached)


def has_axes(case, axes):
    return all(str(case["axes"].get(axis)) == str(value) for axis, value in axes.items())


def suite_of(targets, seconds):
    """One process for all: a device is set up, and its ceilings are measured, once. What checking takes is left beside the budgets."""
    entries = []
    for index, target in enumerate(targets):
        others = target.get("vendor_axes", {})
        axes = {axis: [value, others[axis]] if axis in others else value for axis, value in target.get("axes", {}).items()}
        regimes = ["stream", "graph"] + (["cold"] if "of_floor_pct" in target else [])
        entry = {"name": entry_name(index), "op": target["op"], "axes": axes, "regimes": regimes}
        entries.append(entry | ({"preset": target["preset"]} if "preset" in target else {}))
    return {"schema": {"name": "wbench.suite", "version": "1.0.0"}, "name": "targets", "entries": entries,
            "defaults": {"baselines": "none", "max_samples": 300, "budget_s": round(max(0.3, 0.6 * seconds / len(targets)), 2)}}


def entry_name(index):
    return f"t{index:02}"


def run_cases(wbench, targets, seconds):
    """Of each target the cases that were run, or why there are none. A vendor's case of other axes is one of the same run."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "suite.json").write_text(json.dumps(suite_of(targets, seconds)))
        with open(folder / "log", "w") as log:
            process = subprocess.Popen([wbench, "suite", "run", folder / "suite.json", "--device", "cuda", "--results", folder / "results",
                                        "--json", folder / "summary.json"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)  # it then writes what it has
                try:
                    process.wait(timeout=5)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        words = (folder / "log").read_text(errors="replace").strip().splitlines() or ["no output"]
        outcomes = {entry["name"]: entry for entry in (read_json(folder / "summary.json") or {"entries": []})["entries"]}
        return [cases_of(read_json(folder / f"results/{entry_name(index)}.json"), outcomes.get(entry_name(index)),
                         f"exit code {process.returncode}: {words[-1]}") for index in range(len(targets))]


def read_json(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def cases_of(result, outcome, otherwise):
    """(cases, "") of one entry, or ([], why there are none)."""
    if result is not None:
        return result["cases"], "" if result["run"]["complete"] else "the run did not come to its end"
    if outcome is None:
        return [], otherwise
    if outcome["status"] == "not_run":
        return [], "no time was left"
    return [], outcome["message"] or outcome["status"]


def judged(target, cases, why):
    if why:
        return {"name": target["name"], "verdict": "not measured", "why": why}
    if "preset" in target:
        return judge_preset(target, cases)
    axes = target["axes"]
    own = next((case for case in cases if has_axes(case, axes)), None)
    vendor = next((case for case in cases if has_axes(case, axes | target.get("vendor_axes", {}))), None)
    if own is None or vendor is None:
        return {"name": target["name"], "verdict": "not measured", "why": "its case is not in the result"}
    return judge(target, own, vendor)


def line(result):
    name = f"{result['name']:30}"
    if result["verdict"] == "not measured":
        return f"{name}  not measured: {result['why']}"
    if "preset" in result:
        return (f"{name}  {result['verdict']:8} {result['geomean_vs_vendor']:.2f}x the vendor over {result['cases']} cases, "
                f"{result['least_vs_vendor']:.2f}x at the least")
    ratio = f"{result['vs_vendor']:.2f}x {result['vendor']}" if "vendor" in result else "no vendor"
    floor = "" if result["of_floor_pct"] is None else f", {result['of_floor_pct']:.0f} % of floor" + (" cold" if result.get("floor_regime") == "cold" else "")
    lines = [f"{name}  {result['verdict']:8} {result['strategy']:12} {result['median_us']:9.2f} us, {ratio}{floor}"]
    for strategy, one in result["strategies"].items():
        if one.get("of_expected", 0) > expectation.SUSPICIOUS:
            lines.append(f"{'':32}{strategy} {one['tile']} takes {one['of_expected']:.1f} times the {one['expected_us']:.2f} us "
                         f"that {one['limit']} was expected to take")
    return "\n".join(lines)


def expect(targets):
    for target in targets:
        for one in roofline.of_target(target["op"], target["axes"]).values() if "axes" in target else ():
            print(f"{target['name']:30}  {one.strategy:12} {one.tile:10} {one.us:9.2f} us  {one.limit}")


def is_tiled(target):
    """Whether expectation.py knows its kernels' tiles."""
    return "axes" in target and target["op"] in ("linear", "ragged_linear")


def notes(targets):
    print("# What arithmetic expects of the primitives on an H200\n\nWritten by `scripts/targets.py notes` before any device has measured it; "
          "`scripts/gpu_check targets` compares.\nHow a time comes about, and where each rate is from:\n\n```text")
    print(expectation.__doc__.strip())
    print("```\n\n```text")
    for line_ in (ROOT / "scripts/expectation.py").read_text().splitlines():
        if line_.startswith(("MULTI", "LAUNCH", "MEMORY", "L2", "INTEGER", "MMA", "FLOPS", "#", "DECODE", "GEMV")) and "SPDX" not in line_:
            print(line_)
    print("```\n\nTimes are microseconds; *waves* are tiles over what the device holds at once, *under way* is a multiprocessor's.\n")
    head = ["target", "strategy", "tile", "tiles", "waves", "MB", "GFLOP", "under way", "memory", "L2", "arithmetic", "decoding", "expected"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for target in targets:
        for one in expectation.of_target(target["op"], target["axes"]).values() if is_tiled(target) else ():
            parts = [f"{one.parts_us[part]:.2f}" if part in one.parts_us else "" for part in ("memory", "L2", "arithmetic", "decoding")]
            print("| " + " | ".join([target["name"], f"`{one.strategy}`", one.tile, str(one.tiles), f"{one.waves:.2f}",
                                     f"{one.bytes * 1e-6:.2f}", f"{one.flops * 1e-9:.2f}", f"{one.under_way / 1024:.0f} KiB",
                                     *parts, f"**{one.us:.2f}**"]) + " |")
    print(f"\n## The other primitives\n\n```text\n{roofline.__doc__.strip()}\n```\n")
    head = ["target", "strategy", "MB", "GFLOP", "parts", "expected"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for target in targets:
        others = "axes" in target and not is_tiled(target)
        for one in roofline.of_target(target["op"], target["axes"]).values() if others else ():
            parts = ", ".join(f"{part} {us:.2f}" for part, us in one.parts_us.items())
            print("| " + " | ".join([target["name"], f"`{one.strategy}`", f"{one.bytes * 1e-6:.2f}", f"{one.flops * 1e-9:.2f}",
                                     parts, f"**{one.us:.2f}**"]) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("expect")
    commands.add_parser("notes")
    run = commands.add_parser("measure")
    run.add_argument("wbench")
    run.add_argument("--out", type=pathlib.Path)
    run.add_argument("--seconds", type=float, default=90)
    run.add_argument("--full", action="store_true")
    arguments = parser.parse_args()
    targets = json.loads((ROOT / "bench/targets.json").read_text())["targets"]
    if arguments.command != "measure":
        (expect if arguments.command == "expect" else notes)(targets)
        return 0
    targets = [target for target in targets if arguments.full or not target.get("takes_minutes")]
    runs = run_cases(arguments.wbench, targets, arguments.seconds)
    results = [judged(target, cases, why) for target, (cases, why) in zip(targets, runs)]
    print("\n".join(map(line, results)), flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"targets": results}, indent=1) + "\n")
    return 1 if any(result["verdict"] == "not measured" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
