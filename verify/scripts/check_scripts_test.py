#!/usr/bin/env python3
# SPDX-FileCopyrightText: the wide developers
# SPDX-License-Identifier: Apache-2.0
"""The checks of the sources that the test script begins with, on made-up trees: each is seen to fail."""
import re
import runpy
import shutil
import unittest

from script_case import ROOT, SPDX, ScriptTest


class LayersTest(ScriptTest):
    def setUp(self):
        super().setUp()
        self.put("include/wide/a.hpp", SPDX + "#include <vector>\n")
        self.put("kernels/k/k.cu", SPDX + '#include "wide/a.hpp"\n#include <cuda_runtime.h>\n')
        self.put("host/h/h.cpp", SPDX + '// asm("no") #include "bench/b.hpp"\n#include "kernels/k/k.cu"\n')
        self.put("bench/b.hpp", SPDX + '#include "host/h/h.cpp"\n#include <nlohmann/json.hpp>\n')
        self.put("verify/v_test.cpp", SPDX + '#include "bench/b.hpp"\n')

    def check(self):
        return self.run_script(ROOT / "scripts/check_layers", self.root)

    def assert_caught(self, name, line, message):
        path = self.root / name
        before = path.read_text() if path.exists() else None
        self.put(name, SPDX + line + "\n")
        code, output = self.check()
        self.assertEqual(code, 1, output)
        self.assertIn(name, output)
        self.assertIn(message, output)
        path.unlink() if before is None else path.write_text(before)

    def test_a_clean_tree_passes_and_says_what_was_read(self):
        self.assertEqual(self.check(), (0, "check_layers: 5 files, 4 includes, 0 violations\n"))

    def test_the_project_itself(self):
        code, output = self.run_script(ROOT / "scripts/check_layers")
        self.assertEqual(code, 0, output)

    def test_upward_includes(self):
        arrows = "expected include <- kernels <- host <- bench <- verify"
        self.assert_caught("include/wide/x.hpp", '#include "kernels/k/k.cu"', arrows)
        self.assert_caught("kernels/k/x.cuh", '  #  include "host/h/h.cpp"', arrows)
        self.assert_caught("host/h/x.cpp", "#include <bench/b.hpp>", arrows)
        self.assert_caught("bench/x.cpp", '#include "verify/v_test.cpp"', arrows)

    def test_folders_include_one_another_one_way(self):
        self.put("bench/a/a.hpp", SPDX + '#include "bench/b/b.hpp"\n')
        self.put("bench/b/b.hpp", SPDX + '#include "bench/c/c.hpp"\n')
        self.put("bench/d/d.hpp", SPDX + '#include "bench/a/a.hpp"\n')
        self.put("bench/c/c.hpp", SPDX)
        self.assertEqual(self.check()[0], 0)
        self.assert_caught("bench/c/c.hpp", '#include "bench/a/a.hpp"', "bench/a/a.hpp includes bench/b/b.hpp, bench/b/b.hpp includes "
                           "bench/c/c.hpp, bench/c/c.hpp includes bench/a/a.hpp\n")
        self.put("bench/c/c.hpp", SPDX + '#include "bench/a/a.hpp"\n')
        self.assert_caught("host/i/i.cpp", '#include "host/i/j/j.hpp"\n#include "host/h/h.cpp"', "which does not exist")
        self.put("host/i/i.hpp", SPDX + '#include "host/k/k.hpp"\n')
        self.put("host/k/k.hpp", SPDX + '#include "host/i/i.hpp"\n')
        self.assertEqual(self.check()[1].count("in a circle"), 2)  # each is named

    def test_includes_that_would_escape_the_rule(self):
        self.assert_caught("host/h/x.cpp", '#include "../../bench/b.hpp"', "expected a path from the root")
        self.assert_caught("host/h/x.cpp", '#include "h.hpp"', "expected a path from the root")
        self.assert_caught("host/h/x.cpp", '#include "wide/gone.hpp"', "does not exist")

    def test_public_headers_are_free_of_cuda(self):
        for header in ("cuda_runtime.h", "cublas_v2.h", "nvtx3/nvtx3.hpp", "device_launch_parameters.h"):
            self.assert_caught("include/wide/x.hpp", f"#include <{header}>", "nothing of CUDA's")

    def test_kernels_know_nothing_of_plans(self):
        self.put("include/wide/plan.hpp", SPDX + "#include <memory>\n")
        self.put("include/wide/linear.hpp", SPDX + '#include "wide/plan.hpp"\n')
        for header in ("plan", "linear"):
            self.assert_caught("kernels/k/x.hpp", f'#include "wide/{header}.hpp"', "leads to <memory>")
        self.put("host/h/x.cpp", SPDX + '#include "wide/linear.hpp"\n')
        for one, other in ("xy", "yx"):  # each includes the other
            self.put(f"include/wide/{one}.hpp", SPDX + f'#pragma once\n#include "wide/{other}.hpp"\n')
        self.put("kernels/k/x.hpp", SPDX + '#include "wide/x.hpp"\n')
        self.assertEqual(self.check()[0], 0)

    def test_inline_ptx_lives_in_arch(self):
        for line in ('asm volatile("bar;");', 'asm("bar;");', '__asm__ __volatile__ ("bar;");'):
            self.assert_caught("kernels/k/x.cuh", line, "inline PTX")
            self.assert_caught("verify/golden/x.cu", line, "inline PTX")
        for folder in ("kernels/arch", "verify/simt_kernels"):
            self.put(f"{folder}/x.cuh", SPDX + 'asm volatile("bar;");\n')
        self.assertEqual(self.check()[0], 0)

    def test_licence_and_length(self):
        self.assert_caught("host/h/x.cpp", "\n" * 500, "503 lines")
        self.put("scripts/tool", "#!/bin/sh\n")
        code, output = self.check()
        self.assertEqual((code, "scripts/tool: does not open" in output), (1, True), output)

    def test_nothing_read_is_no_pass(self):
        for room in ("include", "kernels", "host", "bench", "verify"):
            shutil.rmtree(self.root / room)
        self.assertEqual(self.check()[0], 1)


