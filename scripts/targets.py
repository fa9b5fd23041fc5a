#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""targets.py expect | notes | measure WBENCH [--out FILE] [--raw FOLDER] [--seconds S] [--lost FILE] [--full] [--only TEXT]:
bench/targets.json, before and after a device.

expect prints what each strategy of ours should take on an H200 by arithmetic alone (expectation.py, roofline.py), by target; notes
prints the same with all of its parts, which is bench/results/NOTES.md. measure runs wbench on the CUDA device, S seconds at
most (90), reports for each target whether it is met, and for each strategy how its time compares with the expectation: for H100 SXM
with that for one of these, for other devices with nothing. --out writes that as JSON, with the device; --raw, a folder, keeps wbench's
own output: what it holds of the same wbench is not measured again, unless nothing is missing. --lost names strategies to leave out (lost.py).

A target is a case ("axes") or a sweep ("preset"), and the minimum that it is to reach:

  vs_vendor           the vendor's fastest strategy's time over that of ours, in the same run; "vendor_axes" are those in which
                      the vendor's case differs: packed weights, say, for one of ours with quantised weights
  of_floor_pct        of the run's own floor; if that is memory's, in regime cold: 67 MB are little more than an L2 of 60, and what
                      that still holds from the previous call is served faster than any floor
  flops_per_s         the rate
  most_us             no longer than that
  vs_other            the time of the strategy that "other" names, one of ours, over that of the target's
  geomean_vs_vendor,  of a preset: vs_vendor's geometric mean over its cases, and the smallest
  least_vs_vendor
  least_vs_sequential of a preset: the smallest of `sequential`'s time over the automatic choice's, which is 1 where it chooses that.
                      One case that misses it is a miss, whatever the others decide. "op": "all" stands for every primitive, one target each

"strategy" names the target's; without it, the fastest of ours counts. A target without goals exists to be compared
with its expectation. Targets with "takes_minutes" are left out unless --full is given, or --only, which takes those whose name has TEXT in it.

Both sides of a ratio are of one regime: graph, since launches are not what is compared, or else the first of stream and cpu that
both have. Intervals decide, as in suites: a goal is met or missed if all of its interval is, and undecided if the bound lies
within. A ratio's interval is the widest that those of both medians allow: results have none for two strategies. A time that is
below_resolution, without an interval, or unreliable for reasons that its interval does not show decides nothing, and no slower
one takes its place. Exit 1 if something could not be measured; a target that is missed or undecided is a result.
"""
import argparse
import contextlib
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
import expectation  # noqa: E402
import roofline  # noqa: E402
from evidence import read_json, read_whole  # noqa: E402
from lost import Lost  # noqa: E402
from measured import Reached, is_positive, ratio, time_of  # noqa: E402
from watched import run_watched, stall_s_of  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
# `sequential` calls the vendor if it is listed here; elsewhere it is our own kernel member by member, and no contender.
LINEARS = {"sequential", "cublas_batched", "cublaslt", "cublas_grouped"}
CONVOLUTIONS = {"sequential", "grouped", "channels_last"}
BATCHED = {"sequential", "cublas_batched"}
CUDNN = {"sequential", "cudnn"}
VENDORS = {"linear": LINEARS, "ragged_linear": {"sequential", "cublas_grouped"}, "attention": BATCHED, "mlp": BATCHED, "recurrent": BATCHED,
           "conv1d": CONVOLUTIONS, "conv2d": CONVOLUTIONS, "conv3d": CONVOLUTIONS, "batchnorm1d": CUDNN, "batchnorm2d": CUDNN,
           "instancenorm1d": CUDNN, "instancenorm2d": CUDNN, "flash_attention": CUDNN, "pooling": CUDNN, "softmax": CUDNN,
           "layernorm": {"cudnn"}, "rmsnorm": {"cudnn"}}  # of rows with gaps between them, as members side by side have, `sequential` is ours
REGIMES = ("graph", "stream", "cpu")  # the first one that all sides have counts
PRESET_CASES = 4  # approximately
LEAST_S = 5  # for another process
LEAST_CASE_S = 1  # for a case: with half of it, strategies have too few rounds to decide anything
GOALS = ("vs_vendor", "of_floor_pct", "flops_per_s", "most_us", "vs_other", "geomean_vs_vendor", "least_vs_vendor", "least_vs_sequential")
AUTOMATIC = ["auto", "sequential"]  # what is measured for the last


def rate_of(time, name):
    """One of the measurement's rates, which are inverse to its time; None if there is no such number."""
    if time is None or not is_positive(time.measured["rates"][name]):
        return None
    rate = time.measured["rates"][name]
    return Reached.of(rate, (time,), lambda: (rate * time.us / time.interval[1], rate * time.us / time.interval[0]))


