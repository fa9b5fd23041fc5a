#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""verify.py scout|run|todo|report FOLDER WBENCH RUNS [SECONDS]: gpu_check's runs of `wbench verify`, on a device where one may hang or
lose it.

RUNS is a file of lines "NAME --op OP WORDS"; the results are FOLDER/verify-NAME.json.

scout   RUNS are "NAME [VARIABLE=VALUE..] STRATEGY --op OP WORDS", one small case each. Runs all at once. A strategy that hangs, crashes
        or loses the device is suspect: later parts leave it out, until `run` has tried it again. Leaves FOLDER/serial.txt, which says
        why, if the run "overlapping" fails and "serial" is right: then launches must not overlap on this device. WORDS may be
        "--test PROGRAM WORDS": a test in wbench's place, for what verify does not do, which prints a line "begins  CASE" for each
run     runs those without a result of this wbench, several at once: each process has a context of its own. One that begins no
        further case for FIRST_CALLS_S is killed. After one that was killed, crashed, or lost its device, its primitive's runs are
        made strategy by strategy of ours, when all others have ended, and so are the suspects': one bad kernel costs no other its
        evidence. A strategy that fails so by itself is lost (lost.py), and not run again. Exit code 1 if any is lost, or a run
        completed only strategy by strategy; 124 if time ran out; 3 if results are wrong
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
from watched import FIRST_CALLS_S, reached, run_watched  # noqa: E402

BEGINS = re.compile(r"(?:\[\d+/\d+\] \S+ s|begins)  (.+)")  # a case, in the output of wbench -v or of a test
NO_CASE = "before its first case"
SCOUT_STALL_S = 8  # of a case that has begun
LEAST_S = 5  # for a process
MOST_AT_ONCE = 4  # the device's time is shared, and a hanging kernel takes its part
GOOD = (0, evidence.NOTHING_RAN)
STOPPED = (130, -2, -9)  # by SIGINT, heeded or not, and SIGKILL


@dataclasses.dataclass(frozen=True)
class Run:
    """A line of RUNS."""
    name: str
    strategy: str  # the only one; empty: all
    op: str
    words: tuple
    environment: tuple = ()

    @staticmethod
    def of(line):
        name, *words = line.split()
        at = words.index("--op")
        environment = tuple(word for word in words[:at] if "=" in word)
        return Run(name, "".join(words[len(environment):at]), words[at + 1], tuple(words[at:]), environment)

    def __str__(self):
        return " ".join(filter(None, (self.name, *self.environment, self.strategy, *self.words)))

    @property
    def changed_environment(self):
        """What its command begins with."""
        return ("env", *self.environment) if self.environment else ()

    @property
    def test(self):
        """A program and its words, in wbench's place; none of most runs."""
        return self.words[self.words.index("--test") + 1:] if "--test" in self.words else ()

    def alone(self, strategy):
        return dataclasses.replace(self, strategy=strategy)


