// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Gives every value a place.
#include <algorithm>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "host/core/check.hpp"
#include "host/model/batch.hpp"
#include "host/model/layout.hpp"
#include "host/model/lowering.hpp"
#include "host/model/routed.hpp"

namespace wide {

namespace {

/// Operations that read each element of x and write it back, and nothing of x later.
struct MayBeInPlace {
  bool operator()(const PointwiseOp&) const { return true; }
  bool operator()(const BinaryOp&) const { return true; }
  bool operator()(const DropoutOp&) const { return true; }
  bool operator()(const SoftmaxOp&) const { return true; }
  bool operator()(const BatchnormOp&) const { return true; }
  bool operator()(const GroupnormOp&) const { return true; }
  bool operator()(const InstancenormOp&) const { return true; }
  bool operator()(const LayernormOp& op) const { return !op.writes_sum; }
  bool operator()(const RmsnormOp& op) const { return !op.writes_sum; }
  bool operator()(const ChainOp& op) const { return !op.writes_sum; }
  template <class Op>
  bool operator()(const Op&) const {
    return false;
  }
};

/// Operations whose results are copied to where they lie, with any strides. Not phases of volumes:
/// with members apart that is a copy for each, as one has no axes left for them.
struct IsCopied {
  int rank;
  bool operator()(const TransposeOp&) const { return true; }
  bool operator()(const ConcatOp&) const { return true; }
  bool operator()(const UpsampleOp&) const { return rank < 5; }
  bool operator()(const DepthToSpaceOp&) const { return rank < 5; }
  template <class Op>
  bool operator()(const Op&) const {
    return false;
  }
};

Shape with_batch(const Shape& shape, int64_t batch) {
  Shape concrete = shape;
  if (is_batched(shape)) concrete[0] = batch;
  return concrete;
}

/// The shape of all members, and their layout in it.
ModelOperand operand_of(const std::string& name, const Place& place, int64_t num_members,
                        const std::vector<int64_t>& first_rows) {
  ModelOperand operand{.name = name,
                       .dtype = place.dtype,
                       .shape = place.shape,
                       .member_axis = place.member_axis,
                       .num_members = num_members};
  if (!first_rows.empty()) {
    if (!place.is_shared()) operand.first_rows = first_rows;
    return operand;
  }
  operand.is_stacked = place.member_axis == 0;
  if (place.member_axis > 0) {
    operand.shape[place.member_axis] *= place.num_members;
  } else if (place.member_axis == 0) {
    WIDE_REQUIRE(place.shape.rank() < kMaxRank,
                 "model: " + name + ": has more than " + std::to_string(kMaxRank) +
                     " axes with that of the members, expected at most " +
                     std::to_string(kMaxRank - 1) + " of its own");
    std::vector<int64_t> extents(place.shape.begin(), place.shape.end());
    extents.insert(extents.begin(), place.num_members);
    operand.shape = Shape(std::span<const int64_t>(extents));
  }
  return operand;
}

}  // namespace

class Placer {
 public:
  Placer(Lowering& lowering, const ModelProblem& problem)
      : l_(lowering),
        graph_(lowering.graph()),
        problem_(problem),
        num_members_(lowering.lies_as_one() ? 1 : problem.num_members),
        axes_(lowering.is_ragged() ? rows_first()
              : problem.is_routed  ? std::vector<int>(lowering.is_shared_.size(), -1)
                                   : choose_member_axes(graph_, lowering.is_shared_)),
        last_use_(static_cast<size_t>(graph_.num_values()), -1) {}

  std::vector<OutputCopy> run() {
    find_last_uses();
    if (is_mixture(problem_)) find_last_layers();
    for (size_t i = 0; i < graph_.inputs().size(); ++i) {
      const Value input = graph_.inputs()[i];
      place(input) = packed(input);
      place(input).storage =
          l_.add_storage({MemoryKind::input, static_cast<int64_t>(i), 0, bytes_of(place(input))});
      l_.inputs.push_back(
          operand_of(graph_.name(input), place(input), problem_.num_members, l_.first_rows_));
    }
    choose_outputs();
    choose_concats();
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      place_node(graph_.nodes()[i], static_cast<int>(i));
    }
    return copies();
  }

 private:
  Place& place(Value v) { return l_.places_[static_cast<size_t>(v.index)]; }
  int& last_use(Value v) { return last_use_[static_cast<size_t>(v.index)]; }
  /// For ragged models: like a single member that has all members' rows.
  std::vector<int> rows_first() const {
    std::vector<int> axes;
    for (const bool is_shared : l_.is_shared_) axes.push_back(is_shared ? -1 : 0);
    return axes;
  }
  int64_t rows_of(Value v) const {
    if (l_.has_choices(v)) return rows_of_choices(problem_);
    const bool has_all_rows = l_.is_ragged() && !l_.is_shared(v);
    return has_all_rows ? l_.first_rows_.back() : problem_.batch;
  }
  Shape concrete(Value v) const { return with_batch(graph_.type(v).shape, rows_of(v)); }
  Place packed(Value v, int64_t rows) const {
    return packed_place(graph_.type(v).dtype, with_batch(graph_.type(v).shape, rows), num_members_,
                        axes_[static_cast<size_t>(v.index)]);
  }
  Place packed(Value v) const { return packed(v, rows_of(v)); }
  static int64_t bytes_of(const Place& place) {
    return checked_bytes({place.num_members, num_elements(place.shape)}, dtype_bytes(place.dtype));
  }

