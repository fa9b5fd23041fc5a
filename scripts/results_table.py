#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""results_table.py RESULT... [--readme [FILE]] [--check]: the tables of results that a README shows, from files of `wbench run --json`.

A row is a case in a regime: the fastest strategy of ours that ran right, its median, how near the floor it is, and its speedup,
with an interval of 95 %, over N separate calls (loop, streams, graph), over the vendors' fastest batched call and over the
fastest peer's (for example torch's). All are the result's own, paired by rounds, except those over vendors: these are ratios of
medians, with the interval between both medians' ends. What failed is named, what is doubtful is marked.

--readme writes the tables between the lines "<!-- results: begin -->" and "<!-- results: end -->" of README.md or FILE; --check
writes nothing and exits 1 if they differ from what the files give. Without either the tables are printed.
"""
import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True
import evidence  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
BASELINES = ("loop", "streams", "graph")
HEAD = ["primitive", "case", "regime", "ours", "time", "of floor", *(f"vs {name}" for name in BASELINES), "vs vendor", "vs peer"]
UNVERIFIED, UNRELIABLE = "\\*", "(?)"
LEGEND = {UNVERIFIED: "no evidence from a device yet that the kernel is right in all cases; here it was",
          UNRELIABLE: "one of the times behind it is unreliable; the file says why"}


class TableError(Exception):
    """A message for the user."""


def load(path):
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise TableError(f"{path}: no JSON: {error}") from None
    is_result = isinstance(document, dict) and (document.get("schema") or {}).get("name") == "wbench.result"
    if not is_result and not (isinstance(document, dict) and "not_run" in document):
        raise TableError(f"{path}: no result of wbench")
    return document


def kinds_of(source):
    """{(op, strategy, device): kind} for everything that this wbench has."""
    candidates = [source] if source else [ROOT / "build" / preset / "bench/wbench" for preset in ("release", "test", "gpu")]
    known = next((path for path in candidates if path.exists()), None)
    if known is None:
        raise TableError(f"no {' and no '.join(map(str, candidates))}, which says whose strategies are: "
                         "build it, or name it by --strategies")
    return {(row["op"], row["strategy"], row["device"]): row["kind"] for row in evidence.read_strategies(known)}


def whose(kinds, op, device, strategy):
    """"ours", "vendor", or None for N separate calls."""
    name = strategy.get("strategy") or strategy["name"].split(":")[0]
    if op.startswith("model:"):  # one member at a time, or ways to compile them as one
        return None if name == "sequential" else "ours"
    kind = kinds.get((op, name, device))
    if kind is None:
        raise TableError(f"{op} has no strategy {name} on {device}: the result is of another version")
    return {"sequential": None, "vendor": "vendor"}.get(kind, "ours")


def measured_in(strategy, regime):
    return next((m for m in strategy["measurements"] if m["regime"] == regime), None)


def pick(strategies, regime):
    """(strategy, measurement) of the fastest that ran right, or None; and what failed."""
    ran = [(s, measured_in(s, regime)) for s in strategies if s["status"] == "ok"]
    best = min(((s, m) for s, m in ran if m), key=lambda pair: pair[1]["stats"]["median_ns"], default=None)
    return best, [f"{s['name']} {s['status']}" for s in strategies if s["status"] not in ("ok", "skipped")]


def significant(value):
    """Three significant digits, or as many as are known."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def duration(ns):
    for unit, scale in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        if ns < 999.5 * scale:
            return f"{significant(ns / scale)} {unit}"
    return f"{significant(ns / 1e9)} s"


def ratio(value, low, high, is_reliable):
    interval = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
    return f"{value:.2f}x{interval}" + ("" if is_reliable else " " + UNRELIABLE)


def is_reliable(measured):
    return measured["stats"].get("reliable") is not False


def against_baseline(own, measured, baseline, others):
    """Speedup over a baseline, with its results in `others`: for "peer" several, of which the result names the fastest."""
    found = next((v for v in own["vs_baseline"] if v["baseline"] == baseline and v["regime"] == measured["regime"]), None)
    cells = []
    if found is not None and found["speedup_ratio"] is not None:
        name = found.get("peer") or baseline
        theirs = next((measured_in(other, measured["regime"]) for other in others if other["name"] == name), None)
        cells.append(("" if name == baseline else f"`{name}` ") + ratio(
            found["speedup_ratio"], found["ci_lo"], found["ci_hi"], is_reliable(measured) and (theirs is None or is_reliable(theirs))))
    return "; ".join(cells + pick(others, measured["regime"])[1])


def against_vendors(strategies, measured):
    best, failed = pick(strategies, measured["regime"])
    cells = []
    if best:
        own, other = measured["stats"], best[1]["stats"]
        low, high = ((other.get("ci") or {}).get("lo_ns"), (other.get("ci") or {}).get("hi_ns")) if own.get("ci") else (None, None)
        cells.append(f"`{best[0]['name']}` " + ratio(
            other["median_ns"] / own["median_ns"], low and low / own["ci"]["hi_ns"], high and high / own["ci"]["lo_ns"],
            is_reliable(measured) and is_reliable(best[1])))
    return "; ".join(cells + failed)


