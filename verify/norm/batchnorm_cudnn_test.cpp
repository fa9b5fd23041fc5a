// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is asked for as batchnorm, where cuDNN cannot run: the graph is interpreted on the
// host, and cuDNN plans it for devices that are not at hand.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "host/core/wide_strategy.hpp"
#include "host/norm/batchnorm_cudnn.hpp"
#include "verify/support/cudnn_devices.hpp"
#include "verify/support/cudnn_interpreter.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/known_devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/error.hpp"

using namespace wide;
using test::download;
using test::uniform;
using test::upload;

namespace {

/// Operands, always with the same values.
struct Operands {
  explicit Operands(const BatchnormProblem& p, const Context& on = Context::cpu())
      : context(on),
        x(upload(context, p.dtype, shape_of(p), uniform(count_of(p), -1, 1, 1))),
        gamma(parameters(p, p.dtype, -1, 1, 2)),
        beta(parameters(p, p.dtype, -1, 1, 3)),
        mean(parameters(p, Dtype::fp32, -1, 1, 4)),
        variance(parameters(p, Dtype::fp32, 0.5, 2, 5)),
        y(context, p.dtype, shape_of(p)) {}

  static Shape shape_of(const BatchnormProblem& p) {
    return {p.batch, p.num_members * p.channels, p.height, p.width};
  }
  static int64_t count_of(const BatchnormProblem& p) { return num_elements(shape_of(p)); }
  Tensor parameters(const BatchnormProblem& p, Dtype dtype, double low, double high,
                    uint64_t seed) const {
    return upload(context, dtype, {p.num_members, p.channels},
                  uniform(p.num_members * p.channels, low, high, seed));
  }
  BatchnormArguments arguments(bool is_affine) {
    BatchnormArguments all{x, {}, {}, mean, variance, y, {}, {}};
    if (is_affine) all.gamma = gamma, all.beta = beta;
    return all;
  }

  Context context;
  Tensor x, gamma, beta, mean, variance, y;
};

double worst_difference(const Operands& a, const Operands& b) {
  double worst = 0;
  for (const auto& [one, other] :
       {std::pair{&a.y, &b.y}, {&a.mean, &b.mean}, {&a.variance, &b.variance}}) {
    worst = std::max(
        worst, test::worst_difference(download(a.context, *one), download(b.context, *other)));
  }
  return worst;
}

BatchnormProblem problem(BatchnormMode mode, Dtype dtype = Dtype::fp32) {
  BatchnormProblem p{.num_members = 4, .batch = 8, .channels = 16, .height = 8, .width = 8};
  p.dtype = dtype;
  p.mode = mode;
  const ChannelStrides packed{4 * 16 * 64, 16 * 64, 64, 8, 1};
  p.x = p.y = packed;
  p.gamma_member_stride = p.beta_member_stride = 16;
  p.mean_member_stride = p.variance_member_stride = 16;
  return p;
}

}  // namespace

TEST_CASE("batchnorm: cuDNN's graph means what the CPU computes") {
  for (const BatchnormMode mode : {BatchnormMode::eval, BatchnormMode::train}) {
    for (const bool is_affine : {true, false}) {
      if (mode == BatchnormMode::train && !is_affine) continue;
      BatchnormProblem like{.num_members = 2, .batch = 3, .channels = 2, .height = 2, .width = 3};
      like.mode = mode;
      like.epsilon = 0.01f;
      like.momentum = 0.3f;
      Operands ours(like), theirs(like);
      const BatchnormArguments arguments = ours.arguments(is_affine);
      const BatchnormPlan plan =
          make_batchnorm_plan(ours.context, describe_batchnorm(arguments, like));
      plan.run(arguments, {Stream::cpu()});
      const BatchnormCudnnGraph graph = describe_batchnorm_cudnn(plan.problem());
      std::vector<std::byte> saved(
          static_cast<size_t>(2 * batchnorm_saved_bytes(plan.problem()) + 16));
      test::interpret(graph.graph, bind_batchnorm_cudnn(graph, plan.problem(),
                                                        theirs.arguments(is_affine), saved.data()));
      CHECK(worst_difference(ours, theirs) < 1e-5);
    }
  }
}

