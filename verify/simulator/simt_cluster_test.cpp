// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Clusters of blocks: ranks, the barrier, arrivals at other blocks' mbarriers and loads into
// several blocks, in PTX, each right one beside those that leave something out.
#include <catch2/catch_test_macros.hpp>
#include <optional>
#include <string>
#include <vector>

#include "verify/support/simt_launch.hpp"

namespace wide::test {

namespace {

constexpr uint32_t kThreads = 64;
constexpr int64_t kHalf = 256;  // floats that each block loads for both

/// A kernel of (float* p, const float* q). %r1 is the thread, %p1 is false for thread 0 alone, %r2
/// the rank, %rd2 q, %rd4 this thread's place in p, %r3 2048 bytes of shared memory, %r4 two
/// mbarriers 32 bytes apart.
std::string kernel_of(const std::string& body, const std::string& directives = "") {
  return ".version 8.7\n.target sm_90a\n.address_size 64\n"
         ".visible .entry kernel(.param .u64 p, .param .u64 q)\n" +
         directives +
         "{\n.reg .b16 %h<4>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<8>;\n"
         ".reg .pred %p<8>;\n"
         ".shared .align 128 .b8 tile[2048];\n.shared .align 8 .b8 mbarriers[64];\n"
         "ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];\n"
         "mov.u32 %r1, %tid.x; setp.ne.u32 %p1, %r1, 0; mov.u32 %r2, %cluster_ctarank;\n"
         "mov.u32 %r10, %ctaid.x; mad.lo.u32 %r10, %r10, 64, %r1;\n"
         "mul.wide.u32 %rd3, %r10, 4; add.u64 %rd4, %rd1, %rd3;\n"
         "mov.u32 %r3, tile; mov.u32 %r4, mbarriers;\n" +
         body + "ret;\n}\n";
}

struct Run {
  SimtOutcome outcome;
  std::vector<float> p;
};

/// Four blocks in clusters; p is zeros, q counts.
Run run(const std::string& ptx, const simt::Options& options, simt::Dim3 cluster = {2, 1, 1}) {
  SimtDevice device(ptx);
  std::vector<float> counting(2 * kHalf);
  for (size_t i = 0; i < counting.size(); ++i) counting[i] = static_cast<float>(i);
  const uint64_t p = device.upload<float>("p", std::vector<float>(4 * kThreads), false);
  const uint64_t q = device.input("q", counting);
  const SimtShape shape{{4, 1, 1}, {kThreads, 1, 1}, 0, false, cluster};
  SimtOutcome outcome = device.launch("kernel", shape, options, p, q);
  return {outcome, device.download<float>(p, 4 * kThreads)};
}

// ---- two rounds of a stage that both blocks fill for both

const std::string kInit =
    "@%p1 bra $initialised;\n"
    "mbarrier.init.shared::cta.b64 [%r4], 1; mbarrier.init.shared::cta.b64 [%r4+32], 128;\n"
    "fence.mbarrier_init.release.cluster;\n$initialised:\n";
const std::string kMeet =
    "barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

const std::string kMeetRelaxed =
    "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;\n";

std::string without(std::string text, const std::string& what, const std::string& instead = "") {
  return text.replace(text.find(what), what.size(), instead);
}

/// Each block's half, which thread 0 loads into the tiles of both.
std::string load(const std::string& mask = "3") {
  return "@%p1 bra $issued;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 2048;\n"
         "shl.b32 %r11, %r2, 10; add.u32 %r12, %r3, %r11; cvt.u64.u32 %rd5, %r11;\n"
         "add.u64 %rd6, %rd2, %rd5; mov.b16 %h1, " +
         mask +
         ";\ncp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
         "[%r12], [%rd6], 1024, [%r4], %h1;\n$issued:\n";
}

std::string wait_for(const std::string& name, const std::string& mbarrier, int parity) {
  return "mov.b32 %r13, " + std::to_string(parity) + ";\n$" + name +
         ":\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [" + mbarrier +
         "], %r13;\n@!%p2 bra $" + name + ";\n";
}

const std::string kUse =
    "shl.b32 %r14, %r1, 2; add.u32 %r15, %r3, %r14;\n"
    "ld.shared.f32 %f1, [%r15]; ld.shared.f32 %f2, [%r15+1024]; add.f32 %f3, %f1, %f2;\n"
    "ld.global.f32 %f4, [%rd4]; add.f32 %f4, %f4, %f3; st.global.f32 [%rd4], %f4;\n";
const std::string kArriveHere = "mbarrier.arrive.shared::cta.b64 _, [%r4+32];\n";
const std::string kArriveThere =
    "xor.b32 %r16, %r2, 1; mapa.shared::cluster.u32 %r17, %r4, %r16;\n"
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r17+32];\n";

std::string first_round(const std::string& release) {
  return load() + wait_for("full0", "%r4", 0) + kUse + release;
}
std::string second_round(const std::string& empty) {
  std::string text =
      "@%p1 bra $empty;\n" + empty + "$empty:\n" + load() + wait_for("full1", "%r4", 1) + kUse;
  for (const char* label : {"$issued"}) {  // labels of another round
    for (size_t at = text.find(label); at != std::string::npos; at = text.find(label, at + 9))
      text.insert(at + 7, "1");
  }
  return text;
}
const std::string kEmpty = wait_for("wait_empty", "%r4+32", 0);
const std::string kBoth = kArriveHere + kArriveThere;

struct Omission {
  const char* what;
  std::string body;
  std::optional<simt::FindingKind> kind{};  ///< none: right
  const char* text = "";
};

void check_all(const std::vector<Omission>& all) {
  for (const Omission& one : all) {
    for (const simt::Options& options : all_options()) {
      const auto [outcome, p] = run(kernel_of(one.body), options);
      INFO(one.what << ", " << to_string(options) << ": " << outcome.text());
      CHECK(outcome.refused.empty());
      if (one.kind) {
        CHECK(outcome.reports(*one.kind, one.text));
        continue;
      }
      CHECK(outcome.is_silent());
      for (uint32_t i = 0; i < p.size(); ++i) {
        const auto thread = static_cast<float>(i % kThreads);
        CHECK(p[i] == 2 * (thread + thread + static_cast<float>(kHalf)));
      }
    }
  }
}

}  // namespace

