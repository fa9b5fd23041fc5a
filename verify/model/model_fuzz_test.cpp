// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Random graphs of few shapes, so that operands fit one another and passes find much to fuse, fold
// and move: planned as options have it, run with members of their own, judged by plain loops;
// whole, in pieces, and with rows of members' own.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "verify/support/devices.hpp"
#include "verify/support/dice.hpp"
#include "verify/support/model_run.hpp"
#include "wide/chunked_model.hpp"
#include "wide/error.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::ModelRun;
using enum ChannelLayout;

namespace {

constexpr int64_t kFeatures = 6, kSteps = 4, kSide = 4;
constexpr float kEpsilon = 0.1f;     ///< of norms: rows that hardly vary do not make errors larger
constexpr double kLeastScale = 0.1;  ///< of results: a relu may leave nothing of them
const Shape kRow{kBatch, kFeatures}, kSequence{kBatch, kSteps, kFeatures},
    kImage{kBatch, kFeatures, kSide, kSide}, kPosition{kBatch, kFeatures, 1, 1};

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {}

  Graph build() {
    for (const Shape& shape : {kRow, kSequence, kImage}) {
      const std::string name = "x" + std::to_string(values_.size());
      values_.push_back(one_in(4) ? g_.shared_input(name, shape) : g_.input(name, shape));
    }
    const int nodes = 4 + below(8);
    for (int i = 0; i < nodes; ++i) append();
    const int outputs = 1 + below(2);
    for (int i = 0; i < outputs; ++i) {
      g_.output("y" + std::to_string(i), values_[values_.size() - 1 - static_cast<size_t>(i)]);
    }
    if (one_in(4)) {
      g_.output("mean", layers::ensemble(g_, "ensemble", values_.back(), EnsembleFunction::mean));
    }
    return std::move(g_).build();
  }

 private:
  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  bool one_in(int count) { return below(count) == 0; }
  std::string name(const char* what) { return what + std::to_string(count_++); }
  const Shape& shape(Value value) const { return g_.type(value).shape; }

  /// More often than not the newest: passes look for nodes behind one another.
  Value any() {
    const auto count = static_cast<int>(values_.size());
    return one_in(3) ? values_[static_cast<size_t>(below(count))] : values_.back();
  }
  /// Another value of the same shape; absent where there is none.
  Value alike(Value x) {
    std::vector<Value> others;
    for (const Value value : values_) {
      if (value != x && shape(value) == shape(x)) others.push_back(value);
    }
    return others.empty() ? Value{}
                          : others[static_cast<size_t>(below(static_cast<int>(others.size())))];
  }
  Activation activation() {
    return one_in(2) ? Activation::none : kAllActivations[static_cast<size_t>(below(4))];
  }

  /// As it is declared, or computed of parameters right in front of what reads it.
  Value parameter(const Shape& wanted) {
    const std::string own = name("p");
    if (wanted.rank() == 1 && one_in(3)) {
      return layers::slice(g_, own + "_part", g_.parameter(own, {wanted[0] + 3}), 0, 2, wanted[0]);
    }
    if (wanted.rank() == 2 && one_in(3)) {
      const Value turned = g_.parameter(own, {wanted[1], wanted[0]});
      return g_.append(own + "_turned", TransposeOp{{1, 0}}, {{"x", turned}});
    }
    return g_.parameter(own, wanted);
  }
  Value parameter_or_none(const Shape& wanted) { return one_in(2) ? parameter(wanted) : Value{}; }

  void append() {
    const Value x = any();
    values_.push_back([&] {
      switch (below(14)) {
        case 0:
        case 1:
        case 2:
          if (shape(x).rank() != 4) return linear(x);
          return one_in(4) ? transposed(x) : conv(x);
        case 3:
        case 4:
          return sum(x);
        case 5:
        case 6:
          return with_parameter(x);
        case 7:
          return function(x);
        case 8:
          return row_norm(x);
        case 9:
          return layers::batchnorm(g_, name("batchnorm"), x, kEpsilon);
        case 10:
          return one_in(2) ? layers::dropout(g_, name("dropout"), x, 0.5f)
                           : layers::dropout(g_, name("dropout"), x);
        case 11:
          return gated(x);
        case 12:
          return attention(x);
        default:
          return other_shape(x);
      }
    }());
  }

  /// What linear and conv have in common: their own residual and what is behind it.
  template <class Op>
  Value layer(const char* what, Op op, Value x, const Shape& weight) {
    std::vector<Operand> operands{{"x", x}, {"weight", parameter(weight)}};
    operands.push_back({"bias", parameter_or_none({kFeatures})});
    op.activation = activation();
    const Value residual = one_in(3) ? alike(x) : Value{};
    if (!residual.is_absent()) {
      op.residual = one_in(2) ? Residual::before_activation : Residual::after_activation;
      operands.push_back({"residual", residual});
    }
    return g_.append(name(what), op, operands);
  }
  Value linear(Value x) { return layer("linear", LinearOp{}, x, {kFeatures, kFeatures}); }
  Value conv(Value x) {
    ConvOp op{.groups = one_in(3) ? 2 : 1};
    const int64_t size = shape(x) == kImage && one_in(2) ? 3 : 1;
    op.padding = {size / 2, size / 2};
    return layer("conv", op, x, {kFeatures, kFeatures / op.groups, size, size});
  }