def floor_time(strategy, time):
    """The time whose percentage of the floor counts; None if it was not measured."""
    return time_of(strategy, "cold") if time.measured["rates"].get("roofline_bound") == "memory" else time


def side_of(case, names):
    """The strategies whose names match."""
    return [strategy for strategy in case["strategies"] if names(strategy["name"])]


def fastest(side, regime):
    """The smallest time of a side in a regime; None if it has none."""
    return min(filter(None, (time_of(strategy, regime) for strategy in side)), key=lambda time: time.us, default=None)


def common_regime(*sides):
    """The first regime in which every side has a time; None if there is none."""
    return next((regime for regime in REGIMES if all(fastest(side, regime) for side in sides)), None)


def is_vendors(op, name):
    """By any of its policies: grouped:h1."""
    return name.partition(":")[0] in VENDORS.get(op, ())


def is_ours(op, name):
    return not is_vendors(op, name) and name != "sequential"


def compare(target, case, regime):
    """For each strategy of ours: its time, the expectation for the tile that it used, and the ratio."""
    compared = {}
    for strategy in case["strategies"]:
        time = time_of(strategy, regime)
        if not is_ours(target["op"], strategy["name"]) or time is None:
            continue
        expected = roofline.of_target(target["op"], target["axes"], strategy.get("policy")).get(strategy["name"])
        compared[strategy["name"]] = {"median_us": time.us} | ({} if expected is None else {
            "tile": expected.tile, "expected_us": expected.us, "limit": expected.limit, "of_expected": time.us / expected.us})
    return compared


def judge_goals(target, result, reached):
    goals = {goal: target[goal] for goal in GOALS if goal in target}
    missing = [goal for goal in goals if reached.get(goal) is None]
    if missing:
        return result | {"goals": goals, "verdict": "not measured", "why": f"nothing to say of {', '.join(missing)}"}
    verdicts = {goal: reached[goal].verdict(goal, bound) for goal, bound in goals.items()}
    # A miss is worse than undecided.
    verdict = next((word for word in ("missed", "undecided", "met") if word in verdicts.values()), "measured")
    why = {goal: reached[goal].refused or f"{reached[goal].lo:.4g} to {reached[goal].hi:.4g}, wanted {goals[goal]:.4g}"
           for goal, word in verdicts.items() if word == "undecided"}
    return result | {"goals": goals, "verdict": verdict, "missed": [goal for goal, word in verdicts.items() if word == "missed"],
                     "undecided": why, "intervals": {goal: [reached[goal].lo, reached[goal].hi] for goal in goals
                                                     if not reached[goal].refused}}


def value_of(reached):
    return None if reached is None else reached.value


def judge(target, own_case, vendor_case):
    """What was reached of a target that is one case."""
    result = {"name": target["name"], "axes": target["axes"]}
    op = target["op"]
    own = side_of(own_case, (lambda name: name == target["strategy"]) if "strategy" in target else (lambda name: is_ours(op, name)))
    vendors = side_of(vendor_case, lambda name: is_vendors(op, name))
    others = side_of(own_case, lambda name: name == target.get("other"))
    compared = [side for side, goal in ((vendors, "vs_vendor"), (others, "vs_other")) if goal in target]
    regime = common_regime(own, *compared) or common_regime(own)
    if regime is None:
        why = f"{target['strategy']} did not run" if "strategy" in target else "no strategy of ours ran"
        return result | {"verdict": "not measured", "why": why}
    time, vendor, other = (fastest(side, regime) for side in (own, vendors, others))
    reached = {"flops_per_s": rate_of(time, "flops_per_s"), "of_floor_pct": rate_of(time, "pct_of_floor"),
               "most_us": Reached.of(time.us, (time,), lambda: time.interval)}
    if "of_floor_pct" in target:
        counts = floor_time(next(strategy for strategy in own if strategy["name"] == time.strategy), time)
        result["floor_regime"], reached["of_floor_pct"] = "cold" if counts is not time else regime, rate_of(counts, "pct_of_floor")
    result |= {"strategy": time.strategy, "regime": regime, "median_us": time.us, "of_floor_pct": value_of(reached["of_floor_pct"]),
               "flops_per_s": value_of(reached["flops_per_s"]), "strategies": compare(target, own_case, regime)}
    if other is not None:
        reached["vs_other"] = ratio(other, time)
        result["vs_other"] = reached["vs_other"].value
    if vendor is not None:
        reached["vs_vendor"] = ratio(vendor, time)
        result |= {"vendor": vendor.strategy, "vendor_us": vendor.us, "vs_vendor": reached["vs_vendor"].value}
    return judge_goals(target, result, reached)


