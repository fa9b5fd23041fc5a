#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""sweep.py FILE SECONDS OP,.. WBENCH WORD...: `WBENCH run WORD...` over these primitives, on a device where one may hang or lose it.

One process for all, since each would initialise the device and measure its ceilings anew. A process that begins no further case
for a quarter of the time is ended; after one that was ended, crashed, or lost its device, another one runs the primitives
that follow the current one. A primitive with lost strategies (lost.json beside FILE) has a process of its own, without these, after the
others. FILE is wbench's own if the first process completed and was the only one. Else it has the completed cases of all
processes (--events), and is marked as incomplete. Exit code: the last process's, and 1 if FILE is not complete.
"""
import collections
import dataclasses
import hashlib
import json
import pathlib
import re
import struct
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from lost import Lost  # noqa: E402
from watched import reached, run_watched, stall_s_of  # noqa: E402

BEGINS = re.compile(r"\[\d+/\d+\] \S+ s  (\w+) ")  # a case, in wbench -v's output
LEAST_S = 10  # for a process


@dataclasses.dataclass
class Process:
    """The results of one process."""
    result: dict
    cases: list
    is_whole: bool
    under_way: str  # the primitive that it was running; empty if it came to none


def read_process(events, log):
    result, cases, has_finished = None, [], False
    lines = events.read_text(errors="replace").split("\n")[:-1] if events.exists() else []  # after the last newline is a partial line
    for line in map(json.loads, lines):
        result = line.get("result", result)
        cases += [line["case"]] if "case" in line else []
        has_finished = line["reason"] == "run-finished"
    ended = reached(cases)
    is_lost = len(ended) < len(cases)
    is_whole = has_finished and result["run"]["complete"] and not is_lost
    if has_finished and not is_whole and not is_lost:
        del ended[-1:]  # the one that was interrupted
    begun = BEGINS.findall(log)
    return Process(result, ended, is_whole, ended[-1]["op"] if is_lost and ended else begun[-1] if begun else "")


def joined(processes):
    """One document from the results of several processes."""
    document = dict(next(process.result for process in reversed(processes) if process.result))
    document["cases"] = [case for process in processes for case in process.cases]
    results = [process.result for process in processes if process.result]
    for key in ("op_summaries", "environment_checks"):
        document[key] = []
        for one in (one for result in results for one in result.get(key, ())):
            if one not in document[key]:
                document[key].append(one)
    document["run"] = document["run"] | {"complete": False}
    document["totals"] = document.get("totals", {}) | totals(document["cases"])
    return document


def totals(cases):
    """Except mistrusted ones, which reports count themselves."""
    made = [[m for runner in case["strategies"] + case["baselines"] for m in runner["measurements"]] for case in cases]
    return {"cases": len(cases), "unreliable": sum(any(m["stats"].get("reliable") is False for m in measured) for measured in made),
            **collections.Counter(case["status"] for case in cases)}


def write(document, path):
    """With the samples beside it, as wbench writes them (bench/document/samples_file.hpp)."""
    data = bytearray()
    runners = [runner for case in document["cases"] for runner in case["strategies"] + case["baselines"]]
    for samples in (measured["samples"] for runner in runners for measured in runner["measurements"]):
        for name, column in samples.items():
            samples[name] = {"offset": len(data) // 8, "count": len(column)}
            data += struct.pack(f"<{len(column)}d", *column)
    beside = path.with_name(path.name + ".samples.f64le")
    beside.write_bytes(data)
    document["samples_file"] = {"file": beside.name, "dtype": "f64le", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    path.write_text(json.dumps(document))


def main():
    path, seconds, ops, wbench, words = pathlib.Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3].split(","), sys.argv[4], sys.argv[5:]
    lost = Lost(path.with_name("lost.json"), pathlib.Path(wbench))
    groups = [[op for op in ops if not lost.of(op)], *([op] for op in ops if lost.of(op))]  # of a process each
    groups = [group for group in groups if group]
    events, log = path.with_suffix(".events"), path.with_suffix(".log")
    end, processes, code = time.monotonic() + seconds, [], 0
    log.write_text("")
    while groups and (left := end - time.monotonic()) >= (LEAST_S if processes else 0):
        events.unlink(missing_ok=True)
        before = log.stat().st_size
        todo = groups.pop(0)
        share = len(todo) / (len(todo) + sum(map(len, groups)))
        budget = str(max(1, int(0.6 * left * share)))  # leaves room for checking
        code = run_watched([wbench, "run", "-v", "--op", ",".join(todo), *lost.skip(todo[0]), *words, "--budget", budget,
                            "--samples", "sidecar", "--events", str(events), "--json", str(path)], log, left, stall_s_of(seconds))
        one = read_process(events, log.read_bytes()[before:].decode(errors="replace"))
        processes.append(one)
        if one.is_whole:
            continue
        if one.under_way not in todo:
            break  # nothing left for another process to run
        groups[:0] = filter(None, [todo[todo.index(one.under_way) + 1:]])
        print(f"{one.under_way} came to no end, exit code {code}: {sum(map(len, groups))} primitives behind it", flush=True)
    events.unlink(missing_ok=True)
    if len(processes) == 1 and processes[0].is_whole:
        return code
    if any(process.result for process in processes):
        write(joined(processes), path)
    return code or 1


if __name__ == "__main__":
    sys.exit(main())
