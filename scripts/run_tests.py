#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""run_tests.py PRESET...: runs every test program of build/PRESET and counts test cases.

Counts come from Catch2's JUnit report, not from exit codes: a program that crashes, hangs or
reports no test case counts as one failed test, and a skipped test counts as skipped.
"""
import pathlib
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMEOUT_S = 600


def programs(preset):
    """Every test that CTest knows, so that nothing runs here that a developer's ctest would not."""
    listing = subprocess.run(["ctest", "--test-dir", ROOT / "build" / preset, "--show-only=json-v1"],
                             capture_output=True, text=True, check=True)
    import json
    return [(test["name"], test["command"]) for test in json.loads(listing.stdout)["tests"]]


def count(report):
    """(passed, failed, skipped, skip reasons) of one JUnit file."""
    passed = failed = skipped = 0
    reasons = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            failed += 1
        elif case.find("skipped") is not None:
            skipped += 1
            text = " ".join((case.find("skipped").text or "").split())
            reason = text.split("at /")[0].removeprefix("SKIPPED").strip() or "no reason given"
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            passed += 1
    return passed, failed, skipped, reasons


def run(name, command):
    """Counts of one program; a plain program (no Catch2) is one test, judged by its exit code."""
    is_catch2 = name.endswith("_test")
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.xml"
        arguments = ["--reporter", "console", "--reporter", f"junit::out={report}"] if is_catch2 else []
        start = time.monotonic()
        try:
            result = subprocess.run(command + arguments, capture_output=True, text=True, errors="replace",
                                    timeout=TIMEOUT_S, stdin=subprocess.DEVNULL)
            output, code = result.stdout + result.stderr, result.returncode
        except subprocess.TimeoutExpired:
            output, code = f"no end within {TIMEOUT_S} s", -1
        seconds = time.monotonic() - start
        reasons = {}
        try:
            passed, failed, skipped, reasons = count(report) if is_catch2 else (int(code == 0), int(code != 0), 0, {})
        except (OSError, ElementTree.ParseError):
            passed, failed, skipped = 0, 1, 0
        # Catch2 exits 4 where every test case was skipped, which is not a failure.
        if code not in (0, 4) and failed == 0 or passed + failed + skipped == 0:
            failed += 1
    print(f"{name:28} {passed:5} passed {failed:3} failed {skipped:3} skipped  {seconds:6.1f} s")
    if failed:
        print(f"--- {name}: exit code {code}\n{output[-12000:]}\n---")
    return passed, failed, skipped, reasons


def main():
    total = [0, 0, 0]
    reasons = {}
    for preset in sys.argv[1:]:
        print(f"== {preset}", flush=True)
        for name, command in programs(preset):
            *counts, why = run(name, command)
            sys.stdout.flush()
            total = [sum(pair) for pair in zip(total, counts)]
            for reason, number in why.items():
                reasons[reason] = reasons.get(reason, 0) + number
    for reason, number in sorted(reasons.items(), key=lambda item: -item[1]):
        print(f"skipped {number}: {reason}")
    if total[0] + total[1] == 0:
        print("no test ran")
        total[1] = 1
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
