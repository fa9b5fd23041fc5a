# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What tests of the scripts a developer types share: made-up trees and machines that they run in."""
import os
import pathlib
import subprocess
import tempfile

from tree_case import TreeCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPDX = "// SPDX-FileCopyrightText: the wide developers\n// SPDX-License-Identifier: Apache-2.0\n"


class ScriptTest(TreeCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def program(self, name, *lines):
        return self.put(name, "\n".join(["#!/bin/sh", *lines, ""]), 0o755)

    def run_script(self, *command, **variables):
        """(exit code, all output)"""
        result = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=self.root,
                                stdin=subprocess.DEVNULL, env=os.environ | variables)
        return result.returncode, result.stdout + result.stderr
