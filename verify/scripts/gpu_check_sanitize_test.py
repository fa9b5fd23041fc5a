#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""Which verdicts of compute-sanitizer gpu_check takes, keeps and makes evidence of."""
import json
import shutil
import tarfile
import unittest

from gpu_check_case import SANITIZER, GpuCheckCase
from kernel_tree import PUBLIC, ROOT, evidence


class Sanitize(GpuCheckCase):
    def setUp(self):
        super().setUp()
        self.put("scripts/gpu_check.d/verify_runs", "ci --op toy -a dtype=fp32\n")  # one instead of all

    def test_findings_and_what_gave_no_verdict(self):
        for env, expected in [({"FINDINGS": "3", "SANITIZER_EXIT": "1"}, 3), ({"SANITIZER_EXIT": "42"}, None)]:
            self.forget()
            result = self.check("sanitize", "verify", "evidence", **env)
            self.assertEqual(result.returncode, 1, result.stdout)
            self.assertIn("sanitize: FAILED", result.stdout)
            self.assertEqual(self.read_evidence()["sanitizer"], {tool: expected for tool in evidence.TOOLS})
        self.assertFalse((self.root / "verify/evidence/sanitizer.txt").exists())
        self.assertEqual(self.check("evidence").returncode, 0)
        self.assertEqual(self.read_evidence()["sanitizer"], {tool: None for tool in evidence.TOOLS})

    def sanitized(self, **env):
        """What the tools ran over in this call, and the part's own words."""
        log = self.root / "sanitized"
        log.unlink(missing_ok=True)
        out = self.check("sanitize", **env).stdout
        return log.read_text().splitlines() if log.exists() else [], out

    def test_a_verdict_holds_as_long_as_what_it_was_made_of(self):
        self.put("build/verify/mlp_test", "#!/bin/sh\n", 0o755)
        self.put("verify/fused/mlp_test.cpp", "int main() {}\n")
        shutil.copytree(self.root / "build", self.root / "made")
        self.put("bin/cmake", f"#!/bin/sh\ncp -an {self.root}/made/. {self.root}/build\n", 0o755)
        self.put("bin/nproc", "#!/bin/sh\necho 2\n", 0o755)
        self.check("build")
        ran, out = self.sanitized()
        self.assertEqual([line.split()[1] for line in ran], ["isolation_test:toy"] * 4 + ["mlp_test"] * 4)
        self.assertIn("0 verdicts hold, 8 are to come, 1 at once", out)
        self.put("build/verify/mlp_test", "#!/bin/sh\n# built elsewhere, of the same\n", 0o755)
        self.put("verify/fused/mlp_test.cpp", "int main() { return 1; }\n")
        self.assertEqual(self.sanitized()[0], [])  # what was built is as it was
        self.check("build")
        self.assertEqual({line.split()[1] for line in self.sanitized()[0]}, {"mlp_test"})
        self.put("include/wide/toy.hpp", PUBLIC.replace("1", "2"))
        self.check("build")
        self.assertEqual(len(self.sanitized()[0]), 8)
        self.assertEqual(len(self.sanitized(SANITIZER_VERSION="2")[0]), 8)
        self.put("bin/nvidia-smi", (self.root / "bin/nvidia-smi").read_text().replace("Toy GPU", "Other GPU"), 0o755)
        self.assertEqual(len(self.sanitized(SANITIZER_VERSION="2")[0]), 8)
        self.assertEqual((self.root / "verify/evidence/sanitizer.txt").read_text().count("\n"), 16)  # of both devices, nothing old
        (self.root / "build/sources.txt").unlink()
        self.assertEqual(len(self.sanitized()[0]), 8)  # of nobody knows what: the programs themselves
        self.put("build/verify/mlp_test", "#!/bin/sh\n# other\n", 0o755)
        self.assertEqual(len(self.sanitized()[0]), 4)

    def test_a_program_is_made_of_what_it_includes(self):
        for name, text in [("verify/fused/mlp_test.cpp", "int main() {}\n"), ("verify/catalog/isolation_test.cpp", "int main() {}\n"),
                           ("verify/catalog/case.hpp", ""), ("bench/run/runner.hpp", ""), ("bench/run.hpp", "")]:
            self.put(name, text)
        self.put("bin/cmake", "#!/bin/sh\n", 0o755)

        def changed(name):
            """The programs that this file is part of."""
            def keys():
                self.check("build")
                return dict(line.split() for line in (self.root / "build/sources.txt").read_text().splitlines())
            before = keys()
            self.put(name, "// changed\n" + (self.root / name).read_text())
            return {program for program, key in keys().items() if key != before[program]} & {"mlp_test", "isolation_test"}
        both = {"mlp_test", "isolation_test"}
        self.assertEqual(changed("bench/run/runner.hpp"), both)  # of what they include nothing is known
        self.put("bin/ninja", """#!/bin/sh
echo 'verify/CMakeFiles/mlp_test.dir/fused/mlp_test.cpp.o: #deps 3, deps mtime 1 (VALID)'
printf '    %s\\n' ../verify/fused/mlp_test.cpp ../bench/run/runner.hpp /usr/include/stdio.h ''
echo 'bench/CMakeFiles/wbench_core.dir/run.cpp.o: #deps 1, deps mtime 1 (VALID)'
printf '    %s\\n' ../bench/run.hpp ''
echo 'verify/CMakeFiles/isolation_test.dir/catalog/isolation_test.cpp.o: #deps 2, deps mtime 1 (VALID)'
printf '    %s\\n' ../verify/catalog/isolation_test.cpp ../verify/catalog/case.hpp
""", 0o755)
        self.assertEqual(changed("bench/run/runner.hpp"), {"mlp_test"})
        self.assertEqual(changed("verify/catalog/case.hpp"), {"isolation_test"})
        self.assertEqual(changed("bench/run.hpp"), set())
        self.assertEqual(changed("verify/fused/mlp_test.cpp"), {"mlp_test"})
        self.assertEqual(changed("kernels/toy/toy_simt.cu"), both)

    def test_without_primitives_there_is_no_evidence(self):
        (self.root / "strategies.json").unlink()
        self.assertIn("memcheck: findings null\n", self.sanitized()[1])  # there is no program, either
        self.put("build/verify/mlp_test", "#!/bin/sh\n", 0o755)
        result = self.check("sanitize", "verify", "evidence")
        self.assertIn("wbench lists no primitives", result.stdout)
        self.assertNotEqual(evidence.state_of(self.root, self.read_evidence()), "verified")

    def test_calls_complete_one_another(self):
        self.put("build/verify/mlp_test", "#!/bin/sh\n", 0o755)
        short = self.check("sanitize", "verify", "evidence", RACE_EXIT="124")
        self.assertEqual(short.returncode, 1)
        self.assertIn("memcheck: findings 0", short.stdout)
        self.assertIn("racecheck: findings null", short.stdout)
        self.assertIn("racecheck: no verdict on isolation_test:toy mlp_test", short.stdout)
        self.assertEqual(evidence.state_of(self.root, self.read_evidence()), "incomplete")
        ran, _ = self.sanitized()
        self.assertEqual(sorted(ran), ["racecheck isolation_test:toy", "racecheck mlp_test"])
        self.check("verify", "evidence")
        self.assertEqual(evidence.state_of(self.root, self.read_evidence()), "verified")

    def test_the_next_call_takes_up_what_was_kept(self):
        self.check("sanitize", "verify", "bench", "evidence")
        verdicts = self.root / "verify/evidence/sanitizer.txt"
        self.assertEqual(len(verdicts.read_text().splitlines()), 4)
        for folder in ("verify/evidence", "bench/results"):  # the same checkout, brought there again
            shutil.rmtree(self.root / folder)
        kept = self.put("bench/results/Toy-GPU/other.json", "newer")
        verdicts.parent.mkdir()
        verdicts.write_text("memcheck mlp_test Other-GPU key 0 0 all\n")
        self.assertEqual(self.sanitized()[0], [])
        self.assertEqual(len(verdicts.read_text().splitlines()), 5)
        self.assertEqual(len(list(self.root.glob("bench/results/Toy-GPU/quick-*.json"))), 1)
        self.assertEqual(evidence.state_of(self.root, self.read_evidence()), "verified")
        kept.write_text("newest")
        self.check("evidence")
        self.assertEqual(kept.read_text(), "newest")

    def test_programs_run_beside_one_another(self):
        self.put("bin/nproc", "#!/bin/sh\necho 8\n", 0o755)
        # The first ones wait until four have met.
        busy = f"""#!/bin/sh
[ $1 != --version ] || exit 0
mkdir {self.root}/busy.$$; ls -d {self.root}/busy.* | wc -l >>{self.root}/most
for i in $(seq 200); do grep -q 4 {self.root}/most && break; sleep 0.05; done
rmdir {self.root}/busy.$$
echo '= ERROR SUMMARY: 0 errors'; echo '= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)'
"""
        self.put("bin/compute-sanitizer", busy, 0o755)
        self.put("build/verify/mlp_test", "#!/bin/sh\n", 0o755)
        self.assertEqual(self.check("sanitize").returncode, 0)
        self.assertEqual(max(map(int, (self.root / "most").read_text().split())), 4)

    def test_what_hangs_is_cut_and_comes_last_when_called_again(self):
        self.put("bin/nproc", "#!/bin/sh\necho 4\n", 0o755)
        # Two that have begun hang, of which timeout tells what it would tell in the end, and how long it was to wait.
        self.put("bin/timeout", f'#!/bin/sh\necho "$3" >>{self.root}/limits\nshift 3\n"$@"\ncode=$?\n[ $code -ne 99 ] || exit 124\nexit $code\n', 0o755)
        hangs = """if [ $program = isolation_test ]; then
  for i in $(seq 200); do [ $(grep -c isolation_test $OUT_LOG) -ge 2 ] && break; sleep 0.05; done
  exit 99
fi
"""
        self.put("bin/compute-sanitizer", SANITIZER.replace("case $2 in", hangs + "case $2 in", 1), 0o755)
        self.put("build/verify/mlp_test", "#!/bin/sh\n", 0o755)
        ran, out = self.sanitized(**self.still())
        for tool, seconds in (("memcheck", 555 // 3), ("racecheck", 555 // 3), ("initcheck", 555), ("synccheck", 555)):
            self.assertIn(f"sanitize: {tool} over isolation_test:toy came to no end within {seconds} s", out)
        self.assertEqual(sorted((self.root / "limits").read_text().split()), ["185"] * 6 + ["555"] * 2)
        self.assertEqual((self.root / "verify/evidence/sanitizer.txt").read_text().count(" mlp_test "), 4, out)
        # Two hold both places; what the unit has not tried comes behind the others, and in the next call all that it lacks. Two that
        # begin together are noted in either order.
        self.assertEqual(sorted(ran[:2]), ["memcheck isolation_test:toy", "racecheck isolation_test:toy"])
        self.assertEqual(sum(line.endswith(" mlp_test") for line in ran[2:7]), 4, ran)
        (self.root / "verify/evidence/sanitizer.txt").unlink()
        (self.root / "build/kept.tar.gz").unlink()
        ran, _ = self.sanitized(**self.still())
        self.assertEqual(sum(line.endswith(" mlp_test") for line in ran[:5]), 4, ran)
        self.put("build/verify/isolation_test", "#!/bin/sh\n# mended\n", 0o755)
        self.put("bin/compute-sanitizer", SANITIZER, 0o755)
        self.assertIn("memcheck isolation_test:toy", self.sanitized()[0][:2])  # two begin at once

    def test_a_tool_goes_over_all_units_before_the_next(self):
        self.put("strategies.json", json.dumps([{"op": op, "strategy": "simt", "device": "cuda"} for op in ("toy", "other")]))
        self.put("bin/nproc", "#!/bin/sh\necho 2\n", 0o755)
        self.put("build/verify/mlp_test", "#!/bin/sh\n", 0o755)
        shares = [f"{tool} isolation_test:{op}" for tool in evidence.TOOLS for op in ("toy", "other")]
        self.assertEqual(self.sanitized()[0], shares + [f"{tool} mlp_test" for tool in evidence.TOOLS])

    def test_what_was_found_is_read_first(self):
        tool = """#!/bin/bash
[ $1 != --version ] || exit 0
for word; do case $word in */verify/*) program=${word##*/} ;; esac; done
case $2-$program in synccheck-mlp_test) n=3 ;; memcheck-softmax_test | synccheck-softmax_test) exit 9 ;; *) n=0 ;; esac
head -c 150000 /dev/zero | tr '\\0' x
printf '\\n= ERROR SUMMARY: %d errors\\n= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\\n' $n
"""
        self.put("bin/compute-sanitizer", tool, 0o755)
        for name in ("mlp_test", "softmax_test"):
            self.put(f"build/verify/{name}", "#!/bin/sh\n", 0o755)
        out = self.sanitized()[1]
        self.assertRegex(out, r"synccheck: findings 3\nsynccheck mlp_test .*\n.*synccheck: no verdict on softmax_test\n")
        self.assertIn("memcheck: findings null\n", out)
        titles = [line for line in (self.root / "build/check/sanitize.log").read_text().splitlines() if line.startswith("== ")]
        self.assertEqual(titles[:4], [f"== sanitize-{name}.log" for name in (
            "synccheck-mlp_test", "memcheck-softmax_test", "synccheck-softmax_test", "memcheck-isolation_test-toy")])
        self.assertEqual(len(titles), 12)

    def test_verdicts_are_packed_while_others_are_to_come(self):
        script = self.root / "scripts/gpu_check"
        script.write_text(script.read_text().replace("pack_every_s=60", "pack_every_s=0"))
        self.put("bin/nproc", "#!/bin/sh\necho 2\n", 0o755)
        sanitizer = (self.root / "bin/compute-sanitizer").read_text()
        self.put("bin/compute-sanitizer", sanitizer.replace("\n", f"\n[ $2 != synccheck ] || cp {self.root}/out/keep.tar.gz {self.root}/then.tar.gz\n", 1), 0o755)
        self.sanitized()
        with tarfile.open(self.root / "then.tar.gz") as archive:
            verdicts = archive.extractfile("verify/evidence/sanitizer.txt").read().decode()
        self.assertIn("memcheck isolation_test:toy", verdicts)
        self.assertNotIn("synccheck", verdicts)

    def test_a_tool_that_cannot_look_gives_no_verdict(self):
        self.put("bin/compute-sanitizer", "#!/bin/sh\necho Device not supported; echo '= ERROR SUMMARY: 1 error'; exit 1\n", 0o755)
        out = self.sanitized()[1]
        self.assertIn("memcheck: findings null", out)
        self.assertFalse((self.root / "verify/evidence").exists())

    def test_tools_judge_the_kernels_that_they_can_follow(self):
        self.check("sanitize", "verify", "evidence")
        for line in (self.root / "sanitized.options").read_text().splitlines():
            is_scoped = line.split()[1] in ("racecheck", "synccheck")
            self.assertEqual("--kernel-name kns=4wide7kernels" in line, is_scoped, line)
        self.assertEqual(self.read_evidence()["sanitizer_scope"], {
            "memcheck": "all", "racecheck": "wide::kernels", "initcheck": "all,_finds_in_wide::kernels", "synccheck": "wide::kernels"})
        for kernel in (ROOT / "kernels").glob("*/*.cu"):  # whose names are found by that
            self.assertIn("namespace wide::kernels {", kernel.read_text(), kernel)

    def test_warnings_are_noted(self):
        result = self.check("sanitize", "verify", "evidence", WARNINGS="2", SANITIZER_EXIT="97")
        self.assertIn("racecheck isolation_test:toy 0 2 wide::kernels", result.stdout)
        found = self.read_evidence()
        self.assertEqual((found["sanitizer"]["racecheck"], found["sanitizer_noted"]["racecheck"]), (0, 2))
        self.assertEqual(found["sanitizer"]["memcheck"], None)  # ended so with nothing found: it did not come to its end

    def test_what_others_kernels_read_is_noted(self):
        def read_by(kernel):
            return f"========= Uninitialized __global__ memory read of size 4 bytes\n=========     at {kernel}+0x10\n=========     by thread (0,0,0)\n"
        ours = read_by("void wide::kernels::(anonymous namespace)::copy<float>(wide::kernels::Params)")
        theirs = read_by("nvjet_tst_128x64_coopA_NTN") + read_by("void cutlass::Kernel2<cutlass_80_gemm>(Params)")
        for reads, findings, expected in [(theirs, 2, (0, 2)), (ours + theirs, 3, (1, 2)), (theirs, 7, (5, 2)),
                                          ("========= Host API uninitialized memory access\n", 1, (1, 0))]:
            self.forget()
            path = self.put("reads", reads)
            self.check("sanitize", "verify", "evidence", READS=str(path), FINDINGS=str(findings), SANITIZER_EXIT="97")
            found = self.read_evidence()
            self.assertEqual((found["sanitizer"]["initcheck"], found["sanitizer_noted"]["initcheck"]), expected)

    def test_what_a_vendors_library_keeps_is_noted(self):
        def leak_by(*modules):
            frames = "".join(f"=========         Host Frame: [0x12] in {module}\n" for module in modules)
            return f"========= Leaked 64 bytes at 0x7f0000000000\n=========     Saved host backtrace up to driver entry point\n{frames}=========\n"
        ours = leak_by("/usr/lib/libcuda.so.1", "/usr/local/cuda/lib64/libcudart.so.13", "/build/verify/linear_test")
        theirs = leak_by("libcudart.so.13", "libcublasLt.so.13", "linear_test") + leak_by("libcudnn_ops.so.9", "linear_test")
        for leaks, findings, expected in [(theirs, 2, (0, 2)), (theirs + ours, 3, (1, 2)), (theirs, 4, (2, 2)), (ours, 1, (1, 0)),
                                          (ours + theirs, 0, (1, 2))]:  # that no sum of errors counts
            self.forget()
            path = self.put("leaks", leaks)
            self.check("sanitize", "verify", "evidence", LEAKS=str(path), FINDINGS=str(findings), SANITIZER_EXIT="97")
            found = self.read_evidence()
            self.assertEqual((found["sanitizer"]["memcheck"], found["sanitizer_noted"]["memcheck"]), expected)

    def test_every_tool_is_asked_for_all_that_it_checks(self):
        self.check("sanitize")
        for line in (self.root / "sanitized.options").read_text().splitlines():
            for check in ("device-heap", "bulk-copy", "exit-code", "warpgroup-mma"):
                self.assertIn(f"--check-{check} yes", line)
            is_memcheck = line.split()[1] == "memcheck"
            for words in ("--leak-check full", "--padding 512", "--track-stream-ordered-races all"):
                self.assertEqual(words in line, is_memcheck, line)

    def test_a_verdict_is_of_what_was_asked_for(self):
        script = self.root / "scripts/gpu_check.d/sanitize.sh"
        self.assertEqual(len(self.sanitized()[0]), 4)
        self.assertEqual(self.sanitized()[0], [])
        script.write_text(script.read_text().replace("--padding 512", "--padding 64"))
        self.assertEqual(len(self.sanitized()[0]), 4)


if __name__ == "__main__":
    unittest.main()
