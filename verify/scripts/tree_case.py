# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""What tests of scripts share: files in a tree of their own."""
import unittest


class TreeCase(unittest.TestCase):
    """`root`: the tree's folder, which the test makes."""

    def put(self, name, text, mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path
