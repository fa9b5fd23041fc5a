// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What "auto" is for linear. The heuristic knows no measurement of the machine it runs on; its
// thresholds are where the arithmetic of launches and tiles changes, and are said so beside them.
#include <algorithm>

#include "host/core/check.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"

namespace wide {

namespace {

// Whether one launch of ours is expected to beat the vendor's: it has the epilogue in it, and tiles
// for few rows. Where time is arithmetic on large tiles, the vendor's are better tuned.

bool simt_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  const bool has_tensor_cores = problem.dtype != Dtype::fp32 || problem.allow_tf32;
  const int64_t max_rows = has_tensor_cores ? 16 : 64;
  const int64_t max_features = has_tensor_cores ? 256 : 512;
  return problem.batch <= max_rows && problem.in_features <= max_features &&
         problem.out_features <= max_features;
}

/// Tiles cross from member to member, and x is read for all of them at once.
bool shared_input_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  return problem.num_members > 1;
}

/// So few rows that no tile is worth filling.
bool gemv_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  return problem.batch <= kMaxGemvBatch;
}

bool wgmma_reads_weights_once(const LinearProblem& problem, const DeviceInfo& device) {
  return reads_weights_once_instead(LinearStrategy::wgmma, problem, device);
}

bool tensor_core_reads_weights_once(const LinearProblem& problem, const DeviceInfo& device) {
  return reads_weights_once_instead(LinearStrategy::tensor_core, problem, device);
}

/// Up to 64 rows each weight is multiplied so few times that the memory is the limit, and the
/// vendor's tiles of 128 rows are half empty or worse.
bool small_m_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  return problem.batch <= kMaxSmallBatch;
}

/// Features that are no multiple of 16 bytes send the vendor to kernels that load single elements.
bool tensor_core_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  constexpr int64_t kVectorBytes = 16, kMaxMiddle = 512;
  const int64_t vector = kVectorBytes / dtype_bytes(problem.dtype);
  const bool is_ragged = problem.in_features % vector != 0 || problem.out_features % vector != 0;
  const bool is_middling = problem.batch <= kMaxMiddle && problem.in_features <= kMaxMiddle &&
                           problem.out_features <= kMaxMiddle;
  return is_ragged || is_middling;
}

/// Until its rates are measured: where the vendor's batched call has launches and tails to lose.
bool wgmma_is_expected_to_win(const LinearProblem& problem, const DeviceInfo&) {
  constexpr int64_t kMaxMiddle = 1024;
  return problem.num_members > 1 && problem.batch <= kMaxMiddle &&
         problem.in_features <= kMaxMiddle && problem.out_features <= kMaxMiddle;
}

struct OwnCandidate {
  LinearStrategy strategy;
  bool (*is_expected_to_win)(const LinearProblem&, const DeviceInfo&);
  std::string_view why;
};
/// In the order of preference; a strategy may stand twice.
constexpr OwnCandidate kOwn[] = {
    {LinearStrategy::shared_input, shared_input_is_expected_to_win,
     "all members read one x, their outputs are one member's; verified"},
    {LinearStrategy::gemv, gemv_is_expected_to_win,
     "hardly any rows per member, each weight is read once; verified"},
    {LinearStrategy::wgmma, wgmma_reads_weights_once,
     "one tile has all rows of a member, each weight is read once; verified"},
    {LinearStrategy::tensor_core, tensor_core_reads_weights_once,
     "one tile has all rows of a member, each weight is read once; verified"},
    {LinearStrategy::small_m, small_m_is_expected_to_win,
     "few rows per member, each weight is read once; verified"},
    {LinearStrategy::simt, simt_is_expected_to_win,
     "small per-member problem, one launch with the epilogue fused; verified"},
    {LinearStrategy::wgmma, wgmma_is_expected_to_win,
     "tiles of all members follow one another without a pause, epilogue hidden; verified"},
    {LinearStrategy::tensor_core, tensor_core_is_expected_to_win,
     "middling or ragged per-member problem, one launch with the epilogue fused; verified"},
};