class IncludesTest(ScriptTest):
    def check(self):
        return self.run_script(ROOT / "scripts/check_includes", self.root)

    def test_the_project_itself(self):
        code, output = self.run_script(ROOT / "scripts/check_includes")
        self.assertEqual(code, 0, output)

    def test_what_is_named_is_included(self):
        self.put("host/h/x.cpp", SPDX + '#include "wide/w.hpp"\nstd::vector<std::string> v = w();\n')
        self.put("include/wide/w.hpp", SPDX + "#include <string>\nstd::string w();\n")
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertEqual(output.splitlines()[:-1], ["host/h/x.cpp: names std::vector without <vector>"])
        self.put("include/wide/w.hpp", SPDX + "#include <string>\n#include <vector>\nstd::vector<std::string> w();\n")
        self.assertEqual(self.check(), (0, "check_includes: 2 files, 0 violations\n"))

    def test_idle_headers_are_found(self):
        self.put("include/wide/w.hpp", SPDX + "#include <vector>\n#include <string>\nstruct Width { std::string text; };\n")
        self.put("include/wide/all.hpp", SPDX + '#include "wide/w.hpp"\n')
        self.put("host/h/x.hpp", SPDX + "struct Other;\n")
        self.put("host/h/x.cpp", SPDX + '#include "host/h/x.hpp"\n#include <cmath>\n#include "wide/all.hpp"\nint Width; // std::sqrt\n')
        code, output = self.check()
        self.assertEqual(code, 1)
        self.assertEqual(output.splitlines()[:-1], ["include/wide/w.hpp: names nothing of vector", "host/h/x.cpp: names nothing of cmath"])
        self.put("host/h/x.cpp", SPDX + '#include "host/h/x.hpp"\n#include "wide/all.hpp"\nint depth = sqrt(2);\n')
        self.assertIn("host/h/x.cpp: names nothing of wide/all.hpp\n", self.check()[1])

    def test_called_functions_of_ours_are_declared(self):
        """By the source itself, whatever those that are compiled together with it include."""
        self.put("host/h/y.hpp", SPDX + "int near_by(int x);\nint far_off(int x);\n")
        self.put("host/h/z.hpp", SPDX + '#include "host/h/y.hpp"\nint third = near_by(3);\n')
        self.put("host/h/x.cpp", SPDX + "int f() {\n  return near_by(1) + far_off(2);\n}\n")
        code, output = self.check()
        calls = [f"host/h/x.cpp: calls {name}() without host/h/y.hpp" for name in ("far_off", "near_by")]
        self.assertEqual((code, output.splitlines()[:-1]), (1, calls))
        self.put("host/h/x.cpp", SPDX + '#include "host/h/z.hpp"\nint f() {\n  return third + near_by(1) + far_off(2);\n}\n')
        self.assertEqual(self.check()[0], 0, "by one that it includes")
        self.put("host/h/x.cpp", SPDX + "int near_by(int x);\nint f(int (*far_off)(int)) {\n  return near_by(1) + far_off(2) + x.near_by(3);\n}\n")
        self.assertEqual(self.check()[0], 0, "another function, or an object, of that name")

    def test_an_allocation_is_no_call_of_what_replaces_it(self):
        self.put("verify/v/allocations.hpp", "#include <cstddef>\nvoid* operator new(size_t bytes);\n")
        self.put("host/h/x.cpp", "void* allocate() {\n  return ::operator new(8);\n}\n")
        self.assertEqual(self.check(), (0, "check_includes: 2 files, 0 violations\n"))

    def test_names_of_several_headers_excuse_each(self):
        self.put("host/h/x.cpp", SPDX + "#include <span>\n#include <vector>\nauto n = std::ssize(values);\n")
        self.assertEqual(self.check(), (0, "check_includes: 1 files, 0 violations\n"))

    def test_what_nobody_compiles_is_passed_over(self):
        self.put("host/h/x.cpp", SPDX + '// std::vector\nconst char* text = "std::map";\n')
        self.assertEqual(self.check()[0], 0)
        self.put("host/h/x.cpp", SPDX + 'const char* text = R"x("std::map)"\n  std::set)x";\n')
        self.assertEqual(self.check()[0], 0)

    def test_nothing_read_is_no_pass(self):
        self.assertEqual(self.check(), (1, "check_includes: 0 files, 0 violations\n"))


