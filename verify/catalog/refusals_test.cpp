// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What every plan of every primitive refuses: names that it does not know, a workspace that is too
// small, nowhere, or askew, on CUDA the stream of the CPU, and strides that lead out of memory.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

#include "bench/cases/expand.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/session.hpp"
#include "wide/catalog.hpp"
#include "wide/wide.hpp"

namespace wide::test {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

catalog::Case first_case(const catalog::PrimitiveSpec& spec) {
  return bench::expand(spec, catalog::find_sweep(spec, "ci"), {}).cases.front();
}

void check_workspace(Session& session, const catalog::PrimitiveSpec& spec,
                     const catalog::Prepared& prepared) {
  const int64_t bytes = prepared.workspace_bytes;
  Tensor memory(session.context(), Dtype::uint8, {bytes + 1});
  const VendorHandles handles(session.context());
  const std::string name(spec.name);
  const auto refuses = [&](Workspace workspace, const std::string& message) {
    CHECK_THROWS_MATCHES(prepared.run({session.stream(), workspace, &handles}), Error,
                         MessageMatches(ContainsSubstring(message)));
  };
  refuses({memory.data(), bytes - 1},
          "workspace is " + std::to_string(bytes - 1) +
              " bytes, expected workspace_bytes = " + std::to_string(bytes));
  refuses({nullptr, bytes}, "workspace is a null pointer, expected " + std::to_string(bytes));
  refuses({static_cast<char*>(memory.data()) + 1, bytes}, "workspace is not aligned");
}

void check_stream(Session& session, const catalog::Prepared& prepared) {
  Tensor workspace(session.context(), Dtype::uint8, {prepared.workspace_bytes});
  const VendorHandles handles(session.context());
  const Execution execution{Stream::cpu(), {workspace.data(), workspace.bytes()}, &handles};
  CHECK_THROWS_MATCHES(
      prepared.run(execution), Error,
      MessageMatches(ContainsSubstring("stream is null, as Stream::cpu() is, expected")));
}

}  // namespace

TEST_CASE("every primitive refuses unknown strategies and policies, bad workspaces and streams") {
  int64_t with_workspace = 0;
  for (const Context& context : devices_at_hand()) {
    Session session(context);
    for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
      const auto workload = spec->make_workload(context, first_case(*spec), {});
      INFO(spec->name << " on " << to_string(context.device()));
      CHECK_THROWS_MATCHES(workload->prepare({.strategy = "no_such"}), Error,
                           MessageMatches(ContainsSubstring("strategy is \"no_such\"")));
      for (const catalog::StrategyInfo& info : spec->strategies) {
        if (info.device != context.device().type) continue;
        INFO(info.name);
        const std::string name(info.name);
        if (!workload->unsupported_reason(name).empty()) continue;
        CHECK_THROWS_MATCHES(
            workload->prepare({.strategy = name, .policy = "no_such"}), Error,
            MessageMatches(ContainsSubstring("policy") && ContainsSubstring("\"no_such\"")));
        const catalog::Prepared prepared = workload->prepare({.strategy = name});
        if (info.device == DeviceType::cuda) check_stream(session, prepared);
        CHECK(prepared.workspace_bytes % kWorkspaceAlignment == 0);
        if (prepared.workspace_bytes == 0) continue;
        ++with_workspace;
        check_workspace(session, *spec, prepared);
      }
    }
  }
  CHECK(with_workspace > 0);
}

