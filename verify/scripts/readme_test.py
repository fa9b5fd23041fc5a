#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""readme_test.py WBENCH: the README says what the code says: its example is the one that is compiled,
its table is the catalogue's, and the files it names exist."""
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
WBENCH = sys.argv.pop() if len(sys.argv) > 1 else str(ROOT / "build/release/bench/wbench")


class ReadmeTest(unittest.TestCase):
    def test_the_example_is_the_compiled_one(self):
        (shown,) = re.findall(r"^```cpp\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
        _, compiled = (ROOT / "verify/readme_example.cpp").read_text().split("// [readme]\n")
        self.assertEqual(shown, compiled)

    def test_the_example_of_bench_is_the_compiled_one(self):
        (shown,) = re.findall(r"^```cpp\n(.*?)^```$", (ROOT / "bench/README.md").read_text(), re.DOTALL | re.MULTILINE)
        _, compiled = (ROOT / "verify/bench_example.cpp").read_text().split("// [readme]\n")
        self.assertEqual(shown, compiled)

    def test_the_table_is_the_catalogue(self):
        result = subprocess.run([ROOT / "scripts/evidence.py", "status", WBENCH], capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        title = result.stdout.splitlines()[0]
        (shown,) = re.findall(re.escape(title) + r"\n(?:\|.*\n)*", README)
        self.assertEqual(shown, result.stdout.split("\n\n")[0].rstrip("\n") + "\n")  # errors come behind a blank line

    def test_the_excerpt_is_of_the_results(self):
        results = (ROOT / "bench/results/cpu/peers.md").read_text().splitlines()
        rows = re.findall(r"^\| `.*\| cpu \|.*$", README, re.MULTILINE)
        self.assertGreater(len(rows), 3)
        for row in rows:
            self.assertIn(row, results)
        count = sum(line.startswith("| `") for line in results)
        self.assertRegex(README, f"Of the {count} cases\\smeasured there")
        self.assertRegex(README, re.escape(rows[-1]) + r"\n\n")  # or what follows would be a row

    def test_named_files_exist(self):
        rooms = r"`((?:\./)?(?:include|kernels|host|bench|verify|scripts)/[\w./-]+)`"
        for name in re.findall(rooms, README):
            self.assertTrue((ROOT / name).exists() or name == "verify/evidence/", name)

    def test_it_stays_readable(self):
        self.assertLess(README.count("\n"), 250)


if __name__ == "__main__":
    unittest.main()
