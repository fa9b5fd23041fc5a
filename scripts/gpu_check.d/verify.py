#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""verify.py run|todo|report FOLDER WBENCH RUNS [SECONDS]: gpu_check's runs of `wbench verify`, on a device where one may hang or lose it.

RUNS is a file of lines "NAME --op OP WORDS"; the results are FOLDER/verify-NAME.json.

run     runs those without a result of this wbench, several at once: each process has a context of its own. One that begins no
        further case for STALL_S is killed. After one that was killed, crashed, or lost its device, its primitive's runs are
        repeated or made strategy by strategy of ours, when all others have ended: so one bad kernel costs no other its evidence.
        A strategy that fails so by itself is lost (lost.py), and not run again. Exit code 1 if any is lost, or a run completed
        only strategy by strategy; 124 if time ran out; 3 if results are wrong
todo    prints the names of runs that have no result yet of every strategy of ours
report  prints lines for the evidence: "result FILE", "missing NAME OP" or "missing NAME OP/STRATEGY", "lost OP/STRATEGY WHY"
"""
import collections
import concurrent.futures
import dataclasses
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import evidence  # noqa: E402
from lost import Lost  # noqa: E402
from watched import run_watched  # noqa: E402

BEGINS = re.compile(r"\[\d+/\d+\] \S+ s  (.+)")  # a case, in wbench -v's output
NOT_RUN = "not run: the device failed before"  # wbench's message for the cases after a lost device
STALL_S = 15  # without another case: the time that a device's first calls may take
LEAST_S = 5  # for a process
MOST_AT_ONCE = 4  # the device's time is shared, and a hanging kernel takes its part
GOOD = (0, evidence.NOTHING_RAN)
STOPPED = (130, -9)  # by SIGINT and SIGKILL


@dataclasses.dataclass(frozen=True)
class Run:
    """A line of RUNS."""
    name: str
    op: str
    words: tuple

    @staticmethod
    def of(line):
        name, *words = line.split()
        return Run(name, words[words.index("--op") + 1], tuple(words))


def strategies_of_ours(wbench):
    """{primitive: names}, on CUDA."""
    listing = subprocess.run([wbench, "list", "strategies", "--json", "-"], capture_output=True, text=True, check=True).stdout
    names = collections.defaultdict(list)
    for row in json.loads(listing):
        if row["device"] == "cuda" and row["kind"] == "hand_written" and row["strategy"] not in names[row["op"]]:
            names[row["op"]].append(row["strategy"])
    return names


def trouble_of(path, log, code):
    """Why a process left no whole result, and at which case."""
    begun = BEGINS.findall(log)
    how = "came to no end" if code in STOPPED else f"exit code {code}"
    result = evidence.read_json(path)
    if result is not None and result["run"]["complete"]:
        how = "lost the device"
        ended = [case for case in result["cases"] if not (case.get("reason") or "").startswith(NOT_RUN)]
        begun = begun[:len(ended)]
    return f"{how} at {begun[-1]}" if begun else f"{how} before its first case"


def excerpt(log):
    """The first findings, from which others may follow; else the end."""
    lines = log.splitlines()
    failed = [i for i, line in enumerate(lines) if line.startswith("FAILED")][:3]
    return "\n".join(line for i in failed for line in lines[i:i + 3]) if failed else "\n".join(lines[-10:])


class Verifier:
    """Runs processes of a wbench until its time is over, and judges the results that they leave in a folder."""

    def __init__(self, folder, wbench, seconds):
        self.folder, self.wbench, self.end = folder, wbench, time.monotonic() + seconds
        self.lost, self.ours, self.in_trouble = Lost(folder / "lost.json", wbench), strategies_of_ours(wbench), set()

    def file(self, run, strategy=""):
        return self.folder / f"verify-{'-'.join(filter(None, (run.name, strategy)))}.json"

    def result(self, run, strategy=""):
        """Of all strategies, or of one by itself; None if there is no whole one."""
        return evidence.read_whole(self.file(run, strategy), self.wbench)

    def missing(self, run):
        """The strategies of ours without a result, though they are not lost; "" stands for a primitive that has none of ours."""
        result = self.result(run)
        named = {one["name"] for case in result["cases"] for one in case["strategies"]} if result else set()
        has_all = result is not None and not named  # no case is one for this device
        return [name for name in self.ours[run.op] or ([] if result else [""])
                if not (has_all or name in named or self.lost.is_certain(run.op, name) or name and self.result(run, name))]

    def process(self, run, *words, strategy=""):
        """Whether it left a whole result; None if time ran out."""
        left, path = self.end - time.monotonic(), self.file(run, strategy)
        if left < LEAST_S:
            return None
        path.unlink(missing_ok=True)
        log = path.with_suffix(".log")
        log.write_text("")
        code = run_watched([self.wbench, "verify", "-v", "-p", "ci", "--device", "cuda", *run.words, *words,
                            "--events", path.with_suffix(".events"), "--json", path], log, left, STALL_S, to_write_s=1)
        said = log.read_text(errors="replace")
        if self.result(run, strategy):
            path.with_suffix(".events").unlink(missing_ok=True)
            if code not in GOOD:
                self.say(path, f"exit code {code}\n{excerpt(said)}")
            return True
        if time.monotonic() >= self.end:
            return None
        why = trouble_of(path, said, code)
        self.say(path, f"{why}\n{excerpt(said)}")
        if strategy:
            self.lost.add(run.op, strategy, why, is_certain=True)
        return False

    @staticmethod
    def say(path, words):
        print(f"gpu_check: verify's run {path.stem.removeprefix('verify-')}: {words}", flush=True)

    def run_all(self, run):
        """All strategies, unless their primitive is in trouble: then each will be run by itself."""
        if run.op not in self.in_trouble and self.process(run, *self.lost.skip(run.op)) is False:
            self.in_trouble.add(run.op)

    def run_alone(self, op, strategy, runs):
        for run in runs:
            if not self.process(run, "--strategy", strategy, "--baseline", "none", strategy=strategy):
                return
        self.lost.acquit(op, strategy)

    def run(self, runs):
        at_once = max(1, min(MOST_AT_ONCE, len(os.sched_getaffinity(0)) // 2))
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            list(pool.map(self.run_all, [run for run in runs if self.missing(run) and not self.result(run)]))
            todo = collections.defaultdict(list)
            for run in runs:
                for name in filter(None, self.missing(run)):
                    todo[run.op, name].append(run)
            list(pool.map(lambda key: self.run_alone(*key, todo[key]), todo))
        results = [self.result(run) for run in runs]
        if any(map(self.missing, runs)):
            return 124 if time.monotonic() > self.end - LEAST_S else 1
        if self.lost.found or None in results:
            return 1
        return 0 if all(result["run"]["exit_code"] in GOOD for result in results) else 3

    def report(self, runs):
        for run in runs:
            missing = self.missing(run)
            # All runs of a strategy, or none: one that is right in only some is not verified.
            is_all = missing and missing in ([""], self.ours[run.op])
            for name in missing[:1] if is_all else missing:
                print("missing", run.name, run.op if is_all else f"{run.op}/{name}")
            for name in ("", *self.ours[run.op]):
                if self.result(run, name):
                    print("result", self.file(run, name))
        for name, entry in self.lost.found.items():
            print("lost", name, entry["why"])


def main():
    command, folder, wbench, runs = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
    seconds = float(sys.argv[5]) if command == "run" else math.inf
    runs = [Run.of(line) for line in runs.read_text().splitlines()]
    verifier = Verifier(folder, wbench, seconds)
    if command == "run":
        return verifier.run(runs)
    if command == "todo":
        print("\n".join(run.name for run in runs if verifier.missing(run)))
    else:
        verifier.report(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