def judge_preset(target, cases):
    """What was reached of a target that is a sweep."""
    result = {"name": target["name"], "preset": target["preset"]}
    ratios = []
    for case in cases:
        own = side_of(case, lambda name: is_ours(target["op"], name))
        vendors = side_of(case, lambda name: is_vendors(target["op"], name))
        regime = common_regime(own, vendors)
        if regime is None:
            return result | {"verdict": "not measured", "why": f"nothing to compare in {case['axes']}"}
        ratios.append((ratio(fastest(vendors, regime), fastest(own, regime)), case["axes"]))
    least, where = min(ratios, key=lambda pair: pair[0].value)
    refused = next((f"{one.refused} in {axes}" for one, axes in ratios if one.refused), "")
    columns = [[getattr(one, end) for one, _ in ratios] for end in ("value", "lo", "hi")]
    geomean = Reached(*(math.exp(sum(map(math.log, column)) / len(column)) for column in columns), refused)
    # min() of intervals some of which are NaN is meaningless, so they are not used.
    smallest = Reached(least.value, *((math.nan, math.nan) if refused else map(min, columns[1:])), refused)
    result |= {"geomean_vs_vendor": geomean.value, "least_vs_vendor": least.value, "cases": len(ratios), "least_at": where}
    return judge_goals(target, result, {"geomean_vs_vendor": geomean, "least_vs_vendor": smallest})


def against_sequential(case):
    """The automatic choice's ratio in a case; None if one of the two has no time."""
    auto, sequential = (side_of(case, lambda name, one=one: name == one) for one in AUTOMATIC)
    regime = common_regime(auto, sequential)
    if regime is None:
        return None
    if auto[0].get("strategy") == "sequential":  # twice the same calls: noise alone would tell them apart
        return Reached(1, 1, 1, "")
    return ratio(fastest(sequential, regime), fastest(auto, regime))


def judge_automatic(target, cases):
    """What was reached of a target that is a sweep, by the automatic choice."""
    result = {"name": target["name"], "preset": target["preset"]}
    ratios = [(against_sequential(case), case["axes"]) for case in cases]
    missing = next((axes for one, axes in ratios if one is None), None)
    if missing is not None or not ratios:
        return result | {"verdict": "not measured", "why": f"nothing to compare in {missing or 'no case'}"}
    least, where = min(ratios, key=lambda pair: pair[0].value)
    bound = target["least_vs_sequential"]
    lost = [axes for one, axes in ratios if one.hi < bound]
    refused = next((f"{one.refused} in {axes}" for one, axes in ratios if one.refused), "")
    refused = "" if lost else refused
    ends = [[getattr(one, end) for one, _ in ratios if not one.refused] for end in ("lo", "hi")]
    smallest = Reached(least.value, *((math.nan, math.nan) if refused else map(min, ends)), refused)
    result |= {"least_vs_sequential": least.value, "cases": len(ratios), "least_at": where, "lost": lost}
    return judge_goals(target, result, {"least_vs_sequential": smallest})


def primitives(wbench):
    """Their names."""
    words = subprocess.run([wbench, "list", "ops", "--json", "-"], capture_output=True, text=True, check=True).stdout
    return [row["op"] for row in json.loads(words)]


