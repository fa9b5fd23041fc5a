// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies of linear by name, and what each cannot run.
#include "host/linear/linear_strategy.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "host/core/hopper.hpp"
#include "host/core/workspace.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_vendor.hpp"
#include "host/linear/quantized_codes.hpp"
#include "kernels/common/grid_blocks.hpp"
#include "kernels/linear/linear_decoded_grid.hpp"

namespace wide {

namespace {

/// In the order of LinearStrategy; all but the last are CUDA's.
constexpr std::array<std::string_view, 14> kNames{"sequential",   "cublas_batched",
                                                  "cublaslt",     "cublas_grouped",
                                                  "simt",         "gemv",
                                                  "small_m",      "tensor_core",
                                                  "wgmma",        "tf32x3",
                                                  "shared_input", "weight_only",
                                                  "decoded",      "wide"};
constexpr std::array<std::string_view, 2> kCpuNames{"sequential", "wide"};

std::string text_of(Dtype dtype) {
  return std::string(dtype_name(dtype));
}

/// fp8 is for cuBLASLt: cuBLAS's plain GEMMs do not take it, and sequential runs our kernel.
bool uses_cublas(LinearStrategy strategy, const LinearProblem& problem) {
  return strategy == LinearStrategy::cublas_batched || strategy == LinearStrategy::cublaslt ||
         strategy == LinearStrategy::cublas_grouped ||
         (strategy == LinearStrategy::sequential && !launches_linear_members(problem));
}

/// Why the strategy cannot read weights of this format; empty where it can.
std::string weight_format_reason(LinearStrategy strategy, const LinearProblem& problem) {
  const bool reads_quantised =
      strategy == LinearStrategy::weight_only || strategy == LinearStrategy::decoded;
  if (strategy == LinearStrategy::sequential || reads_quantised == is_quantized(problem)) return "";
  return is_quantized(problem) ? "it reads packed weights, theirs is format " +
                                     std::string(weight_format_name(problem.weight_format)) +
                                     "; weight_only, decoded and sequential read quantised ones"
                               : "it is for quantised weights, these are packed";
}

std::string cublas_unsupported_reason(LinearStrategy strategy, const LinearProblem& problem,
                                      const DeviceInfo& device) {
  if (strategy == LinearStrategy::cublaslt) {
    const std::string reason = cublaslt_unsupported_reason(problem, device);
    if (!reason.empty()) return reason;
  } else if (is_fp8(problem.dtype)) {
    return "cuBLAS's batched GEMM multiplies fp32, fp16 and bf16, dtype is " +
           text_of(problem.dtype);
  }
  const std::string reason = blas_unsupported_reason(problem);
  if (!reason.empty() || strategy != LinearStrategy::cublas_grouped) return reason;
  return cublas_grouped_unsupported_reason(problem);
}

bool is_on_tensor_cores(LinearStrategy strategy) {
  return strategy == LinearStrategy::small_m || strategy == LinearStrategy::tensor_core ||
         strategy == LinearStrategy::tf32x3;
}

/// Why the kernel cannot multiply these elements; empty where it can.
std::string arithmetic_reason(LinearStrategy strategy, const LinearProblem& problem) {
  const bool is_fp32 = problem.dtype == Dtype::fp32;
  if (strategy == LinearStrategy::tf32x3) {
    return is_fp32 ? "" : "it is a way to multiply fp32, dtype is " + text_of(problem.dtype);
  }
  if (is_fp8(problem.dtype)) {
    return "it multiplies fp16, bf16 and fp32 as tf32, dtype is " + text_of(problem.dtype);
  }
  return is_fp32 && !problem.allow_tf32
             ? "tensor cores multiply fp32 as tf32, which allow_tf32 does not allow; tf32x3 keeps "
               "fp32's accuracy"
             : "";
}

std::string wgmma_unsupported_reason(const LinearProblem& problem, const DeviceInfo& device) {
  const std::string reason = wgmma_device_reason(device);
  if (!reason.empty()) return reason;
  if (problem.dtype == Dtype::fp32 && !problem.allow_tf32) {
    return "it multiplies fp32 as tf32, which allow_tf32 does not allow";
  }
  const int64_t vector = 16 / dtype_bytes(problem.dtype);
  const int64_t num_x = problem.shared_input ? 1 : problem.num_members;
  const std::string x =
      tensor_map_reason("x", problem.x, problem.batch, num_x, problem.in_features, vector);
  return !x.empty() ? x
                    : tensor_map_reason("weight", problem.weight, problem.out_features,
                                        problem.num_members, problem.in_features, vector);
}

bool has_wgmma_coordinates(const LinearProblem& problem, int64_t rows, int64_t columns) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max(), kStageBytes = 128;
  return problem.in_features <= kMost - kStageBytes / dtype_bytes(problem.dtype) &&
         problem.batch <= kMost / rows * rows && problem.out_features <= kMost / columns * columns;
}

std::string too_many_rows(int64_t most, const LinearProblem& problem) {
  return "it is for at most " + std::to_string(most) + " rows per member, batch is " +
         std::to_string(problem.batch);
}

std::string shared_input_reason(const LinearProblem& problem, const DeviceInfo& device) {
  if (!problem.shared_input) return "members have inputs of their own";
  return linear_unsupported_reason(linear_kernel_of(LinearStrategy::shared_input, problem, device),
                                   as_one_member(problem), device);
}

std::string decoded_reason(const LinearProblem& problem, const DeviceInfo& device) {
  if (!problem.allow_rounded_weights) {
    return "it rounds weights to " + text_of(problem.dtype) +
           ", which allow_rounded_weights does not allow";
  }
  const QuantizedWeight weight = linear_quantized_weight(problem);
  const int64_t blocks = kernels::decoded_blocks(quantized_strips(weight), quantized_tiles(weight));
  if (!kernels::are_decodable(blocks, problem.num_members)) {
    return "decoding the weights takes more than 2^31 - 1 warps";
  }
  return linear_unsupported_reason(linear_kernel_of(LinearStrategy::decoded, problem, device),
                                   as_decoded(problem), device);
}

std::string kernel_unsupported_reason(LinearStrategy strategy, const LinearProblem& problem,
                                      const DeviceInfo& device) {
  const std::string device_reason = kernel_device_reason(device);
  if (!device_reason.empty()) return device_reason;
  if (strategy == LinearStrategy::shared_input) return shared_input_reason(problem, device);
  int64_t rows = 0, columns = 0;
  if (is_quantized(problem)) {
    if (problem.dtype != Dtype::fp16 && problem.dtype != Dtype::bf16) {
      return "it multiplies fp16 and bf16, dtype is " + text_of(problem.dtype);
    }
    if (strategy == LinearStrategy::decoded) return decoded_reason(problem, device);
    const kernels::LinearWeightOnlyTile tile = choose_linear_weight_only_tile(problem);
    rows = tile_m(tile), columns = tile_n(tile);
  } else if (strategy == LinearStrategy::gemv) {
    if (problem.batch > kMaxGemvBatch) return too_many_rows(kMaxGemvBatch, problem);
    if (is_fp8(problem.dtype)) {
      return "it multiplies fp32, fp16 and bf16, dtype is " + text_of(problem.dtype);
    }
    rows = kMaxGemvBatch, columns = 16;
  } else if (strategy == LinearStrategy::wgmma) {
    const std::string reason = wgmma_unsupported_reason(problem, device);
    if (!reason.empty()) return reason;
    const kernels::LinearWgmmaTile tile = choose_linear_wgmma_tile(problem, device);
    rows = tile_m(tile), columns = tile_n(tile);
    if (!has_wgmma_coordinates(problem, rows, columns)) {
      return "coordinates of its tiles, and of what lies past the end, are 32 bits wide";
    }
  } else if (is_on_tensor_cores(strategy)) {
    const std::string reason = arithmetic_reason(strategy, problem);
    if (!reason.empty()) return reason;
    const kernels::LinearMmaTile tile = choose_linear_mma_tile(strategy, problem, device);
    rows = tile_m(tile), columns = tile_n(tile);
  } else {
    const kernels::LinearSimtTile tile = choose_linear_simt_tile(problem, device);
    rows = tile_m(tile), columns = tile_n(tile);
  }
  if (strategy == LinearStrategy::small_m && problem.batch > kMaxSmallBatch) {
    return too_many_rows(kMaxSmallBatch, problem);
  }
  if (linear_tiles_of(problem, rows, columns) > kernels::kMaxGridBlocks / problem.num_members) {
    return "the output has more than 2^31 - 1 tiles";
  }
  return "";
}

}  // namespace

