// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Kernels, in PTX, that leave out or get wrong one thing that the numbers need not show: each
// beside the right one, which must be silent.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verify/support/simt_launch.hpp"

namespace wide::test {

namespace {

/// A kernel of (float* p, const float* q) with registers of every kind. In the body %r1 is the
/// thread, %p1 is false for thread 0 alone, %rd1 and %rd2 are p and q, %rd3 is four times the
/// thread, %rd4 this thread's place in p, %r2 4096 bytes of shared memory, %r3 this thread's 16 of
/// them, and %r9 two mbarriers 32 bytes apart.
std::string kernel_of(const std::string& body) {
  return ".version 8.7\n.target sm_90a\n.address_size 64\n"
         ".visible .entry kernel(.param .u64 p, .param .u64 q)\n{\n"
         ".reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<16>; .reg .pred %p<8>;\n"
         ".shared .align 1024 .b8 tile[4096];\n.shared .align 8 .b8 mbarriers[64];\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n"
         "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0;\n"
         "mul.wide.u32 %rd3, %r1, 4; add.u64 %rd4, %rd1, %rd3;\n"
         "mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r3, %r3, %r2; mov.u32 %r9, "
         "mbarriers;\n" +
         body + "ret;\n}\n";
}

constexpr int64_t kFloats = 512;  // of p and of q

struct Run {
  SimtOutcome outcome;
  std::vector<float> p;
};

/// One block; p is zeros, q ones.
Run run(const std::string& body, uint32_t threads, const simt::Options& options,
        bool is_programmatic = false) {
  SimtDevice device(kernel_of(body));
  const uint64_t p = device.upload<float>("p", std::vector<float>(kFloats), false);
  const uint64_t q = device.input("q", std::vector<float>(kFloats, 1.0f));
  const SimtShape shape{{1, 1, 1}, {threads, 1, 1}, 0, is_programmatic};
  SimtOutcome outcome = device.launch("kernel", shape, options, p, q);
  return {outcome, device.download<float>(p, kFloats)};
}

struct Omission {
  const char* what;
  std::string body;
  std::optional<simt::FindingKind> kind{};  ///< none: right
  const char* text = "";                    ///< part of the finding's
};

/// With every seed and delivery: the right ones are silent, the others found.
void check_all(const std::vector<Omission>& all, uint32_t threads, bool is_programmatic = false) {
  for (const Omission& one : all) {
    for (const simt::Options& options : all_options()) {
      const SimtOutcome outcome = run(one.body, threads, options, is_programmatic).outcome;
      INFO(one.what << ", " << to_string(options) << ": " << outcome.text());
      CHECK(outcome.refused.empty());
      CHECK_FALSE(outcome.fault);
      if (one.kind) {
        CHECK(outcome.reports(*one.kind, one.text));
      } else {
        CHECK(outcome.is_silent());
      }
    }
  }
}

}  // namespace

TEST_CASE("omissions: a sum whose register was never zeroed is wrong with every seed") {
  const std::string sum =
      "add.u64 %rd5, %rd2, %rd3; mov.b32 %r5, 0;\n"
      "$again:\n"
      "ld.global.f32 %f2, [%rd5]; add.f32 %f1, %f1, %f2;\n"
      "add.s32 %r5, %r5, 1; setp.lt.s32 %p2, %r5, 4; @%p2 bra $again;\n"
      "st.global.f32 [%rd4], %f1;\n";
  for (const simt::Options& options : all_options()) {
    INFO(to_string(options));
    const Run right = run("mov.f32 %f1, 0f00000000;\n" + sum, 32, options);
    CHECK(right.outcome.is_silent());
    CHECK(right.p.front() == 4);
    CHECK_FALSE(run(sum, 32, options).p.front() == 4);
  }
}

TEST_CASE("omissions: try_wait may give up before the phase is complete") {
  // Warp 0 brings what warp 1 waits for; the second mbarrier's phase never ends.
  const std::string begin =
      "mov.u32 %r10, 1; @%p1 bra $begun; mbarrier.init.shared.b64 [%r9], %r10;\n"
      "mbarrier.init.shared.b64 [%r9+32], %r10;\n$begun: bar.sync 0;\n"
      "setp.lt.u32 %p3, %r1, 32; mov.u32 %r11, 0; @!%p3 bra $wait;\n"
      "@!%p1 st.shared.b32 [%r2], %r11; @!%p1 mbarrier.arrive.shared.b64 _, [%r9];\n"
      "bra $done;\n$wait: mbarrier.try_wait.parity.shared.b64 %p2, [%r9], %r11;\n";
  const std::string again = "@!%p2 bra $wait;\n", read = "ld.shared.b32 %r5, [%r2];\n$done:\n";
  const std::string never = "mbarrier.try_wait.parity.shared.b64 %p2, [%r9+32], %r11;\n";
  check_all({{"asked until it is", begin + again + read},
             {"another that is asked once", begin + again + never + "@%p2 trap;\n" + read}},
            64);
  const std::string stuck = "$stuck: " + never + "@!%p2 bra $stuck;\n";
  for (const simt::Options& options : all_options()) {
    const SimtOutcome outcome = run(begin + stuck + read, 64, options).outcome;
    INFO(to_string(options) << ": " << outcome.text());
    CHECK(outcome.reports(simt::FindingKind::deadlock, "mbarrier"));
  }
  int64_t num_found = 0;
  simt::Options options;
  for (options.seed = 1; options.seed <= 64; ++options.seed) {
    const SimtOutcome outcome = run(begin + read, 64, options).outcome;  // asks once
    num_found += outcome.reports(simt::FindingKind::race, "lane 0) writes shared+0x0 over") ? 1 : 0;
  }
  CHECK(num_found > 0);
}

TEST_CASE("omissions: who is elected is not said, but it is always the same one") {
  const std::string twice =
      "elect.sync %r4|%p2, 0xffffffff; elect.sync _|%p3, 0xffffffff; selp.b32 %r5, 64, 0, %p2;\n"
      "selp.b32 %r6, 128, 0, %p3; add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;\n"
      "cvt.rn.f32.u32 %f1, %r4; st.global.f32 [%rd4], %f1;\n";
  std::set<float> leaders;
  simt::Options options;
  for (options.seed = 0; options.seed < 40; ++options.seed) {
    const std::vector<float> p = run(twice, 32, options).p;
    const float leader = *std::min_element(p.begin(), p.begin() + 32);
    leaders.insert(leader);
    for (int lane = 0; lane < 32; ++lane) {
      const auto is_leader = static_cast<float>(lane) == leader;
      REQUIRE(p[static_cast<size_t>(lane)] == leader + (is_leader ? 192 : 0));
    }
  }
  CHECK(leaders.size() == 32);
}

TEST_CASE("omissions: a programmatic launch waits for the kernel before") {
  const std::string wait = "griddepcontrol.wait;\n", next = "griddepcontrol.launch_dependents;\n";
  const std::string read = "ld.global.b32 %r5, [%rd2];\n", write = "st.global.b32 [%rd4], %r1;\n";
  const auto kind = simt::FindingKind::programmatic_launch;
  const char *early = "before griddepcontrol.wait", *never = "completes without having waited";
  check_all({{"all threads", wait + next + read + write},
             {"those that go on", "@%p1 bra $done;\n" + wait + read + write + "$done:\n"},
             {"those that touch nothing", "@!%p1 bra $done;\n" + wait + "$done:\n"},
             {"one of two that write", "@%p1 bra $on;\n" + wait + "$on:\n" + write, kind, early},
             {"too late to read", read + wait + write, kind, early},
             {"a return before the wait", "ret;\n" + wait + write, kind, never},
             {"nobody, and nothing is touched", next, kind, never},
             {"ld.global.nc behind it", wait + "ld.global.nc.b32 %r5, [%rd2];\n" + write, kind,
              "by ld.global.nc, which griddepcontrol.wait does not order"}},
            64, true);
  check_all({{"none is needed in another launch", read + write}}, 64);
}

TEST_CASE("omissions: what the kernel writes is not read by ld.global.nc") {
  const std::string write = "st.global.b32 [%rd4], %r1;\n", barrier = "bar.sync 0;\n";
  // Of the thread at the other end, and its own.
  const auto read = [](const std::string& how, const std::string& from) {
    return "xor.b32 %r6, %r1, 63; mul.wide.u32 %rd5, %r6, 4; add.u64 %rd5, %rd5, " + from + ";\n" +
           how + " %r7, [%rd5];\nst.global.b32 [%rd4+512], %r7;\n";
  };
  const std::string own = "ld.global.nc.u32 %r7, [%rd4];\n";
  const auto kind = simt::FindingKind::race;
  const char* text = "ld.global.nc is for what no thread of the grid writes";
  check_all({{"an ordinary load", write + barrier + read("ld.global.u32", "%rd1")},
             {"of what is only read", write + barrier + read("ld.global.nc.u32", "%rd2")},
             {"behind a barrier", write + barrier + read("ld.global.nc.u32", "%rd1"), kind, text},
             {"of its own", write + own, kind, text},
             {"written afterwards", read("ld.global.nc.u32", "%rd1") + barrier + write, kind, text},
             {"written by a bulk store",
              "mov.b32 %r5, 7; st.shared.v4.b32 [%r3], {%r5, %r5, %r5, %r5};\n"
              "fence.proxy.async.shared::cta; bar.sync 0; @%p1 bra $done;\n"
              "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 512;\n"
              "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n$done:\nbar.sync 0;\n" +
                  read("ld.global.nc.u32", "%rd1"),
              kind, text}},
            64);
}

TEST_CASE("omissions: a fence.proxy.async counts where a barrier carries it to the reader") {
  const std::string write = "mov.b32 %r5, 7; st.shared.v4.b32 [%r3], {%r5, %r5, %r5, %r5};\n";
  const std::string fence = "fence.proxy.async.shared::cta;\n", barrier = "bar.sync 0;\n";
  // Thread 32 stores what the threads of the other warp wrote.
  const std::string is_issuer = "setp.eq.u32 %p2, %r1, 32;\n";
  const std::string store =
      "@!%p2 bra $done;\n"
      "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 512;\n"
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;\n$done:\n";
  check_all({{"writers fence", write + fence + barrier + is_issuer + store},
             {"the issuer fences", write + barrier + is_issuer + "@%p2 " + fence + store},
             {"nobody fences", write + barrier + is_issuer + store, simt::FindingKind::proxy,
              "without fence.proxy.async"},
             {"the issuer fences too early", write + is_issuer + "@%p2 " + fence + barrier + store,
              simt::FindingKind::proxy, "without fence.proxy.async"},
             {"writers fence too late", write + barrier + is_issuer + "@!%p2 " + fence + store,
              simt::FindingKind::proxy, "without fence.proxy.async"}},
            64);
}

TEST_CASE("omissions: a bulk load over generic writes needs a fence, over generic reads none") {
  const std::string init =
      "@%p1 bra $initialised;\n"
      "mbarrier.init.shared::cta.b64 [%r9], 1; fence.mbarrier_init.release.cluster;\n"
      "$initialised:\n";
  const std::string write = "mov.b32 %r5, 7; st.shared.v4.b32 [%r3], {%r5, %r5, %r5, %r5};\n";
  const std::string fence = "fence.proxy.async.shared::cta;\n", barrier = "bar.sync 0;\n";
  const auto load = [](int n) {
    const std::string name = std::to_string(n);
    return "@%p1 bra $issued" + name +
           ";\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9], 1024;\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd2], 1024, "
           "[%r9];\n"
           "$issued" +
           name + ":\nmov.b32 %r10, " + std::to_string(n % 2) + ";\n$wait" + name +
           ":\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9], %r10;\n@!%p2 bra $wait" + name +
           ";\nld.shared.f32 %f1, [%r3]; st.global.f32 [%rd4], %f1;\n";
  };
  check_all(
      {{"fenced", init + write + fence + barrier + load(0)},
       {"slots that are read, and loaded again", init + barrier + load(0) + barrier + load(1)},
       {"not fenced", init + write + barrier + load(0), simt::FindingKind::proxy,
        "writes shared+0x"},
       {"fenced behind the barrier", init + write + barrier + "@%p1 " + fence + load(0),
        simt::FindingKind::proxy, "without fence.proxy.async"}},
      64);
}

TEST_CASE("omissions: an mbarrier's bytes are its own until it is invalidated") {
  const std::string init =
      "@%p1 bra $initialised;\n"
      "mbarrier.init.shared::cta.b64 [%r9], 64; mbarrier.init.shared::cta.b64 [%r9+32], 1;\n"
      "fence.mbarrier_init.release.cluster;\n$initialised:\nbar.sync 0;\n";
  const std::string use =
      "mbarrier.arrive.shared::cta.b64 _, [%r9];\nmov.b32 %r10, 0;\n"
      "$wait:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9], %r10;\n@!%p2 bra $wait;\n";
  const std::string barrier = "bar.sync 0;\n", inval = "@!%p1 mbarrier.inval.shared.b64 [%r9];\n";
  const std::string store = "@!%p1 st.shared.b64 [%r9], %rd1;\n";
  const std::string load_over =
      "@%p1 bra $issued;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r9+32], 16;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd2], 16, "
      "[%r9+32];\n$issued:\nmov.b32 %r10, 0;\n"
      "$loaded:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r9+32], %r10;\n"
      "@!%p2 bra $loaded;\n";
  const auto kind = simt::FindingKind::mbarrier;
  check_all({{"beside it", init + "@!%p1 st.shared.b64 [%r9+8], %rd1;\n" + use},
             {"invalidated", init + use + barrier + inval + store},
             {"invalidated and fenced",
              init + use + barrier + inval + "fence.proxy.async.shared::cta;\n" + load_over},
             {"stored over", init + store + barrier + use, kind, "until its mbarrier.inval"},
             {"stored over at the end", init + use + barrier + store, kind,
              "thread 0 (warp 0 lane 0) writes"},
             {"read", init + use + "ld.shared.b32 %r6, [%r9];\n", kind, "reads shared+"},
             {"loaded over", init + use + barrier + "fence.proxy.async.shared::cta;\n" + load_over,
              kind, "until its mbarrier.inval"}},
            64);
}

TEST_CASE("omissions: warpgroups give one another no more registers than the block has") {
  // Two warpgroups; by __launch_bounds__(256, 1) a thread has 255 at entry, by (256, 2) 128.
  const auto outcome_of = [](const std::string& bounds, const std::string& body) {
    const std::string text =
        ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry kernel(.param .u64 p)\n" +
        bounds + "{\n.reg .b32 %r<4>; .reg .pred %p<2>;\n" +
        "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 128;\n" + body + "ret;\n}\n";
    SimtDevice device(text);
    return device.launch("kernel", {{1, 1, 1}, {256, 1, 1}, 0, false}, {}, uint64_t{0});
  };
  const std::string bounds = ".maxntid 256, 1, 1\n.minnctapersm 2\n";
  const auto exchange = [](int less, int more) {
    return "@%p1 bra $second;\nsetmaxnreg.dec.sync.aligned.u32 " + std::to_string(less) +
           ";\nbra $done;\n$second:\nsetmaxnreg.inc.sync.aligned.u32 " + std::to_string(more) +
           ";\n$done:\n";
  };
  CHECK(outcome_of(bounds, exchange(24, 232)).is_silent());
  CHECK(outcome_of(bounds, exchange(40, 208)).is_silent());  // less than there is
  CHECK(outcome_of(".maxnreg 128\n", exchange(24, 232)).is_silent());
  const auto says = [](const SimtOutcome& outcome, const std::string& text) {
    INFO(outcome.text());
    CHECK(outcome.reports(simt::FindingKind::warp, text));
  };
  says(outcome_of(bounds, exchange(24, 240)), "waits forever: the block's warps want 1056");
  says(outcome_of(bounds, exchange(32, 232)), "and it has 1024");
  says(outcome_of(bounds, exchange(136, 136)), "decreases to 136 from 128");
  says(outcome_of(bounds, exchange(24, 120)), "increases to 120 from 128");
  says(outcome_of(bounds, exchange(20, 232)), "20 registers, expected a multiple of 8");
  says(outcome_of(".maxntid 256, 1, 1\n", exchange(24, 232)), "may have no effect");
  says(outcome_of(bounds, "and.b32 %r2, %r1, 32; setp.eq.u32 %p1, %r2, 0;\n" + exchange(24, 232)),
       "not by all four warps of its warpgroup");
  says(outcome_of(bounds, "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;\n" + exchange(24, 232)),
       "some lanes, expected the whole warp");
}

TEST_CASE("omissions: registers of a wgmma are fenced, and nobody's until the wait") {
  // A 64x16 of ones in registers, B 16x8 of ones in shared memory, from 2048 bytes of them.
  const std::string prepare =
      "mov.b32 %r5, 0x3f803f80; st.shared.v4.b32 [%r3], {%r5, %r5, %r5, %r5};\n"
      "fence.proxy.async.shared::cta; bar.sync 0;\n"
      "shr.u32 %r6, %r2, 4; cvt.u64.u32 %rd5, %r6; or.b64 %rd6, %rd5, 0x0000000800080000;\n"
      "setp.eq.u32 %p3, %r5, %r5;\n";
  const std::string operands =
      "mov.b32 %r10, %r5; mov.b32 %r11, %r5; mov.b32 %r12, %r5; mov.b32 %r13, %r5;\n"
      "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\n";
  const std::string fence = "wgmma.fence.sync.aligned;\n";
  const std::string product =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, "
      "{%r10,%r11,%r12,%r13}, %rd6, %p3, 1, 1, 0;\n";
  const std::string commit = "wgmma.commit_group.sync.aligned;\n";
  const std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
  const std::string store = "st.global.f32 [%rd4], %f1;\n";
  const std::string write_a = "mov.b32 %r10, 0x40004000;\n";
  const std::string write_d = "mov.f32 %f2, 0f3F800000;\n";
  const std::string begin = prepare + operands + fence, end = commit + wait + store;
  const auto kind = simt::FindingKind::wgmma;
  const char* late = "after its last wgmma.fence";
  check_all(
      {{"one", begin + product + end},
       {"two of the same operands", begin + product + product + end},
       {"A is written after the wait", begin + product + end + write_a + fence + product + end},
       {"copies of what was written before the fence", prepare + operands + "mov.b32 %r14, %r5;\n" +
                                                           fence + "mov.b32 %r10, %r14;\n" +
                                                           product + end},
       {"no fence", prepare + operands + product + end, kind, late},
       {"D is written behind the fence", begin + write_d + product + end, kind, late},
       {"A is written behind the fence", begin + write_a + product + end, kind, late},
       {"A is a copy of what was",
        begin + "add.u32 %r14, %r5, 0; mov.b32 %r10, %r14;\n" + product + end, kind, late},
       {"A is written after the wait, without a fence",
        begin + product + end + write_a + product + end, kind, late},
       {"A is written under way", begin + product + commit + write_a + wait + store, kind,
        "writes a register that a wgmma still owns"},
       {"A is read under way", begin + product + commit + "mov.b32 %r14, %r10;\n" + wait + store,
        kind, "reads a register that a wgmma still owns"},
       {"D is read under way", begin + product + commit + "mov.f32 %f5, %f1;\n" + wait + store,
        kind, "reads a register that a wgmma still owns"},
       {"A is written between two products", begin + product + write_a + product + end, kind,
        "writes a register that a wgmma still owns"}},
      128);
}

}  // namespace wide::test
