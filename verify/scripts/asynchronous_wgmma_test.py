#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""asynchronous_wgmma_test.py [BUILD]: what the compilers' launcher takes for slow, that BUILD compiles all kernels by it, and ccache behind it."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

from tree_case import TreeCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAUNCHER = ROOT / "scripts/cmake/asynchronous_wgmma"
BUILD = pathlib.Path(sys.argv.pop()) if len(sys.argv) > 1 and pathlib.Path(sys.argv[-1]).is_dir() else None
SERIALIZED = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized"

# A product whose sums are used before (WAIT 2) or behind (WAIT 1) the wait for it.
KERNEL = """#include <cstdint>
__device__ __noinline__ float more(float x) { return x * 1.5f + 1.0f; }
__global__ void __launch_bounds__(128) products(float* out, uint64_t a, uint64_t b, int n) {
  float d[4] = {0, 0, 0, 0};
  for (int i = 0; i < n; ++i) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    if (WAIT == 2) d[0] = more(d[0]);
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])::"memory");
  }
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}
"""


def find_nvcc():
    """One that this project takes, where there is one."""
    for path in (shutil.which(os.environ.get("CUDACXX", "")), shutil.which("nvcc"), shutil.which("nvcc", path="/usr/local/cuda/bin")):
        says = subprocess.run([path, "--version"], capture_output=True, text=True).stdout if path else ""
        release = re.search(r"release (\d+)", says)
        if release and int(release[1]) >= 13:
            return path
    return None


def first_words(build):
    """What Ninja calls first wherever it compiles CUDA: CMake writes launchers into the rules or, newer ones, a variable of each statement."""
    rules, statements = build / "CMakeFiles/rules.ninja", build / "build.ninja"
    if not (rules.exists() and statements.exists()):
        return set()
    commands = dict(re.findall(r"^rule (CUDA_COMPILER__\S+)\n(?:  [^\n]*\n)*?  command = ([^\n]*)", rules.read_text(), re.MULTILINE))
    words = set()
    for rule, variables in re.findall(r"^build [^\n]*: (CUDA_COMPILER__\S+)[^\n]*\n((?:  [^\n]*\n)*)", statements.read_text(), re.MULTILINE):
        launcher = re.search(r"^  LAUNCHER = ([^\n]*)", variables, re.MULTILINE)
        command = re.sub(r"\$\{LAUNCHER\}|\$LAUNCHER\b", lambda _: launcher[1] + " " if launcher else "", commands[rule])
        words.add(shlex.split(command.replace("${CODE_CHECK}", ""))[0])
    return words


class AsynchronousWgmma(TreeCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def launch(self, *compiler):
        """(exit code, what was said, whether there is an object)"""
        result = subprocess.run([str(word) for word in (LAUNCHER, *compiler, "-o", self.root / "k.cu.o")], capture_output=True,
                                text=True, stdin=subprocess.DEVNULL)
        return result.returncode, result.stdout + result.stderr, (self.root / "k.cu.o").exists()

    def compiler(self, *lines):
        return self.put("compiler", "\n".join(["#!/bin/sh", f"echo object >{self.root}/k.cu.o", *lines, ""]), 0o755)

    def test_what_ptxas_only_mentions_fails_and_leaves_no_object(self):
        code, said, has_object = self.launch(self.compiler(f"echo '{SERIALIZED}' >&2"))
        self.assertEqual((code, has_object), (1, False), said)
        self.assertIn(SERIALIZED, said)
        self.assertRegex(said, r"error: \S+/k\.cu\.o: ptxas serialised wgmma or ignored setmaxnreg \(C75xx above\)")

    def test_other_words_and_codes_are_the_compilers(self):
        self.assertEqual(self.launch(self.compiler()), (0, "", True))
        self.assertEqual(self.launch(self.compiler("echo 'warning: (C1234)'")), (0, "warning: (C1234)\n", True))
        code, said, _ = self.launch(self.compiler("echo 'k.cu(1): error: no' >&2", "exit 3"))
        self.assertEqual((code, said), (3, "k.cu(1): error: no\n"))

    def test_ptxas_itself(self):
        nvcc = find_nvcc()
        if nvcc is None:
            self.skipTest("no nvcc of CUDA 13 or newer in CUDACXX, PATH and /usr/local/cuda")
        source = self.put("k.cu", KERNEL)
        for wait, expected in [(1, (0, True)), (2, (1, False))]:
            code, said, has_object = self.launch(nvcc, "-gencode", "arch=compute_90a,code=sm_90a", f"-DWAIT={wait}", "-c", source)
            self.assertEqual((code, has_object), expected, said)
            self.assertEqual("(C75" in said, wait == 2, said)

    def test_a_build_says_by_rules_or_by_statements_what_is_called_first(self):
        self.assertEqual(first_words(self.root), set())
        rule = "rule CXX_COMPILER__wide\n  command = /usr/bin/c++ -c $in\n\nrule CUDA_COMPILER__wide\n  depfile = $DEP_FILE\n  command = %s -c $in\n  description = x\n"
        statements = "build a.o: CXX_COMPILER__wide a.cpp\n  DEFINES = -DA\n\nbuild k.cu.o: CUDA_COMPILER__wide k.cu || order\n  DEFINES = -DA\n%s  FLAGS = -O3\n\n"
        newer = "${LAUNCHER}${CODE_CHECK}/cuda/bin/nvcc"
        for command, variable, first in [("/w/asynchronous_wgmma /usr/bin/ccache nvcc", "", "/w/asynchronous_wgmma"),
                                         ('"/with space/asynchronous_wgmma" nvcc', "", "/with space/asynchronous_wgmma"),
                                         (newer, "  LAUNCHER = /w/asynchronous_wgmma /usr/bin/ccache \n", "/w/asynchronous_wgmma"),
                                         (newer, '  LAUNCHER = "/with space/asynchronous_wgmma"\n', "/with space/asynchronous_wgmma"),
                                         (newer, "", "/cuda/bin/nvcc")]:
            self.put("CMakeFiles/rules.ninja", rule % command)
            self.put("build.ninja", statements % variable)
            self.assertEqual(first_words(self.root), {first})

    def test_ccache_takes_no_launchers_place(self):
        cmake = shutil.which("cmake")
        if cmake is None:
            self.skipTest("no cmake")
        script = self.put("ask.cmake", f"include({ROOT.as_posix()}/scripts/cmake/WideCcache.cmake)\n"
                          'message("${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CUDA_COMPILER_LAUNCHER}")\n')
        for given, expected in [((), "/c /c"), (("CUDA",), "/c /s"), (("CXX",), "/s /c"), (("CXX", "CUDA"), "/s /s")]:
            launchers = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=/s" for language in given]
            result = subprocess.run([cmake, "-DWIDE_CCACHE=/c", *launchers, "-P", script], capture_output=True, text=True)
            self.assertEqual(result.stderr.strip(), expected, result)

    def test_this_build_compiles_every_kernel_by_it(self):
        words = first_words(BUILD) if BUILD else set()
        if not words:
            self.skipTest("not of a build with CUDA by Ninja")
        for word in words:
            self.assertRegex(word, r"/scripts/cmake/asynchronous_wgmma$")


if __name__ == "__main__":
    unittest.main()
