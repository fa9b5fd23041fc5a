// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies of ragged_linear by name, what each of them cannot run, and what "auto" is.
#include "host/linear/ragged_linear_strategy.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "host/core/check.hpp"
#include "host/linear/linear_strategy.hpp"
#include "host/linear/ragged_linear_problem.hpp"

namespace wide {

namespace {

constexpr std::array<std::string_view, 3> kCudaNames{"sequential", "simt", "tensor_core"};
constexpr std::array<std::string_view, 2> kCpuNames{"sequential", "wide"};

/// A table of 1 GiB; so many outputs fit in no device's memory.
constexpr int64_t kMaxTiles = int64_t{1} << 26;

std::string cublas_reason(const RaggedLinearProblem& problem, const DeviceInfo& device) {
  for (size_t i = 0; i < problem.members.size(); ++i) {
    const std::string reason = linear_unsupported_reason(LinearStrategy::sequential,
                                                         ragged_member_problem(problem, i), device);
    if (!reason.empty()) return "member " + std::to_string(i) + ": " + reason;
  }
  return "";
}

/// By the smallest tiles there are; saturates instead of overflowing.
bool has_too_many_tiles(const RaggedLinearProblem& problem) {
  int64_t tiles = 0;
  for (size_t i = 0; i < problem.members.size(); ++i) {
    if (is_empty(problem.members[i])) continue;
    const int64_t more = linear_tiles_of(ragged_member_problem(problem, i),
                                         kernels::kRaggedShortTile, kernels::kRaggedTileN);
    if (more > kMaxTiles - tiles) return true;
    tiles += more;
  }
  return static_cast<int64_t>(problem.members.size()) > kMaxTiles;
}

/// The table's entries are 32 bits wide.
std::string size_reason(const RaggedLinearProblem& problem) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  for (size_t i = 0; i < problem.members.size(); ++i) {
    const RaggedLinearMember& member = problem.members[i];
    const int64_t most = std::max({member.batch, member.in_features, member.out_features,
                                   member.x.row, member.weight.row, member.y.row});
    if (!is_empty(member) && most > kMost) {
      return "member " + std::to_string(i) + " has a size or row stride of " +
             std::to_string(most) + ", the kernels take up to 2^31 - 1";
    }
  }
  return "";
}

std::string kernel_reason(RaggedLinearStrategy strategy, const RaggedLinearProblem& problem,
                          const DeviceInfo& device) {
  if (device.compute_capability < 80) {
    return "the kernel is built for compute capability 8.0 and later, " + device.name + " has " +
           std::to_string(device.compute_capability / 10) + "." +
           std::to_string(device.compute_capability % 10);
  }
  if (strategy == RaggedLinearStrategy::tensor_core && problem.dtype == Dtype::fp32 &&
      !problem.allow_tf32) {
    return "tensor cores multiply fp32 as tf32, which allow_tf32 does not allow";
  }
  if (has_too_many_tiles(problem)) return "the outputs have more than 2^26 tiles";
  return size_reason(problem);
}

/// Whether a launch of its own would cost a member more than its products do: multiply-adds that
/// the units get through in about half a microsecond.
bool launches_matter(RaggedLinearStrategy strategy, const RaggedLinearProblem& problem) {
  const double limit = strategy == RaggedLinearStrategy::tensor_core ? 0x1p27 : 0x1p24;
  double products = 0;
  for (const RaggedLinearMember& member : problem.members) {
    products += static_cast<double>(member.batch) * static_cast<double>(member.in_features) *
                static_cast<double>(member.out_features);
  }
  const auto members = static_cast<double>(problem.members.size());
  return members > 1 && products <= limit * members;
}

RaggedLinearChoice choose_on_cuda(const RaggedLinearProblem& problem, const DeviceInfo& device,
                                  std::span<const VerifiedStrategy> verified) {
  using enum RaggedLinearStrategy;
  std::string why_not;
  std::optional<RaggedLinearStrategy> possible;
  for (const RaggedLinearStrategy own : {tensor_core, simt}) {
    const std::string name(ragged_linear_strategy_name(own));
    const std::string reason = ragged_linear_unsupported_reason(own, problem, device);
    if (!reason.empty()) {
      why_not += "; " + name + ": " + reason;
    } else if (!is_verified_in(verified, "ragged_linear", name, device.compute_capability)) {
      why_not += "; " + name + ": not verified on this device";
    } else if (launches_matter(own, problem)) {
      return {own, name + ": one launch for members that are small for one each; verified"};
    } else if (!possible) {
      possible = own;
    }
  }
  const std::string no_cublas = cublas_reason(problem, device);
  if (no_cublas.empty()) return {sequential, "sequential: one cuBLAS call per member" + why_not};
  if (possible) {
    return {*possible, std::string(ragged_linear_strategy_name(*possible)) +
                           ": verified, and cuBLAS: " + no_cublas};
  }
  throw_unsupported("ragged_linear: no strategy for \"auto\": cuBLAS: " + no_cublas + why_not +
                    "; ask for one by name");
}

}  // namespace

