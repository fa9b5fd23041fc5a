#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""run_tests.py BUILD_DIR...: runs every test of these builds and counts test cases.

Counts come from the programs' own reports (Catch2's XML, unittest's closing lines), not from exit
codes: a program that crashes, hangs or reports no test case is one failed test, and skipped is never
passed. Closes with "N passed, N failed, N skipped" alone on a line. --seconds and SIGINT end it early: it names
what did not complete, and fails. Programs of several builds run beside one another, under their build's name.
Tests that measure clocks or the machine's load run alone, and last, because more of the others fit into little time. Those
that --first names run before them, and then the others come after them.
"""
import argparse
import collections
import concurrent.futures
import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter

OUTPUT_LIMIT = 12000  # characters of a failed program's output
OUTPUT_AT_END = 2000  # this many once more at the end, for readers of only a log's end
KILLED_S = 3  # until a killed program has ended


Test = collections.namedtuple("Test", "name command is_alone skip_code")


class OutOfTime(Exception):
    """The whole run's time is over, not that of one program."""


class Programs:
    """Runs programs until a time, and at that time, or at once, kills those that run, with all that they have started."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.running = set()
        self.lock = threading.Lock()

    def stop(self):
        with self.lock:
            self.end = 0
            for process in self.running:
                os.killpg(process.pid, signal.SIGKILL)

    def output_of(self, command, timeout_s):
        """Output, exit code, -1 if it did not end, and in words how it ended."""
        with self.lock:
            left = self.end - time.monotonic()
            if left <= 0:
                raise OutOfTime
            try:
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                                           stdin=subprocess.DEVNULL, start_new_session=True)
            except OSError as error:
                return str(error), -1, "does not start"
            self.running.add(process)
        try:
            output, code = "".join(process.communicate(timeout=min(left, timeout_s))), process.returncode
            ending = f"exit code {code}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, code, ending = output_of_killed(process), -1, f"no end within {timeout_s:g} s"
        finally:
            with self.lock:
                self.running.discard(process)
        if code < 0 and time.monotonic() >= self.end:
            raise OutOfTime
        return output, code, ending


def output_of_killed(process):
    """A process stuck in a driver keeps its pipes open, and is not waited for."""
    try:
        return "".join(process.communicate(timeout=KILLED_S))
    except subprocess.TimeoutExpired:
        return "it was killed and does not end"


def tests_of(build):
    """Every test that CTest knows, so that nothing runs here that a developer's ctest would not."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                             capture_output=True, text=True, check=True)
    tests = []
    for test in json.loads(listing.stdout)["tests"]:
        properties = {item["name"]: item["value"] for item in test.get("properties", [])}
        tests.append(Test(test["name"], test.get("command"), properties.get("RUN_SERIAL", False),
                          properties.get("SKIP_RETURN_CODE")))
    return tests


def count_catch2(report):
    """Counts of test cases in a report of Catch2's XML reporter, and the reasons for skips."""
    root = ElementTree.parse(report).getroot()
    total = root.find("OverallResultsCases").attrib
    counts = Counter(passed=int(total["successes"]) + int(total["expectedFailures"]), failed=int(total["failures"]),
                     skipped=int(total["skips"]))
    reasons = Counter()
    for case in root.iter("TestCase"):
        reason = next((" ".join((skip.text or "").split()) for skip in case.iter("Skip")), None)
        if reason is not None:
            reasons[reason or "no reason given"] += 1
    return counts, reasons


def count_unittest(output):
    """Counts in the last lines of Python's unittest; nothing if there are none."""
    ran = re.search(r"^Ran (\d+) tests? in ", output, re.MULTILINE)
    verdict = re.search(r"^(OK|FAILED)(?: \((.*)\))?\s*\Z", output, re.MULTILINE)
    if not ran or not verdict:
        return Counter()
    marks = {name.strip(): int(number) for name, number in re.findall(r"([a-z ]+)=(\d+)", verdict[2] or "")}
    failed = marks.get("failures", 0) + marks.get("errors", 0) + marks.get("unexpected successes", 0)
    failed = failed or int(verdict[1] == "FAILED")
    skipped = marks.get("skipped", 0)
    return Counter(passed=max(0, int(ran[1]) - failed - skipped), failed=failed, skipped=skipped)


