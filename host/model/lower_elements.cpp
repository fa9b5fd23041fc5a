// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Element by element: pointwise, binary, dropout; and nodes that move nothing, or only copy.
#include "host/model/batch.hpp"
#include "host/model/broadcast.hpp"
#include "host/model/lowering.hpp"
#include "host/model/move.hpp"
#include "wide/binary.hpp"
#include "wide/dropout.hpp"
#include "wide/pointwise.hpp"

namespace wide {

namespace {

/// Where rows end and features begin: at the members, so that any layout folds.
int split_of(const Place& place) {
  return place.is_shared() || place.member_axis == 0 ? place.shape.rank() - 1 : place.member_axis;
}

/// [R, N, F] of x and y alike.
PlacedView folded(const Lowering& l, const Node& node, const Place& place, int split) {
  return folded_view(node.name, place, split, l.device());
}

BinaryProblem binary_problem(const BinaryOp& op, const BinaryArguments& arguments,
                             Broadcast broadcast) {
  BinaryProblem like;
  like.num_members = arguments.y.shape[1];
  like.features = arguments.y.shape[2];
  like.function = op.function;
  like.activation = op.activation;
  like.broadcast = broadcast;
  return describe_binary(arguments, like);
}

/// [B, C, ..] packed with C of each member: (N, C) in the place of members, positions as features.
PlacedView channels_as_members(const Node& node, const Place& place, Device device) {
  Place channels = place;
  if (place.num_members > 1 && place.member_stride != place.shape[1] * place.strides[1]) {
    throw MoveNeeded(node.name, node.operand("x"),
                     "model: " + node.name +
                         ": members are apart, expected channels of all members one after "
                         "another: this would move data");
  }
  std::vector<int64_t> shape{place.shape[0]}, strides{place.strides[0]};
  for (int axis = 2; axis < place.shape.rank(); ++axis) {
    shape.push_back(place.shape[axis]);
    strides.push_back(place.strides[axis]);
  }
  channels.shape = Shape(std::span<const int64_t>(shape));
  channels.strides = Strides(std::span<const int64_t>(strides));
  channels.num_members = place.num_members * place.shape[1];
  channels.member_stride = place.strides[1];
  channels.member_axis = 1;
  return folded_view(node.name, channels, 1, device);
}

/// [B, C, ..] packed with C of each member: (B, N, C) in the place of members, positions as
/// features.
PlacedView rows_as_members(const Node& node, const Place& place, Device device) {
  const int64_t step = place.strides[1], channels = place.num_members * place.shape[1];
  const bool is_dense = (place.num_members == 1 || place.member_stride == place.shape[1] * step) &&
                        (place.shape[0] == 1 || place.strides[0] == channels * step);
  if (!is_dense) {
    throw MoveNeeded(node.name, {},
                     "model: " + node.name + ": rows of " + to_string(place.shape) +
                         " are apart, expected channels of all members and rows one after "
                         "another: this would move data");
  }
  Place rows = place;
  std::vector<int64_t> shape{1}, strides{0};
  for (int axis = 2; axis < place.shape.rank(); ++axis) {
    shape.push_back(place.shape[axis]);
    strides.push_back(place.strides[axis]);
  }
  rows.shape = Shape(std::span<const int64_t>(shape));
  rows.strides = Strides(std::span<const int64_t>(strides));
  rows.num_members = place.shape[0] * channels;
  rows.member_stride = step;
  rows.member_axis = 1;
  return folded_view(node.name, rows, 1, device);
}

/// `value`, [B, .., D] packed with D of each member: B in the place of members, positions as rows,
/// the features of all members as one's.
PlacedView batch_as_members(const Node& node, Value value, const Place& place, Device device) {
  const int last = place.shape.rank() - 1;
  if (place.num_members > 1 && place.member_stride != place.shape[last]) {
    throw MoveNeeded(node.name, value,
                     "model: " + node.name +
                         ": members are apart, expected features of all members one after "
                         "another: this would move data");
  }
  Place rows = place;
  std::vector<int64_t> shape(place.shape.begin() + 1, place.shape.end()),
      strides(place.strides.begin() + 1, place.strides.end());
  shape.back() *= place.num_members;
  rows.shape = Shape(std::span<const int64_t>(shape));
  rows.strides = Strides(std::span<const int64_t>(strides));
  rows.num_members = place.shape[0];
  rows.member_stride = place.strides[0];
  rows.member_axis = last - 1;
  return folded_view(node.name, rows, last - 1, device);
}

/// A parameter [N, ..] with all but the members in one axis.
PlacedView flat_parameter(Lowering& l, const Node& node, std::string_view name, bool is_scalar) {
  const PlacedView view = l.parameter(node, name);
  const int64_t members = view.view.shape[0];
  return view.as(is_scalar ? Shape{members} : Shape{members, view.view.num_elements() / members});
}

}  // namespace

void lower(Lowering& l, const Node& node, const PointwiseOp& op) {
  const Place from = l.operand(node, "x"), to = l.place(node.outputs[0]);
  const bool has_features =
      !node.operand("slope").is_absent() && l.graph().type(node.operand("slope")).shape != Shape{1};
  const int split = has_features ? to.shape.rank() - 1 : split_of(to);
  const PlacedView x = folded(l, node, from, split), slope = l.parameter(node, "slope"),
                   y = folded(l, node, to, split);
  const auto arguments = [=](const Bases& at) {
    return PointwiseArguments{.x = at.at(x), .slope = at.at(slope), .y = at.at(y)};
  };
  PointwiseProblem like;
  like.num_members = l.members_of(node);
  like.features = y.view.shape[2];
  like.function = op.function;
  like.slope = op.slope;
  like.alpha = op.alpha;
  like.beta = op.beta;
  like.low = op.low;
  like.high = op.high;
  l.add(node, "pointwise", "pointwise", describe_pointwise(arguments(l.example()), like),
        make_pointwise_plan, arguments);
}

void lower(Lowering& l, const Node& node, const BinaryOp& op) {
  if (!is_batched(l.graph(), node.outputs[0])) return;  // computed when members are loaded
  const Value other_value = node.operand("other");
  const Place from = l.operand(node, "x"), to = l.place(node.outputs[0]);
  const Shape& other_shape = l.graph().type(other_value).shape;
  const Shape& x_shape = l.graph().type(node.operand("x")).shape;
  const bool is_parameter = !is_batched(other_shape);
  const bool is_scalar = is_parameter && num_elements(other_shape) == 1;
  const bool is_channel = is_parameter && !is_scalar && !is_of_last_axes(other_shape, to.shape);
  PlacedView x, other, y;
  Broadcast broadcast = Broadcast::none;
  if (is_channel) {
    x = channels_as_members(node, l.own_operand(node, "x"), l.device());
    y = channels_as_members(node, to, l.device());
    other = l.parameter(node, "other");
    other = other.as({other.view.num_elements()});
    broadcast = Broadcast::features;
  } else if (!is_parameter && other_shape != x_shape && !repeats_channels(other_shape, x_shape)) {
    const auto view_of = [&](Value value, const Place& place) {
      return batch_as_members(node, value, place, l.device());
    };
    x = view_of(node.operand("x"), l.own_operand(node, "x"));
    y = view_of(node.outputs[0], to);
    other = view_of(other_value, l.own_operand(node, "other"));
    other = other.as({other.view.shape[1], other.view.shape[2]}, {other.view.strides[1], 1});
    broadcast = Broadcast::rows;
  } else if (!is_parameter && other_shape != x_shape) {
    x = rows_as_members(node, l.own_operand(node, "x"), l.device());
    y = rows_as_members(node, to, l.device());
    other = rows_as_members(node, l.own_operand(node, "other"), l.device());
    // A factor that is a slice of positions has others of its channel before the next one.
    other = other.as({other.view.shape[1]}, {other.view.strides[1]});
    broadcast = Broadcast::features;
  } else {
    const int split =
        is_parameter && !is_scalar ? to.shape.rank() - other_shape.rank() : split_of(to);
    x = folded(l, node, from, split);
    y = folded(l, node, to, split);
    if (is_parameter) {
      other = flat_parameter(l, node, "other", is_scalar);
      broadcast = is_scalar ? Broadcast::features : Broadcast::rows;
    } else {
      other = folded(l, node, l.operand(node, "other"), split);
    }
  }
  const auto arguments = [=](const Bases& at) {
    return BinaryArguments{.x = at.at(x), .other = at.at(other), .y = at.at(y)};
  };
  l.add(node, "binary", "binary", binary_problem(op, arguments(l.example()), broadcast),
        make_binary_plan, arguments);
}

void lower(Lowering& l, const Node& node, const DropoutOp& op) {
  if (!l.options().drops_out) return;  // another name for x
  const Place from = l.operand(node, "x"), to = l.place(node.outputs[0]);
  const PlacedView x = folded(l, node, from, split_of(to)), y = folded(l, node, to, split_of(to));
  const auto [seeds, probabilities] = l.dropout_parameters(node, op);
  const auto arguments = [=, seeds = seeds, probabilities = probabilities](const Bases& at) {
    return DropoutArguments{
        .x = at.at(x), .seeds = at.at(seeds), .probabilities = at.at(probabilities), .y = at.at(y)};
  };
  DropoutProblem like;
  like.num_members = l.members_of(node);
  like.features = y.view.shape[2];
  l.add(node, "dropout", "dropout", describe_dropout(arguments(l.example()), like),
        make_dropout_plan, arguments);
}

void lower(Lowering& l, const Node& node, const ConcatOp& op) {
  const Place whole = l.place(node.outputs[0]);
  int64_t first = 0;
  for (const Operand& operand : node.operands) {
    const Shape& shape = l.graph().type(operand.value).shape;
    Place part;
    if (is_batched(shape)) {
      part = l.operand(node, operand.name);
    } else {  // a parameter, in every row of the batch
      const PlacedView view = l.parameter(node, operand.name);
      part = whole;
      part.storage = view.storage;
      part.offset = view.offset;
      part.num_members = view.view.shape[0];
      part.member_stride = view.view.strides[0];
      part.strides[0] = 0;
      for (int axis = 1; axis < whole.shape.rank(); ++axis) {
        part.shape[axis] = shape[axis - 1];
        part.strides[axis] = view.view.strides[axis];
      }
    }
    const int64_t count = part.shape[op.axis];
    const Place to = sliced_place(whole, op.axis, first, count);
    first += count;
    if (part.storage == to.storage && part.offset == to.offset) continue;  // it was written there
    l.add_copy(node.name, stacked_view(part, l.device()), stacked_view(to, l.device()),
               l.members_of(node));
  }
}

// Views of x: nothing runs.
void lower(Lowering&, const Node&, const SliceOp&) {}
void lower(Lowering&, const Node&, const ReshapeOp&) {}

void lower(Lowering& l, const Node& node, const TransposeOp& op) {
  const Value y = node.outputs[0];
  if (!is_batched(l.graph(), y)) return;  // computed when members are loaded
  const Place from = l.operand(node, "x");
  Place moved = from;
  for (int axis = 0; axis < op.order.rank(); ++axis) {
    moved.shape[axis] = from.shape[static_cast<int>(op.order[axis])];
    moved.strides[axis] = from.strides[static_cast<int>(op.order[axis])];
  }
  l.add_copy(node.name, stacked_view(moved, l.device()), stacked_view(l.place(y), l.device()),
             l.members_of(node));
}

// Of parameters: computed when members are loaded.
void lower(Lowering&, const Node&, const FoldBatchnormOp&) {}
void lower(Lowering&, const Node&, const ConvPhasesOp&) {}
void lower(Lowering&, const Node&, const PackMlpOp&) {}
void lower(Lowering&, const Node&, const QuantizeOp&) {}

}  // namespace wide
