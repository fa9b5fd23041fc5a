// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How many whole images a block of pooling takes: all that fit if there are blocks for the whole
// device, fewer otherwise, but not so few that threads have nothing to move.
#include <catch2/catch_test_macros.hpp>

#include "host/pooling/pooling_params.hpp"
#include "kernels/pooling/pooling_cut.hpp"
#include "wide/context.hpp"

using namespace wide;

namespace {

kernels::Cut cut_of(int64_t members, int64_t side, Dtype dtype) {
  PoolingProblem p{.num_members = members, .batch = 8, .channels = 16};
  p.height = p.width = side, p.dtype = dtype;
  p.rows = p.columns = {2, 2, 0, 1};
  const PoolingProblem full = make_pooling_plan(Context::cpu(), p).problem();
  const kernels::PoolingParams params = pooling_params(full);
  const auto size = static_cast<int>(16 / dtype_bytes(dtype));
  return kernels::Cutter(full.mode, params, size).cut();
}

}  // namespace

TEST_CASE("pooling: small images are spread over enough blocks") {
  // 256 bytes each: 64 of them are a tile.
  CHECK(cut_of(8, 8, Dtype::fp32).images == 16);     // of 1024: a copy for each thread
  CHECK(cut_of(320, 8, Dtype::fp32).images == 40);   // of 40960: 1024 tiles
  CHECK(cut_of(8192, 8, Dtype::fp32).images == 64);  // of a million
  CHECK(cut_of(8, 8, Dtype::bf16).images == 32);
  CHECK(cut_of(8, 32, Dtype::fp32).images == 1);   // 4 KiB
  CHECK(cut_of(64, 32, Dtype::fp32).images == 4);  // of 8192: a tile
}
