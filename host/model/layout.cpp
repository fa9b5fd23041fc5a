// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A small constraint problem: each value has a set of possible axes, nodes remove those that they
// cannot read or write and tie operands to one another. Sets only shrink, so that propagation ends.
#include "host/model/layout.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/nearest.hpp"
#include "host/model/batch.hpp"
#include "host/model/broadcast.hpp"
#include "host/model/move.hpp"
#include "host/model/shape_text.hpp"

namespace wide {

namespace {

using AxisSet = uint32_t;
constexpr AxisSet only(int axis) {
  return AxisSet{1} << axis;
}

/// Axis a of one value is any axis of map[a] of another.
using AxisMap = std::array<AxisSet, kMaxRank>;

/// The relation between two values of one node.
struct Tie {
  const Node* node;
  Value from, to;
  AxisMap map;
};

class Layouts {
 public:
  Layouts(const Graph& graph, const std::vector<bool>& is_shared)
      : graph_(graph), is_shared_(is_shared), left_(is_shared.size()) {
    for (size_t i = 0; i < left_.size(); ++i) {
      const int rank = graph.type(value(i)).shape.rank();
      left_[i] = only(rank) - 1;
    }
  }

  void add(const Node& node) {
    node_ = &node;
    std::visit([&](const auto& op) { constrain(op); }, node.operation);
  }

  std::vector<int> solve() {
    std::vector<int> axes(left_.size(), -1);
    propagate();
    for (size_t i = 0; i < left_.size(); ++i) {
      if (!is_packed(value(i))) continue;
      axes[i] = preferred(value(i));
      left_[i] = only(axes[i]);
      propagate();
    }
    return axes;
  }

 private:
  static Value value(size_t index) { return {static_cast<int32_t>(index)}; }
  bool is_packed(Value v) const {
    return !v.is_absent() && is_batched(graph_, v) && !is_shared_[static_cast<size_t>(v.index)];
  }
  AxisSet& left(Value v) { return left_[static_cast<size_t>(v.index)]; }
  int rank(Value v) const { return graph_.type(v).shape.rank(); }

  /// As in the layout table, where still possible: channels of images, else features.
  int preferred(Value v) {
    const int last = rank(v) - 1;
    for (const int axis : {rank(v) >= 4 ? 1 : last, last, 1, 0}) {
      if (axis <= last && (left(v) & only(axis)) != 0) return axis;
    }
    return std::countr_zero(left(v));
  }

  void restrict(Value v, AxisSet axes) {
    if (!is_packed(v)) return;
    shrink(v, axes, *node_);
  }
  void restrict(std::string_view operand, AxisSet axes) { restrict(node_->operand(operand), axes); }
  void restrict_outputs(AxisSet axes) {
    for (const Value y : node_->outputs) restrict(y, axes);
  }
  bool shrink(Value v, AxisSet axes, const Node& node) {
    const AxisSet before = left(v), after = before & axes;
    if (after == 0) refuse(v, node);
    left(v) = after;
    return after != before;
  }
  [[noreturn]] void refuse(Value v, const Node& node) const {
    const Node* producer = graph_.producer(v);
    throw MoveNeeded(
        node.name, v,
        node_text(graph_, node) + graph_.name(v) + " " + to_string(graph_.type(v)) +
            (producer == nullptr
                 ? std::string(", an input,")
                 : " of " + std::string(operation_name(graph_, *producer)) + " " + producer->name) +
            " cannot lie so that members stay side by side for all that read and write it: this "
            "would move data between layouts");
  }

  void tie(Value from, Value to) {
    AxisMap same{};
    for (int axis = 0; axis < kMaxRank; ++axis) same[static_cast<size_t>(axis)] = only(axis);
    tie(from, to, same);
  }
  void tie(Value from, Value to, const AxisMap& map) {
    if (is_packed(from) && is_packed(to)) ties_.push_back({node_, from, to, map});
  }

  bool reaches(const Tie& t, AxisSet axes) const {
    return std::any_of(t.map.begin(), t.map.begin() + rank(t.from),
                       [&](AxisSet others) { return (others & axes) != 0; });
  }

