// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// "auto" for linear. The heuristic knows no measurement of the machine it runs on; its thresholds
// are where the arithmetic of launches and tiles changes, as stated beside them.
#include "host/linear/linear_policy.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"

namespace wide {

namespace {

// Whether one launch of ours is expected to beat the vendor's: it includes the epilogue, and has
// tiles for few rows. Where arithmetic on large tiles dominates, the vendor's are better tuned.

bool simt_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  const bool has_tensor_cores = problem.dtype != Dtype::fp32 || problem.allow_tf32;
  const int64_t max_rows = has_tensor_cores ? 16 : 64;
  const int64_t max_features = has_tensor_cores ? 256 : 512;
  return problem.batch <= max_rows && problem.in_features <= max_features &&
         problem.out_features <= max_features;
}

/// Tiles cross from member to member, and x is read for all of them at once.
bool shared_input_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  return problem.shared_input && problem.num_members > 1;
}

/// Too few rows to fill any tile.
bool gemv_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  return problem.batch <= kMaxGemvBatch;
}

bool wgmma_reads_weights_once(const LinearProblem& problem, const DeviceInfo& device) {
  return reads_weights_once_instead(LinearStrategy::wgmma, problem, device, problem.num_members);
}

bool tensor_core_reads_weights_once(const LinearProblem& problem, const DeviceInfo& device) {
  return reads_weights_once_instead(LinearStrategy::tensor_core, problem, device,
                                    problem.num_members);
}

/// Up to 64 rows each weight is multiplied so few times that the memory is the limit, and the
/// vendor's tiles of 128 rows are half empty or worse.
bool small_m_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  return problem.batch <= kMaxSmallBatch;
}

/// For features that are not multiples of 16 bytes the vendor uses kernels of single-element loads.
bool tensor_core_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  constexpr int64_t kVectorBytes = 16, kMaxMiddle = 512;
  const int64_t vector = kVectorBytes / dtype_bytes(problem.dtype);
  const bool is_ragged = problem.in_features % vector != 0 || problem.out_features % vector != 0;
  const bool is_middling = problem.batch <= kMaxMiddle && problem.in_features <= kMaxMiddle &&
                           problem.out_features <= kMaxMiddle;
  return is_ragged || is_middling;
}

/// Until its rates are measured: where the vendor's batched call loses time to launches and tails.
bool wgmma_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  constexpr int64_t kMaxMiddle = 1024;
  return problem.num_members > 1 && problem.batch <= kMaxMiddle &&
         problem.in_features <= kMaxMiddle && problem.out_features <= kMaxMiddle;
}

/// Rounded weights are written to memory and read again, which takes as long for few rows as for
/// many. What is won is wgmma's rate: mma.sync multiplies codes about as fast.
bool decoded_is_expected_to_win(const LinearProblem& problem, const DeviceInfo& device) {
  return problem.batch >= kMinDecodedBatch &&
         linear_kernel_of(LinearStrategy::decoded, problem, device) == LinearStrategy::wgmma;
}

// Whether `sequential` is expected to beat cuBLAS's batched call, where there is one.

bool takes_batched(const LinearProblem& problem, const DeviceInfo& device) {
  return linear_unsupported_reason(LinearStrategy::cublas_batched, problem, device).empty();
}

bool is_one_member(const LinearProblem& problem, const DeviceInfo& device) {
  return problem.num_members == 1 && takes_batched(problem, device);
}

/// Four waves of the vendor's largest tiles from one member alone: batching members can hide no
/// more launches or tails, and cuBLAS's heuristic is better tuned for one big matrix.
bool one_member_fills(const LinearProblem& problem, const DeviceInfo& device) {
  return device.num_multiprocessors > 0 &&
         linear_tiles_of(problem, 128, 256) >= int64_t{4} * device.num_multiprocessors &&
         takes_batched(problem, device);
}

/// Taken where nothing that is expected to be faster can run it.
bool never(const LinearProblem&, const DeviceInfo&) {
  return false;
}

using LinearRow = StrategyRow<LinearStrategy, LinearProblem>;

/// Quantised weights are read by a kernel of ours, of all members or of one after another.
constexpr LinearRow kQuantizedTable[] = {
    {LinearStrategy::decoded, DeviceType::cuda, false,
     "many rows per member, quantised weights are decoded once and not for every 64",
     decoded_is_expected_to_win},
    {LinearStrategy::weight_only, DeviceType::cuda, false, "quantised weights are read once"},
    {LinearStrategy::sequential, DeviceType::cuda, false, "member after member"},
};

}  // namespace

LinearChoice choose_linear_strategy(const LinearProblem& problem, const DeviceInfo& device,
                                    std::span<const VerifiedStrategy> verified,
                                    std::string_view name, const Tuning& tuning) {
  using enum LinearStrategy;
  using enum DeviceType;
  static constexpr std::string_view kAllRows =
      "one tile has all rows of a member, each weight is read once";
  static constexpr std::string_view kOneCall = "one vendor call for all members";
  static constexpr LinearRow kTable[] = {
      {shared_input, cuda, false, "all members read one x, their outputs are one member's",
       shared_input_is_expected_to_win},
      {gemv, cuda, false, "hardly any rows per member, each weight is read once",
       gemv_is_expected_to_win},
      {wgmma, cuda, false, kAllRows, wgmma_reads_weights_once},
      {tensor_core, cuda, false, kAllRows, tensor_core_reads_weights_once},
      {small_m, cuda, false, "few rows per member, each weight is read once",
       small_m_is_expected_to_win},
      {simt, cuda, false, "small per-member problem, one launch with the epilogue fused",
       simt_is_expected_to_win},
      {wgmma, cuda, false,
       "tiles of all members follow one another without a pause, epilogue hidden",
       wgmma_is_expected_to_win},
      {tensor_core, cuda, false,
       "middling or ragged per-member problem, one launch with the epilogue fused",
       tensor_core_is_expected_to_win},
      {cublaslt, cuda, true, kOneCall, never},
      {sequential, cuda, false, "one member is one cuBLAS call", is_one_member},
      {sequential, cuda, false, "one member fills the device, nothing is won by batching",
       one_member_fills},
      {cublas_batched, cuda, true, kOneCall},
      {cublas_grouped, cuda, true},
      {tf32x3, cuda},
      {weight_only, cuda},
      {decoded, cuda},
      {wide, cpu, false, "the tiles of all members share the threads"},
      {sequential, cpu, false, "member after member"},
  };
  const bool is_quantized_auto =
      is_automatic(name) && device.device.type == cuda && is_quantized(problem);
  const std::string_view member_kernel =
      launches_linear_members(problem)
          ? strategy_name(linear_kernel_of(sequential, problem, device))
          : "";
  return choose_strategy<LinearStrategy, LinearProblem>(
      {"linear", device, name, verified_by(verified, "linear", device), member_kernel, tuning,
       [&](std::string_view strategy, std::string_view policy) {
         return linear_policy_reason(*parse_linear_strategy(strategy, device.device.type), problem,
                                     policy);
       }},
      is_quantized_auto ? std::span<const LinearRow>(kQuantizedTable) : kTable, problem,
      linear_unsupported_reason);
}

}  // namespace wide