def strategies_of_ours(wbench):
    """{primitive: names}, on CUDA; of none where wbench fails."""
    done = subprocess.run([wbench, "list", "strategies", "--json", "-"], capture_output=True, text=True)
    names = collections.defaultdict(list)
    for row in json.loads(done.stdout) if done.returncode == 0 else ():
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
        begun = begun[:len(reached(result["cases"]))]
    return f"{how} at {begun[-1]}" if begun else f"{how} {NO_CASE}"


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

    def file(self, run):
        return self.folder / f"verify-{'-'.join(filter(None, (run.name, run.strategy)))}.json"

    def result(self, run):
        """None if there is no whole one."""
        return evidence.read_whole(self.file(run), self.wbench)

    def left_out(self, run):
        """The strategies of ours that a run of all has no result of; "" stands for those of a primitive that has none of ours."""
        result = self.result(run)
        if result is None:
            return self.ours[run.op] or [""]
        named = {one["name"] for case in result["cases"] for one in case["strategies"]}
        return [name for name in self.ours[run.op] if named and name not in named]  # without any, no case is one for this device

    def missing(self, run):
        """Those of them that have no result by themselves, either, though they are not lost."""
        return [name for name in self.left_out(run)
                if not (self.lost.is_certain(run.op, name) or name and self.result(run.alone(name)))]

    def command(self, run, words, events, path):
        if run.test:
            return ["env", self.wbench.parent.parent / "verify" / run.test[0], *run.test[1:]]  # env says so where there is none
        alone = ["--strategy", run.strategy, "--baseline", "none"] if run.strategy else []
        return [self.wbench, "verify", "-v", "-p", "ci", "--device", "cuda", *run.words, *words, *alone, "--events", events, "--json", path]

    def process(self, run, *words, stall_s=FIRST_CALLS_S):
        """Why it left no whole result; empty if it did, None if time ran out."""
        left, path = self.end - time.monotonic(), self.file(run)
        if left < LEAST_S:
            return None
        path.unlink(missing_ok=True)
        log, events = path.with_suffix(".log"), path.with_suffix(".events")
        log.write_text("")
        code = run_watched([*run.changed_environment, *self.command(run, words, events, path)], log, left, stall_s, begin_s=FIRST_CALLS_S,
                           to_write_s=1)
        if run.test and code == 0:
            path.write_text(json.dumps({"run": {"complete": True, "exit_code": 0}, "cases": []}))
        said = log.read_text(errors="replace")
        if code < 0:
            path.unlink(missing_ok=True)  # it wrote its result, and then hung or crashed
        if self.result(run):
            events.unlink(missing_ok=True)
            if code not in GOOD:
                self.say(path, f"exit code {code}\n{excerpt(said)}")
            return ""
        if time.monotonic() >= self.end:
            return None
        why = trouble_of(path, said, code)
        self.say(path, f"{why}\n{excerpt(said)}")
        return why

    @staticmethod
    def say(path, words):
        print(f"gpu_check: verify's run {path.stem.removeprefix('verify-')}: {words}", flush=True)

    def accuse(self, op, strategy, why, suspicion=None):
        """A process that came to no case says nothing of its strategy: many begin at once, or the device is of no use any more."""
        if why and not why.endswith(NO_CASE):
            self.lost.add(op, strategy, why, suspicion)

    def scout(self, runs):
        def go(run):
            why = self.process(run, stall_s=SCOUT_STALL_S)
            self.accuse(run.op, run.strategy, why, str(run))
            return why
        todo = [run for run in runs if not self.result(run) and run.strategy not in self.lost.of(run.op)]
        with concurrent.futures.ThreadPoolExecutor(max(1, len(todo))) as pool:
            outcomes = list(pool.map(go, todo))
        self.judge_overlap(runs)
        return 124 if None in outcomes else self.exit_code(runs)

    def is_right(self, run):
        """None if nobody knows."""
        result = self.result(run)
        if result is None:
            return False if str(run) in self.lost.suspicions(run.op, run.strategy) else None
        return result["run"]["exit_code"] in GOOD

    def judge_overlap(self, runs):
        is_right = {run.name: self.is_right(run) for run in runs if run.name in ("overlapping", "serial")}
        if is_right == {"overlapping": False, "serial": True}:
            (self.folder / "serial.txt").write_text("launches that may overlap fail, and the same ones in turn do not\n")

    def run_all(self, run):
        """All strategies, unless their primitive is in trouble: then each will be run by itself."""
        if run.op not in self.in_trouble and self.process(run, *self.lost.skip(run.op)):
            self.in_trouble.add(run.op)

    def run_alone(self, op, strategy, runs):
        """First what made it suspect."""
        for run in [*map(Run.of, self.lost.suspicions(op, strategy)), *runs]:
            why = self.process(run.alone(strategy))
            self.accuse(op, strategy, why)
            if why != "":
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
            for op, strategy in (name.split("/") for name in self.lost.found):
                if self.lost.suspicions(op, strategy):
                    todo.setdefault((op, strategy), [])  # a vendor's too, of which no run makes evidence
            list(pool.map(lambda key: self.run_alone(*key, todo[key]), todo))
        if any(map(self.missing, runs)):
            return 124 if time.monotonic() > self.end - LEAST_S else 1
        return self.exit_code(runs)

    def exit_code(self, runs):
        results = [self.result(run) for run in runs]
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
            for one in (run, *map(run.alone, filter(None, self.left_out(run)))):
                if self.result(one):
                    print("result", self.file(one))
        for name, entry in self.lost.found.items():
            if self.lost.is_certain(*name.split("/")):
                print("lost", name, entry["why"])


def main():
    command, folder, wbench, runs = sys.argv[1], *map(pathlib.Path, sys.argv[2:5])
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else math.inf
    runs = [Run.of(line) for line in runs.read_text().splitlines() if not line.startswith("#")]
    verifier = Verifier(folder, wbench, seconds)
    if command == "scout":
        return verifier.scout(runs)
    if command == "run":
        return verifier.run(runs)
    if command == "todo":
        print("\n".join(run.name for run in runs if verifier.missing(run)))
    else:
        verifier.report(runs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
