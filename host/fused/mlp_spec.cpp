// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mlp for bench and verify: axes, sweeps, strategies, operands, cost.
#include <algorithm>
#include <cmath>

#include "host/fused/mlp_problem.hpp"
#include "host/fused/mlp_reference.hpp"
#include "host/operand_values.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
MlpProblem problem_of(const Case& point) {
  const auto width = [&](const char* axis) {
    return point.integer(axis) == 0 ? point.integer("d") : point.integer(axis);
  };
  MlpProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.widths.assign(static_cast<size_t>(point.integer("layers")) + 1, width("hidden"));
  p.widths.front() = width("in");
  p.widths.back() = width("out");
  p.dtype = point.dtype();
  p.activation = *parse_activation(point.word("activation"));
  if (point.word("last") == "yes") p.last_activation = p.activation;
  p.has_bias = point.word("bias") == "yes";
  p.shared_input = point.word("shared") == "yes";
  p.allow_tf32 = point.word("tf32") == "yes";
  return p;
}

std::string impossible_reason(const Case& point) {
  const std::string reason = tf32_impossible_reason(point);
  if (!reason.empty()) return reason;
  constexpr int64_t kMaxLayers = 64;
  if (point.integer("layers") > kMaxLayers) return "more than 64 layers";
  return "";
}

/// Whole numbers whose sums stay exact in every dtype however many layers there are: an output is
/// two inputs, from the fifth layer on one, of either sign, and a bias up to 1, so that what begins
/// with 2 is at most 47 after four layers.
void draw_whole_weight(uint64_t key, int64_t first, size_t layer, std::span<double> row) {
  for (int64_t i = 0; i < (layer < 4 ? 2 : 1); ++i) {
    const uint64_t bits = random_bits(key, static_cast<uint64_t>(2 * first + i));
    row[(bits >> 1) % row.size()] = bits % 2 == 0 ? 1 : -1;
  }
}

/// Weights such that values neither grow nor vanish from layer to layer.
void draw_weight(Fill fill, uint64_t key, int64_t first, std::span<double> row) {
  const double spread = std::sqrt(6.0 / static_cast<double>(row.size()));
  draw_values(shaped(Distribution::uniform(-spread, spread), fill, Dtype::fp32, false), key, first,
              row);
}

/// A member's weights, by number: with zeros where the layout has gaps.
void fill_weights(const MlpProblem& p, const WorkloadOptions& options, int64_t id, bool is_poisoned,
                  std::span<std::byte> bytes) {
  if (is_poisoned) return std::fill(bytes.begin(), bytes.end(), std::byte{0xff});  // NaN
  const uint64_t key = stream_key(options.seed, operands::mlp_weights.name, 0, id);
  const bool is_whole = options.fill == Fill::integers;
  std::vector<double> values(bytes.size() / static_cast<size_t>(dtype_bytes(p.dtype)));
  const std::vector<MlpLayerPlace> places = mlp_layer_places(p);
  for (size_t l = 0; l < places.size(); ++l) {
    const auto in = static_cast<size_t>(p.widths[l]), out = static_cast<size_t>(p.widths[l + 1]);
    const auto part = [&](int64_t first, size_t count) {
      return std::span(values).subspan(static_cast<size_t>(first), count);
    };
    if (p.has_bias) {
      const Distribution uniform = Distribution::uniform(-0.5, 0.5);
      draw_values(is_whole ? Distribution::integers(-1, 1)
                           : shaped(uniform, options.fill, Dtype::fp32, false),
                  key, places[l].bias, part(places[l].bias, out));
    }
    for (size_t o = 0; o < out; ++o) {
      const int64_t first = places[l].weight + static_cast<int64_t>(o) * places[l].row;
      if (is_whole) {
        draw_whole_weight(key, first, l, part(first, in));
      } else {
        draw_weight(options.fill, key, first, part(first, in));
      }
    }
  }
  store_values(values, p.dtype, bytes.data());
}

