// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The keys of linear's problems in tuning caches.
#include "host/core/problem_keys.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_strategy.hpp"

namespace wide {

namespace {

/// " x=1024,256": row and member strides, where they differ from those of packed operands.
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

}  // namespace

std::string linear_problem_key(const LinearProblem& problem) {
  const LinearProblem p = complete_linear_problem(problem);
  LinearProblem bare = p;  // the default strides
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
           std::to_string(p.group_size) + (p.allow_rounded_weights ? " rounded" : "");
  }
  if (p.allow_tf32) key += " tf32";
  if (p.shared_input) key += " shared";
  return key + epilogue_text(p.epilogue) + strides_text("x", p.x, bare.x) +
         strides_text("weight", p.weight, bare.weight) + strides_text("y", p.y, bare.y) +
         strides_text("residual_at", p.residual, bare.residual) +
         stride_text("bias_at", p.bias_member_stride, bare.bias_member_stride) +
         stride_text("scale_at", p.scale_member_stride, bare.scale_member_stride);
}

std::string problem_key(const LinearProblem& complete) {
  return linear_problem_key(complete);
}
TuningKey tuning_key(const LinearProblem& problem) {
  return {"linear", linear_problem_key(problem)};
}

}  // namespace wide