def each_primitive(targets, wbench):
    """The targets, with one for every primitive in place of "all"."""
    return [one for target in targets for one in
            ([target | {"name": f"{target['name']}, {op}", "op": op} for op in primitives(wbench)] if target["op"] == "all" else [target])]


def has_axes(case, axes):
    return all(str(case["axes"].get(axis)) == str(value) for axis, value in axes.items())


def entry_name(index):
    return f"t{index:02}"


def entry_of(index, target, lost):
    """The suite's entry that measures it."""
    others = target.get("vendor_axes", {})
    axes = {axis: [value, others[axis]] if axis in others else value for axis, value in target.get("axes", {}).items()}
    regimes = ["stream", "graph"] + (["cold"] if "of_floor_pct" in target else [])
    skipped = lost.of(target["op"]) if lost else []
    if "least_vs_sequential" in target:
        return {"name": entry_name(index), "op": target["op"], "axes": axes, "regimes": regimes, "preset": target["preset"], "strategies": AUTOMATIC}
    return ({"name": entry_name(index), "op": target["op"], "axes": axes, "regimes": regimes}
            | ({"preset": target["preset"]} if "preset" in target else {}) | ({"skip": skipped} if skipped else {}))


def suite_of(entries, todo, seconds):
    """One process for all: a device is initialised, and its ceilings are measured, once. Checking takes what budgets leave; each
    case has a budget of its own, and those that nothing is left for are not run. Nothing is checked after timing: `verify` and
    `bench` do that with the same strategies, and here it would take as long as the times."""
    counts = {entry["name"]: math.prod(len(value) for value in entry["axes"].values() if isinstance(value, list))
              * (PRESET_CASES if "preset" in entry else 1) for entry in entries}
    budget = max(LEAST_CASE_S, 0.6 * seconds / sum(counts[name] for name in todo))
    return {"schema": {"name": "wbench.suite", "version": "1.0.0"}, "name": "targets",
            "entries": [entry | ({"budget_s": round(counts[entry["name"]] * budget, 2)} if counts[entry["name"]] > 1 else {}) for entry in entries],
            "defaults": {"baselines": "none", "verify": "before", "max_samples": 300, "budget_s": round(budget, 2)}}


def unmeasured(entries, folder, wbench):
    """The names of those that no earlier call with the same wbench has measured; of all, if none is missing."""
    def asked(entry):
        return {key: value for key, value in entry.items() if key != "budget_s"}

    known = {entry["name"]: asked(entry) for entry in (read_json(folder / "suite.json") or {"entries": []})["entries"]}
    names = [entry["name"] for entry in entries]
    measured = {name for name, entry in zip(names, entries)
                if known.get(name) == entry and read_whole(folder / f"results/{name}.json", pathlib.Path(wbench))}
    return [name for name in names if name not in measured] or names


def run_cases(wbench, targets, seconds, folder, lost=None):
    """For each target the cases that were run, or why there are none. A vendor's case with other axes is in the same run. `folder`
    then holds the results; what it holds already counts. After an entry that hangs, crashes or loses the device another process runs
    the rest, if time allows."""
    entries = [entry_of(index, target, lost) for index, target in enumerate(targets)]
    todo = unmeasured(entries, folder, wbench)
    (folder / "suite.json").write_text(json.dumps(suite_of(entries, todo, seconds)))
    log, summary = folder / "log", folder / "summary.json"
    log.unlink(missing_ok=True)
    end, outcomes, otherwise = time.monotonic() + seconds, {}, {}
    names = [entry["name"] for entry in entries]
    while todo:
        for path in (summary, *(folder / f"results/{name}.json" for name in todo)):
            path.unlink(missing_ok=True)
        command = [wbench, "suite", "run", folder / "suite.json", "--device", "cuda", "--results", folder / "results", "--json", summary, "-v"]
        code = run_watched(command + ([] if todo == names else ["--entry", ",".join(todo)]), log, end - time.monotonic(), stall_s_of(seconds))
        words = log.read_text(errors="replace").strip().splitlines() or ["no output"]
        otherwise |= dict.fromkeys(todo, f"exit code {code}: {words[-1]}")
        found = {entry["name"]: entry for entry in (read_json(summary) or {"entries": []})["entries"]}
        outcomes |= {name: found.get(name) for name in todo}
        todo = behind_trouble([(name, found.get(name, {}).get("status") or ((folder / f"results/{name}.json").exists() and "ok"))
                               for name in todo])
        if end - time.monotonic() < LEAST_S:
            break
    return [cases_of(read_json(folder / f"results/{name}.json"), outcomes.get(name), otherwise.get(name)) for name in names]