class MlpWorkload final : public PlanWorkload<describe_mlp, make_mlp_plan> {
 public:
  MlpWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, complete_mlp_problem(problem_of(point)), options),
        x_(add_operand(operands::mlp_x, like().dtype, {like().batch, like().widths.front()},
                       options.fill == Fill::integers ? Distribution::integers(-2, 2)
                                                      : Distribution::uniform(),
                       like().shared_input)),
        weights_(add_operand(weights_description())),
        y_(add_operand(operands::mlp_x, like().dtype, {like().batch, like().widths.back()},
                       Distribution::none())) {}

  std::string baseline_unsupported_reason() const override {
    return is_empty(like()) ? "" : cublas_unavailable_reason();
  }

  /// Neither values between layers nor the padding of weights need be in memory.
  Cost cost() const override {
    double products = 0, outputs = 0;
    for (size_t l = 0; l + 1 < like().widths.size(); ++l) {
      const auto in = static_cast<double>(like().widths[l]);
      const auto out = static_cast<double>(like().widths[l + 1]);
      products += in * out;
      outputs += like().has_bias ? out : 0;
    }
    const auto members = static_cast<double>(like().num_members);
    Cost cost;
    cost.flops = members * static_cast<double>(like().batch) * (2 * products + outputs);
    cost.bytes_read = bytes_of({&x_}) + members * (products + outputs) *
                                            static_cast<double>(dtype_bytes(like().dtype));
    cost.bytes_written = bytes_of({&y_});
    return cost;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    judge_mlp_row(like(), row_of(&x_, member, row, like().widths.front()), weights_.values(member),
                  options().fill, values, tolerances);
  }

  double reference_row_flops() const override {
    double products = 0;
    for (size_t l = 0; l + 1 < like().widths.size(); ++l) {
      products += static_cast<double>(like().widths[l]) * static_cast<double>(like().widths[l + 1]);
    }
    return 10 * products;
  }

 private:
  Operand::Description weights_description() const {
    Operand::Description description{.packing = operands::mlp_weights,
                                     .dtype = like().dtype,
                                     .member_shape = {mlp_member_elements(like())}};
    description.granule = kMlpAlignment / dtype_bytes(like().dtype);
    description.contents = [p = like(), options = options()](int64_t id, bool is_poisoned,
                                                             std::span<std::byte> bytes) {
      fill_weights(p, options, id, is_poisoned, bytes);
    };
    return description;
  }

  MlpArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(weights_), view(y_)};
  }

  const Operand& x_;
  const Operand& weights_;
  const Operand& y_;
};

std::vector<AxisInfo> axes() {
  return {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "rows of x per member", int64_t{32}, {}, 0},
      {"d", "in = out = hidden = d", int64_t{64}, {}, 1},
      {"in", "features of x; 0: d", int64_t{0}, {}, 0},
      {"hidden", "features between layers; 0: d", int64_t{0}, {}, 0},
      {"out", "features of y; 0: d", int64_t{0}, {}, 0},
      {"layers", "linear layers: weights", int64_t{2}, {}, 1, {2, 3, 4}},
      dtype_axis("of all operands"),
      {"activation", "after hidden layers", "relu", {"none", "relu", "gelu", "gelu_tanh", "silu"}},
      {"last", "whether the last layer has the activation, too", "no", {"no", "yes"}},
      {"bias", "of every layer", "yes", {"yes", "no"}},
      shared_axis(),
      tf32_axis()};
}

std::vector<StrategyInfo> strategies() {
  using enum DeviceType;
  using enum StrategyKind;
  return {{"sequential", cuda, sequential, "member by member, a cuBLAS GEMM and epilogue a layer"},
          {"cublas_batched", cuda, vendor,
           "layer by layer, one strided-batched cuBLAS GEMM and one epilogue for all members"},
          {"layerwise",
           cuda,
           hand_written,
           "layer by layer, one of linear's kernels for all members, epilogue fused",
           // Values between layers are written and read; linear's kernels read x again.
           {.streamed = 2.0, .rereads = 2.0, .bank_conflicts = 0.15}},
          {"fused",
           cuda,
           hand_written,
           "all layers of all members in one launch, what lies between them in registers",
           // Rows of weights are padded; for tf32, sums are exchanged with conflicts.
           {.streamed = 1.1, .rereads = 0, .bank_conflicts = 0.11}},
          {"sequential", cpu, sequential, "member by member, each layer over all threads"},
          {"wide", cpu, hand_written, "layer by layer, all members over all threads at once"}};
}

std::vector<Sweep> sweeps() {
  return {{"quick",
           {{"n", ints({20, 100})},
            {"batch", ints({32})},
            {"d", ints({64})},
            {"hidden", ints({128})},
            {"layers", ints({2})}}},
          {"full",
           {{"n", ints({4, 20, 100})},
            {"batch", ints({32, 256})},
            {"d", ints({64, 256, 512})},
            {"hidden", ints({128, 512})},
            {"layers", ints({2, 8})}}},
          {"ci",
           {{"n", ints({4, 16})},
            {"batch", ints({32})},
            {"d", ints({64})},
            {"hidden", ints({128})},
            {"layers", ints({2})}}}};
}

}  // namespace

const PrimitiveSpec& mlp_spec() {
  static const PrimitiveSpec spec{
      .name = "mlp",
      .summary = "whole multilayer perceptrons, one per member, in one call",
      .axes = axes(),
      .strategies = strategies(),
      .sweeps = sweeps(),
      .tolerance_formula = kMlpToleranceFormula,
      .impossible_reason = impossible_reason,
      .tuning_key = tuned_by(problem_of),
      .make_workload = make_workload<MlpWorkload>};
  return spec;
}

}  // namespace wide::catalog
