// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The list of all tiles, in the order in which blocks take them.
#include <algorithm>
#include <numeric>

#include "host/linear/ragged_linear_grouped.hpp"
#include "host/linear/ragged_linear_strategy.hpp"

namespace wide {

namespace {

/// Rows up to which a member takes short tiles. On the fp32 units the rows that a tall tile lacks
/// cost as much as those that it has; on tensor cores the weights' way to them is what counts, and
/// two short tiles would go it twice.
constexpr int64_t kMaxShortSimt = 32, kMaxShortTensorCore = 16;

constexpr int64_t kGroup = 4;  ///< outputs that are stored at a time

/// `product`: its place among those of the grouped call, if it is one.
kernels::RaggedMember entry_of(const RaggedLinearMember& member, Dtype dtype, int64_t product) {
  const int64_t vector = 16 / dtype_bytes(dtype);
  const auto is_aligned = [](const RaggedRows& rows, int64_t num_rows, int64_t elements) {
    return rows.offset % elements == 0 && (num_rows <= 1 || rows.row % elements == 0);
  };
  kernels::RaggedMember entry{};
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  entry.m = narrow(member.batch), entry.n = narrow(member.out_features);
  entry.k = narrow(member.in_features);
  entry.x_offset = member.x.offset, entry.x_row = narrow(member.x.row);
  entry.weight_offset = member.weight.offset, entry.weight_row = narrow(member.weight.row);
  entry.y_offset = member.y.offset, entry.y_row = narrow(member.y.row);
  entry.bias_offset = member.bias_offset;
  entry.product = is_product(member) ? narrow(product) : -1;
  entry.x_is_aligned = is_aligned(member.x, member.batch, vector);
  entry.weight_is_aligned = is_aligned(member.weight, member.out_features, vector);
  entry.y_is_aligned = is_aligned(member.y, member.batch, kGroup);
  entry.epilogue_is_aligned = entry.y_is_aligned && member.bias_offset % kGroup == 0;
  return entry;
}

uint32_t tile_rows(RaggedLinearStrategy strategy, const RaggedLinearMember& member) {
  const bool is_tensor_core = strategy == RaggedLinearStrategy::tensor_core;
  return member.batch <= (is_tensor_core ? kMaxShortTensorCore : kMaxShortSimt)
             ? kernels::kRaggedShortTile
             : kernels::kRaggedTallTile;
}

}  // namespace

RaggedLinearTable make_ragged_linear_table(RaggedLinearStrategy strategy,
                                           const RaggedLinearProblem& problem) {
  RaggedLinearTable table;
  const auto& members = problem.members;
  int64_t products = 0;
  for (const RaggedLinearMember& member : members) {
    table.members.push_back(entry_of(member, problem.dtype, products));
    if (is_product(member)) ++products;
  }
  // What a tile reads is what it takes, near enough.
  const auto reads_of = [&](uint32_t i) {
    return static_cast<double>(members[i].in_features) *
           static_cast<double>(tile_rows(strategy, members[i]) + kernels::kRaggedTileN);
  };
  std::vector<uint32_t> order(members.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return reads_of(a) > reads_of(b); });
  for (const uint32_t i : order) {
    if (is_empty(members[i])) continue;
    const uint32_t rows = tile_rows(strategy, members[i]);
    const auto tiles_m = static_cast<uint32_t>((members[i].batch - 1) / rows + 1);
    const auto tiles_n =
        static_cast<uint32_t>((members[i].out_features - 1) / kernels::kRaggedTileN + 1);
    // Neighbours share their rows of the weight.
    for (uint32_t n = 0; n < tiles_n; ++n) {
      for (uint32_t m = 0; m < tiles_m; ++m) table.tiles.push_back({i, m, n, rows});
    }
  }
  return table;
}

}  // namespace wide
