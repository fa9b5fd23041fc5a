// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Policies of conv's calls of cuDNN: each computes the same, by another configuration, and tuning
// caches name them.
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>

#include "host/cudnn/cudnn_plan.hpp"
#include "verify/conv/conv_case.hpp"
#include "verify/support/refusals.hpp"
#include "wide/tuning.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Message;
using Catch::Matchers::StartsWith;

ConvProblem problem_of(ChannelLayout layout, Activation activation) {
  return {.num_members = 2,
          .batch = 2,
          .in_channels = 16,
          .out_channels = 32,
          .input = {9, 8},
          .kernel = {3, 3},
          .padding = {1, 1},
          .layout = layout,
          .dtype = Dtype::bf16,
          .epilogue = {.has_bias = true, .activation = activation}};
}

std::string policy_at(size_t place) {
  return "h" + std::to_string(place);
}

/// A problem with its operands, where cuDNN runs it.
struct Call {
  Call(const Context& on, const ConvProblem& problem)
      : context(on),
        like(problem),
        operands(conv_operands(on, problem, false)),
        arguments{operands.x, operands.weight, operands.bias, operands.y, {}},
        described(describe_conv(arguments, problem)) {
    const std::string refusal = cudnn_refusal([&] { (void)plan(""); });
    if (!refusal.empty()) SKIP("cuDNN does not run here: " << refusal);
  }
  std::string strategy() const {
    return like.layout == ChannelLayout::channels_last ? "channels_last" : "grouped";
  }
  ConvPlan plan(const std::string& policy) const {
    return make_conv_plan(context, described, {.strategy = strategy(), .policy = policy});
  }

  Context context;
  ConvProblem like;
  ConvOperands operands;
  ConvArguments arguments;
  ConvProblem described;
};

TEST_CASE("conv: every policy of cuDNN's computes the same by another configuration") {
  const Context context = require_cuda();
  for (const ChannelLayout layout : {ChannelLayout::channels_first, ChannelLayout::channels_last}) {
    for (const Activation activation : {Activation::relu, Activation::gelu}) {
      const Call call(context, problem_of(layout, activation));
      const ConvExpected expected = expected_conv(context, call.operands, call.like, false);
      CHECK(call.plan("").policy() == "h0");
      std::set<std::string> explanations;
      std::string refusal;
      size_t place = 0;
      for (; place < 8 && refusal.empty(); ++place) {
        const std::string policy = policy_at(place);
        INFO(call.strategy() << " " << policy);
        refusal = cudnn_refusal([&] { (void)call.plan(policy); });
        if (!refusal.empty()) break;
        const ConvPlan plan = call.plan(policy);
        CHECK(plan.policy() == policy);
        CHECK_THAT(plan.explain(), ContainsSubstring("; policy " + policy + "; engine "));
        explanations.insert(plan.explain());
        const Shape shape = call.operands.y.shape();
        const std::vector<double> poison(static_cast<size_t>(num_elements(shape)), NAN);
        Tensor y = upload(context, call.like.dtype, shape, poison);
        ConvArguments own = call.arguments;
        own.y = y;
        run_plan(context, plan, own);
        CHECK(worst_conv_ratio(download(context, y), expected) <= 1);
      }
      CHECK(explanations.size() == place);
      if (refusal.empty()) continue;
      CHECK_THAT(refusal, StartsWith("conv: policy " + policy_at(place) + ": cuDNN offers " +
                                     std::to_string(place) + " configuration"));
      CHECK_THAT(refusal, ContainsSubstring("expected h0"));
    }
  }
}

TEST_CASE("conv: policies that there cannot be are refused") {
  const Call call(require_cuda(), problem_of(ChannelLayout::channels_first, Activation::relu));
  const auto refusal = [&](const PlanOptions& options) {
    return refusal_of([&] { (void)make_conv_plan(call.context, call.described, options); });
  };
  CHECK(refusal({.strategy = "grouped", .policy = "h8"}) ==
        "conv: policy \"h8\" is unknown, expected h0 to h7");
  CHECK(refusal({.strategy = "grouped", .policy = "m16n64"}) ==
        "conv: policy \"m16n64\" is unknown, expected h0 to h7");
  for (const char* other : {"sequential", "direct", "implicit_gemm", "wgmma", "pointwise"}) {
    CHECK(refusal({.strategy = other, .policy = "h0"}) ==
          "conv: policy \"h0\", expected none: " + std::string(other) + " has none");
  }
  CHECK(refusal({.policy = "h0"}) ==
        "conv: policy is \"h0\", expected none: strategy \"auto\" has its own");
}

TEST_CASE("conv: a tuning cache keeps a policy, and auto takes it where cuDNN still offers it") {
  const Call call(require_cuda(), problem_of(ChannelLayout::channels_first, Activation::relu));
  const TuningKey key = tuning_key(call.described);
  const auto tuned = [&](const std::string& strategy, const std::string& policy) {
    TuningCache cache;
    cache.set(call.context.info(), key.primitive, key.problem, {strategy, policy, 1, 8, ""});
    const TuningCache read = TuningCache::parse(cache.to_text(), "it");
    CHECK(read == cache);
    return make_conv_plan(call.context, call.described, {.tuning = &read});
  };
  const ConvPlan second = tuned("grouped", "h1");
  INFO(second.explain());
  CHECK((second.strategy() == "grouped" && second.policy() == "h1"));
  CHECK_THAT(second.explain(),
             ContainsSubstring("us with h1 on ") && ContainsSubstring("; policy h1; engine "));
  CHECK(tuned("grouped", "").policy() == "h0");  // of a cache from before there were policies
  CHECK_THAT(tuned("grouped", "m16").explain(),
             ContainsSubstring("tuned grouped not taken: policy \"m16\" is unknown"));
  CHECK_THAT(tuned("sequential", "h1").explain(),
             ContainsSubstring("tuned sequential not taken: policy \"h1\", expected none"));
  const std::string refusal = cudnn_refusal([&] { (void)call.plan("h7"); });
  if (refusal.empty()) return;  // a library that offers many
  const ConvPlan otherwise = tuned("grouped", "h7");
  CHECK_THAT(otherwise.explain(), ContainsSubstring("tuned grouped not taken: " + refusal));
  CHECK(otherwise.policy() != "h7");
}

}  // namespace
}  // namespace wide::test