TEST_CASE("batchnorm: what cuDNN cannot be told of is refused with the reason") {
  BatchnormProblem p = problem(BatchnormMode::eval);
  CHECK(batchnorm_cudnn_unsupported_reason(p) == "");
  p.x.row = 9, p.x.channel = 80, p.x.member = 16 * 80, p.x.batch = 4 * 16 * 80;
  CHECK(batchnorm_cudnn_unsupported_reason(p) == "there are gaps between rows of positions");
  p.mode = BatchnormMode::train;
  CHECK(batchnorm_cudnn_unsupported_reason(p) == "");
  p.has_beta = false;
  CHECK(batchnorm_cudnn_unsupported_reason(p) == "mode train of cuDNN's wants gamma and beta");
  p = problem(BatchnormMode::train);
  p.y.member += 1;
  CHECK(batchnorm_cudnn_unsupported_reason(p) == "members do not lie side by side as channels");
  p = problem(BatchnormMode::train);
  p.variance_member_stride = 17;
  CHECK(batchnorm_cudnn_unsupported_reason(p) ==
        "members' parameters do not lie one after another");
  CHECK_THROWS_AS(BatchnormCudnn(test::kCudnnH200, p), Error);
}

TEST_CASE("batchnorm: cuDNN plans every mode and dtype for devices that are not at hand") {
  test::require_cudnn_planning();
  // Every plan is a compilation of half a second: few of them.
  const std::pair<CudnnDevice, BatchnormProblem> cases[] = {
      {test::kCudnnH200, problem(BatchnormMode::eval)},
      {test::kCudnnA100, problem(BatchnormMode::eval, Dtype::bf16)},
      {test::kCudnnH200, problem(BatchnormMode::train, Dtype::fp16)},
      {test::kCudnnA100, problem(BatchnormMode::train)}};
  for (const auto& [device, p] : cases) {
    const BatchnormCudnn plan(device, p);
    INFO(plan.explain() << ", " << plan.workspace_bytes() << " bytes");
    CHECK(plan.explain().starts_with("engine "));
    CHECK(plan.workspace_bytes() >= 2 * batchnorm_saved_bytes(p));
    Operands operands(p);
    CHECK_THROWS_AS(plan.run(operands.arguments(true), {Stream::cpu()}), Error);  // no handle
  }
}

TEST_CASE("batchnorm: operands that cuDNN cannot be given are refused with the reason") {
  Operands operands(problem(BatchnormMode::eval));
  const auto reason = [&](auto change) {
    BatchnormArguments a = operands.arguments(true);
    change(a);
    return batchnorm_cudnn_unsupported_reason(a);
  };
  using Arguments = BatchnormArguments;
  CHECK(reason([](Arguments&) {}) == "");
  CHECK(reason([](Arguments& a) {
          a.beta.data = static_cast<const std::byte*>(a.beta.data) + 4;
        }) == "beta is aligned to 4 bytes, expected cuDNN's = 16");
  const std::string one =
      "members have an epsilon or momentum of their own, and cuDNN has one for all channels";
  CHECK(reason([](Arguments& a) { a.epsilon = a.running_mean; }) == one);
  CHECK(reason([](Arguments& a) { a.momentum = a.running_mean; }) == one);
  CHECK(reason([](Arguments& a) { a.x = a.y; }) ==
        "y is x itself, which cuDNN's documentation does not allow");
}