/// Four waves of the vendor's largest tiles from one member alone: batching members can hide no
/// more launches or tails, and cuBLAS's heuristic is better tuned for one big matrix.
bool one_member_fills(const LinearProblem& problem, const DeviceInfo& device) {
  return device.num_multiprocessors > 0 &&
         linear_tiles_of(problem, 128, 256) >= int64_t{4} * device.num_multiprocessors;
}

/// One kernel of ours reads quantised weights, of all members or of one after the other.
LinearChoice choose_for_quantized(const LinearProblem& problem, const DeviceInfo& device,
                                  std::span<const VerifiedStrategy> verified) {
  using enum LinearStrategy;
  const std::string name(linear_strategy_name(weight_only));
  const std::string reason = linear_unsupported_reason(weight_only, problem, device);
  if (!reason.empty())
    throw_unsupported("linear: no strategy for \"auto\": " + name + ": " + reason);
  if (!is_verified_in(verified, "linear", name, device.compute_capability)) {
    return {sequential, "sequential: quantised weights are read by " + name +
                            " alone, which is not verified on this device"};
  }
  return {weight_only, name + ": quantised weights are read once; verified"};
}

LinearChoice choose_on_cuda(const LinearProblem& problem, const DeviceInfo& device,
                            std::span<const VerifiedStrategy> verified) {
  using enum LinearStrategy;
  if (is_quantized(problem)) return choose_for_quantized(problem, device, verified);
  const auto choice = [](LinearStrategy strategy, std::string_view why) {
    return LinearChoice{strategy,
                        std::string(linear_strategy_name(strategy)) + ": " + std::string(why)};
  };
  std::string not_verified, cannot;
  const OwnCandidate* possible = nullptr;
  for (const OwnCandidate& own : kOwn) {
    const std::string name(linear_strategy_name(own.strategy));
    const std::string reason = linear_unsupported_reason(own.strategy, problem, device);
    const bool is_told = std::any_of(
        kOwn, &own, [&](const OwnCandidate& before) { return before.strategy == own.strategy; });
    if (!reason.empty()) {
      if (!is_told) cannot += "; " + name + ": " + reason;
    } else if (!is_verified_in(verified, "linear", name, device.compute_capability)) {
      if (!is_told) not_verified += (not_verified.empty() ? "" : ", ") + name;
    } else if (own.is_expected_to_win(problem, device)) {
      return choice(own.strategy, own.why);
    } else if (possible == nullptr) {
      possible = &own;
    }
  }
  const std::string unproved =
      not_verified.empty() ? "" : "; not verified on this device: " + not_verified;
  const std::string no_cublas = linear_unsupported_reason(cublas_batched, problem, device);
  if (no_cublas.empty()) {
    if (problem.num_members == 1) return choice(sequential, "one member is one cuBLAS call");
    if (one_member_fills(problem, device)) {
      return choice(sequential, "one member fills the device, nothing is won by batching");
    }
    return choice(cublas_batched, "one vendor call for all members" + unproved);
  }
  if (possible != nullptr) return choice(possible->strategy, "verified, and " + no_cublas);
  if (linear_unsupported_reason(cublaslt, problem, device).empty()) {
    return choice(cublaslt, "one vendor call for all members" + unproved);
  }
  if (linear_unsupported_reason(sequential, problem, device).empty()) {
    return choice(sequential, "nothing else can run it" + unproved);
  }
  throw_unsupported("linear: no strategy for \"auto\": cuBLAS: " + no_cublas + cannot + unproved +
                    (unproved.empty() ? "" : "; ask for one of these by name"));
}

}  // namespace

LinearChoice choose_linear_strategy(const LinearProblem& problem, const DeviceInfo& device,
                                    std::span<const VerifiedStrategy> verified) {
  if (device.device.type == DeviceType::cpu) {
    return {LinearStrategy::wide, "wide: the tiles of all members share the threads"};
  }
  return choose_on_cuda(problem, device, verified);
}

}  // namespace wide
