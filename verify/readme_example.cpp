// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The README's example; a test compares the text between the marks and runs the program.
#include <cstdio>
#include <vector>

// [readme]
#include <wide/wide.hpp>

void forward(const wide::Context& context, std::span<const wide::LinearMember> members,
             const wide::Tensor& x, wide::Tensor& y, wide::Stream stream) {
  wide::LinearProblem problem{
      .num_members = 8, .batch = 16, .in_features = 256, .out_features = 64};
  const auto plan = wide::make_linear_plan(context, problem);  // chooses a strategy, once
  const wide::Tensor weight(context, problem.dtype, {8, 64, 256});
  plan.prepare_weights(members, weight, {}, stream);  // N x [out, in] -> [N, out, in]
  const wide::Tensor scratch(context, wide::Dtype::int32, {plan.workspace_bytes() / 4});
  const wide::VendorHandles handles(context);
  const wide::Execution execution{stream, {scratch.data(), scratch.bytes()}, &handles};
  plan.run({.x = x, .weight = weight, .bias = {}, .y = y}, execution);  // 8 models, one call
  context.synchronize(stream);
}
// [readme]

int main() {
  const auto cpu = wide::Context::cpu();
  std::vector<wide::Tensor> weights;
  std::vector<wide::LinearMember> members;
  for (int i = 0; i < 8; ++i) {
    auto& weight = weights.emplace_back(cpu, wide::Dtype::fp32, wide::Shape{64, 256});
    for (int k = 0; k < 64 * 256; ++k)
      static_cast<float*>(weight.data())[k] = static_cast<float>(i);
    members.push_back({.weight = weight, .bias = {}});
  }
  const wide::Tensor x(cpu, wide::Dtype::fp32, {16, 8 * 256});
  for (int k = 0; k < 16 * 8 * 256; ++k) static_cast<float*>(x.data())[k] = 1.0f;
  wide::Tensor y(cpu, wide::Dtype::fp32, {16, 8 * 64});
  forward(cpu, members, x, y, wide::Stream::cpu());

  const auto* result = static_cast<const float*>(y.data());
  for (int i = 0; i < 8; ++i) {
    if (result[i * 64] != static_cast<float>(256 * i)) {
      std::printf("member %d: got %g, expected %d\n", i, static_cast<double>(result[i * 64]),
                  256 * i);
      return 1;
    }
  }
  std::printf("8 members, one call: member 7 gives %g\n", static_cast<double>(result[7 * 64]));
}
