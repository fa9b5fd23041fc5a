// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Random experts: graphs of what routed rows can run, behind trunks that all members share, chosen
// and weighed in every way; each row is the gated sum of what its members alone make of it in
// double. Others by WIDE_TEST_SEED, more by WIDE_TEST_CASES.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/dice.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/tensors.hpp"
#include "wide/chunked_model.hpp"
#include "wide/dtype.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"
#include "wide/model_replay.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::Dice;
using test::ModelRun;

namespace {

constexpr int64_t kVocabulary = 7;
constexpr double kLeastScale = 0.1;  ///< of results: a relu may leave nothing of them

class RandomExperts {
 public:
  RandomExperts(Dice& dice, Dtype dtype) : dice_(dice), dtype_(dtype) {}

  Graph build() {
    keep(g_.input("row", {kBatch, 6}, dtype_), false);
    keep(g_.input("steps", {kBatch, 4, 6}, dtype_), false);
    if (dice_.toss()) keep(g_.input("image", {kBatch, 2, 3, 4}, dtype_), false);
    if (dice_.toss()) {
      const Value ids = g_.input("ids", {kBatch, 3}, Dtype::int64);
      const Value table = g_.parameter("trunk.table", {kVocabulary, 6}, dtype_);
      keep(g_.append("embedding", EmbeddingOp{}, {{"ids", ids}, {"table", table}}), false);
    }
    const int64_t nodes = dice_.between(2, 12);
    for (int64_t i = 0; i < nodes; ++i) append();
    if (!has_linear_ || !values_.back().is_of_members) linear();
    std::vector<Value> results;
    for (const Drawn& drawn : values_) {
      if (drawn.is_of_members) results.push_back(result_of(drawn.value));
    }
    g_.output("y", results.back());
    const int64_t others = dice_.between(0, 2);
    for (int64_t i = 0; i < others; ++i) {
      g_.output("y" + std::to_string(i), dice_.one_of(results));
    }
    return std::move(g_).build();
  }

 private:
  struct Drawn {
    Value value;
    bool is_of_members = false;  ///< else of inputs and the trunk alone
  };

  void keep(Value value, bool is_of_members) { values_.push_back({value, is_of_members}); }
  std::string name(const char* what) { return what + std::to_string(count_++); }
  const Shape& shape(Value value) const { return g_.type(value).shape; }
  bool one_in(int64_t count) { return dice_.between(1, count) == 1; }

  /// More often than not the newest: passes look for nodes behind one another.
  Drawn any() { return one_in(3) ? dice_.one_of(values_) : values_.back(); }
  /// One for which `fits` holds; absent where there is none.
  template <class Fits>
  Drawn any_that(const Fits& fits) {
    std::vector<Drawn> found;
    for (const Drawn& drawn : values_) {
      if (fits(drawn)) found.push_back(drawn);
    }
    return found.empty() ? Drawn{} : dice_.one_of(found);
  }
  Drawn of_shape(const Shape& wanted) {
    return any_that([&](const Drawn& drawn) { return shape(drawn.value) == wanted; });
  }
  Value row_of(Value x) { return shape(x).rank() == 2 ? x : layers::flatten(g_, name("flat"), x); }

  /// Itself, or in another form than layers leave it in.
  Value result_of(Value x) {
    if (dice_.toss()) return x;
    return shape(x) == Shape{kBatch, 1} ? layers::reshape(g_, name("number"), x, {kBatch}) : cut(x);
  }
  Value cut(Value x) {
    const int axis = static_cast<int>(dice_.between(1, shape(x).rank() - 1));
    const int64_t extent = shape(x)[axis], first = dice_.between(0, extent - 1);
    return layers::slice(g_, name("slice"), x, axis, first, dice_.between(1, extent - first));
  }

