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
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const Tensor a = filled(context, {5, 7}, stream.get());
  Tensor b(context, Dtype::fp32, {9, 7});
  fill_bytes(b.view(), 0, stream.get());
  copy(a.view(), b.view().narrow(0, 2, 5), stream.get());
  return read(context, b, stream.get());
}

inline Bytes run_pack() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const Tensor a = filled(context, {3, 4}, stream.get()),
               b = filled(context, {3, 4}, stream.get(), 2);
  Tensor packed(context, Dtype::fp32, {3, 8});
  const ConstTensorView members[] = {a.view(), b.view()};
  pack(operands::linear_x, members, packed.view(), stream.get());
  return read(context, packed, stream.get());
}

#include "verify/catalog/fault_linear.hpp"
#include "verify/catalog/fault_routed.hpp"
#include "verify/catalog/fault_values.hpp"
inline Bytes run_top_k() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const TopKProblem problem{.num_members = 5, .rows = 3, .choices = 2, .has_gates = true};
  const TopKPlan plan = make_top_k_plan(context, problem, {.strategy = "wide"});
  const Tensor scores = filled(context, {3, 5}, stream.get());
  Tensor ids(context, Dtype::int64, {3, 2}), gates(context, Dtype::fp32, {3, 2});
  plan.run({.scores = scores, .ids = ids, .gates = gates}, {stream.get()});
  return read(context, gates, stream.get());
}

inline Bytes run_embedding() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const EmbeddingProblem problem{.num_members = 2,
                                 .batch = 2,
                                 .seq = 3,
                                 .vocab = 4,
                                 .dim = 6,
                                 .id_dtype = Dtype::int32,
                                 .checked = true};
  const EmbeddingPlan plan = make_embedding_plan(context, problem, {.strategy = "indexed"});
  const Tensor table = filled(context, {2, 4, 6}, stream.get());
  Tensor ids(context, Dtype::int32, {2, 3});
  fill_bytes(ids.view(), 0, stream.get());
  Tensor scratch(context, Dtype::int32, {plan.workspace_bytes() / 4});
  Tensor y(context, Dtype::fp32, {2, 3, 12});
  const Execution execution{stream.get(), {scratch.data(), scratch.bytes()}};
  plan.run({.ids = ids, .table = table, .y = y}, execution);
  plan.check(execution);
  return read(context, y, stream.get());
}

/// Tables pass through the host on their way to the device.
inline Bytes run_embedding_bags() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  EmbeddingProblem problem{.num_members = 2, .batch = 2, .seq = 3, .vocab = 4, .dim = 6};
  problem.id_dtype = Dtype::int32;
  problem.table_format = WeightFormat::int8;
  problem.bag = Bag::mean;
  const EmbeddingPlan plan = make_embedding_plan(context, problem, {.strategy = "bag"});
  const Tensor w = filled(context, {4, 6}, stream.get());
  Tensor table(context, Dtype::uint8, {2, 4, quantized_row_bytes(6)});
  const ConstTensorView members[] = {w.view(), w.view()};
  plan.prepare_weights(members, table, stream.get());
  Tensor indices(Context::cpu(), Dtype::int32, {3});
  const double values[] = {0, 1, 3};
  for (int64_t i = 0; i < 3; ++i) store_element(indices.data(), Dtype::int32, i, values[i]);
  Tensor offsets(context, Dtype::int32, {3});
  copy(indices.view(), offsets.view(), stream.get());
  Tensor y(context, Dtype::fp32, {2, 12});
  plan.run({.ids = offsets, .table = table, .y = y, .offsets = offsets}, {stream.get()});
  return read(context, y, stream.get());
}

