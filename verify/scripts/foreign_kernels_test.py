#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What scripts/check_foreign_kernels makes of what its programs say, with a compiler that writes such programs."""
import os
import pathlib
import sys
import unittest

from script_case import ScriptTest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class ForeignKernelsTest(ScriptTest):
    def setUp(self):
        super().setUp()
        self.root = self.root.resolve()
        for file in ("cutlass/include/cutlass/version.h", "fast.cu/matmul.cu", "flash-attention/hopper/flash_fwd_launch_template.h"):
            self.put(f"theirs/{file}", "")
        self.put("build/verify/simcuda/lib/libcudart.so.13", "")
        self.compiler("echo 'right: 0 of 9 elements wrong'")

    def compiler(self, *says):
        """nvcc notes that it ran, and makes a program of these lines."""
        program = "\n".join(["#!/bin/sh", *says])
        self.put("program", program)
        self.program("bin/nvcc", "echo >> nvcc.log", "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done",
                     f"cp {self.root}/program \"$out\" && chmod +x \"$out\"")

    def check(self, *words):
        return self.run_script(ROOT / "scripts/check_foreign_kernels", "--build", "build", *words,
                               PATH=f"{self.root}/bin:{os.environ['PATH']}")

    def one(self):
        """Of kernel 2 of fast.cu, which has one size; without the header."""
        code, output = self.check("theirs", "kernel 2")
        return code, output.splitlines()[1:]

    def test_right_is_right(self):
        self.assertEqual(self.one(), (0, ["sm90 bf16 tn, kernel 2, 512x512x256: right: 0 of 9 elements wrong", "1 of 1 kernels right"]))

    def test_findings_are_told_without_the_kernels_names_and_are_no_failure(self):
        self.compiler("echo 'right: 0 of 9 elements wrong'", "echo 'finding: in flight: _ZN2M2I block (0,0,0): why [a.cuh:1]' >&2", "exit 86")
        code, lines = self.one()
        self.assertEqual((code, lines[1]), (0, "  in flight: block (0,0,0): why [a.cuh:1]"))

    def test_what_is_not_said_to_be_right_is_not(self):
        for says in (["echo 'wrong: 1 of 9 elements wrong'", "exit 86"], ["exit 0"], ["echo 'right: 0 of 9 elements wrong'", "exit 1"]):
            with self.subTest(says=says):
                self.compiler(*says)
                for old in (self.root / "build").glob("foreign/*"):
                    old.unlink()
                code, lines = self.one()
                self.assertEqual((code, lines[-1]), (1, "0 of 1 kernels right"))

    def test_what_does_not_build_says_why(self):
        self.program("bin/nvcc", "echo 'x.cu(1): error: no such thing' >&2", "exit 1")
        code, lines = self.one()
        self.assertEqual((code, lines[0]), (1, "sm90 bf16 tn, kernel 2: does not build: error: no such thing"))

    def test_a_program_is_made_once(self):
        self.one(), self.one()
        self.assertEqual((self.root / "nvcc.log").read_text(), "\n")

    def test_the_report_is_what_was_printed(self):
        code, output = self.check("--report", "report.txt", "theirs", "kernel 2")
        self.assertEqual((code, (self.root / "report.txt").read_text()), (0, output))

    def test_a_compiler_and_a_build_must_be_there(self):
        code, output = self.run_script(sys.executable, ROOT / "scripts/check_foreign_kernels", "theirs", PATH="")
        self.assertEqual((code, output.splitlines()[-1]), (2, "check_foreign_kernels: error: no nvcc on PATH"))
        code, output = self.check("--build", "elsewhere", "theirs")
        self.assertEqual(code, 2)
        self.assertIn("elsewhere has no simulated GPU, expected elsewhere/verify/simcuda/lib/libcudart.so.13", output)

    def test_checkouts_and_names_must_be_there(self):
        (self.root / "theirs/fast.cu/matmul.cu").unlink()
        code, output = self.check("theirs")
        self.assertEqual(code, 2)
        self.assertIn("theirs has no checkout of fast.cu", output)
        self.put("theirs/fast.cu/matmul.cu", "")
        code, output = self.check("theirs", "kernel 99")
        self.assertEqual(code, 2)
        self.assertIn("no case has kernel 99 in its name", output)


if __name__ == "__main__":
    unittest.main()
