// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The heuristic knows no measurement of the machine it runs on; its thresholds are where the
// arithmetic of launches and tiles changes, and are said so beside them.
#include "host/linear/linear_strategy.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "host/core/check.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide {

namespace {

constexpr std::array<std::string_view, 8> kCudaNames{
    "sequential", "cublas_batched", "simt", "gemv", "small_m", "tensor_core", "wgmma", "tf32x3"};
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

bool is_on_tensor_cores(LinearStrategy strategy) {
  return strategy == LinearStrategy::small_m || strategy == LinearStrategy::tensor_core ||
         strategy == LinearStrategy::tf32x3;
}

/// Why the kernel cannot multiply these elements; empty where it can.
std::string arithmetic_reason(LinearStrategy strategy, const LinearProblem& problem) {
  const bool is_fp32 = problem.dtype == Dtype::fp32;
  if (strategy == LinearStrategy::tf32x3) {
    return is_fp32
               ? ""
               : "it is a way to multiply fp32, dtype is " + std::string(dtype_name(problem.dtype));
  }
  return is_fp32 && !problem.allow_tf32
             ? "tensor cores multiply fp32 as tf32, which allow_tf32 does not allow; tf32x3 keeps "
               "fp32's accuracy"
             : "";
}

/// Tensor maps have strides of whole 16 bytes, where there is more than one to step to.
std::string tensor_map_reason(const char* what, const RowStrides& strides, int64_t rows,
                              int64_t members, int64_t features, int64_t vector) {
  const bool is_row_wrong = rows > 1 && (strides.row % vector != 0 || strides.row < features);
  const bool is_member_wrong = members > 1 && strides.member % vector != 0;
  if (!is_row_wrong && !is_member_wrong) return "";
  return std::string(what) + " has strides " + std::to_string(strides.row) + " (row) and " +
         std::to_string(strides.member) + " (member), tensor maps need multiples of " +
         std::to_string(vector) + " elements and rows apart; tensor_core takes any";
}

std::string wgmma_unsupported_reason(const LinearProblem& problem, const DeviceInfo& device) {
  if (device.compute_capability != 90) {
    return "wgmma is an instruction of compute capability 9.0 alone, " + device.name + " has " +
           std::to_string(device.compute_capability / 10) + "." +
           std::to_string(device.compute_capability % 10);
  }
  if (problem.dtype == Dtype::fp32) return "it multiplies fp16 and bf16, dtype is fp32";
  const int64_t vector = 16 / dtype_bytes(problem.dtype);
  const int64_t num_x = problem.shared_input ? 1 : problem.num_members;
  const std::string x =
      tensor_map_reason("x", problem.x, problem.batch, num_x, problem.in_features, vector);
  return !x.empty() ? x
                    : tensor_map_reason("weight", problem.weight, problem.out_features,
                                        problem.num_members, problem.in_features, vector);
}

std::string too_many_rows(int64_t most, const LinearProblem& problem) {
  return "it is for at most " + std::to_string(most) + " rows per member, batch is " +
         std::to_string(problem.batch);
}

std::string kernel_unsupported_reason(LinearStrategy strategy, const LinearProblem& problem,
                                      const DeviceInfo& device) {
  if (device.compute_capability < 80) {
    return "the kernel is built for compute capability 8.0 and later, " + device.name + " has " +
           std::to_string(device.compute_capability / 10) + "." +
           std::to_string(device.compute_capability % 10);
  }
  int64_t rows = 0, columns = 0;
  if (strategy == LinearStrategy::gemv) {
    if (problem.batch > kMaxGemvBatch) return too_many_rows(kMaxGemvBatch, problem);
    rows = kMaxGemvBatch, columns = 16;
  } else if (strategy == LinearStrategy::wgmma) {
    const std::string reason = wgmma_unsupported_reason(problem, device);
    if (!reason.empty()) return reason;
    const kernels::LinearWgmmaTile tile = choose_linear_wgmma_tile(problem, device);
    rows = tile_m(tile), columns = tile_n(tile);
  } else if (is_on_tensor_cores(strategy)) {
    const std::string reason = arithmetic_reason(strategy, problem);
    if (!reason.empty()) return reason;
    const kernels::LinearMmaTile tile = choose_linear_mma_tile(strategy, problem, device);
    rows = tile_m(tile), columns = tile_n(tile);
  } else {
    const kernels::LinearSimtTile tile = choose_linear_simt_tile(problem);
    rows = tile_m(tile), columns = tile_n(tile);
  }
  if (strategy == LinearStrategy::small_m && problem.batch > kMaxSmallBatch) {
    return too_many_rows(kMaxSmallBatch, problem);
  }
  constexpr int64_t kMaxBlocks = std::numeric_limits<int32_t>::max();
  if (tiles_of(problem, rows, columns) > kMaxBlocks / problem.num_members) {
    return "the output has more than 2^31 - 1 tiles";
  }
  return "";
}

// Whether one launch of ours is expected to beat the vendor's: it has the epilogue in it, and tiles
// for few rows. Where time is arithmetic on large tiles, the vendor's are better tuned.

bool simt_is_expected_to_win(const LinearProblem& problem) {
  const bool has_tensor_cores = problem.dtype != Dtype::fp32 || problem.allow_tf32;
  const int64_t max_rows = has_tensor_cores ? 16 : 64;
  const int64_t max_features = has_tensor_cores ? 256 : 512;
  return problem.batch <= max_rows && problem.in_features <= max_features &&
         problem.out_features <= max_features;
}

/// So few rows that no tile is worth filling.
bool gemv_is_expected_to_win(const LinearProblem& problem) {
  return problem.batch <= kMaxGemvBatch;
}

/// Up to 64 rows each weight is multiplied so few times that the memory is the limit, and the
/// vendor's tiles of 128 rows are half empty or worse.
bool small_m_is_expected_to_win(const LinearProblem& problem) {
  return problem.batch <= kMaxSmallBatch;
}

/// Features that are no multiple of 16 bytes send the vendor to kernels that load single elements.
bool tensor_core_is_expected_to_win(const LinearProblem& problem) {
  constexpr int64_t kVectorBytes = 16, kMaxMiddle = 512;
  const int64_t vector = kVectorBytes / dtype_bytes(problem.dtype);
  const bool is_ragged = problem.in_features % vector != 0 || problem.out_features % vector != 0;
  const bool is_middling = problem.batch <= kMaxMiddle && problem.in_features <= kMaxMiddle &&
                           problem.out_features <= kMaxMiddle;
  return is_ragged || is_middling;
}

/// Until its rates are measured: where the vendor's batched call has launches and tails to lose.
bool wgmma_is_expected_to_win(const LinearProblem& problem) {
  constexpr int64_t kMaxMiddle = 1024;
  return problem.num_members > 1 && problem.batch <= kMaxMiddle &&
         problem.in_features <= kMaxMiddle && problem.out_features <= kMaxMiddle;
}

struct OwnCandidate {
  LinearStrategy strategy;
  bool (*is_expected_to_win)(const LinearProblem&);
  std::string_view why;
};
/// In the order of preference.
constexpr OwnCandidate kOwn[] = {
    {LinearStrategy::gemv, gemv_is_expected_to_win,
     "hardly any rows per member, each weight is read once; verified"},
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
         tiles_of(problem, 128, 256) >= int64_t{4} * device.num_multiprocessors;
}

LinearChoice choose_on_cuda(const LinearProblem& problem, const DeviceInfo& device,
                            std::span<const VerifiedStrategy> verified) {
  using enum LinearStrategy;
  const auto choice = [](LinearStrategy strategy, std::string_view why) {
    return LinearChoice{strategy,
                        std::string(linear_strategy_name(strategy)) + ": " + std::string(why)};
  };
  std::string not_verified, cannot;
  const OwnCandidate* possible = nullptr;
  for (const OwnCandidate& own : kOwn) {
    const std::string name(linear_strategy_name(own.strategy));
    const std::string reason = linear_unsupported_reason(own.strategy, problem, device);
    if (!reason.empty()) {
      cannot += "; " + name + ": " + reason;
    } else if (!is_verified_in(verified, "linear", name, device.compute_capability)) {
      not_verified += (not_verified.empty() ? "" : ", ") + name;
    } else if (own.is_expected_to_win(problem)) {
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
  throw_unsupported("linear: no strategy for \"auto\": cuBLAS: " + no_cublas + cannot + unproved +
                    (unproved.empty() ? "" : "; ask for one of these by name"));
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
    case LinearStrategy::gemv:
      return "gemv";
    case LinearStrategy::small_m:
      return "small_m";
    case LinearStrategy::tensor_core:
      return "tensor_core";
    case LinearStrategy::wgmma:
      return "wgmma";
    case LinearStrategy::tf32x3:
      return "tf32x3";
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
  for (const LinearStrategy strategy :
       {sequential, cublas_batched, simt, gemv, small_m, tensor_core, wgmma, tf32x3, wide}) {
    if (linear_strategy_name(strategy) == name) return strategy;
  }
  return std::nullopt;
}

std::string linear_unsupported_reason(LinearStrategy strategy, const LinearProblem& problem,
                                      const DeviceInfo& device) {
  const bool on_cpu = device.device.type == DeviceType::cpu;
  if (on_cpu && strategy != LinearStrategy::sequential && strategy != LinearStrategy::wide) {
    return "it runs on CUDA devices only";
  }
  if (!on_cpu && strategy == LinearStrategy::wide) return "it runs on the CPU only";
  if (on_cpu || is_empty(problem)) return "";
  return uses_cublas(strategy) ? cublas_unsupported_reason(problem)
                               : kernel_unsupported_reason(strategy, problem, device);
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

kernels::LinearMath linear_math(LinearStrategy strategy, const LinearProblem& problem) {
  using enum kernels::LinearMath;
  if (problem.dtype == Dtype::fp16) return fp16;
  if (problem.dtype == Dtype::bf16) return bf16;
  return strategy == LinearStrategy::tf32x3 ? tf32x3 : tf32;
}

kernels::LinearMmaTile choose_linear_mma_tile(LinearStrategy strategy, const LinearProblem& problem,
                                              const DeviceInfo& device) {
  using enum kernels::LinearMmaTile;
  constexpr int64_t kFewOutputs = 256;  // so few 64-wide tiles that one member fills no device
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
    const double tiles = static_cast<double>(tiles_of(problem, rows, columns)) *
                         static_cast<double>(problem.num_members);
    const auto slots = static_cast<double>(multiprocessors * one.blocks_per_multiprocessor);
    const double work = static_cast<double>(rows * columns) / one.efficiency;
    const double time =
        std::ceil(tiles / slots) * work * static_cast<double>(one.blocks_per_multiprocessor);
    if (time < least) least = time, best = one.tile;
  }
  return best;
}

kernels::LinearWgmmaTile choose_linear_wgmma_tile(const LinearProblem& problem,
                                                  const DeviceInfo& device) {
  using enum kernels::LinearWgmmaTile;
  // A block's tiles follow one another; a tile of twice the rows takes not quite twice as long.
  constexpr double kTallTile = 1.8;
  const auto blocks = static_cast<double>(std::max(device.num_multiprocessors, 1));
  const auto tiles_of_each = [&](kernels::LinearWgmmaTile tile) {
    const double tiles = static_cast<double>(tiles_of(problem, tile_m(tile), tile_n(tile))) *
                         static_cast<double>(problem.num_members);
    return std::ceil(tiles / blocks);
  };
  return tiles_of_each(m64n128) <= tiles_of_each(m128n128) * kTallTile ? m64n128 : m128n128;
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