def behind_trouble(entries):
    """The names of the entries that another process may still run: those after one that did not end (without a status of its own),
    and if the last ones all failed, those after the first of them, which may have lost the device for all."""
    statuses = [status for _, status in entries]
    at = next((i for i, status in enumerate(statuses) if status in (False, "interrupted", "not_run")), None)
    if at is None and not set(statuses) <= {"no_device"}:
        at = len(statuses) - len(list(itertools.takewhile(lambda status: status in ("failed", "no_device"), reversed(statuses))))
    return [] if at is None else [name for name, _ in entries[at + 1:]]


def device_in(folder):
    """What the results report of the device, clocks included; None without results."""
    results = filter(None, map(read_json, sorted(folder.glob("results/*.json"))))
    return next((result["devices"][0] for result in results), None)


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
        return (judge_automatic if "least_vs_sequential" in target else judge_preset)(target, cases)
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
    undecided = [f"{'':32}{goal}: {why}" for goal, why in result["undecided"].items()]
    if "least_vs_sequential" in result:
        return "\n".join([f"{name}  {result['verdict']:9} {result['least_vs_sequential']:.2f}x sequential at the least of {result['cases']} cases",
                          *(f"{'':32}it loses in {axes}" for axes in result["lost"]), *undecided])
    if "preset" in result:
        return "\n".join([f"{name}  {result['verdict']:9} {result['geomean_vs_vendor']:.2f}x the vendor over {result['cases']} cases, "
                          f"{result['least_vs_vendor']:.2f}x at the least", *undecided])
    vendor = f"{result['vs_vendor']:.2f}x {result['vendor']}" if "vendor" in result else "no vendor"
    floor = "" if result["of_floor_pct"] is None else f", {result['of_floor_pct']:.0f} % of floor" + (" cold" if result.get("floor_regime") == "cold" else "")
    lines = [f"{name}  {result['verdict']:9} {result['strategy']:12} {result['median_us']:9.2f} us, {vendor}{floor}", *undecided]
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
    return "axes" in target and target["op"] in ("linear", *expectation.RAGGED)


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
    run.add_argument("--raw", type=pathlib.Path, metavar="FOLDER")
    run.add_argument("--driver", help="as nvidia-smi names it, for --out")
    run.add_argument("--seconds", type=float, default=90)
    run.add_argument("--lost", type=pathlib.Path, metavar="FILE")
    run.add_argument("--full", action="store_true")
    run.add_argument("--only", metavar="TEXT")
    arguments = parser.parse_args()
    targets = json.loads((ROOT / "bench/targets.json").read_text())["targets"]
    if arguments.command != "measure":
        (expect if arguments.command == "expect" else notes)(targets)
        return 0
    if arguments.only is not None:
        targets = [target for target in targets if arguments.only in target["name"]]
    targets = [target for target in targets if arguments.full or arguments.only is not None or not target.get("takes_minutes")]
    targets = each_primitive(targets, arguments.wbench)
    if arguments.raw:
        arguments.raw.mkdir(parents=True, exist_ok=True)
    with contextlib.nullcontext(arguments.raw) if arguments.raw else tempfile.TemporaryDirectory() as folder:
        lost = Lost(arguments.lost, pathlib.Path(arguments.wbench)) if arguments.lost else None
        runs = run_cases(arguments.wbench, targets, arguments.seconds, pathlib.Path(folder), lost)
        device = device_in(pathlib.Path(folder))
    if device is not None and not expectation.assume(device["name"]):
        print(f"nothing is expected of {device['name']}, which expectation.py does not know")
    results = [judged(target, cases, why) for target, (cases, why) in zip(targets, runs)]
    print("\n".join(map(line, results)), flush=True)
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps({"device": device, "driver": arguments.driver, "targets": results}, indent=1) + "\n")
    return 1 if any(result["verdict"] == "not measured" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
