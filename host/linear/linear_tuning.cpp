// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear and the tuning cache: what a problem is called there, and when what it says is taken.
#include <algorithm>
#include <cstdio>

#include "host/linear/linear_cublaslt.hpp"
#include "host/linear/linear_policy.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"

namespace wide {

namespace {

/// " x=1024,256": row and member strides, where they are not what packed operands have.
std::string strides_text(const char* name, const RowStrides& strides, const RowStrides& packed) {
  if (strides == packed) return "";
  return std::string(" ") + name + "=" + std::to_string(strides.row) + "," +
         std::to_string(strides.member);
}

std::string stride_text(const char* name, int64_t stride, int64_t packed) {
  if (stride == packed) return "";
  return std::string(" ") + name + "=" + std::to_string(stride);
}

std::string epilogue_text(const Epilogue& epilogue) {
  std::string text = epilogue.has_bias ? " bias" : "";
  if (epilogue.alpha != 1) text += " alpha";
  if (epilogue.scale != OutputScale::none) {
    text += " scale=" + std::string(output_scale_name(epilogue.scale));
  }
  if (epilogue.activation != Activation::none) {
    text += " " + std::string(activation_name(epilogue.activation));
  }
  if (epilogue.residual != Residual::none) {
    text += " residual=" + std::string(residual_name(epilogue.residual));
  }
  return text;
}

/// Whether the strategy needs no proof on a device: the vendor's, and the CPU's, which every
/// build's tests judge. Of fp8 and quantised weights, sequential is ours.
bool is_beyond_proof(LinearStrategy strategy, const LinearProblem& problem,
                     const DeviceInfo& device) {
  using enum LinearStrategy;
  return device.device.type == DeviceType::cpu ||
         (strategy == sequential && !launches_linear_members(problem)) ||
         strategy == cublas_batched || strategy == cublaslt || strategy == cublas_grouped;
}

}  // namespace

std::string linear_problem_key(const LinearProblem& problem) {
  const LinearProblem p = complete_linear_problem(problem);
  LinearProblem bare = p;  // what the strides would be, were none given
  bare.x = bare.y = bare.weight = bare.residual = {};
  bare.bias_member_stride = bare.scale_member_stride = 0;
  bare = complete_linear_problem(bare);
  std::string key = "n=" + std::to_string(p.num_members) + " batch=" + std::to_string(p.batch) +
                    " in=" + std::to_string(p.in_features) +
                    " out=" + std::to_string(p.out_features) + " " +
                    std::string(dtype_name(p.dtype));
  if (*p.y_dtype != p.dtype) key += ">" + std::string(dtype_name(*p.y_dtype));
  if (is_quantized(p)) {
    key += " weight=" + std::string(weight_format_name(p.weight_format)) + "/" +
           std::to_string(p.group_size);
  }
  if (p.allow_tf32) key += " tf32";
  if (p.shared_input) key += " shared";
  return key + epilogue_text(p.epilogue) + strides_text("x", p.x, bare.x) +
         strides_text("weight", p.weight, bare.weight) + strides_text("y", p.y, bare.y) +
         strides_text("residual_at", p.residual, bare.residual) +
         stride_text("bias_at", p.bias_member_stride, bare.bias_member_stride) +
         stride_text("scale_at", p.scale_member_stride, bare.scale_member_stride);
}

std::optional<LinearChoice> tuned_linear_choice(const LinearProblem& problem,
                                                const DeviceInfo& device,
                                                std::span<const VerifiedStrategy> verified,
                                                const TuningCache& tuning,
                                                std::string_view kernel_hash,
                                                std::string& why_not) {
  const TuningEntry* entry = tuning.find(device, "linear", linear_problem_key(problem));
  if (entry == nullptr) {
    why_not = "not in the tuning cache";
    return std::nullopt;
  }
  const auto refuse = [&](const std::string& why) {
    why_not = "tuned " + entry->strategy + " not taken: " + why;
    return std::nullopt;
  };
  const auto strategy = parse_linear_strategy(entry->strategy, device.device.type);
  if (!strategy) return refuse("this build has no such strategy");
  const std::string reason = linear_unsupported_reason(*strategy, problem, device);
  if (!reason.empty()) return refuse(reason);
  const std::string policy_reason = linear_policy_reason(*strategy, problem, entry->policy);
  if (!policy_reason.empty()) return refuse(policy_reason);
  const bool was_checked = !kernel_hash.empty() && entry->kernel_hash == kernel_hash;
  if (!is_beyond_proof(*strategy, problem, device) && !was_checked &&
      !is_verified_in(verified, "linear", entry->strategy, device.compute_capability)) {
    return refuse("its kernels have changed since, and it is not verified on this device");
  }
  char time[32];
  std::snprintf(time, sizeof(time), "%.4g us", entry->time_us);
  return LinearChoice{
      *strategy,
      entry->strategy + ": tuned: " + time +
          (entry->policy.empty() ? "" : " with " + entry->policy) + " on " + device.name +
          (entry->is_autos_own ? ", auto's own choice: no other of " : ", the fastest of ") +
          std::to_string(entry->num_candidates) + " candidates" +
          (entry->is_autos_own ? " was faster" : ""),
      entry->policy};
}

}  // namespace wide
