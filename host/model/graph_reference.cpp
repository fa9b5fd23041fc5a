// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain loops. Every operation is written from its formula in include/wide.
#include "host/model/graph_reference.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "wide/convert.hpp"

namespace wide::catalog {

namespace {

using Dimensions = std::vector<int64_t>;

int64_t count(const Dimensions& shape, size_t from = 0) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(from), shape.end(), int64_t{1},
                         std::multiplies<>());
}

double activate(Activation activation, double v) {
  switch (activation) {
    case Activation::none:
      return v;
    case Activation::relu:
      return std::max(v, 0.0);
    case Activation::gelu:
      return v / 2 * (1 + std::erf(v / std::sqrt(2.0)));
    case Activation::gelu_tanh:
      return v / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    case Activation::silu:
      return v / (1 + std::exp(-v));
  }
  return v;
}

double apply(const PointwiseOp& op, double v, double slope) {
  switch (op.function) {
    case PointwiseFunction::relu:
      return std::max(v, 0.0);
    case PointwiseFunction::gelu:
      return activate(Activation::gelu, v);
    case PointwiseFunction::gelu_tanh:
      return activate(Activation::gelu_tanh, v);
    case PointwiseFunction::silu:
      return activate(Activation::silu, v);
    case PointwiseFunction::sigmoid:
      return 1 / (1 + std::exp(-v));
    case PointwiseFunction::tanh:
      return std::tanh(v);
    case PointwiseFunction::elu:
      return v > 0 ? v : double{op.alpha} * (std::exp(v) - 1);
    case PointwiseFunction::leaky_relu:
      return v > 0 ? v : double{op.slope} * v;
    case PointwiseFunction::prelu:
      return v > 0 ? v : slope * v;
    case PointwiseFunction::hardswish:
      return v * std::min(std::max(v + 3, 0.0), 6.0) / 6;
    case PointwiseFunction::softplus:
      return std::log1p(std::exp(double{op.beta} * v)) / double{op.beta};
    case PointwiseFunction::clamp:
      return std::min(std::max(v, double{op.low}), double{op.high});
  }
  return v;
}

class Evaluator {
 public:
  Evaluator(const Graph& graph, std::vector<Doubles> values, const RoundingNoise& noise)
      : graph_(graph), values_(std::move(values)), noise_(noise), state_(noise.seed) {}

  void run() {
    for (const Node& node : graph_.nodes()) {
      node_ = &node;
      std::visit([&](const auto& op) { compute(op); }, node.operation);
    }
  }
  const Doubles& value(Value v) const { return values_[static_cast<size_t>(v.index)]; }

 private:
  bool has(const char* name) const { return !node_->operand(name).is_absent(); }
  const Doubles& in(const char* name) const { return value(node_->operand(name)); }
  /// Computed values are rounded, those that are only moved are not.
  void out(Doubles y, size_t which = 0) { keep(rounded(std::move(y)), which); }
  Doubles rounded(Doubles y) {
    if (noise_.result_error == 0) return y;
    for (double& v : y.values) v *= 1 + noise_.result_error * sign();
    return y;
  }
  void keep(Doubles y, size_t which = 0) {
    values_[static_cast<size_t>(node_->outputs[which].index)] = std::move(y);
  }
  /// An operand of sums of `terms` products.
  Doubles noisy(Doubles x, int64_t terms) {
    if (noise_.sum_error == 0) return x;
    const double error = noise_.sum_error * std::sqrt(static_cast<double>(terms));
    for (double& v : x.values) v *= 1 + error * sign();
    return x;
  }
  /// -1 or 1 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
  double sign() {
    uint64_t word = state_ += 0x9e3779b97f4a7c15u;
    word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
    word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
    return (word ^ (word >> 31)) & 1 ? 1 : -1;
  }
  /// An element of an optional operand, or its default.
  double at(const char* name, int64_t index, double absent) const {
    return has(name) ? in(name).values[static_cast<size_t>(index)] : absent;
  }
  /// No values where it is absent.
  Doubles given(const char* name) const { return has(name) ? in(name) : Doubles(); }
  static size_t z(int64_t i) { return static_cast<size_t>(i); }

  double finish(Residual where, Activation activation, double sum, int64_t index) const {
    const double residual = where == Residual::none ? 0 : at("residual", index, 0);
    if (where == Residual::before_activation) sum += residual;
    sum = activate(activation, sum);
    return where == Residual::after_activation ? sum + residual : sum;
  }

