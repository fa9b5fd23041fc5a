// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tile that a kernel of linear takes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"
#include "host/linear/quantized_codes.hpp"

namespace wide {

namespace {

/// Up to this many outputs, 64-wide tiles of one member fill no device.
constexpr int64_t kFewOutputs = 256;

int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

}  // namespace

int64_t linear_tiles_of(const LinearProblem& problem, int64_t tile_m, int64_t tile_n) {
  int64_t tiles = 0;
  const bool overflows = __builtin_mul_overflow(ceil_div(problem.batch, tile_m),
                                                ceil_div(problem.out_features, tile_n), &tiles);
  return overflows ? std::numeric_limits<int64_t>::max() : tiles;
}

kernels::LinearSimtTile choose_linear_simt_tile(const LinearProblem& problem,
                                                const DeviceInfo& device) {
  using enum kernels::LinearSimtTile;
  if (is_fp8(problem.dtype)) return m64n64;  // the only one built
  // Missing rows of a tile are multiplied as zeros: a tall tile must be filled.
  if (problem.batch <= 16) return m16n64;
  if (problem.batch <= 32) {
    // Two low tiles read a weight twice, but take half the time where the device has room for all.
    const int64_t tiles = linear_tiles_of(problem, tile_m(m32n64), tile_n(m32n64));
    const bool fills_device =
        tiles >= ceil_div(device.num_multiprocessors, std::max<int64_t>(problem.num_members, 1));
    return fills_device ? m32n64 : m16n64;
  }
  if (problem.batch < 128 || problem.out_features < 128) return m64n64;
  return m128n128;
}

bool reads_weights_once_instead(LinearStrategy kernel, const LinearProblem& problem,
                                const DeviceInfo& device, int64_t num_members) {
  constexpr int64_t kRows = 64, kSmallRows = 32;  // of the lowest tile; of small_m's tallest
  if (problem.batch <= kSmallRows || problem.batch > kRows) return false;
  const int64_t tiles = linear_tiles_of(problem, kRows, kernel == LinearStrategy::wgmma ? 128 : 64);
  return device.num_multiprocessors > 0 &&
         tiles >= ceil_div(device.num_multiprocessors, std::max<int64_t>(num_members, 1));
}

LinearProblem as_one_member(const LinearProblem& problem) {
  const int64_t out = problem.out_features;
  const bool is_side_by_side =
      problem.num_members == 1 ||
      (problem.weight.member == out * problem.weight.row && problem.y.member == out &&
       (!problem.epilogue.has_bias || problem.bias_member_stride == out) &&
       (problem.epilogue.scale == OutputScale::none ||
        (problem.epilogue.scale == OutputScale::per_output &&
         problem.scale_member_stride == out)) &&
       (problem.epilogue.residual == Residual::none || problem.residual.member == out));
  if (!is_side_by_side) return problem;
  LinearProblem one = problem;
  one.num_members = 1;
  one.out_features = problem.num_members * problem.out_features;
  one.shared_input = false;
  return one;
}

LinearProblem as_decoded(const LinearProblem& problem) {
  const QuantizedWeight weight = linear_quantized_weight(problem);
  const int64_t row = quantized_tiles(weight) * kQuantizedTile;
  LinearProblem dense = problem;
  dense.weight_format = WeightFormat::packed;
  dense.group_size = 0;
  dense.allow_rounded_weights = false;
  dense.weight = {row, quantized_strips(weight) * kQuantizedStrip * row};
  return dense;
}

bool launches_linear_members(const LinearProblem& problem) {
  return is_fp8(problem.dtype) || is_quantized(problem);
}

LinearStrategy linear_kernel_of(LinearStrategy strategy, const LinearProblem& problem,
                                const DeviceInfo& device) {
  using enum LinearStrategy;
  if (strategy == decoded) return own_linear_kernel(as_decoded(problem), device);
  if (strategy != shared_input && strategy != sequential) return strategy;
  if (is_quantized(problem)) return weight_only;
  // `sequential` asks for all members, though it launches one: each by the same kernel.
  const LinearProblem asked = strategy == shared_input ? as_one_member(problem) : problem;
  const bool has_wgmma = linear_unsupported_reason(wgmma, asked, device).empty();
  if (is_fp8(problem.dtype)) return has_wgmma ? wgmma : simt;
  if (problem.batch <= kMaxGemvBatch) return gemv;
  if (problem.dtype == Dtype::fp32 && !problem.allow_tf32) return simt;
  const LinearStrategy tiled = has_wgmma ? wgmma : tensor_core;
  const bool is_small = problem.batch <= kMaxSmallBatch &&
                        !reads_weights_once_instead(tiled, problem, device,
                                                    strategy == sequential ? 1 : kUsualMembers);
  return is_small ? small_m : tiled;
}

kernels::LinearMath linear_math(LinearStrategy strategy, const LinearProblem& problem) {
  using enum kernels::LinearMath;
  if (problem.dtype == Dtype::fp16) return fp16;
  if (problem.dtype == Dtype::bf16) return bf16;
  return strategy == LinearStrategy::tf32x3 ? tf32x3 : tf32;
}

kernels::LinearMmaTile choose_linear_mma_tile(LinearStrategy strategy, const LinearProblem& problem,
                                              const DeviceInfo& device) {
  using enum kernels::LinearMmaTile;
  if (strategy != LinearStrategy::tensor_core && problem.batch <= kMaxSmallBatch) {
    if (problem.batch <= 16 && problem.out_features <= kFewOutputs) return m16n16;
    return problem.batch <= 8 ? m8n64 : problem.batch <= 16 ? m16n64 : m32n64;
  }
  // Waves of blocks times a block's work, larger tiles doing the same work with fewer loads.
  struct Candidate {
    kernels::LinearMmaTile tile;
    int64_t blocks_per_multiprocessor;
    double efficiency;
  };
  constexpr Candidate candidates[] = {{m64n64, 3, 0.7}, {m128n64, 2, 0.85}, {m128n128, 2, 1.0}};
  const int64_t multiprocessors = std::max(device.num_multiprocessors, 1);
  kernels::LinearMmaTile best = m64n64;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& one : candidates) {
    if (one.tile == m128n128 && problem.dtype == Dtype::fp32) continue;
    const int64_t rows = tile_m(one.tile), columns = tile_n(one.tile);
    const double tiles = static_cast<double>(linear_tiles_of(problem, rows, columns)) *
                         static_cast<double>(problem.num_members);
    const auto slots = static_cast<double>(multiprocessors * one.blocks_per_multiprocessor);
    const double work = static_cast<double>(rows * columns) / one.efficiency;
    const double time =
        std::ceil(tiles / slots) * work * static_cast<double>(one.blocks_per_multiprocessor);
    if (time < least) least = time, best = one.tile;
  }
  return best;
}