std::string_view strategy_name(LinearStrategy strategy) {
  return kNames[static_cast<size_t>(strategy)];
}

std::span<const std::string_view> linear_strategy_names(DeviceType device) {
  if (device == DeviceType::cpu) return kCpuNames;
  return std::span(kNames).first(kNames.size() - 1);
}

std::optional<LinearStrategy> parse_linear_strategy(std::string_view name, DeviceType device) {
  const auto names = linear_strategy_names(device);
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  return static_cast<LinearStrategy>(std::find(kNames.begin(), kNames.end(), name) -
                                     kNames.begin());
}

std::string linear_unsupported_reason(LinearStrategy strategy, const LinearProblem& problem,
                                      const DeviceInfo& device) {
  std::string reason = other_device_reason(strategy_name(strategy), device);
  if (!reason.empty()) return reason;
  if (device.device.type == DeviceType::cpu || is_empty(problem)) return "";
  reason = weight_format_reason(strategy, problem);
  if (!reason.empty()) return reason;
  if (uses_cublas(strategy, problem)) {
    return cublas_unsupported_reason(strategy, problem, device);
  }
  if (strategy != LinearStrategy::sequential) {
    return kernel_unsupported_reason(strategy, problem, device);
  }
  LinearProblem one = problem;
  one.num_members = 1;
  return kernel_unsupported_reason(linear_kernel_of(strategy, problem, device), one, device);
}

