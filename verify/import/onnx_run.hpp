// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What an ONNX file computes on the CPU in its own types: rounding and overflow included.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "verify/support/onnx_case.hpp"
#include "wide/convert.hpp"
#include "wide/model.hpp"
#include "wide/onnx.hpp"

namespace wide::test::onnx {

/// A tensor of FLOAT (1), FLOAT16 (10), BFLOAT16 (16), UINT8 (2), INT8 (3), INT32 (6) or INT64 (7).
inline std::string typed(const std::string& name, int type, const Extents& dims,
                         const std::vector<double>& values) {
  std::string all;
  for (const double value : values) {
    const Dtype dtype = type == 1    ? Dtype::fp32
                        : type == 10 ? Dtype::fp16
                        : type == 16 ? Dtype::bf16
                        : type == 6  ? Dtype::int32
                        : type == 7  ? Dtype::int64
                                     : Dtype::uint8;
    uint64_t place = static_cast<uint8_t>(static_cast<int64_t>(value));  // of 8 bits
    if (dtype != Dtype::uint8) store_element(&place, dtype, 0, value);
    all.append(reinterpret_cast<const char*>(&place), static_cast<size_t>(dtype_bytes(dtype)));
  }
  return tensor_head(name, type, dims) + bytes(9, all);
}

/// The one output of a file for a batch, one list of elements for each input.
inline std::vector<double> result_of(const std::string& file,
                                     const std::vector<std::vector<double>>& inputs,
                                     int64_t batch = 1, const OnnxOptions& options = {}) {
  const OnnxModel model = OnnxModel::parse(std::as_bytes(std::span(file)), "a file", options);
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = {}});
  const ModelPlan plan = make_model_plan(cpu, model.graph(), {.num_members = 1, .batch = batch});
  const Model loaded(cpu, plan, std::vector<MemberParameters>{model.parameters(0)});
  const auto tensor = [&](const auto& operand) {
    return Tensor(cpu, operand.dtype, operand.shape);
  };
  std::vector<Tensor> owned;
  std::vector<ConstTensorView> views;
  for (size_t k = 0; k < inputs.size(); ++k) {
    owned.push_back(tensor(plan.inputs()[k]));
    for (size_t i = 0; i < inputs[k].size(); ++i)
      store_element(owned.back().data(), owned.back().dtype(), static_cast<int64_t>(i),
                    inputs[k][i]);
  }
  for (const Tensor& each : owned) views.push_back(each);
  Tensor y = tensor(plan.outputs()[0]), workspace(cpu, Dtype::uint8, {plan.workspace_bytes()});
  const TensorView out = y;
  loaded.run({views, {&out, 1}}, {Stream::cpu(), workspace});
  std::vector<double> values;
  for (int64_t i = 0; i < num_elements(y.shape()); ++i)
    values.push_back(static_cast<double>(load_element(y.data(), y.dtype(), i)));
  return values;
}

/// Whether all are as expected up to a share of it; NaN is as expected only where it is.
inline bool is_near(const std::vector<double>& got, const std::vector<double>& expected,
                    double share) {
  bool holds = got.size() == expected.size();
  for (size_t i = 0; holds && i < got.size(); ++i)
    holds = std::isnan(expected[i])
                ? std::isnan(got[i])
                : std::fabs(got[i] - expected[i]) <= share * std::fabs(expected[i]);
  return holds;
}

}  // namespace wide::test::onnx