/// So many channels that the kernel asks for more shared memory than it gets unasked.
inline Bytes run_conv() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const Tensor x = filled(context, {1, 32, 4, 9}, stream.get());
  const Tensor w = filled(context, {64, 16, 3, 3}, stream.get());
  Tensor weight(context, Dtype::fp32, {128, 16, 3, 3});
  Tensor y(context, Dtype::fp32, {1, 128, 4, 9});
  const ConvArguments arguments{x, weight, {}, y, {}};
  const ConvPlan plan =
      make_conv_plan(context, describe_conv(arguments, {.num_members = 2, .padding = {1, 1}}),
                     {.strategy = "direct"});
  const ConvMember members[] = {{w, {}}, {w, {}}};
  plan.prepare_weights(members, weight, {}, stream.get());
  plan.run(arguments, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_layernorm() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const LayernormProblem problem{.num_members = 2, .rows = 3, .features = 10};
  const LayernormPlan plan = make_layernorm_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {3, 20}, stream.get());
  const Tensor gamma = filled(context, {2, 10}, stream.get()),
               beta = filled(context, {2, 10}, stream.get());
  Tensor y(context, Dtype::fp32, {3, 20});
  plan.run({.x = x, .gamma = gamma, .beta = beta, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_batchnorm() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  BatchnormProblem problem{.num_members = 2, .batch = 3, .channels = 2, .width = 5};
  problem.mode = BatchnormMode::train;
  const BatchnormPlan plan = make_batchnorm_plan(context, problem, {.strategy = "wide"});
  const auto some = [&] { return filled(context, {2, 2}, stream.get()); };
  const Tensor x = filled(context, {3, 4, 5}, stream.get());
  const Tensor gamma = some(), beta = some();
  Tensor mean = some(), variance = some();
  Tensor y(context, Dtype::fp32, {3, 4, 5});
  plan.run({x, gamma, beta, mean, variance, y, {}, {}}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_groupnorm() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const GroupnormProblem problem{
      .num_members = 2, .batch = 3, .channels = 4, .groups = 2, .width = 5};
  const GroupnormPlan plan = make_groupnorm_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {3, 8, 5}, stream.get());
  const Tensor gamma = filled(context, {2, 4}, stream.get()),
               beta = filled(context, {2, 4}, stream.get());
  Tensor y(context, Dtype::fp32, {3, 8, 5});
  plan.run({.x = x, .gamma = gamma, .beta = beta, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_flash_attention() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const FlashAttentionProblem problem{.num_members = 2,
                                      .batch = 2,
                                      .seq = 3,
                                      .heads = 2,
                                      .head_dim = 8,
                                      .dtype = Dtype::bf16,
                                      .is_causal = true};
  const FlashAttentionPlan plan =
      make_flash_attention_plan(context, problem, {.strategy = "tensor_core"});
  const auto some = [&](float scale) {
    return filled(context, {2, 3, 32}, stream.get(), scale, Dtype::bf16);
  };
  const Tensor q = some(0.5f), k = some(0.25f), v = some(1);
  Tensor y(context, Dtype::bf16, {2, 3, 32});
  plan.run({.q = q, .k = k, .v = v, .key_lengths = {}, .slopes = {}, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_attention() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const AttentionProblem problem{
      .num_members = 2, .batch = 2, .seq = 3, .features = 8, .heads = 2, .has_bias = true};
  const AttentionPlan plan = make_attention_plan(context, problem, {.strategy = "fused"});
  const auto some = [&](const Shape& shape) { return filled(context, shape, stream.get()); };
  const Tensor x = some({2, 3, 16}), qkv_weight = some({2, 24, 8}), qkv_bias = some({2, 24}),
               out_weight = some({2, 8, 8}), out_bias = some({2, 8});
  Tensor scratch(context, Dtype::uint8, {plan.workspace_bytes()});
  Tensor y(context, Dtype::fp32, {2, 3, 16});
  AttentionArguments arguments;
  arguments.x = x, arguments.y = y;
  arguments.parameters.qkv_weight = qkv_weight, arguments.parameters.qkv_bias = qkv_bias;
  arguments.parameters.out_weight = out_weight, arguments.parameters.out_bias = out_bias;
  plan.run(arguments, {stream.get(), {scratch.data(), scratch.bytes()}});
  return read(context, y, stream.get());
}

/// So wide that more shared memory is asked for than is there unasked.
inline Bytes run_mlp() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const MlpProblem problem{.num_members = 1, .batch = 3, .widths = {8, 256, 4}};
  const MlpPlan plan = make_mlp_plan(context, problem, {.strategy = "fused"});
  const Tensor x = filled(context, {3, 8}, stream.get());
  const Tensor first = filled(context, {256, 8}, stream.get()),
               second = filled(context, {4, 256}, stream.get(), 0.0625f);
  const MlpMember members[] = {{{{first, {}}, {second, {}}}}};
  Tensor weights(context, Dtype::fp32, {1, mlp_member_elements(problem)});
  plan.prepare_weights(members, weights, stream.get());
  Tensor y(context, Dtype::fp32, {3, 4});
  plan.run({x, weights, y}, {stream.get()});
  return read(context, y, stream.get());
}

/// A linear, then a launch; of a hidden state for which shared memory is asked for, too.
inline Bytes run_recurrent() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  RecurrentProblem problem{.batch = 2, .steps = 2, .in_features = 3, .hidden = 56};
  problem.has_last_cell = true;
  const RecurrentPlan plan = make_recurrent_plan(context, problem, {.strategy = "fused"});
  const Tensor x = filled(context, {2, 2, 3}, stream.get());
  const Tensor input = filled(context, {1, 224, 3}, stream.get(), 0.125f),
               hidden = filled(context, {1, 224, 56}, stream.get(), 0.0625f);
  Tensor scratch(context, Dtype::uint8, {plan.workspace_bytes()});
  Tensor y(context, Dtype::fp32, {2, 2, 56}), cell(context, Dtype::fp32, {2, 56});
  RecurrentArguments arguments;
  arguments.x = x, arguments.input_weight = input, arguments.hidden_weight = hidden;
  arguments.y = y, arguments.last_cell = cell;
  plan.run(arguments, {stream.get(), {scratch.data(), scratch.bytes()}});
  return read(context, y, stream.get());
}

inline Bytes run_pointwise() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  PointwiseProblem problem{.num_members = 2, .rows = 3, .features = 10};
  problem.function = PointwiseFunction::prelu;
  problem.num_slopes = 1;
  const PointwisePlan plan = make_pointwise_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {3, 20}, stream.get());
  const Tensor slope = filled(context, {2, 1}, stream.get());
  Tensor y(context, Dtype::fp32, {3, 20});
  plan.run({.x = x, .slope = slope, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_binary() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  BinaryProblem problem{.num_members = 2, .rows = 3, .features = 10};
  problem.broadcast = Broadcast::rows;
  const BinaryPlan plan = make_binary_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {3, 20}, stream.get());
  const Tensor other = filled(context, {2, 10}, stream.get());
  Tensor y(context, Dtype::fp32, {3, 20});
  plan.run({.x = x, .other = other, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_dropout() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const DropoutProblem problem{.num_members = 2, .rows = 3, .features = 10};
  const DropoutPlan plan = make_dropout_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {3, 20}, stream.get());
  const Tensor seeds = filled(context, {2, 2}, stream.get(), 3, Dtype::int64);
  const Tensor probabilities = filled(context, {2, 1}, stream.get(), -0.0625f);
  Tensor y(context, Dtype::fp32, {3, 20});
  plan.run({.x = x, .seeds = seeds, .probabilities = probabilities, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_rmsnorm() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const RmsnormProblem problem{.num_members = 2, .rows = 3, .features = 10};
  const RmsnormPlan plan = make_rmsnorm_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {3, 20}, stream.get());
  const Tensor gamma = filled(context, {2, 10}, stream.get());
  Tensor y(context, Dtype::fp32, {3, 20});
  plan.run({.x = x, .gamma = gamma, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_ensemble(EnsembleFunction function) {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const Tensor x = filled(context, {3, 20}, stream.get());
  Tensor mask(context, Dtype::uint8, {2}), y(context, Dtype::fp32, {3, 10});
  fill_bytes(mask.view(), 1, stream.get());
  const EnsembleArguments arguments{.x = x, .mask = mask, .y = y};
  const EnsemblePlan plan = make_ensemble_plan(
      context, describe_ensemble(arguments, {.num_members = 2, .function = function}), {"wide"});
  plan.run(arguments, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_softmax() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const SoftmaxProblem problem{.num_members = 2, .rows = 3, .features = 10};
  const SoftmaxPlan plan = make_softmax_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {3, 20}, stream.get());
  Tensor y(context, Dtype::fp32, {3, 20});
  plan.run({.x = x, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_concat() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  const Tensor a = filled(context, {3, 4}, stream.get()),
               b = filled(context, {3, 2}, stream.get(), 2);
  Tensor whole(context, Dtype::fp32, {3, 6});
  const ConstTensorView parts[] = {a.view(), b.view()};
  concat(operands::linear_x, parts, 2, whole.view(), stream.get());
  return read(context, whole, stream.get());
}

inline Bytes run_chain() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  ChainProblem problem{.num_members = 2, .rows = 3, .features = 10};
  problem.norm = ChainNorm::layernorm;
  problem.has_residual = true;
  const ChainPlan plan = make_chain_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {3, 20}, stream.get());
  const Tensor residual = filled(context, {3, 20}, stream.get(), 2);
  Tensor y(context, Dtype::fp32, {3, 20});
  ChainArguments arguments;
  arguments.x = x;
  arguments.residual = residual;
  arguments.y = y;
  plan.run(arguments, {stream.get()});
  return read(context, y, stream.get());
}

inline Bytes run_pooling() {
  const Context context = Context::cuda(0);
  const OwnedStream stream(context);
  PoolingProblem problem{.num_members = 2, .batch = 1, .channels = 3, .height = 4, .width = 5};
  problem.rows = problem.columns = {.kernel = 2};
  const PoolingPlan plan = make_pooling_plan(context, problem, {.strategy = "wide"});
  const Tensor x = filled(context, {1, 6, 4, 5}, stream.get());
  Tensor y(context, Dtype::fp32, {1, 6, 2, 2});
  plan.run({.x = x, .y = y}, {stream.get()});
  return read(context, y, stream.get());
}

/// Making, capturing and replaying a model, and changing its members.
inline Bytes run_model() {
  const Context context = Context::cuda(0);
  const Graph graph = make_named_model("mlp", {.width = 8});
  const OwnedParameters owned = random_parameters(graph, 1, 0);
  const MemberParameters member = views_of(owned);
  const std::vector<MemberParameters> members{member, member};
  Model model = compile(context, graph, members, 3, {.strategies = {{"linear", "simt"}}});
  const OwnedStream stream(context);
  const Tensor x = filled(context, {3, 128}, stream.get());
  Tensor y(context, Dtype::fp32, {3, 128});
  Tensor workspace(context, Dtype::uint8, {model.plan().workspace_bytes()});
  const ConstTensorView inputs[] = {x.view()};
  const TensorView outputs[] = {y.view()};
  const Execution execution{stream.get(), {workspace.data(), workspace.bytes()}};
  const ModelReplay replay(context, model, {inputs, outputs}, execution);
  model.replace(1, member, stream.get());
  model.clone(1, 0, stream.get());
  replay.run(stream.get());
  return read(context, y, stream.get());
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
      {"linear weight_only", run_quantized_linear},
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
      {"model", run_model}};
  return all;
}

}  // namespace wide::test
