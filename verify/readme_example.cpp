// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The README's example: a test compares what is behind the mark, and runs the program.
// [readme]
#include <cstdio>
#include <vector>
#include <wide/wide.hpp>

int main() {
  const auto cpu = wide::Context::cpu();
  const auto graph = wide::make_named_model("mlp");  // 64 -> 128 -> 64, or wide::GraphBuilder
  const auto plan = wide::make_model_plan(cpu, graph, {.num_members = 2, .batch = 1});
  const auto a = wide::random_parameters(graph, 1, 0), b = wide::random_parameters(graph, 1, 1);
  const std::vector<wide::MemberParameters> members{wide::views_of(a), wide::views_of(b)};
  const wide::Model model(cpu, plan, members);
  float x[2 * 64] = {1}, y[2 * 64];  // [B, N*64]: members side by side
  const wide::ConstTensorView in(x, wide::Dtype::fp32, {1, 2 * 64}, cpu.device());
  const wide::TensorView out(y, wide::Dtype::fp32, {1, 2 * 64}, cpu.device());
  wide::Tensor workspace(cpu, wide::Dtype::uint8, {plan.workspace_bytes()});
  model.run({{&in, 1}, {&out, 1}}, {wide::Stream::cpu(), {workspace.data(), workspace.bytes()}});
  std::printf("member 0: %.4f, member 1: %.4f\n", double(y[0]), double(y[64]));
}
