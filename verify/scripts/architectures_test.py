#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Which compute capabilities the build takes of those that it is asked for."""
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from tree_case import TreeCase

ROOT = pathlib.Path(__file__).resolve().parents[2]


@unittest.skipIf(shutil.which("cmake") is None, "no cmake")
class ArchitecturesTest(TreeCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def asked(self, *options):
        script = self.put("ask.cmake", f"include({ROOT.as_posix()}/scripts/cmake/WideArchitectures.cmake)\n"
                          'wide_architectures()\nmessage("takes ${CMAKE_CUDA_ARCHITECTURES}")\n')
        return subprocess.run(["cmake", *options, "-P", script], capture_output=True, text=True)

    def test_what_is_earlier_than_8_0_is_left_out(self):
        for given, taken in [("80;90a", "80;90a"), ("75;80-real;90a-virtual", "80-real;90a-virtual"), ("70-real;120", "120"),
                             ("100f;75-virtual", "100f"), ("native", "native"), ("", "80;90a")]:
            result = self.asked(f"-DCMAKE_CUDA_ARCHITECTURES={given}")
            self.assertIn(f"takes {taken}\n", result.stderr, result)
            self.assertEqual("those from 8.0 on are taken" in result.stdout, given.startswith("7") or "75" in given, result)
        self.assertIn("takes 80;90a\n", self.asked().stderr)

    def test_a_list_of_nothing_else_is_an_error(self):
        for given in ["75", "61-real;75", "all", "all-major"]:
            result = self.asked(f"-DCMAKE_CUDA_ARCHITECTURES={given}")
            self.assertNotEqual(result.returncode, 0)
            words = " ".join(result.stderr.split())
            self.assertIn(f"CMAKE_CUDA_ARCHITECTURES is {given}, ", words)
            self.assertIn("expected compute capabilities from 8.0 on, such as 80;90a", words)


if __name__ == "__main__":
    unittest.main()