  void append() {
    switch (dice_.between(0, 16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
        return linear();
      case 5:
      case 6:
        return trunk();
      case 7:
      case 8:
        return binary();
      case 9:
        return concat();
      case 10:
        return attention();
      case 11:
        return cut_any();
      case 12:
      case 13:
        return reshape();
      case 14:
        return norm();
      default:
        return of_each_row();
    }
  }

  Value parameter(const std::string& own, const Shape& wanted) {
    if (wanted.rank() == 1 && one_in(3)) {
      const Value longer = g_.parameter(own, {wanted[0] + 3}, dtype_);
      return layers::slice(g_, own + "_part", longer, 0, 2, wanted[0]);
    }
    if (wanted.rank() == 2 && one_in(4)) {
      const Value turned = g_.parameter(own, {wanted[1], wanted[0]}, dtype_);
      return g_.append(own + "_turned", TransposeOp{{1, 0}}, {{"x", turned}});
    }
    return g_.parameter(own, wanted, dtype_);
  }

  void linear() {
    const Drawn from = any();
    const Value x = row_of(from.value);
    const std::string own = name("linear");
    const Drawn like = any_that([&](const Drawn& drawn) { return shape(drawn.value).rank() == 2; });
    const int64_t out = dice_.toss() ? shape(like.value)[1] : dice_.between(1, 9);
    LinearOp op;
    if (dice_.toss()) op.activation = kAllActivations[static_cast<size_t>(dice_.between(0, 4))];
    std::vector<Operand> operands{{"x", x}, {"weight", parameter(own + ".w", {out, shape(x)[1]})}};
    if (dice_.toss()) operands.push_back({"bias", parameter(own + ".b", {out})});
    const Drawn residual = one_in(3) ? of_shape({kBatch, out}) : Drawn{};
    if (!residual.value.is_absent()) {
      op.residual = dice_.toss() ? Residual::before_activation : Residual::after_activation;
      operands.push_back({"residual", residual.value});
    }
    keep(g_.append(own, op, operands), true);
    has_linear_ = true;
  }

  /// Of members' own parameters.
  void norm() {
    const Value x = row_of(any().value);
    const std::string own = name("scaled");
    const int64_t features = shape(x)[1];
    std::vector<Operand> operands{{"x", x}, {"gamma", parameter(own + ".w", {features})}};
    if (dice_.toss()) return keep(g_.append(own, RmsnormOp{0.1f}, operands), true);
    if (dice_.toss()) operands.push_back({"beta", parameter(own + ".b", {features})});
    keep(g_.append(own, LayernormOp{0.1f}, operands), true);
  }

  /// Of parameters that all members share, on what no member computed.
  void trunk() {
    const Value x = any_that([](const Drawn& drawn) { return !drawn.is_of_members; }).value;
    const std::string own = name("trunk");
    const int64_t features = shape(x).back();
    switch (dice_.between(0, 2)) {
      case 0:
        return keep(layers::linear(g_, own, x, dice_.toss() ? features : dice_.between(1, 9)),
                    false);
      case 1:
        return keep(layers::layernorm(g_, own, x, 0.1f), false);
      default:
        return keep(
            layers::binary(g_, own + ".with", x, g_.parameter(own + ".p", {features}, dtype_),
                           dice_.toss() ? BinaryFunction::add : BinaryFunction::multiply),
            false);
    }
  }

  void binary() {
    const Drawn x = any(), other = of_shape(shape(x.value));
    const BinaryOp op{.function = dice_.toss() ? BinaryFunction::add : BinaryFunction::multiply,
                      .activation = one_in(3) ? Activation::gelu : Activation::none};
    keep(g_.append(name("binary"), op, {{"x", x.value}, {"other", other.value}}),
         x.is_of_members || other.is_of_members);
  }

  void concat() {
    const Drawn x = any();
    const int axis = static_cast<int>(dice_.between(1, shape(x.value).rank() - 1));
    const Drawn other = any_that([&](const Drawn& drawn) {
      Shape same = shape(drawn.value);
      if (same.rank() != shape(x.value).rank()) return false;
      same[axis] = shape(x.value)[axis];
      return same == shape(x.value);
    });
    if (shape(x.value)[axis] + shape(other.value)[axis] > 40) return of_each_row();
    keep(layers::concat(g_, name("concat"), {x.value, other.value}, axis),
         x.is_of_members || other.is_of_members);
  }

  void attention() {
    const Drawn q = any_that([&](const Drawn& drawn) { return shape(drawn.value).rank() == 3; });
    const Drawn k = any_that([&](const Drawn& drawn) {
      return shape(drawn.value).rank() == 3 && shape(drawn.value)[2] == shape(q.value)[2];
    });
    const Drawn v = of_shape(shape(k.value));
    const int64_t heads = shape(q.value)[2] % 2 == 0 && dice_.toss() ? 2 : 1;
    keep(layers::flash_attention(g_, name("attention"), q.value, k.value, v.value, heads,
                                 {.is_causal = one_in(3), .scale = 1.0f}),
         q.is_of_members || k.is_of_members || v.is_of_members);
  }

  void cut_any() {
    const Drawn x = any();
    keep(cut(x.value), x.is_of_members);
  }

  void reshape() {
    const Drawn x = any();
    const Shape& from = shape(x.value);
    if (from.rank() == 2) {
      const int64_t inner = from[1] % 3 == 0 ? 3 : from[1] % 2 == 0 ? 2 : 1;
      const Shape to{kBatch, from[1] / inner, inner};
      return keep(layers::reshape(g_, name("steps"), x.value, to), x.is_of_members);
    }
    if (from.rank() == 3 && dice_.toss()) {
      return keep(layers::transpose(g_, name("turned"), x.value, {0, 2, 1}), x.is_of_members);
    }
    keep(layers::flatten(g_, name("flat"), x.value), x.is_of_members);
  }

  /// Without parameters.
  void of_each_row() {
    const Drawn x = any();
    const int rank = shape(x.value).rank();
    Value y;
    switch (dice_.between(0, rank > 2 ? 5 : 4)) {
      case 0:
        y = layers::softmax(g_, name("softmax"), x.value);
        break;
      case 1:
        y = layers::relu(g_, name("relu"), x.value);
        break;
      case 2:
        y = layers::pointwise(g_, name("tanh"), x.value, PointwiseFunction::tanh);
        break;
      case 3:
        y = layers::dropout(g_, name("dropout"), x.value, 0.5f);
        break;
      case 4:
        y = g_.append(name("norm"), LayernormOp{0.1f}, {{"x", x.value}});
        break;
      default:
        y = layers::global_average_pool(g_, name("pool"), x.value);
    }
    keep(y, x.is_of_members);
  }

  Dice& dice_;
  Dtype dtype_;
  GraphBuilder g_{"experts"};
  std::vector<Drawn> values_;
  int count_ = 0;
  bool has_linear_ = false;  ///< whose weights may be quantised
};

/// What is drawn of a case, but for its graph.
struct Mixture {
  ModelProblem problem;
  ModelOptions options;

