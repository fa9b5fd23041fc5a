// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The strategies of ragged_linear by name, what each of them cannot run, and what "auto" is.
#include "host/linear/ragged_linear_strategy.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "host/linear/linear_strategy.hpp"
#include "host/linear/ragged_linear_grouped.hpp"
#include "host/linear/ragged_linear_problem.hpp"

namespace wide {

namespace {

/// A table of 1 GiB; so many outputs fit in no device's memory.
constexpr int64_t kMaxTiles = int64_t{1} << 26;

std::string cublas_reason(RaggedLinearStrategy strategy, const RaggedLinearProblem& problem,
                          const DeviceInfo& device) {
  const bool is_grouped = strategy == RaggedLinearStrategy::cublas_grouped;
  const LinearStrategy like =
      is_grouped ? LinearStrategy::cublas_grouped : LinearStrategy::sequential;
  for (size_t i = 0; i < problem.members.size(); ++i) {
    std::string reason = linear_unsupported_reason(like, ragged_member_problem(problem, i), device);
    if (reason.empty() && is_grouped) reason = ragged_grouped_offset_reason(problem, i);
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
  const std::string device_reason = kernel_device_reason(device);
  if (!device_reason.empty()) return device_reason;
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

bool simt_launches_matter(const RaggedLinearProblem& problem, const DeviceInfo&) {
  return launches_matter(RaggedLinearStrategy::simt, problem);
}
bool tensor_core_launches_matter(const RaggedLinearProblem& problem, const DeviceInfo&) {
  return launches_matter(RaggedLinearStrategy::tensor_core, problem);
}

}  // namespace

bool is_empty(const RaggedLinearMember& member) {
  return member.batch == 0 || member.out_features == 0;
}

bool is_empty(const RaggedLinearProblem& problem) {
  return std::all_of(problem.members.begin(), problem.members.end(),
                     [](const RaggedLinearMember& member) { return is_empty(member); });
}

std::string_view strategy_name(RaggedLinearStrategy strategy) {
  static constexpr std::array<std::string_view, 5> kNames{"sequential", "cublas_grouped", "simt",
                                                          "tensor_core", "wide"};
  return kNames[static_cast<size_t>(strategy)];
}

std::string ragged_linear_unsupported_reason(RaggedLinearStrategy strategy,
                                             const RaggedLinearProblem& problem,
                                             const DeviceInfo& device) {
  const std::string reason = other_device_reason(strategy_name(strategy), device);
  if (!reason.empty()) return reason;
  if (device.device.type == DeviceType::cpu || is_empty(problem)) return "";
  using enum RaggedLinearStrategy;
  const bool calls_cublas = strategy == sequential || strategy == cublas_grouped;
  if (calls_cublas) {
    const std::string by_member = cublas_reason(strategy, problem, device);
    if (!by_member.empty() || strategy == sequential) return by_member;
  }
  return kernel_reason(strategy, problem, device);
}

RaggedLinearChoice choose_ragged_linear_strategy(const RaggedLinearProblem& problem,
                                                 const DeviceInfo& device,
                                                 std::span<const VerifiedStrategy> verified,
                                                 std::string_view name, const Tuning& tuning) {
  using enum RaggedLinearStrategy;
  using enum DeviceType;
  static constexpr std::string_view kOneLaunch =
      "one launch for members that are small for one each";
  static constexpr StrategyRow<RaggedLinearStrategy, RaggedLinearProblem> kTable[] = {
      {tensor_core, cuda, false, kOneLaunch, tensor_core_launches_matter},
      {simt, cuda, false, kOneLaunch, simt_launches_matter},
      {sequential, cuda, false, "one cuBLAS call per member"},
      {cublas_grouped, cuda, true},
      {wide, cpu, false, "the blocks of all members share the threads"},
      {sequential, cpu, false, "member after member"},
  };
  return choose_strategy<RaggedLinearStrategy, RaggedLinearProblem>(
      {"ragged_linear", device, name, verified_by(verified, "ragged_linear", device), "", tuning},
      kTable, problem, ragged_linear_unsupported_reason);
}

int64_t ragged_linear_workspace_bytes(RaggedLinearStrategy strategy,
                                      const RaggedLinearProblem& problem,
                                      const DeviceInfo& device) {
  using enum RaggedLinearStrategy;
  if (strategy != sequential && strategy != cublas_grouped) return 0;
  int64_t bytes = 0;
  if (strategy == cublas_grouped) bytes = ragged_grouped_workspace(problem, device).bytes();
  for (size_t i = 0; i < problem.members.size(); ++i) {
    const LinearWorkspace one =
        linear_workspace(LinearStrategy::sequential, ragged_member_problem(problem, i), device);
    bytes = std::max(bytes, one.bytes());
  }
  return bytes;
}

}  // namespace wide
