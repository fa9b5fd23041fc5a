# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""A small repository with one kernel, for tests of what counts as proved."""
import os
import pathlib
import subprocess
import sys
import tempfile

from tree_case import TreeCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import evidence  # noqa: E402

KERNEL = '#include "kernels/toy/twice.cuh"\n__global__ void toy(int* y) { *y = twice(21); }\n'
HEADER = '#pragma once\n#include "wide/toy.hpp"\n__device__ int twice(int x) { return 2 * x; }  // doubles\n'
PUBLIC = "#pragma once\nconstexpr int kToy = 1;\n"
CLEAN = {tool: 0 for tool in evidence.TOOLS}


def run(*command, **env):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=os.environ | env)


class Tree(TreeCase):
    """A small repository with one kernel, toy/simt, that includes two headers."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve()
        self.put("kernels/toy/toy_simt.cu", KERNEL)
        self.put("kernels/toy/twice.cuh", HEADER)
        self.put("include/wide/toy.hpp", PUBLIC)
