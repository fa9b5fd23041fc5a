// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The README's example: a test compares what is behind the mark, and runs the program.
// [readme]
#include <cstdio>
#include <vector>
#include <wide/wide.hpp>

int main(int argc, char**) {  // on the CPU; with any argument on the GPU
  const auto context = argc > 1 ? wide::Context::cuda(0) : wide::Context::cpu();
  const wide::OwnedStream stream(context);     // or yours: wide::Stream(cuda_stream)
  const wide::VendorHandles handles(context);  // or yours: VendorHandles::borrow(cublas, cudnn)
  const auto graph = wide::make_named_model("mlp");  // 64 -> 128 -> 64, or wide::GraphBuilder
  const auto plan = wide::make_model_plan(context, graph, {.num_members = 2, .batch = 1});
  const auto a = wide::random_parameters(graph, 1, 0), b = wide::random_parameters(graph, 1, 1);
  const std::vector<wide::MemberParameters> members{wide::views_of(a), wide::views_of(b)};
  const wide::Model model(context, plan, members);

  float values[2 * 64] = {1};  // [B, N*64]: members side by side
  const wide::TensorView host(values, wide::Dtype::fp32, {1, 2 * 64}, wide::Device{});
  wide::Tensor x(context, host.dtype, host.shape), y(context, host.dtype, host.shape);
  wide::Tensor workspace(context, wide::Dtype::uint8, {plan.workspace_bytes()});
  wide::copy(host, x, stream.get());
  model.run({x}, {y}, {stream.get(), workspace, &handles});
  wide::copy(y, host, stream.get());
  context.synchronize(stream.get());
  std::printf("member 0: %.4f, member 1: %.4f\n", double(values[0]), double(values[64]));
}