def run(test, timeout_s, programs):
    """Counts, skip reasons and, if it failed, the output of one test; None if there was no time for it. A program
    that is neither Catch2's nor unittest's is one test case, judged by its exit code."""
    name, command = test.name, test.command
    is_python = any(part.endswith(".py") for part in command)
    is_catch2 = name.endswith("_test") and not is_python
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        arguments = ["--reporter", "console", "--reporter", f"xml::out={report}"] if is_catch2 else []
        start = time.monotonic()
        try:
            output, code, ending = programs.output_of(command + arguments, timeout_s)
        except OutOfTime:
            return None
        seconds = time.monotonic() - start
        reasons = Counter()
        if is_catch2:
            try:
                counts, reasons = count_catch2(report)
            except (OSError, ElementTree.ParseError, AttributeError, KeyError):
                counts = Counter(failed=1)
        elif is_python:
            counts = count_unittest(output)
        elif code == test.skip_code:
            counts, reasons = Counter(skipped=1), Counter([" ".join(output.split())])
        else:
            counts = Counter(passed=int(code == 0), failed=int(code != 0))
    # Catch2 exits with 4 if every test case was skipped, which is not a failure.
    is_all_skipped = counts["skipped"] > 0 and code == (4 if is_catch2 else test.skip_code)
    if counts["failed"] == 0 and (counts.total() == 0 or code != 0 and not is_all_skipped):
        counts["failed"] = 1
    print(f"{name:28} {counts['passed']:5} passed {counts['failed']:3} failed {counts['skipped']:3} skipped "
          f"{seconds:6.1f} s", flush=True)
    if not counts["failed"]:
        return counts, reasons, None
    print(f"--- {name}: {ending}\n{output[-OUTPUT_LIMIT:]}\n---", flush=True)
    return counts, reasons, f"failed: {name}: {ending}\n{output[-OUTPUT_AT_END:]}"


def run_together(tests, timeout_s, programs):
    """One more at a time than there are cores, because those of gpu_check mostly wait."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
        running = [pool.submit(run, test, timeout_s, programs) for test in tests]
        while concurrent.futures.wait(running, timeout=0.5).not_done:
            pass  # a signal that arrives just before a wait is handled after it
    return [future.result() for future in running]


def skip_shims():
    """Puts this interpreter first in PATH if python3 there is another file: a version manager's shim, which hundreds of tools
    that tests start would go through, takes longer to start than most of them to run."""
    found = shutil.which("python3")
    if found is None or not os.path.samefile(found, sys.executable):
        os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="BUILD_DIR")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one program")
    parser.add_argument("--seconds", type=float, default=math.inf, help="for all of them")
    parser.add_argument("--first", metavar="REGEX", type=re.compile, default=re.compile(""), help="names of tests")
    parser.add_argument("--leave-out", metavar="REGEX", type=re.compile, default=re.compile("(?!)"), help="names of tests")
    arguments = parser.parse_args()
    skip_shims()
    programs = Programs(arguments.seconds)
    signal.signal(signal.SIGINT, lambda *_: programs.stop())
    counts, reasons, failures, unfinished = Counter(), Counter(), [], []
    together, alone = [], []
    for build in arguments.builds:
        print(f"== {build}", flush=True)
        tests = tests_of(build)
        if not tests:
            print("no test is defined here")
            counts["failed"] += 1
        wanted = [test for test in tests if not arguments.leave_out.search(test.name)]
        if len(wanted) < len(tests):
            print(f"left out {len(tests) - len(wanted)}: {arguments.leave_out.pattern}")
        for test in wanted:
            if test.command is None:
                print(f"{test.name}: was not built")
                counts["failed"] += 1
                continue
            if len(arguments.builds) > 1:
                test = test._replace(name=f"{pathlib.Path(build).name}/{test.name}")
            (alone if test.is_alone else together).append(test)
    first = [test for test in together if arguments.first.search(test.name)]
    rest = [test for test in together if test not in first]
    results = run_together(first, arguments.timeout, programs)
    results += [run(test, arguments.timeout, programs) for test in alone]
    results += run_together(rest, arguments.timeout, programs)
    for test, result in zip(first + alone + rest, results):
        if result is None:
            unfinished.append(test.name)
            continue
        one, why, failure = result
        counts += one
        reasons += why
        failures += [failure] if failure else []
    print(*failures, sep="\n", end="\n" if failures else "")
    for reason, times in reasons.most_common():
        print(f"skipped {times}: {reason}")
    if unfinished:
        print(f"out of time: {len(unfinished)} of {len(results)} programs did not come to their end: {' '.join(unfinished)}")
    if counts["passed"] + counts["failed"] == 0:
        print("no test ran")
        counts["failed"] = 1
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] or unfinished else 0


if __name__ == "__main__":
    sys.exit(main())