LinearStrategy own_linear_kernel(const LinearProblem& problem, const DeviceInfo& device) {
  using enum LinearStrategy;
  const auto takes_it = [&](LinearStrategy kernel) {
    return linear_unsupported_reason(kernel, problem, device).empty();
  };
  if (takes_it(gemv)) return gemv;
  for (const LinearStrategy kernel : {wgmma, tensor_core}) {
    if (reads_weights_once_instead(kernel, problem, device, kUsualMembers) && takes_it(kernel))
      return kernel;
  }
  for (const LinearStrategy kernel : {small_m, wgmma, tensor_core}) {
    if (takes_it(kernel)) return kernel;
  }
  return simt;
}

int64_t cublas_workspace_bytes(int compute_capability) {
  switch (compute_capability / 10) {
    case 9:   // Hopper
    case 10:  // Blackwell of data centres
      return int64_t{32} << 20;
    case 12:  // of workstations
      return int64_t{12} << 20;
    default:
      return int64_t{4} << 20;
  }
}

LinearWorkspace cublas_workspace(const LinearProblem& problem, const DeviceInfo& device,
                                 bool has_sums) {
  LinearWorkspace workspace;
  workspace.cublas_bytes = cublas_workspace_bytes(device.compute_capability);
  if (has_sums) {
    workspace.sums_bytes =
        aligned_bytes(checked_bytes({problem.batch, problem.num_members, problem.out_features}, 4));
  }
  return workspace;
}

LinearWorkspace linear_workspace(LinearStrategy strategy, const LinearProblem& problem,
                                 const DeviceInfo& device) {
  if (device.device.type == DeviceType::cpu || is_empty(problem) || problem.in_features == 0) {
    return {};
  }
  if (strategy == LinearStrategy::decoded) {
    const LinearProblem dense = as_decoded(problem);
    LinearWorkspace workspace;
    workspace.weight_bytes = aligned_bytes(
        checked_bytes({dense.num_members, dense.weight.member}, dtype_bytes(dense.dtype)));
    return workspace;
  }
  if (!uses_cublas(strategy, problem)) return {};
  if (strategy == LinearStrategy::cublaslt) {
    return cublas_workspace(problem, device, describe_cublaslt(problem, true).writes_sums);
  }
  if (strategy != LinearStrategy::cublas_grouped) {
    return cublas_workspace(problem, device, needs_sums(problem));
  }
  LinearWorkspace workspace =
      cublas_workspace(problem, device, describe_cublas_grouped(problem).writes_sums);
  constexpr int64_t kPointerBytes = 8;
  workspace.pointers_bytes = aligned_bytes(checked_bytes({3, problem.num_members}, kPointerBytes));
  return workspace;
}

bool is_cublaslt_one_call(const LinearProblem& problem, const DeviceInfo& device) {
  return device.device.type == DeviceType::cuda && !problem.epilogue.is_identity() &&
         linear_unsupported_reason(LinearStrategy::cublaslt, problem, device).empty() &&
         !describe_cublaslt(problem, true).needs_kernel;
}

}  // namespace wide