bool is_empty(const RaggedLinearMember& member) {
  return member.batch == 0 || member.out_features == 0;
}

bool is_empty(const RaggedLinearProblem& problem) {
  return std::all_of(problem.members.begin(), problem.members.end(),
                     [](const RaggedLinearMember& member) { return is_empty(member); });
}

std::string_view ragged_linear_strategy_name(RaggedLinearStrategy strategy) {
  switch (strategy) {
    case RaggedLinearStrategy::sequential:
      return "sequential";
    case RaggedLinearStrategy::simt:
      return "simt";
    case RaggedLinearStrategy::tensor_core:
      return "tensor_core";
    case RaggedLinearStrategy::wide:
      return "wide";
  }
  return "?";
}

std::span<const std::string_view> ragged_linear_strategy_names(DeviceType device) {
  if (device == DeviceType::cpu) return kCpuNames;
  return kCudaNames;
}

std::optional<RaggedLinearStrategy> parse_ragged_linear_strategy(std::string_view name,
                                                                 DeviceType device) {
  using enum RaggedLinearStrategy;
  const auto names = ragged_linear_strategy_names(device);
  if (std::find(names.begin(), names.end(), name) == names.end()) return std::nullopt;
  for (const RaggedLinearStrategy strategy : {sequential, simt, tensor_core, wide}) {
    if (ragged_linear_strategy_name(strategy) == name) return strategy;
  }
  return std::nullopt;
}

std::string ragged_linear_unsupported_reason(RaggedLinearStrategy strategy,
                                             const RaggedLinearProblem& problem,
                                             const DeviceInfo& device) {
  using enum RaggedLinearStrategy;
  const bool on_cpu = device.device.type == DeviceType::cpu;
  if (on_cpu && strategy != sequential && strategy != wide) return "it runs on CUDA devices only";
  if (!on_cpu && strategy == wide) return "it runs on the CPU only";
  if (on_cpu || is_empty(problem)) return "";
  return strategy == sequential ? cublas_reason(problem, device)
                                : kernel_reason(strategy, problem, device);
}

RaggedLinearChoice choose_ragged_linear_strategy(const RaggedLinearProblem& problem,
                                                 const DeviceInfo& device,
                                                 std::span<const VerifiedStrategy> verified) {
  if (device.device.type == DeviceType::cpu) {
    return {RaggedLinearStrategy::wide, "wide: the blocks of all members share the threads"};
  }
  return choose_on_cuda(problem, device, verified);
}

int64_t ragged_linear_workspace_bytes(RaggedLinearStrategy strategy,
                                      const RaggedLinearProblem& problem,
                                      const DeviceInfo& device) {
  int64_t bytes = 0;
  if (strategy != RaggedLinearStrategy::sequential) return bytes;
  for (size_t i = 0; i < problem.members.size(); ++i) {
    const LinearWorkspace one =
        linear_workspace(LinearStrategy::sequential, ragged_member_problem(problem, i), device);
    bytes = std::max(bytes, one.bytes());
  }
  return bytes;
}

}  // namespace wide
