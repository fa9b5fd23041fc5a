// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/attention/flash_attention_strategy.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "host/attention/flash_attention_cudnn.hpp"
#include "host/core/hopper.hpp"
#include "host/core/text.hpp"
#include "host/core/workspace.hpp"
#include "kernels/attention/flash_attention_blocks.hpp"
#include "kernels/attention/flash_attention_decode_part.hpp"

namespace wide {

namespace {

int64_t keys_of(const FlashAttentionProblem& problem) {
  return problem.kv_seq.value_or(problem.seq);
}

/// Why `short` cannot keep a head's keys and values, padded to a power of two of elements.
std::string short_reason(const FlashAttentionProblem& problem) {
  if (problem.dtype == Dtype::fp32) return "it takes fp16 and bf16, not fp32";
  const int64_t most = problem.head_dim <= 64 ? 256 : problem.head_dim <= 128 ? 128 : 64;
  const int64_t keys = keys_of(problem);
  if (keys <= most) return "";
  return "it takes up to " + std::to_string(most) + " keys of heads of " +
         counted(problem.head_dim, "element") + ", kv_seq is " + std::to_string(keys);
}

std::string decode_reason(const FlashAttentionProblem& problem) {
  if (problem.dtype == Dtype::fp32) return "it takes fp16 and bf16, not fp32";
  const int64_t group = problem.kv_heads == 0 ? 1 : problem.heads / problem.kv_heads;
  if (group * problem.seq <= kernels::kDecodeRows) return "";
  return "it takes up to " + std::to_string(kernels::kDecodeRows) +
         " queries that share keys, those of " + counted(group, "head") + " of seq " +
         std::to_string(problem.seq) + " do";
}

/// wgmma numbers the blocks of tensor_core, which stands in for it.
std::string grid_reason(FlashAttentionStrategy strategy, const FlashAttentionProblem& problem) {
  using enum FlashAttentionStrategy;
  FlashAttentionProblem p = problem;  // which may not be complete yet
  p.kv_heads = std::max<int64_t>(p.kv_heads == 0 ? p.heads : p.kv_heads, 1);
  p.kv_seq = p.kv_seq.value_or(p.seq);
  static_assert(kernels::kWgmmaQueries == kernels::kMmaQueries);
  const int64_t queries =
      p.dtype == Dtype::fp32 ? kernels::kSimtLeastQueries : kernels::kMmaQueries;
  const int64_t members = strategy == sequential ? 1 : p.num_members;
  const int64_t blocks =
      strategy == short_keys ? kernels::attention_short_blocks(p, members)
      : strategy == decode
          ? kernels::attention_decode_blocks(p, members, flash_attention_decode_parts(p))
          : kernels::attention_query_blocks(p, members, queries);
  if (blocks <= kernels::kMaxGridBlocks) return "";
  return "a launch has more than 2^31 - 1 blocks";
}

// What instructions of a thread say, counted on the simulated GPU for 16 to 320 queries and keys of
// heads of 32, 64 and 128 elements.

/// Whether at least half of the scores of wgmma's tiles are the problem's.
bool half_fills_tiles(const FlashAttentionProblem& problem) {
  const auto part = [](int64_t extent) {
    constexpr int64_t kTile = 128;
    return static_cast<double>(extent) / static_cast<double>((extent + kTile - 1) / kTile * kTile);
  };
  return part(problem.seq) * part(keys_of(problem)) >= 0.5;
}

/// wgmma pads heads to at least 64 elements. With tiles full of scores it spends less on 32 than
/// the others, on half of them as much.
bool fills_wgmma(const FlashAttentionProblem& problem, const DeviceInfo&) {
  constexpr int64_t kHalfOfLeastWidth = 32;
  return problem.head_dim > kHalfOfLeastWidth ||
         (problem.head_dim == kHalfOfLeastWidth && half_fills_tiles(problem));
}

/// Bulk tensor copies load heads and store y.
std::string wgmma_reason(const FlashAttentionProblem& p, const DeviceInfo& device) {
  std::string reason = wgmma_device_reason(device);
  if (!reason.empty()) return reason;
  if (p.dtype == Dtype::fp32) return "it takes fp16 and bf16, not fp32";
  if (p.has_bias) return "it adds no bias to scores; tensor_core does";
  constexpr int64_t kVector = 8;
  if (p.head_dim % kVector != 0) {
    return "it takes heads of whole 16 bytes, head_dim is " + std::to_string(p.head_dim) +
           "; tensor_core takes any";
  }
  const int64_t keys = p.batch * keys_of(p), queries = p.batch * p.seq;
  const int64_t features = p.heads * p.head_dim;
  const int64_t kv_features = (p.kv_heads == 0 ? p.heads : p.kv_heads) * p.head_dim;
  const auto add = [&](const char* what, const RowStrides& strides, int64_t rows, int64_t width) {
    // A problem that is not complete yet has packed operands.
    if (!reason.empty() || strides == RowStrides{}) return;
    reason = tensor_map_reason(what, strides, rows, p.num_members, width, kVector);
  };
  add("q", p.q, queries, features);
  add("k", p.k, keys, kv_features);
  add("v", p.v, keys, kv_features);
  add("y", p.y, queries, features);
  return reason;
}

/// `short` reads keys and values once and starts at once, but spends about three times the
/// instructions per score of a warpgroup's products (counted, at 128 keys of 64 elements): with
/// whole tiles, those are bound by memory and `short` is not.
bool short_is_expected_to_win(const FlashAttentionProblem& p, const DeviceInfo& device) {
  constexpr int64_t kHalfOfTile = 64;  // keys, and queries of a block of wgmma
  const bool has_tiles = keys_of(p) > kHalfOfTile && (p.seq > kHalfOfTile || half_fills_tiles(p));
  return !has_tiles || !fills_wgmma(p, device) || !wgmma_reason(p, device).empty();
}

/// Of whole tiles, tensor_core spends a tenth to two fifths less than `short`; of ragged ones up to
/// a fifth more. Wider heads do not gain.
bool tensor_core_beats_short(const FlashAttentionProblem& p, const DeviceInfo&) {
  constexpr int64_t kTile = 64, kMostWidth = 64;
  return short_reason(p).empty() && p.head_dim <= kMostWidth && p.seq > 0 && p.seq % kTile == 0 &&
         keys_of(p) % kTile == 0;
}
bool tensor_core_is_expected_to_win(const FlashAttentionProblem& p, const DeviceInfo& device) {
  return tensor_core_beats_short(p, device) && short_is_expected_to_win(p, device);
}

}  // namespace

std::string_view strategy_name(FlashAttentionStrategy strategy) {
  static constexpr std::array<std::string_view, 8> kNames{
      "sequential", "simt", "short", "tensor_core", "wgmma", "decode", "wide", "cudnn"};
  return kNames[static_cast<size_t>(strategy)];
}

FlashAttentionStrategy flash_attention_kernel(const FlashAttentionProblem& problem) {
  return problem.dtype == Dtype::fp32 ? FlashAttentionStrategy::simt
                                      : FlashAttentionStrategy::tensor_core;
}

std::vector<FlashAttentionStrategy> flash_attention_kernels(const FlashAttentionProblem& problem,
                                                            const DeviceInfo& device) {
  using enum FlashAttentionStrategy;
  std::vector<FlashAttentionStrategy> kernels;
  const bool is_short = short_reason(problem).empty();
  const bool is_short_first = short_is_expected_to_win(problem, device);
  if (tensor_core_is_expected_to_win(problem, device)) kernels.push_back(tensor_core);
  if (is_short && is_short_first) kernels.push_back(short_keys);
  if (flash_attention_unsupported_reason(decode, problem, device).empty())
    kernels.push_back(decode);
  if (fills_wgmma(problem, device) && wgmma_reason(problem, device).empty()) {
    kernels.push_back(wgmma);
  }
  if (is_short && !is_short_first) kernels.push_back(short_keys);
  kernels.push_back(flash_attention_kernel(problem));
  return kernels;
}

int flash_attention_decode_parts(const FlashAttentionProblem& p) {
  // A few members' parts fill a device twice, and a part's sums are few bytes beside its keys.
  constexpr int64_t kBlocksOfMember = 64, kLeastKeys = 512;
  const int64_t seen = p.window > 0 ? p.window + p.seq : *p.kv_seq;
  const int64_t by_blocks = kBlocksOfMember / std::max<int64_t>(p.batch * p.kv_heads, 1);
  const int64_t by_keys = std::min(seen, *p.kv_seq) / kLeastKeys;
  return static_cast<int>(std::max<int64_t>(std::min(by_blocks, by_keys), 1));
}

int64_t flash_attention_workspace_bytes(FlashAttentionStrategy strategy,
                                        const FlashAttentionProblem& p) {
  if (strategy != FlashAttentionStrategy::decode) return 0;
  const int64_t parts = flash_attention_decode_parts(p);
  if (parts == 1) return 0;
  return aligned_bytes(checked_bytes(
      {p.num_members, p.batch, p.kv_heads, parts, kernels::decode_part_floats(p.head_dim)},
      sizeof(float)));
}

namespace {

/// All reasons except the grid.
std::string kernel_reason(FlashAttentionStrategy strategy, const FlashAttentionProblem& problem,
                          const DeviceInfo& device) {
  using enum FlashAttentionStrategy;
  std::string reason = other_device_reason(strategy_name(strategy), device);
  if (!reason.empty() || device.device.type == DeviceType::cpu) return reason;
  reason = kernel_device_reason(device);
  if (!reason.empty()) return reason;
  if (strategy == cudnn) return flash_attention_cudnn_unsupported_reason(problem);
  if (strategy == short_keys) return short_reason(problem);
  if (strategy == wgmma) return wgmma_reason(problem, device);
  if (strategy == decode) return decode_reason(problem);
  if (strategy != sequential && strategy != flash_attention_kernel(problem)) {
    return std::string("it takes ") + (strategy == simt ? "fp32" : "fp16 and bf16") + ", not " +
           std::string(dtype_name(problem.dtype));
  }
  return "";
}

}  // namespace

std::string flash_attention_unsupported_reason(FlashAttentionStrategy strategy,
                                               const FlashAttentionProblem& problem,
                                               const DeviceInfo& device) {
  const std::string reason = kernel_reason(strategy, problem, device);
  const bool has_grid =
      device.device.type == DeviceType::cuda && strategy != FlashAttentionStrategy::cudnn;
  return reason.empty() && has_grid ? grid_reason(strategy, problem) : reason;
}

FlashAttentionChoice choose_flash_attention_strategy(const FlashAttentionProblem& problem,
                                                     const DeviceInfo& device,
                                                     std::string_view name,
                                                     std::span<const VerifiedStrategy> verified,
                                                     const VendorRefusal& cudnn_refusal,
                                                     const Tuning& tuning) {
  using enum FlashAttentionStrategy;
  using enum DeviceType;
  static constexpr std::string_view kOneLaunch = "one launch for all members";
  static constexpr StrategyRow<FlashAttentionStrategy, FlashAttentionProblem> kTable[] = {
      {tensor_core, cuda, false, kOneLaunch, tensor_core_is_expected_to_win},
      {short_keys, cuda, false, kOneLaunch, short_is_expected_to_win},
      {decode, cuda, false, kOneLaunch},
      {wgmma, cuda, false, kOneLaunch, fills_wgmma},
      {tensor_core, cuda, false, kOneLaunch, tensor_core_beats_short},
      {short_keys, cuda, false, kOneLaunch},
      {simt, cuda, false, kOneLaunch},
      {tensor_core, cuda, false, kOneLaunch},
      {cudnn, cuda, true, "one call for all members"},
      {sequential, cuda, false, "member after member"},
      {wide, cpu, false, "all members' heads keep every thread busy"},
      {sequential, cpu, false, "member after member"},
  };
  return choose_strategy<FlashAttentionStrategy, FlashAttentionProblem>(
      {"flash_attention", device, name, verified_by(verified, "flash_attention", device), "",
       tuning, wide_policy_reason},
      kTable, problem, flash_attention_unsupported_reason,
      [&](FlashAttentionStrategy, std::string_view policy) { return cudnn_refusal(policy); });
}

}  // namespace wide