class ReportsTest(ScriptTest):
    """Of the dated reports, which are of today's sources."""

    def setUp(self):
        super().setUp()
        self.root = self.root.resolve()
        for name in ("reports", "mutate", "fuzz"):
            self.put(f"scripts/{name}", (ROOT / "scripts" / name).read_text(), 0o755)
        for name in ("kernels/k/k.cu", "kernels/k/other.cu", "verify/simt/s.cpp"):
            self.put(name, "old")
        mutate, fuzz = (runpy.run_path(str(self.root / "scripts" / name), run_name=name) for name in ("mutate", "fuzz"))
        for path in fuzz["sources"](fuzz["TARGETS"]):
            self.put(path.relative_to(self.root), "old")
        for name, stated in [("mutation", mutate["source_hash"]()), ("sweep", "0" * 16), ("fuzz", fuzz["source_hash"](fuzz["TARGETS"]))]:
            self.put(f"verify/{name}_report.txt", f"2026-01-02, sources {stated}: fine\n")

    def commit(self, message):
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", message]):
            code, output = self.run_script("git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false", *words)
            self.assertEqual(code, 0, output)

    def reports(self):
        code, output = self.run_script("scripts/reports", GIT_CEILING_DIRECTORIES=str(self.root.parent))
        return code, [line.split(" to renew: ")[0] for line in output.splitlines()]

    def test_what_changed_since_is_said_and_is_no_failure(self):
        mutation, sweep, fuzz = (f"reports: {name}_report.txt of 2026-01-02 " for name in ("mutation", "sweep", "fuzz"))
        same, older = "is of today's sources", "was made from older sources"
        self.assertEqual(self.reports(), (0, [mutation + same, sweep + older + ";", fuzz + same]))  # of its history nothing is known
        self.commit("reports")
        self.put("kernels/k/k.cu", "new")
        self.put("kernels/k/added.cu", "new")
        self.put("bench/document/events.cpp", "new")
        (self.root / "verify/simt/s.cpp").unlink()
        count = older + " (3 of 4 files changed since);"  # all but other.cu
        code, lines = self.reports()
        self.assertEqual((code, lines[:2]), (0, [mutation + count, sweep + count]))
        self.assertRegex(lines[2], re.escape(fuzz + older) + r" \(1 of \d\d files changed since\);$")

    def test_a_shallow_clone_counts_from_no_commit_that_it_lacks(self):
        text = (self.root / "verify/sweep_report.txt").read_text()
        self.put("verify/sweep_report.txt", "before")
        self.commit("before")
        self.put("verify/sweep_report.txt", text)
        self.commit("reports")
        self.put("kernels/k/k.cu", "new")
        self.commit("more")
        whole = self.root
        for depth, count in [(1, ""), (2, ""), (3, " (1 of 3 files changed since)")]:
            clone = whole / f"clone{depth}"
            self.assertEqual(self.run_script("git", "clone", "-q", "--depth", depth, whole.as_uri(), clone)[0], 0)
            self.root = clone
            self.assertIn(f"reports: sweep_report.txt of 2026-01-02 was made from older sources{count};", self.reports()[1])
            self.root = whole

    def test_a_report_without_a_hash_is_a_failure(self):
        self.put("verify/sweep_report.txt", "2026-01-02: fine\n")
        code, lines = self.reports()
        self.assertEqual(code, 1)
        self.assertIn('reports: verify/sweep_report.txt: no hash of sources in its first line, "2026-01-02: fine"', lines)


