// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is asked for as instancenorm, where cuDNN cannot run: the graph is interpreted on the
// host, and cuDNN plans it for devices that are not at hand.
#include <catch2/catch_test_macros.hpp>

#include "host/norm/instancenorm_cudnn.hpp"
#include "verify/support/cudnn_devices.hpp"
#include "verify/support/cudnn_interpreter.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using test::download;
using test::uniform;
using test::upload;

namespace {

GroupnormProblem problem(Dtype dtype = Dtype::fp32) {
  GroupnormProblem p{
      .num_members = 4, .batch = 8, .channels = 16, .groups = 16, .height = 8, .width = 8};
  p.dtype = dtype;
  p.x = p.y = {4 * 16 * 64, 16 * 64, 64, 8};
  p.gamma_member_stride = p.beta_member_stride = 16;
  return p;
}

/// Operands, always with the same values.
struct Operands {
  explicit Operands(const GroupnormProblem& p, const Context& on = Context::cpu())
      : context(on),
        x(upload(context, p.dtype, shape_of(p), uniform(num_elements(shape_of(p)), -1, 1, 1))),
        gamma(parameters(p, 2)),
        beta(parameters(p, 3)),
        y(context, p.dtype, shape_of(p)) {}

  static Shape shape_of(const GroupnormProblem& p) {
    return {p.batch, p.num_members * p.channels, p.height, p.width};
  }
  Tensor parameters(const GroupnormProblem& p, uint64_t seed) const {
    return upload(context, p.dtype, {p.num_members, p.channels},
                  uniform(p.num_members * p.channels, -1, 1, seed));
  }
  GroupnormArguments arguments(bool is_affine) {
    if (!is_affine) return {x, {}, {}, y};
    return {x, gamma, beta, y};
  }

  Context context;
  Tensor x, gamma, beta, y;
};

double worst_difference(const Operands& a, const Operands& b) {
  return test::worst_difference(download(a.context, a.y), download(b.context, b.y));
}

}  // namespace

TEST_CASE("instancenorm: cuDNN's graph means what the CPU computes") {
  for (const bool is_affine : {true, false}) {
    GroupnormProblem like{
        .num_members = 2, .batch = 3, .channels = 2, .groups = 2, .height = 2, .width = 3};
    like.epsilon = 0.01f;
    Operands ours(like), theirs(like);
    const GroupnormArguments arguments = ours.arguments(is_affine);
    const GroupnormPlan plan =
        make_groupnorm_plan(ours.context, describe_groupnorm(arguments, like));
    plan.run(arguments, {Stream::cpu()});
    const InstancenormCudnnGraph graph = describe_instancenorm_cudnn(plan.problem());
    test::interpret(graph.graph, bind_instancenorm_cudnn(graph, theirs.arguments(is_affine)));
    CHECK(worst_difference(ours, theirs) < 1e-5);
  }
}

TEST_CASE("instancenorm: what cuDNN cannot be told of is refused with the reason") {
  const auto reason = [](auto change) {
    GroupnormProblem p = problem();
    change(p);
    return instancenorm_cudnn_unsupported_reason(p);
  };
  using Problem = GroupnormProblem;
  CHECK(reason([](Problem&) {}) == "");
  CHECK(reason([](Problem& p) { p.x.row = 9, p.x.channel = 80, p.x.member = 16 * 80; }) == "");
  CHECK(reason([](Problem& p) { p.groups = 8; }) ==
        "cuDNN has no norm over groups of several channels");
  CHECK(reason([](Problem& p) { p.has_beta = false; }) ==
        "cuDNN's instancenorm wants gamma and beta, or neither");
  CHECK(reason([](Problem& p) { p.y.member += 1; }) ==
        "members do not lie side by side as channels");
  CHECK(reason([](Problem& p) { p.beta_member_stride = 17; }) ==
        "members' parameters do not lie one after another");
  GroupnormProblem grouped = problem();
  grouped.groups = 4;
  CHECK_THROWS_AS(InstancenormCudnn(test::kCudnnH200, grouped), Error);
}

TEST_CASE("instancenorm: operands that cuDNN cannot be given are refused with the reason") {
  Operands operands(problem());
  GroupnormArguments a = operands.arguments(true);
  CHECK(instancenorm_cudnn_unsupported_reason(a) == "");
  a.gamma.data = static_cast<const std::byte*>(a.gamma.data) + 4;
  CHECK(instancenorm_cudnn_unsupported_reason(a) ==
        "gamma is aligned to 4 bytes, expected cuDNN's = 16");
  a.x = a.y;
  CHECK(instancenorm_cudnn_unsupported_reason(a) ==
        "y is x itself, which cuDNN's documentation does not allow");
}

TEST_CASE("instancenorm: a member's operands begin where its values do") {
  GroupnormProblem p = problem(Dtype::bf16);
  Operands operands(p);
  const GroupnormArguments all = operands.arguments(true);
  const GroupnormArguments third = InstancenormCudnn::member_of(p, all, 2);
  const auto bytes = [](const ConstTensorView& own, const ConstTensorView& first) {
    return static_cast<const std::byte*>(own.data) - static_cast<const std::byte*>(first.data);
  };
  CHECK(bytes(third.x, all.x) == 2 * 16 * 64 * 2);
  CHECK(bytes(third.y, all.y) == 2 * 16 * 64 * 2);
  CHECK(bytes(third.gamma, all.gamma) == 2 * 16 * 2);
  CHECK(bytes(third.beta, all.beta) == 2 * 16 * 2);
  CHECK(InstancenormCudnn::member_reason(p) == "");
  p.y.member += 4;
  CHECK(InstancenormCudnn::member_reason(p) == "members do not all begin at multiples of 16 bytes");
}

TEST_CASE("instancenorm: cuDNN plans every dtype for devices that are not at hand") {
  test::require_cudnn_planning();
  // Every plan is a compilation of half a second: few of them.
  GroupnormProblem plain = problem(Dtype::fp16);
  plain.has_gamma = plain.has_beta = false;
  plain.gamma_member_stride = plain.beta_member_stride = 0;
  const std::pair<CudnnDevice, GroupnormProblem> cases[] = {
      {test::kCudnnH200, problem()},
      {test::kCudnnA100, problem(Dtype::bf16)},
      {test::kCudnnH200, plain}};
  for (const auto& [device, p] : cases) {
    const InstancenormCudnn plan(device, p);
    INFO(plan.explain() << ", " << plan.workspace_bytes() << " bytes");
    CHECK(plan.explain().starts_with("engine "));
    Operands operands(p);
    CHECK_THROWS_AS(plan.run(operands.arguments(true), {Stream::cpu()}), Error);  // no handle
  }
}

TEST_CASE("instancenorm: cuDNN on CUDA does what the CPU does", "[gpu]") {
  const Context context = test::require_cuda();
  const VendorHandles handles(context);
  if (handles.cudnn() == nullptr) SKIP("no cuDNN: " << handles.cudnn_unavailable_reason());
  const GroupnormProblem p = problem();
  Operands ours(p);
  make_groupnorm_plan(ours.context, p).run(ours.arguments(true), {Stream::cpu()});
  for (const char* strategy : {"cudnn", "sequential"}) {
    Operands theirs(p, context);
    test::run_plan(context, make_groupnorm_plan(context, p, {strategy}), theirs.arguments(true));
    INFO(strategy);
    CHECK(worst_difference(ours, theirs) < 1e-5);
  }
}