int choose_linear_planes(const LinearProblem& problem, kernels::LinearMmaTile tile) {
  // Few long sums leave most of a device idle, and its blocks wait on memory latency. A plane's
  // share is long enough to pay for a second launch, and for its sums, written and read again, to
  // be few bytes beside the weights.
  constexpr int64_t kEnoughBlocks = 64, kLeastSteps = 32, kMaxPlanes = 8, kStepBytes = 128;
  if (tile_m(tile) >= 64) return 1;
  const int64_t blocks = linear_tiles_of(problem, tile_m(tile), tile_n(tile));
  const int64_t steps = ceil_div(problem.in_features, kStepBytes / dtype_bytes(problem.dtype));
  if (blocks == 0) return 1;
  const int64_t planes = std::min({kEnoughBlocks / blocks, steps / kLeastSteps, kMaxPlanes});
  return static_cast<int>(std::max(planes, int64_t{1}));
}

kernels::LinearWeightOnlyTile choose_linear_weight_only_tile(const LinearProblem& problem) {
  using enum kernels::LinearWeightOnlyTile;
  if (problem.batch <= 16) return problem.out_features <= kFewOutputs ? m16n16 : m16n64;
  return problem.batch <= 32 ? m32n64 : m64n64;
}

kernels::LinearWgmmaTile choose_linear_wgmma_tile(const LinearProblem& problem,
                                                  const DeviceInfo& device) {
  using enum kernels::LinearWgmmaTile;
  // A block's tiles follow one another; a larger tile's time grows by less than its size, for it
  // reads less per product. The largest one's stores are not hidden behind products: with few
  // inputs it is not worth it.
  struct Candidate {
    kernels::LinearWgmmaTile tile;
    double time;
  };
  constexpr Candidate candidates[] = {{m64n128, 1.0}, {m128n128, 1.8}, {m128n256, 3.3}};
  constexpr int64_t kFewInputs = 512;
  const auto blocks = static_cast<double>(std::max(device.num_multiprocessors, 1));
  const auto tiles = [&](kernels::LinearWgmmaTile tile) {
    return static_cast<double>(linear_tiles_of(problem, tile_m(tile), tile_n(tile))) *
           static_cast<double>(problem.num_members);
  };
  kernels::LinearWgmmaTile best = m64n128;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& one : candidates) {
    if (!is_built_for(one.tile, is_fp8(problem.dtype)) ||
        (one.tile == m128n256 && problem.in_features < kFewInputs)) {
      continue;
    }
    const double time = std::ceil(tiles(one.tile) / blocks) * one.time;
    if (time < least) least = time, best = one.tile;
  }
  // Pairs of its blocks read less from L2, which limits only where all of them are at work. They
  // must not take more rounds: of an odd number of rows' tiles, a block of each last pair is idle.
  const kernels::LinearWgmmaTile pair = is_fp8(problem.dtype) ? m128n128x2 : m128n256x2;
  const double pairs_at_once = std::floor(blocks / 2);
  const bool is_of_best = block_m(pair) == tile_m(best) && tile_n(pair) == tile_n(best);
  const bool fills_device = pairs_at_once > 0 && tiles(pair) >= pairs_at_once;
  const bool takes_no_more_rounds =
      std::ceil(tiles(pair) / pairs_at_once) <= std::ceil(tiles(best) / blocks);
  return is_of_best && fills_device && takes_no_more_rounds ? pair : best;
}

bool linear_stores_boxes(const LinearProblem& problem) {
  const int64_t bytes = dtype_bytes(*problem.y_dtype), vector = 16 / bytes;
  // What is beyond the outputs is cut off at 16 bytes only.
  const bool ends_whole = problem.out_features % vector == 0;
  const bool is_row_whole = problem.batch <= 1 || problem.y.row % vector == 0;
  const bool is_member_whole = problem.num_members <= 1 || problem.y.member % vector == 0;
  return bytes == 2 && ends_whole && is_row_whole && is_member_whole;
}

}  // namespace wide
