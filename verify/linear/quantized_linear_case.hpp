// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Problems of linear with quantised weights, for tests on devices.
#pragma once

#include <catch2/generators/catch_generators.hpp>
#include <string>
#include <vector>

#include "verify/linear/linear_case.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {

inline WeightFormat any_format() {
  return GENERATE(WeightFormat::fp8_e4m3, WeightFormat::int8, WeightFormat::fp6_e3m2,
                  WeightFormat::int4, WeightFormat::fp4_e2m1);
}

/// Of two members, with a bias.
inline LinearProblem quantized_problem(WeightFormat format, Dtype dtype, int64_t batch, int64_t in,
                                       int64_t out) {
  LinearProblem problem;
  problem.num_members = 2;
  problem.batch = batch;
  problem.in_features = in;
  problem.out_features = out;
  problem.dtype = dtype;
  problem.weight_format = format;
  problem.epilogue.has_bias = true;
  return problem;
}

inline std::string text_of(const LinearProblem& p) {
  return std::string(weight_format_name(p.weight_format)) + ", groups of " +
         std::to_string(p.group_size) + ", " + std::string(dtype_name(p.dtype)) + ", " +
         std::to_string(p.batch) + " x " + std::to_string(p.in_features) + " x " +
         std::to_string(p.out_features);
}

/// Rounded to the tensor's dtype.
inline void upload(TestDevice& bench, const std::vector<float>& from, Tensor& to) {
  Tensor host(Context::cpu(), to.dtype(), to.shape());
  encode_row(to.dtype(), from.data(), host.data(), host.num_elements());
  copy(host, to, bench.stream());
  bench.context().synchronize(bench.stream());
}

}  // namespace wide::test
