// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Shared by the catalogue's entries of many primitives.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/core/heuristic_policy.hpp"
#include "host/operand.hpp"
#include "wide/catalog.hpp"
#include "wide/epilogue.hpp"
#include "wide/error.hpp"
#include "wide/weight_format.hpp"

namespace wide::catalog {

inline std::vector<AxisValue> ints(std::initializer_list<int64_t> values) {
  return std::vector<AxisValue>(values.begin(), values.end());
}

/// The words of an axis that takes every enumerator.
template <class Enum, size_t kCount>
std::vector<std::string_view> words_of(const std::array<Enum, kCount>& all,
                                       std::string_view (*name_of)(Enum)) {
  std::vector<std::string_view> words;
  for (const Enum each : all) words.push_back(name_of(each));
  return words;
}
/// The same as values of a sweep.
template <class Enum, size_t kCount>
std::vector<AxisValue> word_values(const std::array<Enum, kCount>& all,
                                   std::string_view (*name_of)(Enum)) {
  std::vector<AxisValue> values;
  for (const Enum each : all) values.emplace_back(std::string(name_of(each)));
  return values;
}

inline AxisInfo dtype_axis(std::string_view summary) {
  return {"dtype", summary, "fp32", {"fp32", "fp16", "bf16"}, 0};
}

inline AxisInfo tf32_axis() {
  return {"tf32", "whether fp32 may be multiplied as tf32", "no", {"no", "yes"}, 0};
}

inline std::string tf32_impossible_reason(const Case& point) {
  if (point.word("tf32") == "yes" && point.dtype() != Dtype::fp32) {
    return "tf32 is a way to multiply fp32, dtype is " + std::string(dtype_name(point.dtype()));
  }
  return "";
}

inline AxisInfo shared_axis() {
  return {"shared", "whether all members read one x", "no", {"no", "yes"}, 0};
}

inline AxisInfo activation_axis(std::string_view summary, const char* usual = "none") {
  return {"activation", summary, usual, words_of(kAllActivations, activation_name)};
}

inline AxisInfo bias_axis() {
  return {"bias", "whether there is one", "yes", {"yes", "no"}, 0};
}

/// Where a product's epilogue adds a residual.
inline AxisInfo epilogue_residual_axis() {
  return {"residual",
          "where one is added: before or after the activation",
          "no",
          {"no", "before", "after"},
          0};
}

/// Axes of a primitive or of a sweep, and more of them.
template <class Each>
std::vector<Each> joined(std::vector<Each> some, const std::vector<Each>& more) {
  some.insert(some.end(), more.begin(), more.end());
  return some;
}

inline AxisInfo weights_axis(std::string_view summary) {
  return {"weights", summary, "packed", words_of(kAllWeightFormats, weight_format_name)};
}

/// For primitives with one kernel: the same two on both devices.
inline std::vector<StrategyInfo> wide_strategies(std::string_view wide_summary, Traffic traffic) {
  using enum DeviceType;
  using enum StrategyKind;
  return {{"sequential", cuda, sequential, "the wide kernel, one launch per member"},
          {"wide", cuda, hand_written, wide_summary, traffic},
          {"sequential", cpu, sequential, "member after member, each threaded"},
          {"wide", cpu, hand_written, "all members over all threads at once"}};
}

inline std::vector<std::string_view> cudnn_policies() {
  return {kCudnnPolicies.begin(), kCudnnPolicies.end()};
}

/// Of wide_strategies(), where cuDNN has the primitive: its call for all members, and for each.
inline std::vector<StrategyInfo> with_cudnn(
    std::vector<StrategyInfo> strategies,
    std::string_view summary = "cuDNN's, over the channels of all members",
    std::vector<std::string_view> policies = cudnn_policies()) {
  strategies.front().summary =
      "cuDNN's where it takes the problem, else the wide kernel; one call per member";
  strategies.insert(
      strategies.begin() + 1,
      {"cudnn", DeviceType::cuda, StrategyKind::vendor, summary, {}, std::move(policies)});
  return strategies;
}

/// Why a plan cannot be made; empty where it can.
template <class Make>
std::string reason_against(const Make& make) {
  try {
    (void)make();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// Of an axis `spread`: by how many percent of the largest a member may have less.
inline std::string spread_impossible_reason(const Case& point) {
  if (point.integer("spread") <= 100) return "";
  return "spread is " + std::to_string(point.integer("spread")) + " percent, expected up to 100";
}

/// A plan on a workload's operands.
template <class Plan, class Arguments>
Prepared prepared(const Plan& plan, const Arguments& arguments) {
  return {[plan, arguments](const Execution& execution) { plan.run(arguments, execution); },
          plan.workspace_bytes(), std::string(plan.strategy()), std::string(plan.policy()),
          plan.explain()};
}

/// A plan of one member on the operands of each.
template <class Plan, class Arguments>
PreparedMembers prepared_members(const Plan& plan, std::vector<Arguments> members) {
  return {[plan, members = std::move(members)](int64_t n, const Execution& execution) {
            plan.run(members[static_cast<size_t>(n)], execution);
          },
          plan.workspace_bytes(), std::string(plan.strategy()), std::string(plan.policy()),
          plan.explain()};
}

/// A plan for each member, where they differ.
template <class Plan, class Arguments>
PreparedMembers prepared_members(std::vector<Plan> plans, std::vector<Arguments> members) {
  int64_t workspace_bytes = 0;
  for (const Plan& plan : plans)
    workspace_bytes = std::max(workspace_bytes, plan.workspace_bytes());
  return {[plans = std::move(plans), members = std::move(members)](int64_t n,
                                                                   const Execution& execution) {
            plans[static_cast<size_t>(n)].run(members[static_cast<size_t>(n)], execution);
          },
          workspace_bytes};
}

/// PrimitiveSpec::tuning_key by the function that turns a case into a problem.
template <class Problem>
std::function<TuningKey(const Case&)> tuned_by(Problem (*problem_of)(const Case&)) {
  return [problem_of](const Case& point) { return tuning_key(problem_of(point)); };
}

template <class Concrete>
std::unique_ptr<Workload> make_workload(const Context& context, const Case& point,
                                        const WorkloadOptions& options) {
  return std::make_unique<Concrete>(context, point, options);
}

}  // namespace wide::catalog