  /// To an image, by any stride: padding takes what is more than that.
  Value transposed(Value x) {
    const int64_t in = shape(x)[2], stride = 1 + below(3), kernel = kSide - below(2);
    const int64_t more = (in - 1) * stride + kernel - kSide;  // than an image has
    const int64_t padding = more > 0 ? more / 2 : 0;
    return layers::conv_transpose(g_, name("transposed"), x, kFeatures,
                                  {.kernel = {kernel, kernel},
                                   .stride = {stride, stride},
                                   .padding = {padding, padding},
                                   .output_padding = {2 * padding - more, 2 * padding - more},
                                   .groups = one_in(3) ? 2 : 1,
                                   .has_bias = one_in(2)});
  }

  Value sum(Value x) {
    const Value other = alike(x);
    const BinaryOp op{.activation = one_in(4) ? activation() : Activation::none};
    return g_.append(name("sum"), op, {{"x", x}, {"other", other.is_absent() ? x : other}});
  }
  /// One number for all, or for each feature or channel.
  Value with_parameter(Value x) {
    const bool is_image = shape(x).rank() == 4;
    const Shape each = is_image ? Shape{kFeatures, 1, 1} : Shape{kFeatures};
    const BinaryOp op{one_in(2) ? BinaryFunction::add : BinaryFunction::multiply};
    return g_.append(name("with"), op,
                     {{"x", x}, {"other", parameter(one_in(4) ? Shape{1} : each)}});
  }
  /// By a number for each channel that is computed, or for each feature: some of x, or the mean of
  /// another.
  Value gated(Value x) {
    if (shape(x).rank() == 2) return with_parameter(x);
    Value gate = x;
    if (const Value other = alike(x); shape(x) == kImage && !other.is_absent() && one_in(2)) {
      gate = layers::global_average_pool(g_, name("pool"), other);
    } else {
      const int last = shape(x).rank() - 1, kept = one_in(3) ? last : 1;
      for (int axis = 1; axis <= last; ++axis) {
        if (axis == kept) continue;
        const int first = below(static_cast<int>(shape(x)[axis]));
        gate = layers::slice(g_, name("gate"), gate, axis, first, 1);
      }
    }
    return layers::binary(g_, name("gated"), x, gate, BinaryFunction::multiply);
  }
  Value function(Value x) {
    static constexpr PointwiseFunction kFunctions[] = {
        PointwiseFunction::relu, PointwiseFunction::gelu, PointwiseFunction::silu,
        PointwiseFunction::tanh};
    return layers::pointwise(g_, name("function"), x, kFunctions[below(4)]);
  }
  Value row_norm(Value x) {
    const int64_t features = shape(x).back();
    const Value gamma = parameter_or_none({features});
    if (one_in(2)) return g_.append(name("rms"), RmsnormOp{kEpsilon}, {{"x", x}, {"gamma", gamma}});
    return g_.append(name("norm"), LayernormOp{kEpsilon},
                     {{"x", x}, {"gamma", gamma}, {"beta", parameter_or_none({features})}});
  }

  /// Of all rows with all others, or with those of another value, and of what that makes.
  Value products(Value x) {
    const Value found = one_in(2) ? alike(x) : Value{}, other = found.is_absent() ? x : found;
    const Value all =
        layers::matmul(g_, name("scores"), x, other, {.transposes_right = true, .alpha = 0.1f});
    return layers::matmul(g_, name("mixed"), one_in(2) ? function(all) : all, other);
  }

  /// Of a sequence to another or itself, by any function of scores.
  Value attention(Value x) {
    if (shape(x).rank() >= 3 && one_in(3)) return products(x);
    if (shape(x).rank() != 3) return function(x);
    const Value keys = one_in(2) ? alike(x) : Value{}, k = keys.is_absent() ? x : keys;
    const int64_t heads = 1 + below(3);
    layers::FlashAttentionLayer layer{.is_causal = one_in(2), .scale = 1.0f};
    if (one_in(2)) layer.window = 1 + below(kSteps);
    if (one_in(2)) layer.soft_cap = one_in(2) ? 0.5f : 2.0f;
    if (one_in(2)) layer.bias = parameter({heads, 1, kSteps});
    if (one_in(2)) layer.slopes = parameter({heads});
    return layers::flash_attention(g_, name("attention"), x, k, k, heads, layer);
  }

  /// An image's positions four fifths of one apart.
  Value between(Value x) {
    InterpolateOp op{.out_height = kSide, .out_width = kSide};
    op.coordinates = CoordinateMode::asymmetric;
    op.row_scale = op.column_scale = 1.25f;
    return g_.append(name("between"), op, {{"x", x}});
  }

