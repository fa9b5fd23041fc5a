// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/recurrent/recurrent_strategy.hpp"

#include <array>

#include "host/linear/linear_strategy.hpp"
#include "host/recurrent/recurrent_problem.hpp"

namespace wide {

namespace {

std::string fused_reason(const RecurrentProblem& p, const DeviceInfo& device) {
  const std::string device_reason = kernel_device_reason(device);
  if (!device_reason.empty()) return device_reason;
  constexpr int64_t kMost = kernels::kRecurrentUnits * kernels::kMaxRecurrentWarps;
  if (p.hidden > kMost) {
    return "it takes hidden states up to " + std::to_string(kMost) + ", hidden is " +
           std::to_string(p.hidden);
  }
  const kernels::RecurrentFusedShape shape =
      kernels::recurrent_fused_shape(p.cell, recurrent_math(p.dtype), static_cast<int>(p.hidden));
  if (shape.shared_bytes > device.shared_bytes_per_block) {
    return "hidden " + std::to_string(p.hidden) + " needs " + std::to_string(shape.shared_bytes) +
           " bytes of shared memory, " + device.name + " has " +
           std::to_string(device.shared_bytes_per_block);
  }
  return "";
}

std::string product_reason(RecurrentStrategy strategy, const LinearProblem& product,
                           const DeviceInfo& device) {
  const std::string name = recurrent_product_strategy(strategy, product, device);
  const std::string reason =
      linear_unsupported_reason(*parse_linear_strategy(name, device.device.type), product, device);
  return reason.empty() ? "" : "linear by " + name + ": " + reason;
}

std::string products_reason(RecurrentStrategy strategy, const RecurrentProblem& p,
                            const DeviceInfo& device) {
  const int64_t members = strategy == RecurrentStrategy::sequential ? 1 : p.num_members;
  std::string reason = product_reason(strategy, recurrent_input_product(p, members), device);
  if (strategy == RecurrentStrategy::fused) return reason;
  for (const RowStrides& hidden :
       {recurrent_first_strides(p, members), recurrent_step_strides(p)}) {
    if (!reason.empty()) break;
    reason = product_reason(strategy, recurrent_hidden_product(p, members, hidden), device);
  }
  return reason;
}

}  // namespace

std::string_view strategy_name(RecurrentStrategy strategy) {
  static constexpr std::array<std::string_view, 5> kNames{"sequential", "cublas_batched",
                                                          "stepwise", "fused", "wide"};
  return kNames[static_cast<size_t>(strategy)];
}

std::string recurrent_product_strategy(RecurrentStrategy strategy, const LinearProblem& product,
                                       const DeviceInfo& device) {
  const bool is_ours =
      strategy == RecurrentStrategy::stepwise || strategy == RecurrentStrategy::fused;
  if (!is_ours) return std::string(strategy_name(strategy));
  return std::string(strategy_name(own_linear_kernel(product, device)));
}

kernels::RecurrentMath recurrent_math(Dtype dtype) {
  using enum kernels::RecurrentMath;
  return dtype == Dtype::fp32 ? fp32 : dtype == Dtype::fp16 ? fp16 : bf16;
}

std::string recurrent_unsupported_reason(RecurrentStrategy strategy,
                                         const RecurrentProblem& problem,
                                         const DeviceInfo& device) {
  std::string reason = other_device_reason(strategy_name(strategy), device);
  if (reason.empty() && strategy == RecurrentStrategy::fused) {
    reason = fused_reason(problem, device);
  }
  return reason.empty() ? products_reason(strategy, problem, device) : reason;
}

RecurrentChoice choose_recurrent_strategy(const RecurrentProblem& problem, const DeviceInfo& device,
                                          std::string_view name,
                                          std::span<const VerifiedStrategy> verified,
                                          const Tuning& tuning) {
  using enum RecurrentStrategy;
  using enum DeviceType;
  static constexpr StrategyRow<RecurrentStrategy, RecurrentProblem> kTable[] = {
      {fused, cuda, false, "all steps of all members in one launch"},
      {stepwise, cuda, false, "two launches a step"},
      {cublas_batched, cuda, true, "one vendor call and one launch a step"},
      {sequential, cuda, false, "member after member"},
      {wide, cpu, false, "step by step, members share the threads"},
      {sequential, cpu, false, "member after member"},
  };
  return choose_strategy<RecurrentStrategy, RecurrentProblem>(
      {"recurrent", device, name, verified_by(verified, "recurrent", device), "", tuning}, kTable,
      problem, recurrent_unsupported_reason);
}

}  // namespace wide