namespace {

template <class Problem>
struct StrideField {
  const char* name;
  int64_t& (*of)(Problem&);
};

/// The CPU's plan of a good problem with one stride spoilt names it and what is wrong.
template <class Problem, class Make>
void check_strides(const Make& make, const Problem& good,
                   std::initializer_list<StrideField<Problem>> fields) {
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK_NOTHROW(make(cpu, good, PlanOptions{}));
  for (const StrideField<Problem>& field : fields) {
    for (const int64_t stride : {int64_t{-1}, kLeast, kMost}) {
      INFO(field.name << " = " << stride);
      Problem bad = good;
      field.of(bad) = stride;
      const std::string message = refusal_of([&] { (void)make(cpu, bad, PlanOptions{}); });
      INFO(message);
      CHECK(message.find(field.name) != std::string::npos);
      CHECK((message.find(stride == kMost ? "64 bits" : "expected none below 0") !=
                 std::string::npos ||
             (stride < 0 && message.ends_with("expected >= 0"))));
    }
  }
}

#define STRIDE(name, field)                           \
  {                                                   \
    name, [](auto& p) -> int64_t& { return p.field; } \
  }

template <class Problem, class Make>
void check_rows(const Make& make, const Problem& good) {
  check_strides<Problem>(
      make, good,
      {STRIDE("x", x.row), STRIDE("x", x.member), STRIDE("y", y.row), STRIDE("y", y.member)});
}

/// `good` has packed strides: its last axis has to stay contiguous.
template <class Problem, class Make>
void check_channels(const Make& make, Problem good) {
  good.x = good.y = {48, 24, 8, 4, 1};
  check_strides<Problem>(make, good,
                         {STRIDE("x", x.batch), STRIDE("x", x.member), STRIDE("x", x.channel),
                          STRIDE("x", x.row), STRIDE("y", y.batch)});
}

void check_products() {
  LinearProblem linear{.num_members = 2, .batch = 3, .in_features = 8, .out_features = 4};
  linear.epilogue = {
      .has_bias = true, .scale = OutputScale::per_output, .residual = Residual::before_activation};
  check_rows(make_linear_plan, linear);
  check_strides<LinearProblem>(
      make_linear_plan, linear,
      {STRIDE("weight", weight.row), STRIDE("weight", weight.member),
       STRIDE("residual", residual.row), STRIDE("residual", residual.member),
       STRIDE("bias", bias_member_stride), STRIDE("scale", scale_member_stride)});
  const RoutedLinearProblem routed{.num_members = 2,
                                   .num_rows = 6,
                                   .in_features = 8,
                                   .out_features = 4,
                                   .epilogue = linear.epilogue};
  check_strides<RoutedLinearProblem>(
      make_routed_linear_plan, routed,
      {STRIDE("x", x_row_stride), STRIDE("y", y_row_stride),
       STRIDE("residual", residual_row_stride), STRIDE("weight", weight.row),
       STRIDE("bias", bias_member_stride), STRIDE("scale", scale_member_stride)});
  check_rows(make_mlp_plan, MlpProblem{.num_members = 2, .batch = 3, .widths = {4, 5, 6}});
  check_strides<RoutedMlpProblem>(make_routed_mlp_plan,
                                  {.num_members = 2, .num_rows = 3, .widths = {4, 5, 6}},
                                  {STRIDE("x", x_row_stride), STRIDE("y", y_row_stride)});
  ConvProblem conv{.num_members = 2, .batch = 2, .in_channels = 4, .out_channels = 4};
  conv.input = {6, 6};
  conv.kernel = {3, 3};
  conv.epilogue.has_bias = true;
  check_strides<ConvProblem>(make_conv_plan, conv,
                             {STRIDE("x", x.batch), STRIDE("weight", weight.out_channel),
                              STRIDE("y", y.member), STRIDE("bias", bias_member_stride)});
}

void check_norms() {
  LayernormProblem layernorm{.num_members = 2, .rows = 3, .features = 8};
  layernorm.has_residual = layernorm.has_sum = true;
  check_rows(make_layernorm_plan, layernorm);
  check_strides<LayernormProblem>(
      make_layernorm_plan, layernorm,
      {STRIDE("gamma", gamma_member_stride), STRIDE("beta", beta_member_stride),
       STRIDE("residual", residual.row), STRIDE("sum", sum.member)});
  const RmsnormProblem rmsnorm{.num_members = 2, .rows = 3, .features = 8};
  check_rows(make_rmsnorm_plan, rmsnorm);
  check_strides<RmsnormProblem>(make_rmsnorm_plan, rmsnorm, {STRIDE("gamma", gamma_member_stride)});
  ChainProblem chain{.num_members = 2, .rows = 3, .features = 8};
  chain.has_bias = true;
  check_rows(make_chain_plan, chain);
  check_strides<ChainProblem>(make_chain_plan, chain, {STRIDE("bias", bias_member_stride)});
  const GroupnormProblem groupnorm{
      .num_members = 2, .batch = 2, .channels = 3, .height = 2, .width = 4};
  check_channels(make_groupnorm_plan, groupnorm);
  check_strides<GroupnormProblem>(
      make_groupnorm_plan, groupnorm,
      {STRIDE("gamma", gamma_member_stride), STRIDE("beta", beta_member_stride)});
  const BatchnormProblem batchnorm{
      .num_members = 2, .batch = 2, .channels = 3, .height = 2, .width = 4};
  check_channels(make_batchnorm_plan, batchnorm);
  check_strides<BatchnormProblem>(
      make_batchnorm_plan, batchnorm,
      {STRIDE("gamma", gamma_member_stride), STRIDE("mean", mean_member_stride),
       STRIDE("variance", variance_member_stride)});
}

void check_elements() {
  PointwiseProblem prelu{.num_members = 2, .rows = 3, .features = 8};
  prelu.function = PointwiseFunction::prelu;
  prelu.num_slopes = 8;
  check_rows(make_pointwise_plan, prelu);
  check_strides<PointwiseProblem>(make_pointwise_plan, prelu,
                                  {STRIDE("slope", slope_member_stride)});
  check_rows(make_softmax_plan, SoftmaxProblem{.num_members = 2, .rows = 3, .features = 8});
  BinaryProblem binary{.num_members = 2, .rows = 3, .features = 8};
  check_rows(make_binary_plan, binary);
  check_strides<BinaryProblem>(make_binary_plan, binary, {STRIDE("other", other.row)});
  binary.broadcast = Broadcast::features;
  check_strides<BinaryProblem>(make_binary_plan, binary, {STRIDE("other", other.member)});
  const DropoutProblem dropout{.num_members = 2, .rows = 3, .features = 8};
  check_rows(make_dropout_plan, dropout);
  check_strides<DropoutProblem>(
      make_dropout_plan, dropout,
      {STRIDE("seed", seed_member_stride), STRIDE("probability", probability_member_stride)});
  check_strides<EnsembleProblem>(make_ensemble_plan, {.num_members = 2, .rows = 3, .features = 8},
                                 {STRIDE("x", x.member), STRIDE("y", y_row_stride)});
  check_channels(make_pooling_plan, PoolingProblem{.num_members = 2,
                                                   .batch = 2,
                                                   .channels = 3,
                                                   .height = 2,
                                                   .width = 4,
                                                   .rows = {.kernel = 2},
                                                   .columns = {.kernel = 2}});
  check_channels(
      make_interpolate_plan,
      InterpolateProblem{.num_members = 2, .batch = 2, .channels = 3, .height = 2, .width = 4});
}

void check_sequences_and_tables() {
  FlashAttentionProblem flash{
      .num_members = 2, .batch = 2, .seq = 3, .heads = 2, .kv_heads = 2, .head_dim = 4};
  flash.has_bias = flash.has_slopes = true;
  flash.key_lengths = KeyLengths::per_member;
  check_strides<FlashAttentionProblem>(
      make_flash_attention_plan, flash,
      {STRIDE("q", q.row), STRIDE("k", k.member), STRIDE("v", v.row), STRIDE("y", y.member),
       STRIDE("bias", bias.member), STRIDE("bias", bias.query),
       STRIDE("key_lengths", key_lengths_member_stride), STRIDE("slopes", slopes_member_stride)});
  check_strides<AttentionProblem>(
      make_attention_plan, {.num_members = 2, .batch = 2, .seq = 3, .features = 8, .heads = 2},
      {STRIDE("x", x.row), STRIDE("y", y.member), STRIDE("weight", qkv_weight.row)});
  RecurrentProblem recurrent{.batch = 2, .steps = 3, .in_features = 4, .hidden = 5};
  recurrent.num_members = 2;
  recurrent.has_first_state = true;
  check_strides<RecurrentProblem>(
      make_recurrent_plan, recurrent,
      {STRIDE("x", x.step), STRIDE("y", y.batch), STRIDE("first_hidden", first_hidden.row),
       STRIDE("weight", hidden_weight.row)});
  EmbeddingProblem embedding{.num_members = 2, .batch = 2, .seq = 3, .vocab = 9, .dim = 4};
  embedding.shared_ids = false;
  check_strides<EmbeddingProblem>(
      make_embedding_plan, embedding,
      {STRIDE("y", y.row), STRIDE("table", table.row), STRIDE("table", table.member),
       STRIDE("ids_batch_stride", ids_batch_stride),
       STRIDE("ids_member_stride", ids_member_stride)});
  embedding.bag = Bag::mean;
  check_strides<EmbeddingProblem>(make_embedding_plan, embedding,
                                  {STRIDE("offsets_member_stride", offsets_member_stride)});
  check_strides<TopKProblem>(make_top_k_plan, {.num_members = 4, .rows = 3, .choices = 2},
                             {STRIDE("scores_row_stride", scores_row_stride)});
}

#undef STRIDE

}  // namespace

TEST_CASE("every problem's strides are refused below 0 and where they lead out of 64 bits") {
  check_products();
  check_norms();
  check_elements();
  check_sequences_and_tables();
}

TEST_CASE("operands that were changed into no view are refused by name") {
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  const Tensor x(cpu, Dtype::fp32, {3, 16});
  Tensor y(cpu, Dtype::fp32, {3, 16});
  SoftmaxArguments a{x, y};
  a.x.strides = Strides{-16, 1};
  const auto refusal = [&] {
    return refusal_of([&] { (void)describe_softmax(a, {.num_members = 2}); });
  };
  CHECK(refusal() == "softmax: x: tensor: strides [-16, 1], expected none below 0");
  a.x.strides = Strides{};
  CHECK(refusal() == "softmax: x: tensor: strides [], expected one per axis of [3, 16]");
  a.x = x;
  a.y.shape = {-3, 16};
  CHECK(refusal() == "softmax: y: shape: [-3, 16], expected no extent below 0");
}

}  // namespace wide::test