TEST_CASE("clusters: two blocks fill a stage for both, round after round") {
  const std::string two = first_round(kBoth) + second_round(kEmpty);
  const auto deadlock = simt::FindingKind::deadlock, race = simt::FindingKind::race;
  check_all({
      {"right", kInit + kMeet + two + kMeet},
      {"a block's barrier for the cluster's at the start", kInit + "bar.sync 0;\n" + two + kMeet,
       race, "of the block of rank"},
      {"arrivals that release nothing but fenced mbarriers", kInit + kMeetRelaxed + two + kMeet},
      {"arrivals that release nothing",
       without(kInit, "fence.mbarrier_init.release.cluster;") + kMeetRelaxed + two + kMeet, race,
       "whose init by thread 0"},
      {"a fence of the other kind",
       without(kInit, "fence.mbarrier_init.release.cluster;", "fence.proxy.async;") + kMeetRelaxed +
           two + kMeet,
       race, "whose init by thread 0"},
      {"a write beside them",
       kInit + "shl.b32 %r20, %r1, 2; add.u32 %r20, %r3, %r20; st.shared.u32 [%r20], %r1;\n" +
           kMeetRelaxed + two + kMeet,
       race, "of the block of rank"},
      {"nobody waits for readers", kInit + kMeet + first_round(kBoth) + second_round("") + kMeet,
       race, "read"},
      {"readers do not tell the other block",
       kInit + kMeet + first_round(kArriveHere) + second_round(kEmpty) + kMeet, deadlock,
       "no thread can run"},
      {"nothing is under way at the end", kInit + kMeet + two},
      {"arrivals that nobody waits for", kInit + kMeet + two + kBoth + kMeet},
      {"the same without a barrier at the end", kInit + kMeet + two + kBoth,
       simt::FindingKind::unfinished, ""},
      {"one block's barrier only",
       kInit + kMeet + two + "setp.eq.u32 %p3, %r2, 0;\n@%p3 bra $end;\n" + kMeet + kArriveThere +
           "$end:\n",
       simt::FindingKind::unfinished, "has ended"},
  });
}

TEST_CASE("clusters: what a mask and an address name must be there") {
  for (const std::string& body :
       {kInit + kMeet + load("7") + kMeet,
        kInit + kMeet + "mapa.shared::cluster.u32 %r17, %r4, 2;\n" + kMeet}) {
    const SimtOutcome outcome = run(kernel_of(body), {}).outcome;
    INFO(outcome.text());
    CHECK(outcome.fault == simt::Fault::Kind::illegal_address);
    CHECK(outcome.reports(simt::FindingKind::out_of_bounds,
                          "the block of rank 2, of a cluster of 2"));
  }
}

