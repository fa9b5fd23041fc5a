// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Kernels, in PTX, that leave out or get wrong one thing that the numbers need not show: each
// beside the right one, which must be silent.
#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <string>
#include <vector>

#include "verify/support/simt_launch.hpp"

namespace wide::test {

namespace {

/// A kernel of (float* p, const float* q) with registers of every kind; in the body %r1 is the
/// thread, %rd1 and %rd2 are p and q, %rd3 is four times the thread.
std::string kernel_of(const std::string& body) {
  return ".version 8.7\n.target sm_90a\n.address_size 64\n"
         ".visible .entry kernel(.param .u64 p, .param .u64 q)\n{\n"
         ".reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<16>; .reg .pred %p<8>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n"
         "mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4;\n" +
         body + "ret;\n}\n";
}

constexpr int64_t kFloats = 512;  // of p and of q

struct Run {
  SimtOutcome outcome;
  std::vector<float> p;
};

/// One block; p is zeros, q ones.
Run run(const std::string& body, uint32_t threads, const simt::Options& options) {
  SimtDevice device(kernel_of(body));
  const uint64_t p = device.upload<float>("p", std::vector<float>(kFloats), false);
  const uint64_t q = device.input("q", std::vector<float>(kFloats, 1.0f));
  const SimtShape shape{{1, 1, 1}, {threads, 1, 1}};
  SimtOutcome outcome = device.launch("kernel", shape, options, p, q);
  return {outcome, device.download<float>(p, kFloats)};
}

}  // namespace

TEST_CASE("omissions: a sum whose register was never zeroed is wrong with every seed") {
  const std::string sum =
      "add.u64 %rd4, %rd2, %rd3; mov.b32 %r2, 0;\n"
      "$again:\n"
      "ld.global.f32 %f2, [%rd4]; add.f32 %f1, %f1, %f2;\n"
      "add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, 4; @%p1 bra $again;\n"
      "add.u64 %rd5, %rd1, %rd3; st.global.f32 [%rd5], %f1;\n";
  for (const simt::Options& options : all_options()) {
    INFO(to_string(options));
    const Run right = run("mov.f32 %f1, 0f00000000;\n" + sum, 32, options);
    CHECK(right.outcome.is_silent());
    CHECK(right.p.front() == 4);
    CHECK_FALSE(run(sum, 32, options).p.front() == 4);
  }
}

}  // namespace wide::test