  void propagate() {
    for (bool changes = true; changes;) {
      changes = false;
      for (const Tie& t : ties_) {
        AxisSet from = 0, to = 0;
        for (int axis = 0; axis < rank(t.from); ++axis) {
          const AxisSet others = t.map[static_cast<size_t>(axis)] & left(t.to);
          if ((left(t.from) & only(axis)) == 0 || others == 0) continue;
          from |= only(axis);
          to |= others;
        }
        // Where none of its axes matches a remaining one of the other, copying `from` is no help.
        if (to == 0 && !reaches(t, left(t.to))) refuse(t.to, *t.node);
        changes = shrink(t.from, from, *t.node) || changes;
        changes = shrink(t.to, to, *t.node) || changes;
      }
    }
  }

  /// Features last: rows have one stride where members are next to the features or before all axes.
  void rows(std::initializer_list<std::string_view> operands) {
    for (const std::string_view name : operands) {
      const Value v = node_->operand(name);
      if (!v.is_absent()) restrict(v, only(0) | only(rank(v) - 1));
    }
    for (const Value y : node_->outputs) restrict(y, only(0) | only(rank(y) - 1));
  }
  void channels(ChannelLayout layout = ChannelLayout::channels_first,
                std::optional<ChannelLayout> x_layout = {}) {
    const int last = rank(node_->outputs[0]) - 1;
    const auto axis = [&](ChannelLayout of) {
      return only(of == ChannelLayout::channels_last ? last : 1);
    };
    restrict("x", axis(x_layout.value_or(layout)));
    restrict("residual", axis(layout));
    restrict_outputs(axis(layout));
  }

  void constrain(const LinearOp&) { rows({"x", "residual"}); }
  /// Matrices have one stride where members stand in front of an axis of whole matrices.
  void constrain(const MatmulOp&) {
    const Value y = node_->outputs[0];
    const AxisSet axes = only(rank(y) - 1) - 1;
    restrict(y, axes);
    for (const Operand& operand : node_->operands) {
      restrict(operand.value, axes);
      tie(operand.value, y);
    }
  }
  void constrain(const ConvOp& op) { channels(op.layout, op.x_layout); }
  void constrain(const ConvTransposeOp&) { channels(); }
  void constrain(const DepthToSpaceOp& op) { channels(op.layout); }
  void constrain(const UpsampleOp& op) { channels(op.layout); }
  void constrain(const AttentionOp&) {
    rows({"x", "key", "value"});
    restrict("key_lengths", only(0));
  }
  void constrain(const FlashAttentionOp&) {
    rows({"q", "k", "v"});
    restrict("key_lengths", only(0));
  }
  void constrain(const RecurrentOp&) { rows({"x", "first_hidden", "first_cell"}); }
  void constrain(const EmbeddingOp&) { rows({}); }
  void constrain(const LayernormOp&) { rows({"x", "residual"}); }
  void constrain(const RmsnormOp&) { rows({"x", "residual"}); }
  void constrain(const ChainOp&) { rows({"x", "residual"}); }
  void constrain(const SoftmaxOp&) { rows({"x"}); }
  void constrain(const BatchnormOp&) { channels(); }
  void constrain(const GroupnormOp&) { channels(); }
  void constrain(const InstancenormOp&) { channels(); }
  void constrain(const PoolingOp& op) { channels(op.layout); }
  void constrain(const InterpolateOp& op) { channels(op.layout); }
  void constrain(const PointwiseOp&) {
    const Value slope = node_->operand("slope");
    if (!slope.is_absent() && graph_.type(slope).shape != Shape{1}) rows({"x"});
    tie(node_->operand("x"), node_->outputs[0]);
  }
  void constrain(const DropoutOp&) { tie(node_->operand("x"), node_->outputs[0]); }
  void constrain(const BinaryOp&) {
    const Value x = node_->operand("x"), other = node_->operand("other"), y = node_->outputs[0];
    if (is_batched(graph_, other) && graph_.type(other) != graph_.type(x)) {
      const bool is_first = repeats_channels(graph_.type(other).shape, graph_.type(x).shape);
      channels(is_first ? ChannelLayout::channels_first : ChannelLayout::channels_last);
      return restrict("other", only(is_first ? 1 : rank(other) - 1));
    }
    tie(x, y);
    tie(other, y);
    if (is_batched(graph_, other) || !is_batched(graph_, x)) return;
    const Shape& shape = graph_.type(other).shape;
    const int in_front = rank(x) - shape.rank();
    if (num_elements(shape) == 1) return;
    const AxisSet axes =
        is_of_last_axes(shape, graph_.type(x).shape) ? only(0) | only(in_front) : only(1);
    restrict(x, axes);
    restrict(y, axes);
  }
  void constrain(const ConcatOp&) {}  // copies from any layout to any other
  void constrain(const SliceOp&) { tie(node_->operand("x"), node_->outputs[0]); }
  void constrain(const ReshapeOp&) {
    const Value x = node_->operand("x"), y = node_->outputs[0];
    AxisMap map{};
    for (int axis = 0; axis < rank(x); ++axis) {
      map[static_cast<size_t>(axis)] =
          reshaped_axes(graph_.type(x).shape, graph_.type(y).shape, axis);
    }
    tie(x, y, map);
  }
  void constrain(const TransposeOp&) {}      // copies from any layout to any other
  void constrain(const FoldBatchnormOp&) {}  // likewise
  void constrain(const ConvPhasesOp&) {}
  void constrain(const MlpOp&) { rows({"x"}); }
  void constrain(const PackMlpOp&) {}  // of parameters
  void constrain(const QuantizeOp&) {}
  void constrain(const EnsembleOp&) { rows({"x"}); }

