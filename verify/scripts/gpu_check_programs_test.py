#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Programs that gpu_check builds where there is no GPU, and takes along to one."""
import json
import os
import shutil
import tarfile
import unittest

from gpu_check_case import WBENCH, GpuCheckCase
from kernel_tree import run

ARCHIVE = "carry/programs.tar.xz"
LIBRARIES = ("libfmt.so.9", "libcudnn.so.9", "libcudnn_graph.so.9", "libnvrtc.so.13")


class Programs(GpuCheckCase):
    def setUp(self):
        super().setUp()
        self.put("bin/nvidia-smi", (self.root / "bin/nvidia-smi").read_text().replace("case", 'case "$*" in *compute_cap*) echo 9.0; exit ;; esac\ncase', 1), 0o755)
        shutil.rmtree(self.root / "build")
        for name in ("strip", "nvcc"):
            self.put(f"bin/{name}", "#!/bin/sh\n", 0o755)
        self.put("carry/packages.tar.xz", "")
        with tarfile.open(self.root / "carry/packages.tar.xz", "w:xz") as archive:
            for name in LIBRARIES:
                archive.add(self.put("library", ""), f"lib/x86_64-linux-gnu/{name}")
        made = {"bench/wbench": WBENCH.replace("ROOT", str(self.root)), "verify/isolation_test": "#!/bin/sh\n", "verify/simt_engine_test": "#!/bin/sh\n",
                "verify/libwide_tested.so": "", "verify/libwide_golden.a": "", "verify/CTestTestfile.cmake": f'add_test(a "{self.root}/bin/cmake")\n'}
        for name, text in made.items():
            self.put(f"made/{name}", text, 0o644 if name.endswith((".a", ".cmake")) else 0o755)
        self.put("bin/cmake", f"#!/bin/sh\necho cmake $* >>{self.root}/words\n[ $1 != --build ] || cp -r {self.root}/made/. $2\n", 0o755)

    def program(self):
        """As where there is no GPU; then that machine is gone."""
        result = self.check("programs")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("-DCMAKE_CUDA_ARCHITECTURES=90a", (self.root / "words").read_text())
        (self.root / "words").unlink()
        shutil.rmtree(self.root / "build")
        return result.stdout

    def has_built(self):
        return (self.root / "words").exists() and "cmake --build" in (self.root / "words").read_text()

    def test_what_was_built_elsewhere_is_not_built_again(self):
        out = self.program()
        self.assertRegex(out, r"carry/ takes \d+ KiB and the sources \d+ KiB")
        with tarfile.open(self.root / ARCHIVE) as archive:
            names = {member.name.removeprefix("./") for member in archive if member.isfile()}
        self.assertLess({"bench/wbench", "verify/isolation_test", "verify/libwide_tested.so", "verify/CTestTestfile.cmake", "sources.txt"}, names)
        self.assertFalse({"verify/simt_engine_test", "verify/libwide_golden.a"} & names)  # nobody calls them there
        result = self.check("build", "verify", "sanitize", "evidence")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn(f"took the programs of {ARCHIVE}", result.stdout)
        self.assertFalse(self.has_built())
        for name in LIBRARIES:  # as others find them beside themselves
            self.assertEqual((self.root / "build/libraries" / name).resolve(), self.root / "carry/usr/lib/x86_64-linux-gnu" / name)
        self.assertEqual(self.order("third", WIDE_GPU_CHECK_S="1")[0], "droop")
        self.assertEqual(json.loads((self.root / "verify/evidence/toy_simt_sm90.json").read_text())["cases_failed"], 0)

    def test_paths_of_the_machine_that_built_are_found(self):
        self.program()
        folder = self.root / "unpacked"
        with tarfile.open(self.root / ARCHIVE) as archive:
            archive.extractall(folder)
        lines = (folder / "programs.txt").read_text().splitlines()
        self.assertEqual(lines[:3], [str(self.root), str(self.root / "build"), str(self.root / "bin/cmake")])
        there = self.root / "there/checkout"

        def pack(*places):
            (folder / "programs.txt").write_text("\n".join([*places, "/there/cmake", *lines[3:]]) + "\n")
            (folder / "verify/CTestTestfile.cmake").write_text('add_test(a "/there/cmake" "-E" "env")\n')
            with tarfile.open(self.root / ARCHIVE, "w:xz") as archive:
                archive.add(folder, ".")
        pack(str(there), str(there / "build"))
        self.assertIn("took the programs", self.check("build").stdout)
        self.assertEqual(there.resolve(), self.root)
        self.assertEqual((self.root / "build/verify/CTestTestfile.cmake").read_text(), f'add_test(a "{self.root}/bin/cmake" "-E" "env")\n')
        pack(str(self.root), str(self.root / "other"))
        self.assertIn(f"was made in {self.root}/other, which is not {self.root}/build here", self.check("build").stdout)
        self.assertTrue(self.has_built())

    def test_what_does_not_fit_is_built(self):
        self.program()
        self.put("bench/tool.cpp", "int main() {}\n")
        out = self.check("build").stdout
        self.assertIn(f"{ARCHIVE} is of other sources: call programs again", out)
        self.assertTrue(self.has_built())
        (self.root / "bench/tool.cpp").unlink()
        shutil.rmtree(self.root / "build")
        self.put("bin/nvidia-smi", (self.root / "bin/nvidia-smi").read_text().replace("9.0", "8.0"), 0o755)
        self.assertNotIn("took", self.check("build").stdout)

    def first_line(self):
        """Before there is a GPU, and where there is one: what a call says at once."""
        there = self.check("build").stdout.splitlines()[0]
        tool = self.root / "bin/nvidia-smi"
        tool.rename(self.root / "nvidia-smi")
        if not os.path.exists("/dev/nvidia0") and not shutil.which("nvidia-smi"):
            result = self.check("first")
            first, *rest = result.stdout.splitlines()
            self.assertEqual((result.returncode, first), (77, there if rest else first), result.stdout)
            self.assertIn("no GPU", (rest or [first])[0])
        (self.root / "nvidia-smi").rename(tool)
        return there

    @unittest.skipUnless(shutil.which("git"), "needs git")
    def test_what_is_carried_of_another_commit_is_said_at_once(self):
        def git(*words):
            return run("git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", *words).stdout.strip()
        self.assertIn("no programs are carried, so a build comes first", self.first_line())
        git("init")
        git("add", "kernels")
        git("commit", "-m", "Begin")
        old = git("rev-parse", "HEAD")
        self.program()
        self.assertNotIn("carried", self.first_line())
        git("commit", "--allow-empty", "-m", "Tell")
        new = git("rev-parse", "HEAD")
        self.assertIn(f"the carried programs are of {old}, with the same sources as {new}: results will name that commit", self.first_line())
        self.put("bench/tool.cpp", "int main() {}\n")
        self.assertIn(f"the carried programs are of {old}, and of other sources than {new}, so a build comes first", self.first_line())

    def test_what_was_taken_does_not_outlive_its_sources(self):
        self.program()
        self.assertIn("took the programs", self.check("build").stdout)
        self.put("bench/tool.cpp", "int main() {}\n")
        self.put("bin/cmake", "#!/bin/sh\nexit 1\n", 0o755)
        self.assertNotIn("verify:", self.check("build", "verify").stdout)

    def test_what_does_not_start_is_built(self):
        self.put("made/bench/wbench", "#!/bin/sh\necho libfmt.so.9: not found >&2\nexit 127\n", 0o755)
        self.program()
        self.put("made/bench/wbench", WBENCH.replace("ROOT", str(self.root)), 0o755)
        result = self.check("build", "verify")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn(f"{ARCHIVE} has a wbench that does not start here: libfmt.so.9: not found", result.stdout)
        self.assertTrue(self.has_built())

    def test_what_travels_is_weighed(self):
        script = self.root / "scripts/gpu_check.d/carry.sh"
        script.write_text(script.read_text().replace("max_kib=$((60 * 1024))", "max_kib=10"))
        self.put("carry/large", "x" * 20_000)
        result = self.check("programs")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"carry/ takes \d+ KiB and the sources \d+ KiB\ngpu_check: together they are over")


if __name__ == "__main__":
    unittest.main()