TEST_CASE("clusters: the barrier is arrived at once, and before it is waited for") {
  const std::string arrive = "barrier.cluster.arrive;\n", wait = "barrier.cluster.wait;\n";
  const auto kind = simt::FindingKind::barrier;
  for (const simt::Options& options : all_options()) {
    const auto outcome = [&](const std::string& body) {
      return run(kernel_of(body), options).outcome;
    };
    CHECK(outcome(arrive + wait + arrive + wait).is_silent());
    CHECK(outcome("setp.eq.u32 %p3, %r2, 0;\n@%p3 ret;\n" + arrive + wait).is_silent());
    CHECK(outcome(wait).reports(kind, "waits at the cluster's barrier where it has not arrived"));
    CHECK(outcome(arrive + arrive + wait).reports(kind, "arrives at the cluster's barrier again"));
    CHECK(outcome("setp.lt.u32 %p3, %r1, 9;\n@%p3 bra $on;\n" + arrive + "$on:\n" + wait)
              .reports(kind, "waits at the cluster's barrier where it has not arrived"));
    CHECK(outcome("setp.lt.u32 %p3, %r1, 9;\n@%p3 bra $on;\n"
                  "barrier.cluster.arrive.aligned;\n$on:\n" +
                  wait)
              .reports(kind, "divergent barrier"));
    const SimtOutcome alone =
        outcome(kInit + "bar.sync 0;\nsetp.eq.u32 %p3, %r2, 0;\n@%p3 bra $on;\n" + arrive + wait +
                "$on:\n@!%p3 bra $off;\n" + wait_for("never", "%r4", 0) + "$off:\n");
    CHECK(alone.reports(simt::FindingKind::deadlock, "the cluster's barrier"));
    CHECK(alone.reports(simt::FindingKind::deadlock, "rank 0:"));
  }
}

TEST_CASE("clusters tile the grid, x first") {
  const std::string place =
      "mov.u32 %r20, %clusterid.x; mov.u32 %r21, %clusterid.y; mov.u32 %r22, %cluster_nctarank;\n"
      "mov.u32 %r23, %cluster_ctaid.y; mov.u32 %r24, %nclusterid.x;\n"
      "mad.lo.u32 %r25, %r2, 10, %r20; mad.lo.u32 %r25, %r25, 10, %r21;\n"
      "mad.lo.u32 %r25, %r25, 10, %r22; mad.lo.u32 %r25, %r25, 10, %r23;\n"
      "mad.lo.u32 %r25, %r25, 10, %r24; cvt.rn.f32.u32 %f1, %r25;\n"
      "mov.u32 %r26, %ctaid.y; mul.wide.u32 %rd7, %r26, 1024; add.u64 %rd4, %rd4, %rd7;\n"
      "st.global.f32 [%rd4], %f1;\n";
  SimtDevice device(kernel_of(place));
  const uint64_t p = device.upload<float>("p", std::vector<float>(8 * kThreads), false);
  const uint64_t q = device.input("q", std::vector<float>(1));
  const SimtShape shape{{4, 2, 1}, {kThreads, 1, 1}, 0, false, {2, 2, 1}};
  const SimtOutcome outcome = device.launch("kernel", shape, {}, p, q);
  INFO(outcome.text());
  CHECK(outcome.is_silent());
  const std::vector<float> all = device.download<float>(p, 8 * kThreads);
  // rank, clusterid.x, clusterid.y, blocks of a cluster, cluster_ctaid.y, nclusterid.x
  const std::vector<float> expected{402, 100402, 10402, 110402, 200412, 300412, 210412, 310412};
  for (size_t block = 0; block < expected.size(); ++block)
    CHECK(all[block * kThreads] == expected[block]);
}

TEST_CASE("clusters: a tile that several blocks get is read once") {
  const std::string body = kInit + kMeet + first_round(kBoth) + kMeet;
  const SimtOutcome both = run(kernel_of(body), {}).outcome;
  INFO(both.text());
  CHECK(both.is_silent());
  CHECK(both.counters.bulk_load_bytes == 4 * kHalf * static_cast<int64_t>(sizeof(float)));
}

}  // namespace wide::test