  const Graph& graph_;
  const std::vector<bool>& is_shared_;
  std::vector<AxisSet> left_;
  std::vector<Tie> ties_;
  const Node* node_ = nullptr;
};

}  // namespace

uint32_t reshaped_axes(const Shape& from, const Shape& to, int axis) {
  if (axis == 0) return only(0);
  int64_t in_front = 1, seen = 1;  // the batch, in front of both, is left out
  for (int a = 1; a < axis; ++a) in_front *= from[a];
  AxisSet axes = 0;
  for (int a = 1; a < to.rank(); ++a) {
    if (seen == in_front) axes |= only(a);
    seen *= to[a];
  }
  return axes;
}

void check_shared_parameters(const Graph& source, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!source.find_parameter(name).is_absent()) continue;
    std::vector<std::string_view> known;
    for (const Value value : source.parameters()) known.push_back(source.name(value));
    throw_invalid_argument("model: shared_parameters has " + name +
                           ", expected names of the graph's parameters" +
                           did_you_mean(name, known));
  }
}

std::vector<bool> shared_values(const Graph& graph,
                                const std::vector<std::string>& shared_parameters, bool drops_out) {
  std::vector<bool> is_shared(static_cast<size_t>(graph.num_values()), false);
  const auto shared = [&](Value v) { return is_shared[static_cast<size_t>(v.index)]; };
  for (const std::string& name : shared_parameters) {
    const Value parameter = graph.find_parameter(name);
    if (!parameter.is_absent()) is_shared[static_cast<size_t>(parameter.index)] = true;
  }
  for (const Value input : graph.inputs()) {
    is_shared[static_cast<size_t>(input.index)] = graph.kind(input) == ValueKind::shared_input;
  }
  for (const Node& node : graph.nodes()) {
    bool all = std::all_of(node.operands.begin(), node.operands.end(),
                           [&](const Operand& operand) { return shared(operand.value); });
    // Members drop each their own; where nothing is dropped, y is x, whatever the probability.
    if (std::holds_alternative<DropoutOp>(node.operation)) {
      all = !drops_out && shared(node.operand("x"));
    }
    // All members have one result, whatever they are.
    if (std::holds_alternative<EnsembleOp>(node.operation)) all = true;
    for (const Value y : node.outputs) is_shared[static_cast<size_t>(y.index)] = all;
  }
  return is_shared;
}

std::vector<int> choose_member_axes(const Graph& graph, const std::vector<bool>& is_shared) {
  Layouts layouts(graph, is_shared);
  for (const Node& node : graph.nodes()) layouts.add(node);
  return layouts.solve();
}

}  // namespace wide