  void compute(const QuantizeOp& op) {
    const Doubles& w = in("weight");
    const QuantizedWeight how{op.format, op.group_size, w.shape[0], w.shape[1]};
    const std::vector<float> values(w.values.begin(), w.values.end());
    std::vector<uint8_t> bytes(z(quantized_bytes(how)));
    const Shape shape{1, static_cast<int64_t>(bytes.size())};
    const ConstTensorView member(values.data(), Dtype::fp32, {w.shape[0], w.shape[1]}, Device{});
    quantize_weights(Context::cpu({.num_threads = 1, .allocator = nullptr}), how,
                     std::span(&member, 1), TensorView(bytes.data(), Dtype::uint8, shape, Device{}),
                     Stream::cpu());
    keep({{shape[1]}, {bytes.begin(), bytes.end()}});
  }

  void compute(const LinearOp& op) {
    const bool is_packed = op.weight_format == WeightFormat::packed;
    const Doubles w = is_packed
                          ? in("weight")
                          : decoded_weight(in("weight"), {op.weight_format, op.group_size,
                                                          op.out_features, in("x").shape.back()});
    const Doubles x = noisy(in("x"), w.shape[1]);
    const int64_t out_features = w.shape[0], in_features = w.shape[1];
    const int64_t rows = count(x.shape) / in_features;
    Doubles y{x.shape, std::vector<double>(z(rows * out_features))};
    y.shape.back() = out_features;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t o = 0; o < out_features; ++o) {
        double sum = at("bias", o, 0);
        for (int64_t i = 0; i < in_features; ++i)
          sum += x.values[z(r * in_features + i)] * w.values[z(o * in_features + i)];
        y.values[z(r * out_features + o)] =
            finish(op.residual, op.activation, sum, r * out_features + o);
      }
    out(std::move(y));
  }

  void compute(const MatmulOp& op) {
    const Doubles left = noisy(in("left"), in("left").shape.back());
    const Doubles& right = in("right");
    const int64_t k = left.shape.back(), m = left.shape[left.shape.size() - 2],
                  p = right.shape[right.shape.size() - 2];
    Doubles y{left.shape, std::vector<double>(z(count(left.shape) / k * p))};
    y.shape.back() = p;
    for (int64_t i = 0; i < count(y.shape); ++i) {
      const int64_t row = i / p, other = row / m * p + i % p;
      double sum = 0;
      for (int64_t e = 0; e < k; ++e)
        sum += left.values[z(row * k + e)] * right.values[z(other * k + e)];
      y.values[z(i)] = finish(op.residual, op.activation, double{op.alpha} * sum, i);
    }
    out(std::move(y));
  }

  void compute(const ConvOp& op) {
    const Doubles& w = in("weight");
    Doubles y = conv_of(op, noisy(in("x"), count(w.shape, 1)), w);
    const bool is_last = op.layout == ChannelLayout::channels_last;
    const int64_t channels = w.shape[0], inner = is_last ? 1 : count(y.shape, 2);
    for (int64_t i = 0; i < count(y.shape); ++i) {
      double& v = y.values[z(i)];
      v = finish(op.residual, op.activation, v + at("bias", i / inner % channels, 0), i);
    }
    out(std::move(y));
  }

  void compute(const ConvTransposeOp& op) {
    const Doubles& w = in("weight");
    const int64_t channels = w.shape[1] * op.groups;
    Doubles y = conv_transpose_of(op, noisy(in("x"), count(w.shape) / w.shape[1] / op.groups), w);
    const int64_t inner = count(y.shape, 2);
    for (int64_t i = 0; i < count(y.shape); ++i) {
      double& v = y.values[z(i)];
      v = activate(op.activation, v + at("bias", i / inner % channels, 0));
    }
    out(std::move(y));
  }

  /// Of y, along each axis.
  Dimensions positions(ChannelLayout layout) const {
    const Shape& type = graph_.type(node_->outputs[0]).shape;
    const auto* first = type.begin() + (layout == ChannelLayout::channels_last ? 1 : 2);
    return {first, first + type.rank() - 2};
  }
  void compute(const DepthToSpaceOp& op) {
    keep(depth_to_space_of(op, in("x"), positions(op.layout)));
  }
  void compute(const UpsampleOp& op) { keep(upsample_of(op, in("x"))); }

  /// x [B, T, in] by rows [first, first + count) of a weight.
  Doubles project(const Doubles& x, const Doubles& w, int64_t first, int64_t rows, const char* bias,
                  int64_t bias_first) const {
    const int64_t in_features = x.shape[2], n = x.shape[0] * x.shape[1];
    Doubles y{{x.shape[0], x.shape[1], rows}, std::vector<double>(z(n * rows))};
    for (int64_t r = 0; r < n; ++r)
      for (int64_t o = 0; o < rows; ++o) {
        double sum = at(bias, bias_first + o, 0);
        for (int64_t i = 0; i < in_features; ++i)
          sum += x.values[z(r * in_features + i)] * w.values[z((first + o) * in_features + i)];
        y.values[z(r * rows + o)] = sum;
      }
    return y;
  }

  void compute(const AttentionOp& op) {
    const Doubles x = noisy(in("x"), in("x").shape[2]);
    const int64_t d = x.shape[2];
    const Doubles key = has("key") ? noisy(in("key"), in("key").shape[2]) : x;
    const Doubles value = has("value") ? noisy(in("value"), in("value").shape[2]) : x;
    const bool is_cross = has("key");
    const Doubles q =
        rounded(project(x, in(is_cross ? "q_weight" : "qkv_weight"), 0, d, "qkv_bias", 0));
    const Doubles k = rounded(
        project(key, in(is_cross ? "k_weight" : "qkv_weight"), is_cross ? 0 : d, d, "qkv_bias", d));
    const Doubles v = rounded(project(value, in(is_cross ? "v_weight" : "qkv_weight"),
                                      is_cross ? 0 : 2 * d, d, "qkv_bias", 2 * d));
    const FlashAttentionOp core{.heads = op.heads, .is_causal = op.is_causal};
    const Doubles heads = rounded(attention_of(core, {q, k, v, given("key_lengths"), {}, {}}));
    out(project(noisy(heads, d), in("out_weight"), 0, d, "out_bias", 0));
  }

  void compute(const FlashAttentionOp& op) {
    out(attention_of(
        op, {in("q"), in("k"), in("v"), given("key_lengths"), given("bias"), given("slopes")}));
  }

  void compute(const RecurrentOp& op) {
    RecurrentDoubles o{in("x"),
                       in("input_weight"),
                       in("hidden_weight"),
                       given("input_bias"),
                       given("hidden_bias"),
                       given("first_hidden"),
                       given("first_cell")};
    keep(recurrent_of(
        op, o, [this](Doubles x, int64_t terms) { return noisy(std::move(x), terms); },
        [this](Doubles y) { return rounded(std::move(y)); }));
    if (op.writes_cell) out(std::move(o.cell), 1);
  }

  void compute(const EmbeddingOp& op) {
    const Doubles &ids = in("ids"), &table = in("table");
    const int64_t d = table.shape[1];
    Doubles y{{ids.shape[0], ids.shape[1], d}, {}};
    for (const double id : ids.values)
      for (int64_t e = 0; e < d; ++e)
        y.values.push_back(static_cast<int64_t>(id) == op.padding_id
                               ? 0
                               : table.values[z(static_cast<int64_t>(id) * d + e)]);
    out(std::move(y));
  }

  /// Rows of x, bias, activation and residual added, normalised or not.
  void rows(Activation activation, ChainNorm norm, double epsilon, bool writes_sum) {
    Doubles sum = in("x");
    const int64_t d = sum.shape.back(), n = count(sum.shape) / d;
    for (int64_t i = 0; i < n * d; ++i) {
      double& v = sum.values[z(i)];
      v = activate(activation, v + at("bias", i % d, 0)) + at("residual", i, 0);
    }
    Doubles y = sum;
    for (int64_t r = 0; norm != ChainNorm::none && r < n; ++r) {
      double mean = 0, square = 0;
      for (int64_t e = 0; e < d; ++e) mean += sum.values[z(r * d + e)];
      mean = norm == ChainNorm::layernorm ? mean / static_cast<double>(d) : 0;
      for (int64_t e = 0; e < d; ++e) square += std::pow(sum.values[z(r * d + e)] - mean, 2);
      const double scale = 1 / std::sqrt(square / static_cast<double>(d) + epsilon);
      for (int64_t e = 0; e < d; ++e)
        y.values[z(r * d + e)] =
            (sum.values[z(r * d + e)] - mean) * scale * at("gamma", e, 1) + at("beta", e, 0);
    }
    out(std::move(y));
    if (writes_sum) out(std::move(sum), 1);
  }
  void compute(const LayernormOp& op) {
    rows(Activation::none, ChainNorm::layernorm, double{op.epsilon}, op.writes_sum);
  }
  void compute(const RmsnormOp& op) {
    rows(Activation::none, ChainNorm::rmsnorm, double{op.epsilon}, op.writes_sum);
  }
  void compute(const ChainOp& op) {
    rows(op.activation, op.norm, double{op.epsilon}, op.writes_sum);
  }

  void compute(const BatchnormOp& op) {
    Doubles y = in("x");
    const int64_t c = y.shape[1], inner = count(y.shape, 2);
    for (int64_t i = 0; i < count(y.shape); ++i) {
      const int64_t channel = i / inner % c;
      double& v = y.values[z(i)];
      v = (v - at("running_mean", channel, 0)) /
              std::sqrt(at("running_variance", channel, 1) + double{op.epsilon}) *
              at("gamma", channel, 1) +
          at("beta", channel, 0);
    }
    out(std::move(y));
  }

  void groups(int64_t num_groups, double epsilon) {
    Doubles y = in("x");
    const int64_t c = y.shape[1], inner = count(y.shape, 2), size = c / num_groups * inner;
    for (int64_t g = 0; g < y.shape[0] * num_groups; ++g) {
      double mean = 0, square = 0;
      for (int64_t i = 0; i < size; ++i) mean += y.values[z(g * size + i)];
      mean /= static_cast<double>(size);
      for (int64_t i = 0; i < size; ++i) square += std::pow(y.values[z(g * size + i)] - mean, 2);
      const double scale = 1 / std::sqrt(square / static_cast<double>(size) + epsilon);
      for (int64_t i = 0; i < size; ++i) {
        const int64_t channel = (g * size + i) / inner % c;
        double& v = y.values[z(g * size + i)];
        v = (v - mean) * scale * at("gamma", channel, 1) + at("beta", channel, 0);
      }
    }
    out(std::move(y));
  }
  void compute(const GroupnormOp& op) { groups(op.groups, double{op.epsilon}); }
  void compute(const InstancenormOp& op) { groups(in("x").shape[1], double{op.epsilon}); }

  void compute(const PointwiseOp& op) {
    Doubles y = in("x");
    const bool has_one = has("slope") && in("slope").values.size() == 1;
    for (int64_t i = 0; i < count(y.shape); ++i) {
      const double slope = has("slope") ? at("slope", has_one ? 0 : i % y.shape.back(), 0) : 0;
      y.values[z(i)] = apply(op, y.values[z(i)], slope);
    }
    out(std::move(y));
  }

  void compute(const BinaryOp& op) {
    Doubles y = in("x");
    const Doubles& other = in("other");
    const int64_t n = count(other.shape),
                  inner = count(y.shape, std::min<size_t>(2, y.shape.size()));
    // Axes compared from the last on: one number each for y's last axes, or one for each channel.
    const bool is_of_last = other.shape.size() <= y.shape.size() &&
                            std::equal(other.shape.rbegin(), other.shape.rend(), y.shape.rbegin());
    const bool is_channel = n > 1 && !is_of_last && other.shape[0] == y.shape[1];
    const bool is_of_rows = n < count(y.shape) && other.shape.size() == y.shape.size();
    const bool has_channels = is_of_rows && other.shape[1] == y.shape[1] &&
                              n == y.shape[0] * y.shape[1];  // else one number for each of y's last
    const int64_t d = y.shape.back(), of_row = count(y.shape) / std::max<int64_t>(1, y.shape[0]);
    for (int64_t i = 0; i < count(y.shape); ++i) {
      const double o = other.values[z(has_channels ? i / inner
                                      : is_of_rows ? i / of_row * d + i % d
                                      : is_channel ? i / inner % n
                                                   : i % n)];
      double& v = y.values[z(i)];
      v = op.function == BinaryFunction::add        ? v + o
          : op.function == BinaryFunction::subtract ? v - o
          : op.function == BinaryFunction::multiply ? v * o
                                                    : v / o;
      v = activate(op.activation, v);
    }
    out(std::move(y));
  }

  void compute(const PoolingOp& op) { out(pooling_of(op, in("x"), positions(op.layout))); }
  void compute(const InterpolateOp& op) { out(interpolate_of(op, in("x"), positions(op.layout))); }

  void compute(const SoftmaxOp& op) {
    Doubles y = in("x");
    const int64_t d = y.shape.back();
    for (int64_t r = 0; r < count(y.shape) / d; ++r) {
      double* row = y.values.data() + r * d;
      const double most = *std::max_element(row, row + d);
      double sum = 0;
      for (int64_t e = 0; e < d; ++e) sum += std::exp(row[e] - most);
      for (int64_t e = 0; e < d; ++e)
        row[e] = op.is_log ? row[e] - most - std::log(sum) : std::exp(row[e] - most) / sum;
    }
    out(std::move(y));
  }

  void compute(const DropoutOp&) { keep(in("x")); }
  void compute(const EnsembleOp&) { keep(in("x")); }  // the member's contribution

  void compute(const ConcatOp& op) {
    const Shape& type = graph_.type(node_->outputs[0]).shape;
    const int64_t batch = batch_of_activations();
    Doubles y{Dimensions(type.begin(), type.end()), {}};
    y.shape[0] = batch;
    int64_t outer = 1;
    for (int axis = 0; axis < op.axis; ++axis) outer *= y.shape[z(axis)];
    for (int64_t o = 0; o < outer; ++o)
      for (const Operand& part : node_->operands) {
        const Doubles& p = value(part.value);
        const bool is_parameter = p.shape.size() < y.shape.size();
        const int64_t run = count(p.shape, z(op.axis) - (is_parameter ? 1 : 0));
        const int64_t start = (is_parameter ? o % (outer / batch) : o) * run;
        y.values.insert(y.values.end(), p.values.begin() + start, p.values.begin() + start + run);
      }
    keep(std::move(y));
  }
  int64_t batch_of_activations() const {
    for (const Operand& part : node_->operands) {
      const Shape& shape = graph_.type(part.value).shape;
      if (shape[0] == kBatch) return value(part.value).shape[0];
    }
    return 1;
  }

  void compute(const SliceOp& op) {
    const Doubles& x = in("x");
    Doubles y{x.shape, {}};
    y.shape[z(op.axis)] = op.count;
    const int64_t inner = count(x.shape, z(op.axis) + 1);
    const int64_t outer = count(x.shape) / count(x.shape, z(op.axis));
    for (int64_t o = 0; o < outer; ++o) {
      const auto from = x.values.begin() + (o * x.shape[z(op.axis)] + op.first) * inner;
      y.values.insert(y.values.end(), from, from + op.count * inner);
    }
    keep(std::move(y));
  }

  void compute(const ReshapeOp& op) {
    Doubles y = in("x");
    const int64_t batch = y.shape.empty() ? 1 : y.shape[0];
    y.shape.assign(op.shape.begin(), op.shape.end());
    for (int64_t& extent : y.shape) {
      if (extent == kBatch) extent = batch;
    }
    keep(std::move(y));
  }

  void compute(const TransposeOp& op) { keep(transpose_of(op, in("x"))); }

  template <class Op>
  void compute(const Op&) {
    throw std::logic_error("graph_reference: " + node_->name + ": unknown operation");
  }

  const Graph& graph_;
  std::vector<Doubles> values_;
  RoundingNoise noise_;
  uint64_t state_;
  const Node* node_ = nullptr;
};

}  // namespace

Doubles to_doubles(const ConstTensorView& view) {
  Doubles out{{view.shape.begin(), view.shape.end()}, {}};
  for (int64_t i = 0; i < view.num_elements(); ++i) {
    out.values.push_back(load_element(view.data, view.dtype, i));
  }
  return out;
}

std::map<std::string, Doubles> evaluate_graph(const Graph& graph,
                                              const std::map<std::string, Doubles>& inputs,
                                              const std::map<std::string, Doubles>& parameters,
                                              RoundingNoise noise) {
  std::vector<Doubles> values(static_cast<size_t>(graph.num_values()));
  for (const Value v : graph.inputs())
    values[static_cast<size_t>(v.index)] = inputs.at(graph.name(v));
  for (const Value v : graph.parameters()) {
    values[static_cast<size_t>(v.index)] = parameters.at(graph.name(v));
  }
  Evaluator evaluator(graph, std::move(values), noise);
  evaluator.run();
  std::map<std::string, Doubles> outputs;
  for (const Operand& output : graph.outputs())
    outputs[output.name] = evaluator.value(output.value);
  return outputs;
}

}  // namespace wide::catalog