class KernelsTest(ScriptTest):
    WAITS = "__global__ void __launch_bounds__(f(32), 1) k(const P p) {\n  arch::follow_grid();\n  *p.y = 1;\n}\n"

    def check(self, text, name="kernels/k/k.cu"):
        self.put(name, SPDX + text)
        code, output = self.run_script(ROOT / "scripts/check_kernels", self.root)
        (self.root / name).unlink()
        self.assertEqual(code, 1 if output.count("\n") > 1 or "0 kernels" in output else 0, output)
        return output

    def assert_caught(self, text, message):
        self.assertIn(message, self.check(text))

    def test_the_project_itself(self):
        code, output = self.run_script(ROOT / "scripts/check_kernels")
        self.assertEqual(code, 0, output)

    def test_kernels_that_wait(self):
        right = "check_kernels: 1 kernels, 0 violations\n"
        self.assertEqual(self.check(self.WAITS), right)
        helper = "template <class T>\n__device__ inline void helper(T* y) {\n  arch::wait_for_grid();\n  *y = 1;\n}\n"
        caller = "__device__ void caller(int* y) { helper<int>(y); }\n"
        kernel = "template <int n>\n__global__ void k(const P p) { if constexpr (n) { caller(p.y); } }\n"
        self.assertEqual(self.check(helper + caller + kernel), right)
        with_lambda = self.WAITS.replace("  arch", "  const auto f = [&](int i) { return i; };\n  arch")
        self.assertEqual(self.check(with_lambda), right)
        self.assertEqual(self.check(self.WAITS + "__global__ void k(const P p);\n"), right)

    def test_kernels_that_do_not(self):
        message = "kernels/k/k.cu: kernel k, expected arch::follow_grid()"
        wait = "  arch::follow_grid();\n"
        self.assert_caught(self.WAITS.replace(wait, ""), message)
        self.assert_caught(self.WAITS.replace(wait, "  // arch::follow_grid();\n"), message)
        self.assert_caught(self.WAITS.replace(wait, "  if (p.count == 0) return;\n" + wait), message)
        self.assert_caught(self.WAITS.replace(wait, "  const auto f = [] { arch::follow_grid(); };\n"), message)
        self.assert_caught("__device__ void helper() {}\n__global__ void k(const P p) { helper(); }\n", message)

    def test_other_launches(self):
        for launch in ("k<<<1, 32>>>(p);", "cudaLaunchKernelEx(&config, k, p);", "cudaLaunchCooperativeKernel(k);"):
            self.assert_caught(self.WAITS + f"void f() {{ {launch} }}\n", "expected launch_kernel()")
        self.assertIn("0 violations", self.check(self.WAITS + "void f() { cudaLaunchKernelEx(&c, k); }\n",
                                                 "kernels/common/launch.hpp"))

    def test_loads_that_nothing_orders(self):
        for load in ("__ldg(p.x)", 'asm("ld.global.nc.u32 %0, [%1];")', 'asm("ld.global.L1::no_allocate.nc.u32 %0;")',
                     "const int* __restrict__ x = p.x"):
            self.assert_caught(self.WAITS.replace("*p.y = 1", load), "expected loads that griddepcontrol.wait orders")

    def test_nothing_read_is_no_pass(self):
        self.assertEqual(self.check("int x;\n"), "check_kernels: 0 kernels, 0 violations\n")


if __name__ == "__main__":
    unittest.main()
