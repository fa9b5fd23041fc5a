// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A small run of every public entry point, for tests that make calls of the runtime fail.
#pragma once

#include <functional>
#include <vector>

#include "verify/catalog/fault_linear.hpp"
#include "verify/catalog/fault_routed.hpp"
#include "verify/catalog/fault_values.hpp"
#include "wide/wide.hpp"

namespace wide::test {

inline Bytes run_tensor() {
  const CudaRun on;
  const Tensor a = on.filled({5, 7});
  Tensor b = on.zeros({9, 7});
  copy(a.view(), b.view().narrow(0, 2, 5), on.stream.get());
  return on.read(b);
}

inline Bytes run_pack() {
  const CudaRun on;
  const Tensor a = on.filled({3, 4}), b = on.filled({3, 4}, 2);
  Tensor packed(on.context, Dtype::fp32, {3, 8});
  const ConstTensorView members[] = {a.view(), b.view()};
  pack(operands::linear_x, members, packed.view(), on.stream.get());
  return on.read(packed);
}

inline Bytes run_top_k() {
  const CudaRun on;
  const TopKProblem problem{.num_members = 5, .rows = 3, .choices = 2, .has_gates = true};
  const TopKPlan plan = make_top_k_plan(on.context, problem, {.strategy = "wide"});
  const Tensor scores = on.filled({3, 5});
  Tensor ids(on.context, Dtype::int64, {3, 2}), gates(on.context, Dtype::fp32, {3, 2});
  return on.run(plan, TopKArguments{.scores = scores, .ids = ids, .gates = gates}, gates);
}

inline Bytes run_embedding() {
  const CudaRun on;
  const EmbeddingProblem problem{.num_members = 2,
                                 .batch = 2,
                                 .seq = 3,
                                 .vocab = 4,
                                 .dim = 6,
                                 .id_dtype = Dtype::int32,
                                 .checked = true};
  const EmbeddingPlan plan = make_embedding_plan(on.context, problem, {.strategy = "indexed"});
  const Tensor table = on.filled({2, 4, 6});
  Tensor ids = on.zeros({2, 3}, Dtype::int32);
  Tensor scratch(on.context, Dtype::int32, {plan.workspace_bytes() / 4});
  Tensor y(on.context, Dtype::fp32, {2, 3, 12});
  const Execution execution{on.stream.get(), {scratch.data(), scratch.bytes()}};
  plan.run({.ids = ids, .table = table, .y = y}, execution);
  plan.check(execution);
  return on.read(y);
}

/// Tables pass through the host on their way to the device.
inline Bytes run_embedding_bags() {
  const CudaRun on;
  EmbeddingProblem problem{.num_members = 2, .batch = 2, .seq = 3, .vocab = 4, .dim = 6};
  problem.id_dtype = Dtype::int32;
  problem.table_format = WeightFormat::int8;
  problem.bag = Bag::mean;
  const EmbeddingPlan plan = make_embedding_plan(on.context, problem, {.strategy = "bag"});
  const Tensor w = on.filled({4, 6});
  Tensor table(on.context, Dtype::uint8, {2, 4, quantized_row_bytes(6)});
  const ConstTensorView members[] = {w.view(), w.view()};
  plan.prepare_weights(members, table, on.stream.get());
  Tensor indices(Context::cpu(), Dtype::int32, {3});
  const double values[] = {0, 1, 3};
  for (int64_t i = 0; i < 3; ++i) store_element(indices.data(), Dtype::int32, i, values[i]);
  Tensor offsets(on.context, Dtype::int32, {3});
  copy(indices.view(), offsets.view(), on.stream.get());
  Tensor y(on.context, Dtype::fp32, {2, 12});
  return on.run(plan,
                EmbeddingArguments{.ids = offsets, .table = table, .y = y, .offsets = offsets}, y);
}

/// So many channels that the kernel asks for more shared memory than it gets unasked.
inline Bytes run_conv() {
  const CudaRun on;
  const Tensor x = on.filled({1, 32, 4, 9});
  const Tensor w = on.filled({64, 16, 3, 3});
  Tensor weight(on.context, Dtype::fp32, {128, 16, 3, 3});
  Tensor y(on.context, Dtype::fp32, {1, 128, 4, 9});
  const ConvArguments arguments{x, weight, {}, y, {}};
  const ConvPlan plan =
      make_conv_plan(on.context, describe_conv(arguments, {.num_members = 2, .padding = {1, 1}}),
                     {.strategy = "direct"});
  const ConvMember members[] = {{w, {}}, {w, {}}};
  plan.prepare_weights(members, weight, {}, on.stream.get());
  return on.run(plan, arguments, y);
}

inline Bytes run_layernorm() {
  const CudaRun on;
  const LayernormProblem problem{.num_members = 2, .rows = 3, .features = 10};
  const LayernormPlan plan = make_layernorm_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({3, 20});
  const Tensor gamma = on.filled({2, 10}), beta = on.filled({2, 10});
  Tensor y(on.context, Dtype::fp32, {3, 20});
  return on.run(plan, LayernormArguments{.x = x, .gamma = gamma, .beta = beta, .y = y}, y);
}

inline Bytes run_batchnorm() {
  const CudaRun on;
  BatchnormProblem problem{.num_members = 2, .batch = 3, .channels = 2, .width = 5};
  problem.mode = BatchnormMode::train;
  const BatchnormPlan plan = make_batchnorm_plan(on.context, problem, {.strategy = "wide"});
  const auto some = [&] { return on.filled({2, 2}); };
  const Tensor x = on.filled({3, 4, 5});
  const Tensor gamma = some(), beta = some();
  Tensor mean = some(), variance = some();
  Tensor y(on.context, Dtype::fp32, {3, 4, 5});
  return on.run(plan, BatchnormArguments{x, gamma, beta, mean, variance, y, {}, {}}, y);
}

inline Bytes run_groupnorm() {
  const CudaRun on;
  const GroupnormProblem problem{
      .num_members = 2, .batch = 3, .channels = 4, .groups = 2, .width = 5};
  const GroupnormPlan plan = make_groupnorm_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({3, 8, 5});
  const Tensor gamma = on.filled({2, 4}), beta = on.filled({2, 4});
  Tensor y(on.context, Dtype::fp32, {3, 8, 5});
  return on.run(plan, GroupnormArguments{.x = x, .gamma = gamma, .beta = beta, .y = y}, y);
}

inline Bytes run_flash_attention() {
  const CudaRun on;
  const FlashAttentionProblem problem{.num_members = 2,
                                      .batch = 2,
                                      .seq = 3,
                                      .heads = 2,
                                      .head_dim = 8,
                                      .dtype = Dtype::bf16,
                                      .is_causal = true};
  const FlashAttentionPlan plan =
      make_flash_attention_plan(on.context, problem, {.strategy = "tensor_core"});
  const auto some = [&](float scale) { return on.filled({2, 3, 32}, scale, Dtype::bf16); };
  const Tensor q = some(0.5f), k = some(0.25f), v = some(1);
  Tensor y(on.context, Dtype::bf16, {2, 3, 32});
  return on.run(
      plan,
      FlashAttentionArguments{.q = q, .k = k, .v = v, .key_lengths = {}, .slopes = {}, .y = y}, y);
}

inline Bytes run_attention() {
  const CudaRun on;
  const AttentionProblem problem{
      .num_members = 2, .batch = 2, .seq = 3, .features = 8, .heads = 2, .has_bias = true};
  const AttentionPlan plan = make_attention_plan(on.context, problem, {.strategy = "fused"});
  const Tensor x = on.filled({2, 3, 16});
  const Tensor qkv_weight = on.filled({2, 24, 8}), qkv_bias = on.filled({2, 24});
  const Tensor out_weight = on.filled({2, 8, 8}), out_bias = on.filled({2, 8});
  Tensor y(on.context, Dtype::fp32, {2, 3, 16});
  AttentionArguments arguments;
  arguments.x = x, arguments.y = y;
  arguments.parameters.qkv_weight = qkv_weight, arguments.parameters.qkv_bias = qkv_bias;
  arguments.parameters.out_weight = out_weight, arguments.parameters.out_bias = out_bias;
  return on.run(plan, arguments, y);
}

/// So wide that more shared memory is asked for than is there unasked.
inline Bytes run_mlp() {
  const CudaRun on;
  const MlpProblem problem{.num_members = 1, .batch = 3, .widths = {8, 256, 4}};
  const MlpPlan plan = make_mlp_plan(on.context, problem, {.strategy = "fused"});
  const Tensor x = on.filled({3, 8});
  const Tensor first = on.filled({256, 8}), second = on.filled({4, 256}, 0.0625f);
  const MlpMember members[] = {{{{first, {}}, {second, {}}}}};
  Tensor weights(on.context, Dtype::fp32, {1, mlp_member_elements(problem)});
  plan.prepare_weights(members, weights, on.stream.get());
  Tensor y(on.context, Dtype::fp32, {3, 4});
  return on.run(plan, MlpArguments{x, weights, y}, y);
}

/// A linear, then a launch; of a hidden state for which shared memory is asked for, too.
inline Bytes run_recurrent() {
  const CudaRun on;
  RecurrentProblem problem{.batch = 2, .steps = 2, .in_features = 3, .hidden = 56};
  problem.has_last_cell = true;
  const RecurrentPlan plan = make_recurrent_plan(on.context, problem, {.strategy = "fused"});
  const Tensor x = on.filled({2, 2, 3});
  const Tensor input = on.filled({1, 224, 3}, 0.125f), hidden = on.filled({1, 224, 56}, 0.0625f);
  Tensor y(on.context, Dtype::fp32, {2, 2, 56}), cell(on.context, Dtype::fp32, {2, 56});
  RecurrentArguments arguments;
  arguments.x = x, arguments.input_weight = input, arguments.hidden_weight = hidden;
  arguments.y = y, arguments.last_cell = cell;
  return on.run(plan, arguments, y);
}

inline Bytes run_pointwise() {
  const CudaRun on;
  PointwiseProblem problem{.num_members = 2, .rows = 3, .features = 10};
  problem.function = PointwiseFunction::prelu;
  problem.num_slopes = 1;
  const PointwisePlan plan = make_pointwise_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({3, 20});
  const Tensor slope = on.filled({2, 1});
  Tensor y(on.context, Dtype::fp32, {3, 20});
  return on.run(plan, PointwiseArguments{.x = x, .slope = slope, .y = y}, y);
}

inline Bytes run_binary() {
  const CudaRun on;
  BinaryProblem problem{.num_members = 2, .rows = 3, .features = 10};
  problem.broadcast = Broadcast::rows;
  const BinaryPlan plan = make_binary_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({3, 20});
  const Tensor other = on.filled({2, 10});
  Tensor y(on.context, Dtype::fp32, {3, 20});
  return on.run(plan, BinaryArguments{.x = x, .other = other, .y = y}, y);
}

inline Bytes run_dropout() {
  const CudaRun on;
  const DropoutProblem problem{.num_members = 2, .rows = 3, .features = 10};
  const DropoutPlan plan = make_dropout_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({3, 20});
  const Tensor seeds = on.filled({2, 2}, 3, Dtype::int64);
  const Tensor probabilities = on.filled({2, 1}, -0.0625f);
  Tensor y(on.context, Dtype::fp32, {3, 20});
  return on.run(
      plan, DropoutArguments{.x = x, .seeds = seeds, .probabilities = probabilities, .y = y}, y);
}

inline Bytes run_rmsnorm() {
  const CudaRun on;
  const RmsnormProblem problem{.num_members = 2, .rows = 3, .features = 10};
  const RmsnormPlan plan = make_rmsnorm_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({3, 20});
  const Tensor gamma = on.filled({2, 10});
  Tensor y(on.context, Dtype::fp32, {3, 20});
  return on.run(plan, RmsnormArguments{.x = x, .gamma = gamma, .y = y}, y);
}

inline Bytes run_ensemble(EnsembleFunction function) {
  const CudaRun on;
  const Tensor x = on.filled({3, 20});
  Tensor mask(on.context, Dtype::uint8, {2}), y(on.context, Dtype::fp32, {3, 10});
  fill_bytes(mask.view(), 1, on.stream.get());
  const EnsembleArguments arguments{.x = x, .mask = mask, .y = y};
  const EnsemblePlan plan = make_ensemble_plan(
      on.context, describe_ensemble(arguments, {.num_members = 2, .function = function}), {"wide"});
  return on.run(plan, arguments, y);
}

inline Bytes run_softmax() {
  const CudaRun on;
  const SoftmaxProblem problem{.num_members = 2, .rows = 3, .features = 10};
  const SoftmaxPlan plan = make_softmax_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({3, 20});
  Tensor y(on.context, Dtype::fp32, {3, 20});
  return on.run(plan, SoftmaxArguments{.x = x, .y = y}, y);
}

inline Bytes run_concat() {
  const CudaRun on;
  const Tensor a = on.filled({3, 4}), b = on.filled({3, 2}, 2);
  Tensor whole(on.context, Dtype::fp32, {3, 6});
  const ConstTensorView parts[] = {a.view(), b.view()};
  concat(operands::linear_x, parts, 2, whole.view(), on.stream.get());
  return on.read(whole);
}

inline Bytes run_chain() {
  const CudaRun on;
  ChainProblem problem{.num_members = 2, .rows = 3, .features = 10};
  problem.norm = ChainNorm::layernorm;
  problem.has_residual = true;
  const ChainPlan plan = make_chain_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({3, 20});
  const Tensor residual = on.filled({3, 20}, 2);
  Tensor y(on.context, Dtype::fp32, {3, 20});
  ChainArguments arguments;
  arguments.x = x;
  arguments.residual = residual;
  arguments.y = y;
  return on.run(plan, arguments, y);
}

inline Bytes run_pooling() {
  const CudaRun on;
  PoolingProblem problem{.num_members = 2, .batch = 1, .channels = 3, .height = 4, .width = 5};
  problem.rows = problem.columns = {.kernel = 2};
  const PoolingPlan plan = make_pooling_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({1, 6, 4, 5});
  Tensor y(on.context, Dtype::fp32, {1, 6, 2, 2});
  return on.run(plan, PoolingArguments{.x = x, .y = y}, y);
}

inline Bytes run_interpolate() {
  const CudaRun on;
  const InterpolateProblem problem{
      .num_members = 2, .batch = 1, .channels = 3, .height = 4, .width = 5, .out_width = 9};
  const InterpolatePlan plan = make_interpolate_plan(on.context, problem, {.strategy = "wide"});
  const Tensor x = on.filled({1, 6, 4, 5});
  Tensor y(on.context, Dtype::fp32, {1, 6, 4, 9});
  return on.run(plan, InterpolateArguments{.x = x, .y = y}, y);
}

/// Making, capturing and replaying a model, and changing its members.
inline Bytes run_model() {
  const CudaRun on;
  const Graph graph = make_named_model("mlp", {.width = 8});
  const OwnedParameters owned = random_parameters(graph, 1, 0);
  const MemberParameters member = views_of(owned);
  const std::vector<MemberParameters> members{member, member};
  Model model = compile(on.context, graph, members, 3, {.strategies = {{"linear", "simt"}}});
  const Tensor x = on.filled({3, 128});
  Tensor y(on.context, Dtype::fp32, {3, 128});
  Tensor workspace(on.context, Dtype::uint8, {model.plan().workspace_bytes()});
  const ConstTensorView inputs[] = {x.view()};
  const TensorView outputs[] = {y.view()};
  const Execution execution{on.stream.get(), {workspace.data(), workspace.bytes()}};
  const ModelReplay replay(on.context, model, {inputs, outputs}, execution);
  model.replace(1, member, on.stream.get());
  model.clone(1, 0, on.stream.get());
  replay.run(on.stream.get());
  return on.read(y);
}

struct Scenario {
  const char* name;
  std::function<Bytes()> run;
};

inline const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all{
      {"tensor", run_tensor},
      {"pack", run_pack},
      {"concat", run_concat},
      {"linear simt", [] { return run_linear("simt", Dtype::fp32); }},
      {"linear gemv", [] { return run_linear("gemv", Dtype::fp16); }},
      {"linear small_m", [] { return run_linear("small_m", Dtype::bf16); }},
      {"linear wgmma", [] { return run_linear("wgmma", Dtype::bf16); }},
      {"ragged_linear", run_ragged_linear},
      {"routed_linear", run_routed_linear},
      {"linear weight_only", [] { return run_quantized_linear("weight_only"); }},
      {"linear decoded", [] { return run_quantized_linear("decoded"); }},
      {"routing", run_routing},
      {"top_k", run_top_k},
      {"embedding", run_embedding},
      {"embedding bags", run_embedding_bags},
      {"conv", run_conv},
      {"layernorm", run_layernorm},
      {"batchnorm", run_batchnorm},
      {"groupnorm", run_groupnorm},
      {"rmsnorm", run_rmsnorm},
      {"flash_attention", run_flash_attention},
      {"attention", run_attention},
      {"mlp", run_mlp},
      {"routed_mlp fused", [] { return run_routed_mlp("fused"); }},
      {"routed_mlp sequential", [] { return run_routed_mlp("sequential"); }},
      {"recurrent", run_recurrent},
      {"pointwise", run_pointwise},
      {"softmax", run_softmax},
      {"binary", run_binary},
      {"dropout", run_dropout},
      {"ensemble mean", [] { return run_ensemble(EnsembleFunction::mean); }},
      {"ensemble vote", [] { return run_ensemble(EnsembleFunction::vote); }},
      {"chain", run_chain},
      {"pooling", run_pooling},
      {"interpolate", run_interpolate},
      {"model", run_model}};
  return all;
}

}  // namespace wide::test