  Mixture(Dice& dice, const Graph& graph, bool is_cpu) {
    const int64_t members = dice.between(1, 5);
    problem = {.num_members = members, .batch = dice.between(1, 9), .is_routed = true};
    problem.router = dice.one_of(kAllRouters);
    problem.gate = dice.one_of(kAllGateFunctions);
    if (dice.toss()) problem.first_id = dice.between(1, 4);
    const int64_t end = problem.first_id + members;
    const bool has_scores = problem.router == Router::scores;
    if (has_scores && dice.toss()) problem.num_scores = end + dice.between(0, 3);
    const int64_t all = problem.num_scores > 0 ? problem.num_scores : end;
    problem.choices = dice.between(1, has_scores ? std::min<int64_t>(all, 6) : members + 2);
    switch (dice.between(0, 4)) {
      case 0:
        options = model_options("debug");
        break;
      case 1:
        options = model_options("safe");
        break;
      case 2:
        options.strategies = {{"routed_mlp", is_cpu ? "wide" : "layerwise"}};
        break;
      case 3:
        options.moves_data = false;
        break;
      default:
        break;
    }
    for (const Value parameter : graph.parameters()) {
      const std::string& name = graph.name(parameter);
      if (name.starts_with("trunk")) options.shared_parameters.push_back(name);
    }
  }
};

/// Other ids, some of no member, and gates, or other scores, some of them equal.
void reroute(ModelRun& run, Dice& dice) {
  const ModelProblem& problem = run.plan().problem();
  const auto seed = static_cast<uint64_t>(dice.between(0, 1 << 30));
  if (problem.router == Router::scores) {
    const int64_t count = num_elements(run.plan().inputs().back().shape);
    std::vector<double> scores = test::uniform(count, -3, 3, seed);
    if (dice.toss()) {
      for (double& score : scores) score = std::round(score / 2);
    }
    return run.score(scores);
  }
  const int64_t rows = problem.batch * problem.choices;
  const int64_t least = dice.between(-1, problem.num_members - 1),
                most = dice.between(least, problem.num_members);
  std::vector<int64_t> ids;
  for (int64_t row = 0; row < rows; ++row) ids.push_back(dice.between(least, most));
  if (dice.between(0, 3) == 0) ids.back() = std::numeric_limits<int64_t>::min();
  run.route(ids);
  if (problem.router == Router::gated_ids) run.weigh(test::uniform(rows, -1, 1, seed));
}

/// How far rounding may move results, by evaluations whose every result is off by as much.
double bound_of(const ModelRun& run, Dtype dtype) {
  double most = 0;
  for (const uint64_t seed : {1, 2, 3, 4}) {
    most = std::max(
        most, run.worst_error(run.reference({0x1p-24, unit_roundoff(dtype), seed}), kLeastScale));
  }
  return 1e-5 + 4 * unit_roundoff(dtype) + 16 * most;
}

void check_outputs(const ModelRun& run, Dtype dtype, const ModelRun::Outputs& outputs) {
  CHECK(run.worst_error(outputs, kLeastScale) < bound_of(run, dtype));
}

/// By another model or its pieces, on the same operands.
template <class Other>
ModelRun::Outputs run_by(const Other& other, int64_t workspace_bytes, ModelRun& run) {
  Tensor workspace(run.context(), Dtype::uint8, {workspace_bytes});
  Execution execution = run.execution();
  execution.workspace = {workspace.data(), workspace.bytes()};
  run.poison();
  other.run(run.arguments(), execution);
  return run.read();
}

ModelRun::Outputs in_pieces(ModelRun& run, int64_t rows) {
  const ChunkedModel pieces(run.model().with_batch(rows), run.plan().problem().batch);
  return run_by(pieces, pieces.workspace_bytes(), run);
}

/// The first `count` members alone, to whom the ids of others are nobody's.
ModelRun::Outputs by_fewer(ModelRun& run, int64_t count) {
  const Model fewer = run.model().with_num_members(count);
  ModelRun::Outputs outputs = run_by(fewer, fewer.plan().workspace_bytes(), run);
  std::vector<int64_t> ids = run.routed_to();
  for (int64_t& id : ids) {
    if (id >= count) id = -1;
  }
  run.route(ids);
  return outputs;
}

void check(const Context& context, uint64_t seed) {
  Dice dice(seed);
  const bool is_cpu = context.device().type == DeviceType::cpu;
  const Dtype dtype = dice.toss() ? Dtype::fp32 : dice.toss() ? Dtype::fp16 : Dtype::bf16;
  Graph graph = RandomExperts(dice, dtype).build();
  const Mixture mixture(dice, graph, is_cpu);
  if (is_cpu && dtype != Dtype::fp32 && dice.toss()) {
    graph = with_quantized_weights(graph, {.format = WeightFormat::int8, .group_size = 64});
  }
  const ModelProblem& problem = mixture.problem;
  CAPTURE(seed, to_string(context.device()), problem.num_members, problem.batch, problem.choices,
          problem.first_id, problem.num_scores, router_name(problem.router),
          gate_function_name(problem.gate));
  INFO(to_string(graph, GraphStyle::list));
  try {
    ModelRun run(context, graph, problem, mixture.options, seed);
    INFO(run.plan().explain());
    check_outputs(run, dtype, run.run());
    reroute(run, dice);
    check_outputs(run, dtype, run.replay());
    check_outputs(run, dtype, in_pieces(run, dice.between(1, problem.batch)));
    if (problem.router != Router::scores) {
      const ModelRun::Outputs outputs = by_fewer(run, dice.between(1, problem.num_members));
      check_outputs(run, dtype, outputs);  // of the ids as they are then
    }
  } catch (const Error& error) {
    if (mixture.options.moves_data) throw;
    REQUIRE_THAT(error.what(), ContainsSubstring("this would "));
  }
}

}  // namespace

TEST_CASE("model mixture fuzz: random experts add up, whoever is chosen and however weighed") {
  const auto first = static_cast<uint64_t>(test::from_environment("WIDE_TEST_SEED", 1));
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    const int64_t usual = is_cpu && !test::wants_small_cases() ? 400 : 8;
    const auto cases = static_cast<uint64_t>(test::from_environment("WIDE_TEST_CASES", usual));
    for (uint64_t seed = first; seed < first + cases; ++seed) check(context, seed);
  }
}