TEST_CASE("batchnorm: a member's operands begin where its values do") {
  BatchnormProblem p = problem(BatchnormMode::train, Dtype::fp16);
  Operands operands(p);
  const BatchnormArguments all = operands.arguments(true);
  const BatchnormArguments third = BatchnormCudnn::member_of(p, all, 2);
  const auto bytes = [](const ConstTensorView& own, const ConstTensorView& first) {
    return static_cast<const std::byte*>(own.data) - static_cast<const std::byte*>(first.data);
  };
  CHECK(bytes(third.x, all.x) == 2 * 16 * 64 * 2);
  CHECK(bytes(third.y, all.y) == 2 * 16 * 64 * 2);
  CHECK(bytes(third.gamma, all.gamma) == 2 * 16 * 2);
  CHECK(bytes(third.beta, all.beta) == 2 * 16 * 2);
  CHECK(bytes(third.running_mean, all.running_mean) == 2 * 16 * 4);
  CHECK(bytes(third.running_variance, all.running_variance) == 2 * 16 * 4);
  CHECK(BatchnormCudnn::member_of(p, operands.arguments(false), 2).gamma.is_absent());

  CHECK(BatchnormCudnn::member_reason(p) == "");
  const std::string reason = "members do not all begin at multiples of 16 bytes";
  for (int64_t BatchnormProblem::*stride :
       {&BatchnormProblem::gamma_member_stride, &BatchnormProblem::beta_member_stride,
        &BatchnormProblem::mean_member_stride, &BatchnormProblem::variance_member_stride}) {
    BatchnormProblem odd = p;
    odd.*stride += 2;
    CHECK(BatchnormCudnn::member_reason(odd) == reason);
  }
  BatchnormProblem odd = p;
  odd.x.member += 4;
  CHECK(BatchnormCudnn::member_reason(odd) == reason);
  odd.num_members = 1;
  CHECK(BatchnormCudnn::member_reason(odd) == reason);  // the bits of a member do not depend on N
}

TEST_CASE("batchnorm: AUTO takes cuDNN where ours is unverified, and says why not") {
  int asked = 0;
  const auto choose = [&](std::string_view name, bool is_verified, const char* refusal) {
    return choose_wide_strategy("batchnorm", test::kH200, name, is_verified, {},
                                {[&](std::string_view) -> std::string {
                                  ++asked;
                                  return refusal;
                                }});
  };
  CHECK(choose("auto", true, "").strategy == WideStrategy::wide);
  CHECK(choose("cudnn", false, "no").strategy == WideStrategy::cudnn);
  CHECK(asked == 0);  // the answer takes a plan
  CHECK(choose("auto", false, "").strategy == WideStrategy::cudnn);
  CHECK(choose("auto", false, "").explain ==
        "cudnn: one call for all members; wide: unverified on compute capability 90");
  CHECK(choose("auto", false, "no engine").strategy == WideStrategy::sequential);
  CHECK(choose("auto", false, "no engine").explain ==
        "sequential: member after member; wide: unverified on compute capability 90; cudnn: no "
        "engine");
}

TEST_CASE("batchnorm: cuDNN's own words say why it refuses") {
  test::require_cudnn_planning();
  BatchnormProblem p{.num_members = 1, .batch = 3, .channels = 5, .height = 7, .width = 11};
  p.mode = BatchnormMode::train;
  p.x = p.y = {5 * 77, 5 * 77, 77, 11};
  const std::string text =
      test::message_of(ErrorCode::unsupported, [&] { (void)BatchnormCudnn(test::kCudnnH200, p); });
  CHECK(text.starts_with("batchnorm: cuDNN: "));
  CHECK(text.find("elements_per_ldg") != std::string::npos);  // five channels are no such vector
}

TEST_CASE("batchnorm: cuDNN on CUDA does what the CPU does, running statistics too", "[gpu]") {
  const Context context = test::require_cuda();
  const VendorHandles handles(context);
  if (handles.cudnn() == nullptr) SKIP("no cuDNN: " << handles.cudnn_unavailable_reason());
  for (const BatchnormMode mode : {BatchnormMode::eval, BatchnormMode::train}) {
    const BatchnormProblem p = problem(mode);
    Operands ours(p);
    make_batchnorm_plan(ours.context, p).run(ours.arguments(true), {Stream::cpu()});
    for (const char* strategy : {"cudnn", "sequential"}) {
      Operands theirs(p, context);
      test::run_plan(context, make_batchnorm_plan(context, p, {strategy}), theirs.arguments(true));
      INFO(strategy);
      CHECK(worst_difference(ours, theirs) < 1e-5);
    }
  }
}