  /// From one of the shapes to another, or through a view to the same.
  Value other_shape(Value x) {
    const Shape& from = shape(x);
    if (from == kRow) return layers::reshape(g_, name("position"), x, kPosition);
    if (from == kPosition && one_in(3)) return layers::upsample(g_, name("upsample"), x, kSide);
    if (from == kPosition) return layers::flatten(g_, name("flat"), x);
    if (from == kImage) {
      if (one_in(2)) return layers::global_average_pool(g_, name("pool"), x);
      if (one_in(3)) return between(x);
      const Value cut = layers::slice(g_, name("cut"), x, 3, below(kSide), 1);
      Value column = layers::reshape(g_, name("column"), cut, {kBatch, kFeatures, kSide});
      column = layers::conv(g_, name("conv1d"), column, kFeatures,
                            {.kernel = {1, 3}, .padding = {0, 1}});
      const Value mean = layers::global_average_pool(g_, name("pool"), column);
      return layers::reshape(g_, name("position"), mean, kPosition);
    }
    if (one_in(2)) {
      const Value step = layers::slice(g_, name("step"), x, 1, below(kSteps), 1);
      return layers::reshape(g_, name("row"), step, kRow);
    }
    const Value signal = layers::conv(g_, name("conv1d"), x, kSteps, {.kernel = {1, 1}});
    return g_.append(name("twice"), BinaryOp{}, {{"x", signal}, {"other", x}});
  }

  std::mt19937 random_;
  GraphBuilder g_{"random"};
  std::vector<Value> values_;
  int count_ = 0;
};

/// In pieces, the last of one row, where its operands can be cut.
void check_pieces(const Context& context, const Graph& graph, unsigned seed) {
  CAPTURE(seed, to_string(context.device()));
  ModelRun run(context, graph, {.num_members = 3, .batch = 3}, {}, seed);
  INFO(run.plan().explain());
  const Model part = run.model().with_batch(2);
  std::optional<ChunkedModel> pieces;
  try {
    pieces.emplace(part, 3);
  } catch (const Error& error) {
    REQUIRE_THAT(error.what(), ContainsSubstring("it cannot run in chunks"));
    return;
  }
  Tensor workspace(context, Dtype::uint8, {pieces->workspace_bytes()});
  Execution execution = run.execution();
  execution.workspace = {workspace.data(), workspace.bytes()};
  run.poison();
  pieces->run(run.arguments(), execution);
  CHECK(run.worst_error(run.read(), kLeastScale) < 1e-4);
}

/// Member after member or all at once, where there is no ensemble.
void check_ragged(const Context& context, const Graph& graph, unsigned seed) {
  for (const Node& node : graph.nodes()) {
    if (std::holds_alternative<EnsembleOp>(node.operation)) return;
  }
  CAPTURE(seed, to_string(context.device()));
  ModelRun run(context, graph, {.num_members = 3, .batches = {1, 0, 2}}, {}, seed);
  INFO(run.plan().explain());
  CHECK(run.worst_error(run.run(), kLeastScale) < 1e-4);
}

void check(const Context& context, unsigned seed) {
  const bool is_cpu = context.device().type == DeviceType::cpu;
  const std::pair<const char*, ModelOptions> modes[] = {
      {"default", {}},
      {"debug", model_options("debug")},
      {"channels last", {.channel_layout = channels_last}},
      {"mlp", {.strategies = {{"mlp", is_cpu ? "wide" : "layerwise"}}}}};
  const Graph graph = RandomGraph(seed).build();
  INFO(to_string(graph, GraphStyle::list));
  ModelOptions shares;
  for (const Value parameter : graph.parameters()) {
    if (parameter.index % 2 == 0) shares.shared_parameters.push_back(graph.name(parameter));
  }
  for (const auto& [mode, options] : modes) {
    CAPTURE(seed, mode, to_string(context.device()));
    ModelRun run(context, graph, {.num_members = 3, .batch = 2}, options, seed);
    INFO(run.plan().explain());
    CHECK(run.worst_error(run.run(), kLeastScale) < 1e-4);
    const int64_t weights = run.plan().memory().weights_bytes;
    CHECK(run.model().with_num_members(1).plan().memory().weights_bytes == weights);
  }
  check_pieces(context, graph, seed);
  check_ragged(context, graph, seed);
  CAPTURE(seed, to_string(context.device()));
  ModelRun run(context, graph, {.num_members = 3, .batch = 2}, shares, seed);
  INFO(run.plan().explain());
  CHECK(run.worst_error(run.run(), kLeastScale) < 1e-4);
}

}  // namespace

TEST_CASE("model fuzz: random graphs compute what they say, whatever passes make of them") {
  for (const Context& context : test::devices_at_hand()) {
    const bool is_cpu = context.device().type == DeviceType::cpu;
    const int64_t usual = is_cpu && !test::wants_small_cases() ? 600 : 10;
    const auto graphs = static_cast<unsigned>(test::from_environment("WIDE_TEST_CASES", usual));
    for (unsigned seed = 1; seed <= graphs; ++seed) check(context, seed);
  }
}