def row_of(case, regime, by_owner):
    axes = " ".join(f"{axis}={case['axes'][axis]}" for axis in case.get("axes_set") or case["axes"])
    best, failed = pick(by_owner["ours"], regime)
    cells = [f"`{case['op']}`", axes, regime]
    if best is None:
        skipped = [f"{s['name']} skipped" for s in by_owner["ours"] if s["status"] == "skipped"]
        why = "; ".join(failed + skipped) or f"{case['status']}: {case.get('reason') or 'nothing of ours ran'}"
        others = [pick(by_owner[owner], regime) for owner in ("vendor", "peer")]
        return cells + [why] + [""] * 5 + ["; ".join(([f"`{found[0]['name']}` {duration(found[1]['stats']['median_ns'])}"] if found else [])
                                                     + their_failed) for found, their_failed in others]
    own, measured = best
    floor = measured["rates"].get("pct_of_floor")
    mark = "" if own.get("verified", True) else UNVERIFIED
    return cells + ["; ".join([f"`{own['name']}`{mark}", *failed]),
                    duration(measured["stats"]["median_ns"]) + ("" if is_reliable(measured) else " " + UNRELIABLE),
                    "" if floor is None else f"{floor:.0f} %",
                    *(against_baseline(own, measured, name, by_owner[name]) for name in BASELINES),
                    against_vendors(by_owner["vendor"], measured), against_baseline(own, measured, "peer", by_owner["peer"])]


def rows_of(result, kinds, arguments):
    device = result["devices"][0]["device"].split(":")[0]
    for case in result["cases"]:
        if arguments.op and case["op"] not in arguments.op:
            continue
        by_owner = {"ours": [], "vendor": [], None: [], "peer": [b for b in case["baselines"] if b.get("peer") is not None],
                    **{name: [b for b in case["baselines"] if b["name"] == name] for name in BASELINES}}
        for strategy in case["strategies"]:
            by_owner[whose(kinds, case["op"], device, strategy)].append(strategy)
        ran = {m["regime"] for strategy in case["strategies"] + case["baselines"] for m in strategy["measurements"]}
        for regime in [name for name in result["config"]["regimes"] if name in ran] or [*ran] or result["config"]["regimes"]:
            if not arguments.regime or regime in arguments.regime:
                yield row_of(case, regime, by_owner)


def title_of(path, result):
    shown = path.resolve().relative_to(ROOT) if path.resolve().is_relative_to(ROOT) else path
    if "not_run" in result:
        return f"`{shown}`: not run: {result['not_run']}"
    device, run = result["devices"][0], result["run"]
    driver = f", driver for CUDA {evidence.cuda_version(device['cuda_driver'])}" if device["cuda_driver"] else ""
    toolkit = f", toolkit {run['tool']['cuda_toolkit']}" if run["tool"].get("cuda_toolkit") else ""
    ended = "" if run["complete"] else "; the run did not come to its end"
    return f"**{device['name']}**{driver}{toolkit}, {run['started'][:10]}, `{shown}`{ended}"


def table_of(path, kinds, arguments):
    result = load(path)
    if "not_run" in result:
        return title_of(path, result) + "\n"
    rows = list(rows_of(result, kinds, arguments))
    if not rows:
        raise TableError(f"{path}: no case of it is asked for")
    used = [number for number, _ in enumerate(HEAD) if any(row[number] for row in rows)]
    lines = ["| " + " | ".join(line[number] for number in used) + " |" for line in [HEAD, *rows]]
    lines.insert(1, "|" + "---|" * len(used))
    legend = "; ".join(f"{mark} {text}" for mark, text in LEGEND.items() if any(mark in cell for row in rows for cell in row))
    return "\n".join([title_of(path, result), "", *lines, *(["", legend] if legend else [])]) + "\n"


def put_into(readme, text, is_check):
    """The exit code."""
    before = readme.read_text()
    if before.count(BEGIN) != 1 or before.count(END) != 1 or before.index(BEGIN) > before.index(END):
        raise TableError(f"{readme} has not the lines \"{BEGIN}\" and \"{END}\", once each, between which the tables belong")
    head, _, rest = before.partition(BEGIN)
    after = f"{head}{BEGIN}\n{text}{END}{rest.partition(END)[2]}"
    if not is_check:
        evidence.write_if_changed(readme, after)
    elif after != before:
        print(f"results_table: the tables of {readme} are not what the files give: run it with --readme", file=sys.stderr)
        return 1
    return 0


def names(text):
    return text.split(",")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=pathlib.Path, metavar="RESULT")
    parser.add_argument("--readme", type=pathlib.Path, nargs="?", const=ROOT / "README.md", metavar="FILE")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--op", type=names, help="only these primitives: a,b")
    parser.add_argument("--regime", type=names, help="only these regimes: a,b")
    parser.add_argument("--strategies", type=pathlib.Path, help="wbench, or a file of `wbench list strategies --json -`")
    arguments = parser.parse_args()
    try:
        kinds = kinds_of(arguments.strategies)
        text = "\n".join(table_of(path, kinds, arguments) for path in arguments.results)
        if arguments.readme or arguments.check:
            return put_into(arguments.readme or ROOT / "README.md", text, arguments.check)
        print(text, end="")
        return 0
    except (TableError, OSError, KeyError, ValueError) as error:
        print(f"results_table: {error!r}" if isinstance(error, KeyError) else f"results_table: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