  /// Whether y is another name for what x already holds.
  bool is_view(const Node& node) const {
    const bool keeps = std::holds_alternative<DropoutOp>(node.operation) && !l_.options().drops_out;
    return keeps || std::holds_alternative<ReshapeOp>(node.operation) ||
           std::holds_alternative<SliceOp>(node.operation);
  }

  /// The value whose memory v is a view of.
  Value root(Value v) const {
    const Node* node = graph_.producer(v);
    return node == nullptr || !is_view(*node) ? v : root(node->operand("x"));
  }

  void find_last_uses() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      for (const Operand& operand : graph_.nodes()[i].operands) {
        last_use(root(operand.value)) = static_cast<int>(i);
      }
    }
    for (const Operand& output : graph_.outputs()) {
      last_use(root(output.value)) = static_cast<int>(graph_.nodes().size());
    }
  }

  bool is_layer(Value v) const {
    const Node* node = graph_.producer(v);
    return node != nullptr && l_.has_choices(v) &&
           (std::holds_alternative<LinearOp>(node->operation) ||
            std::holds_alternative<MlpOp>(node->operation));
  }

  /// The layers that apply the gates: those of which only outputs read the result.
  void find_last_layers() {
    const auto takes = [&](Value v) { return l_.takes_gates_[static_cast<size_t>(root(v).index)]; };
    for (const Operand& output : graph_.outputs())
      takes(output.value) = is_layer(root(output.value));
    for (const Node& node : graph_.nodes()) {
      for (const Operand& operand : node.operands) {
        if (!is_view(node)) takes(operand.value) = false;
      }
    }
  }

  /// Whether rows of an output are as the sum wants them: times their gates, if there are any, and
  /// zeros where they are of no member, as layers leave them.
  bool lacks_gates(Value output) const {
    const Value r = root(output);
    const bool has_gates = problem_.router != Router::ids;
    return has_gates ? !l_.takes_gates(r) : !is_layer(r);
  }

  /// Roots that can be written directly to an output: those that are not cut, and not to be
  /// combined.
  void choose_outputs() {
    wanted_.assign(static_cast<size_t>(graph_.num_values()), -1);
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Value v = graph_.outputs()[i].value, r = root(v);
      const bool is_whole = !has_slice(v);
      int& wanted = wanted_[static_cast<size_t>(r.index)];
      const bool is_combined = is_mixture(problem_) && (problem_.choices > 1 || lacks_gates(v));
      if (is_whole && !is_combined && wanted < 0 && graph_.kind(r) == ValueKind::computed) {
        wanted = static_cast<int>(i);
      }
    }
  }
  /// Parts of a concat that are copied to where they lie, and that nothing else reads: they are
  /// copied there at once.
  void choose_concats() {
    std::vector<int> readers(static_cast<size_t>(graph_.num_values()), 0);
    const auto count = [&](const Operand& operand) {
      if (!operand.value.is_absent()) ++readers[static_cast<size_t>(operand.value.index)];
    };
    for (const Node& node : graph_.nodes()) std::ranges::for_each(node.operands, count);
    std::ranges::for_each(graph_.outputs(), count);
    concats_.resize(static_cast<size_t>(graph_.num_values()));
    for (const Node& node : graph_.nodes()) {
      const auto* op = std::get_if<ConcatOp>(&node.operation);
      if (op == nullptr || !is_batched(graph_, node.outputs[0])) continue;
      int64_t first = 0;
      for (const Operand& part : node.operands) {
        const auto index = static_cast<size_t>(part.value.index);
        if (readers[index] == 1 && lies_in(part.value, node.outputs[0])) {
          concats_[index] = {&node, first};
        }
        first += extent_in(part.value, op->axis);
      }
    }
  }
  /// Parameters are parts without a batch.
  int64_t extent_in(Value part, int axis) const {
    return graph_.type(part).shape[is_batched(graph_, part) ? axis : axis - 1];
  }
  bool lies_in(Value part, Value whole) const {
    const Node* producer = graph_.producer(part);
    if (producer == nullptr || !is_batched(graph_, part)) return false;
    return std::visit(IsCopied{graph_.type(part).shape.rank()}, producer->operation) &&
           l_.is_shared(part) == l_.is_shared(whole) &&
           l_.has_choices(part) == l_.has_choices(whole);
  }
  bool has_slice(Value v) const {
    const Node* node = graph_.producer(v);
    if (node == nullptr || !is_view(*node)) return false;
    return std::holds_alternative<SliceOp>(node->operation) || has_slice(node->operand("x"));
  }

  void place_node(const Node& node, int number) {
    if (!is_batched(graph_, node.outputs[0])) return;  // computed before anything runs
    if (is_view(node)) {
      place(node.outputs[0]) = view_of(node);
      return;
    }
    for (const Value y : node.outputs) place_result(node, number, y);
  }

  void place_result(const Node& node, int number, Value y) {
    if (place(y).storage >= 0) return;  // a concat, placed with the first part that lies in it
    if (const auto [concat, first] = concats_[static_cast<size_t>(y.index)]; concat != nullptr) {
      const int axis = std::get<ConcatOp>(concat->operation).axis;
      const Value whole = concat->outputs[0];
      place_result(*concat, number, whole);
      place(y) = sliced_place(place(whole), axis, first, graph_.type(y).shape[axis]);
      return;
    }
    place(y) = packed(y);
    const int output = wanted_[static_cast<size_t>(y.index)];
    if (output >= 0) {
      place(y).storage = l_.add_storage({MemoryKind::output, output, 0, bytes_of(place(y))});
    } else if (const std::optional<int32_t> storage = storage_of_x(node, number, place(y))) {
      place(y).storage = *storage;
    } else {
      place(y).storage = l_.add_storage({MemoryKind::activations, 0, 0, bytes_of(place(y))});
    }
    owner_.resize(l_.storages.size());
    owner_[static_cast<size_t>(place(y).storage)] = y;
  }

  Place view_of(const Node& node) {
    const Place& x = place(node.operand("x"));
    if (const auto* slice = std::get_if<SliceOp>(&node.operation)) {
      return sliced_place(x, slice->axis, slice->first, slice->count);
    }
    const Value y = node.outputs[0];
    if (std::holds_alternative<DropoutOp>(node.operation)) return x;
    return reshaped_place(node.name, x, concrete(y), axes_[static_cast<size_t>(y.index)]);
  }

  /// Where x lies, if this is its last reader and y fits in it exactly.
  std::optional<int32_t> storage_of_x(const Node& node, int number, const Place& y) {
    if (!l_.options().reuses_memory || !std::visit(MayBeInPlace{}, node.operation)) return {};
    const Value x = node.operand("x");
    const Place& from = place(x);
    const Storage& storage = l_.storages[static_cast<size_t>(from.storage)];
    const bool is_same = from.shape == y.shape && from.strides == y.strides && from.offset == 0 &&
                         from.member_stride == y.member_stride && from.dtype == y.dtype &&
                         from.num_members == y.num_members && storage.bytes == bytes_of(y);
    if (storage.kind != MemoryKind::activations || !is_same) return {};
    if (owner_[static_cast<size_t>(from.storage)] != root(x) || last_use(root(x)) > number) {
      return {};
    }
    for (const Operand& operand : node.operands) {
      if (operand.name != "x" && is_batched(graph_, operand.value) &&
          place(operand.value).storage == from.storage) {
        return {};
      }
    }
    return from.storage;
  }

  std::vector<OutputCopy> copies() {
    std::vector<OutputCopy> list;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const Operand& output = graph_.outputs()[i];
      const bool has_choices = l_.has_choices(output.value), is_mixed = is_mixture(problem_);
      WIDE_REQUIRE(!is_mixed || has_choices,
                   "model: output " + output.name +
                       ": no member computes it, expected what is of each of a row's members, to "
                       "be summed");
      Place to = packed(output.value, has_choices ? problem_.batch : rows_of(output.value));
      l_.outputs.push_back(operand_of(output.name, to, problem_.num_members, l_.first_rows_));
      const Place& from = place(output.value);
      if (wanted_[static_cast<size_t>(root(output.value).index)] == static_cast<int>(i)) continue;
      to.storage = l_.add_storage({MemoryKind::output, static_cast<int64_t>(i), 0, bytes_of(to)});
      list.push_back({output.name, from, to, is_mixed && lacks_gates(output.value)});
    }
    return list;
  }

  Lowering& l_;
  const Graph& graph_;
  const ModelProblem& problem_;
  int64_t num_members_;  ///< of a value: 1 where all are rows of one
  std::vector<int> axes_;
  std::vector<int> last_use_;  ///< of roots: the last node that reads them
  std::vector<int> wanted_;    ///< of roots: the output that they are written to
  std::vector<Value> owner_;   ///< of storages: the value that lies there now
  /// Of values: the concat that they lie in, from this position of its axis on.
  std::vector<std::pair<const Node*, int64_t>> concats_;
};

std::vector<OutputCopy> place_values(Lowering& lowering, const ModelProblem& problem) {
  return Placer(lowering, problem).run();
}

}  // namespace wide
