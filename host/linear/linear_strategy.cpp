// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The heuristic knows no measurement of the machine it runs on; its thresholds are where the
// arithmetic of launches and tiles changes, and are said so beside them.
#include "host/linear/linear_strategy.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "host/core/check.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide {

namespace {

constexpr std::array<std::string_view, 3> kCudaNames{"sequential", "cublas_batched", "simt"};
constexpr std::array<std::string_view, 2> kCpuNames{"sequential", "wide"};

bool uses_cublas(LinearStrategy strategy) {
  return strategy == LinearStrategy::sequential || strategy == LinearStrategy::cublas_batched;
}

int64_t ceil_div(int64_t a, int64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Tiles of one member's output; saturates instead of overflowing.
int64_t tiles_of(const LinearProblem& problem, int64_t tile_m, int64_t tile_n) {
  int64_t tiles = 0;
  const bool overflows = __builtin_mul_overflow(ceil_div(problem.batch, tile_m),
                                                ceil_div(problem.out_features, tile_n), &tiles);
  return overflows ? std::numeric_limits<int64_t>::max() : tiles;
}

std::string cublas_unsupported_reason(const LinearProblem& problem) {
  // cuBLAS takes rows as columns of a matrix whose leading dimension is at least a column long.
  const int64_t in = problem.in_features;
  if (problem.batch > 1 && problem.x.row < in) {
    return "x has row stride " + std::to_string(problem.x.row) +
           ", cuBLAS needs at least in_features = " + std::to_string(in);
  }
  if (problem.out_features > 1 && problem.weight.row < in) {
    return "weight has row stride " + std::to_string(problem.weight.row) +
           ", cuBLAS needs at least in_features = " + std::to_string(in);
  }
  return "";
}

std::string simt_unsupported_reason(const LinearProblem& problem, const DeviceInfo& device) {
  if (device.compute_capability < 80) {
    return "the kernel is built for compute capability 8.0 and later, " + device.name + " has " +
           std::to_string(device.compute_capability / 10) + "." +
           std::to_string(device.compute_capability % 10);
  }
  const kernels::LinearSimtTile tile = choose_linear_simt_tile(problem);
  constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
  if (tiles_of(problem, tile_m(tile), tile_n(tile)) > kMaxBlocks / problem.num_members) {
    return "the output has more than 2^31 - 1 tiles";
  }
  return "";
}

/// Whether one launch of ours is expected to beat the vendor's kernels. Without tensor cores it
/// can only where time is launches and latency, not arithmetic: the vendor needs a second launch
/// for the epilogue, and its tiles are mostly empty for few rows.
bool simt_is_expected_to_win(const LinearProblem& problem) {
  const bool has_tensor_cores = problem.dtype != Dtype::fp32 || problem.allow_tf32;
  const int64_t max_rows = has_tensor_cores ? 16 : 64;
  const int64_t max_features = has_tensor_cores ? 256 : 512;
  return problem.batch <= max_rows && problem.in_features <= max_features &&
         problem.out_features <= max_features;
}

/// Four waves of the vendor's largest tiles from one member alone: batching members can hide no
/// more launches or tails, and cuBLAS's heuristic is better tuned for one big matrix.
bool one_member_fills(const LinearProblem& problem, const DeviceInfo& device) {
  return device.num_multiprocessors > 0 &&
         tiles_of(problem, 128, 256) >= int64_t{4} * device.num_multiprocessors;
}

LinearChoice choose_on_cuda(const LinearProblem& problem, const DeviceInfo& device,
                            std::span<const VerifiedStrategy> verified) {
  using enum LinearStrategy;
  const std::string no_simt = linear_unsupported_reason(simt, problem, device);
  const std::string no_cublas = linear_unsupported_reason(cublas_batched, problem, device);
  const bool is_proved = is_verified_in(verified, "linear", "simt", device.compute_capability);
  const bool simt_can = no_simt.empty() && is_proved;
  if (simt_can && simt_is_expected_to_win(problem)) {
    return {simt, "simt: small per-member problem, one launch with the epilogue fused; verified"};
  }
  if (no_cublas.empty()) {
    const std::string why_not_simt = !is_proved ? "simt is not verified on this device" : "";
    if (problem.num_members == 1) return {sequential, "sequential: one member is one cuBLAS call"};
    if (one_member_fills(problem, device)) {
      return {sequential, "sequential: one member fills the device, nothing is won by batching"};
    }
    return {cublas_batched, "cublas_batched: one vendor call for all members" +
                                (why_not_simt.empty() ? "" : "; " + why_not_simt)};
  }
  if (simt_can) return {simt, "simt: verified, and " + no_cublas};
  throw_unsupported(
      "linear: no strategy for \"auto\": cuBLAS: " + no_cublas +
      "; simt: " + (no_simt.empty() ? "not verified on this device, ask for it by name" : no_simt));
}

}  // namespace

std::string_view linear_strategy_name(LinearStrategy strategy) {
  switch (strategy) {
    case LinearStrategy::sequential:
      return "sequential";
    case LinearStrategy::cublas_batched:
      return "cublas_batched";
    case LinearStrategy::simt:
      return "simt";
    case LinearStrategy::wide:
      return "wide";
  }
  return "?";
}

std::span<const std::string_view> linear_strategy_names(DeviceType device) {
  if (device == DeviceType::cpu) return kCpuNames;
  return kCudaNames;
}

std::optional<LinearStrategy> parse_linear_strategy(std::string_view name, DeviceType device) {
  using enum LinearStrategy;
  const auto names = linear_strategy_names(device);
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  for (const LinearStrategy strategy : {sequential, cublas_batched, simt, wide}) {
    if (linear_strategy_name(strategy) == name) return strategy;
  }
  return std::nullopt;
}

std::string linear_unsupported_reason(LinearStrategy strategy, const LinearProblem& problem,
                                      const DeviceInfo& device) {
  const bool on_cpu = device.device.type == DeviceType::cpu;
  if (on_cpu && (strategy == LinearStrategy::cublas_batched || strategy == LinearStrategy::simt)) {
    return "it runs on CUDA devices only";
  }
  if (!on_cpu && strategy == LinearStrategy::wide) return "it runs on the CPU only";
  if (on_cpu || is_empty(problem)) return "";
  return uses_cublas(strategy) ? cublas_unsupported_reason(problem)
                               : simt_unsupported_reason(problem, device);
}

LinearChoice choose_linear_strategy(const LinearProblem& problem, const DeviceInfo& device,
                                    std::span<const VerifiedStrategy> verified) {
  if (device.device.type == DeviceType::cpu) {
    return {LinearStrategy::wide, "wide: the tiles of all members share the threads"};
  }
  return choose_on_cuda(problem, device, verified);
}

kernels::LinearSimtTile choose_linear_simt_tile(const LinearProblem& problem) {
  using enum kernels::LinearSimtTile;
  // Rows that a tile does not have are multiplied as zeros: a tall tile must be filled.
  if (problem.batch <= 32) return m16n64;
  if (problem.batch < 128 || problem.out_features < 128) return m64n64;
  return m128n128;
}

LinearWorkspace linear_workspace(LinearStrategy strategy, const LinearProblem& problem,
                                 const DeviceInfo& device) {
  LinearWorkspace workspace;
  if (device.device.type == DeviceType::cpu || !uses_cublas(strategy) || is_empty(problem) ||
      problem.in_features == 0) {
    return workspace;
  }
  // "cuBLAS Library User Guide", cublasSetWorkspace: 32 MiB on Hopper, 4 MiB elsewhere.
  workspace.cublas_bytes = int64_t{device.compute_capability == 90 ? 32 : 4} << 20;
  const bool has_epilogue =
      problem.epilogue.has_bias || problem.epilogue.activation != Activation::none;
  if (has_epilogue && problem.dtype != Dtype::fp32) {
    const int64_t bytes =
        checked_bytes({problem.batch, problem.num_members, problem.out_features}, 4);
    workspace.sums_bytes = ceil_div(bytes, kWorkspaceAlignment) * kWorkspaceAlignment;
  }
  return workspace;
}

}  // namespace wide
