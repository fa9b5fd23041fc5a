#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""run_tests.py BUILD_DIR...: runs every test of these builds and counts test cases.

Counts come from the programs' own reports (Catch2's XML, unittest's closing lines), not from exit
codes: a program that crashes, hangs or reports no test case is one failed test, and skipped is never
passed. Closes with "N passed, N failed, N skipped" alone on a line.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter

OUTPUT_LIMIT = 12000  # characters of a failed program's output
OUTPUT_AT_END = 2000  # of which so many once more at the end, for who has only the end of a log


Test = collections.namedtuple("Test", "name command is_alone skip_code")


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
    """Counts of test cases in a report of Catch2's XML reporter, and the reasons of what was skipped."""
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
    """Counts in what Python's unittest prints last; nothing where it does not."""
    ran = re.search(r"^Ran (\d+) tests? in ", output, re.MULTILINE)
    verdict = re.search(r"^(OK|FAILED)(?: \((.*)\))?\s*\Z", output, re.MULTILINE)
    if not ran or not verdict:
        return Counter()
    marks = {name.strip(): int(number) for name, number in re.findall(r"([a-z ]+)=(\d+)", verdict[2] or "")}
    failed = marks.get("failures", 0) + marks.get("errors", 0) + marks.get("unexpected successes", 0)
    failed = failed or int(verdict[1] == "FAILED")
    skipped = marks.get("skipped", 0)
    return Counter(passed=max(0, int(ran[1]) - failed - skipped), failed=failed, skipped=skipped)


def run(test, timeout_s):
    """Counts, skip reasons and, where it failed, the output of one test. A program that is neither Catch2's
    nor unittest's is one test case, judged by its exit code."""
    name, command = test.name, test.command
    is_python = any(part.endswith(".py") for part in command)
    is_catch2 = name.endswith("_test") and not is_python
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        arguments = ["--reporter", "console", "--reporter", f"xml::out={report}"] if is_catch2 else []
        start = time.monotonic()
        try:
            result = subprocess.run(command + arguments, capture_output=True, text=True, errors="replace",
                                    timeout=timeout_s, stdin=subprocess.DEVNULL)
            output, code = result.stdout + result.stderr, result.returncode
        except subprocess.TimeoutExpired as error:
            output, code = f"{(error.stdout or b'').decode(errors='replace')}\nno end within {timeout_s} s", -1
        except OSError as error:
            output, code = str(error), -1
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
    # Catch2 exits 4 where every test case was skipped, which is not a failure.
    is_all_skipped = counts["skipped"] > 0 and code == (4 if is_catch2 else test.skip_code)
    if counts["failed"] == 0 and (counts.total() == 0 or code != 0 and not is_all_skipped):
        counts["failed"] = 1
    print(f"{name:28} {counts['passed']:5} passed {counts['failed']:3} failed {counts['skipped']:3} skipped "
          f"{seconds:6.1f} s", flush=True)
    if not counts["failed"]:
        return counts, reasons, None
    print(f"--- {name}: exit code {code}\n{output[-OUTPUT_LIMIT:]}\n---", flush=True)
    return counts, reasons, f"failed: {name}: exit code {code}\n{output[-OUTPUT_AT_END:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("builds", nargs="+", metavar="BUILD_DIR")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one program")
    arguments = parser.parse_args()
    counts, reasons, failures = Counter(), Counter(), []
    for build in arguments.builds:
        print(f"== {build}", flush=True)
        tests = tests_of(build)
        if not tests:
            print("no test is defined here")
            counts["failed"] += 1
        for test in tests:
            if test.command is None:
                print(f"{test.name}: was not built")
                counts["failed"] += 1
        built = [test for test in tests if test.command is not None]
        # What looks at clocks or at the machine's load runs alone.
        results = [run(test, arguments.timeout) for test in built if test.is_alone]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            together = [test for test in built if not test.is_alone]
            results += pool.map(lambda test: run(test, arguments.timeout), together)
        for one, why, failure in results:
            counts += one
            reasons += why
            failures += [failure] if failure else []
    print(*failures, sep="\n", end="\n" if failures else "")
    for reason, number in reasons.most_common():
        print(f"skipped {number}: {reason}")
    if counts["passed"] + counts["failed"] == 0:
        print("no test ran")
        counts["failed"] = 1
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
