// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the simulated GPU does not execute it refuses by name, with the instruction's text: never a
// guess. Each of these is PTX that an assembler would take, or nearly.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "verify/simt/types.hpp"
#include "verify/support/ptx_lanes.hpp"

namespace wide::test {

namespace {

const std::vector<Operands> kOne(256);

struct Refused {
  const char* line;
  const char* text;  ///< that the refusal has in it
};

}  // namespace

TEST_CASE("ptx: what is unknown is refused by name") {
  const Refused all[]{
      {"frobnicate.b32 %w, %aw;", "frobnicate"},
      {"add.s32.always %w, %aw, %bw;", "always"},
      {"add.u48 %l, %al, %bl;", "u48"},
      {"mul.rx.f32 %f, %af, %bf;", "rx"},
      {"setp.almost.f32 %p, %af, %bf;", "setp.almost"},
      {"testp.finite.f32 %p, %af;", "testp"},
      {"add.cc.u32 %w, %aw, %bw;", "cc"},
      {"cvt.rn.e2m1x2.f32 %h, %af, %bf;", "e2m1x2"},
      {"dp2a.lo.u32.u32 %w, %aw, %bw, %cw;", "dp2a"},
      {"tex.2d.v4.f32.f32 {%af, %bf, %cf, %f}, [%al, {%af, %bf}];", "tex"},
      {"vset4.u32.u32.eq %w, %aw, %bw, %cw;", "vset4"},
      {"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%w, %aw}, {%bw}, {%cw}, {%w, %aw};", "s8"},
      {"mma.sync.aligned.m16n8k32.row.col.s32.u4.u4.s32 {%w, %aw}, {%bw}, {%cw}, {%w, %aw};", "u4"},
      {"cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
       "[%aw], [%al, {%bw, %cw}], [%w];",
       "im2col"},
      {"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%al], [%aw], %bw;", "reduce"},
      {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%aw, %bw}, [%cw];", "m16n16"},
      {"tcgen05.fence::before_thread_sync;", "tcgen05"},
      {"wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%aw, %bw, %cw, %w}, %al, %bl, %p;", "s8"},
      {"fence.proxy.alias;", "fence.proxy"},
      {"shfl.sync.circular.b32 %w, %aw, %bw, %cw, -1;", "circular"},
      {"ld.global.v3.u32 {%w, %aw, %bw}, [%al];", "v3"},
      {"ld.texture.u32 %w, [%al];", "texture"},
      {"mov.u32 %w, %clock_of_ages;", "%clock_of_ages"},
      {"mov.u32 %nowhere, 1;", "%nowhere"},
      {"cp.async.cg.shared.global.L2::cache_hint [%aw], [%al], 16, %bw, %cl;",
       "unwritten registers"},
      {"bra nowhere;", "nowhere"},
      {"@%ap call anywhere;", "a call under a predicate"},
      {"{ ELSEWHERE: } bra ELSEWHERE;", "ELSEWHERE"},
      {"bra TWICE; TWICE: TWICE: ", "TWICE twice in one scope"},
  };
  for (const Refused& one : all) {
    INFO(one.line);
    CHECK_THROWS_WITH(execute(one.line, kOne), Catch::Matchers::ContainsSubstring(one.text));
  }
}

TEST_CASE("ptx: the lines that the refusals are made of run where they are right") {
  const char* lines[]{
      "add.s32 %w, %aw, %bw;",
      "setp.lt.f32 %p, %af, %bf;",
      "shfl.sync.bfly.b32 %w, %aw, 1, 31, -1;",
      "fence.proxy.async;",
      "fence.acq_rel.gpu;",
      "mov.u32 %w, %laneid;",
  };
  for (const char* line : lines) {
    INFO(line);
    CHECK_NOTHROW(execute(line, kOne));
  }
}

}  // namespace wide::test
