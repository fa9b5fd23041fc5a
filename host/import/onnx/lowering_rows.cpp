// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Constants that have a row for each sample of the batch, all alike, are kept as one row. That is
// right as long as they are broadcast to the batch: nodes that look at the rows themselves are
// refused.
#include <algorithm>
#include <set>

#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

/// The axis of the batch in a shape that has it once.
int batch_axis(const Shape& shape) {
  return static_cast<int>(std::find(shape.begin(), shape.end(), kBatch) - shape.begin());
}

/// Whether each element of the result is computed from one of each input, which are broadcast.
bool is_elementwise(const std::string& op) {
  static const std::set<std::string_view> kOperators{
      "Add",  "Sub",        "Mul",   "Div",         "Pow",     "Min",
      "Max",  "Mod",        "Less",  "LessOrEqual", "Greater", "GreaterOrEqual",
      "And",  "Or",         "Not",   "Equal",       "Neg",     "Abs",
      "Sqrt", "Reciprocal", "Exp",   "Log",         "Sum",     "Mean",
      "Cast", "Identity",   "Floor", "Ceil",        "Where",   "PRelu"};
  return kOperators.contains(op);
}

}  // namespace

std::optional<Rows> Lowering::sample_rows(size_t input) const {
  const auto found = has(input) ? terms_.find(node_->inputs[input]) : terms_.end();
  return found == terms_.end() ? std::nullopt : found->second.rows;
}

std::optional<Rows> Lowering::rows_of_shape(const Numbers& wanted) const {
  std::optional<Rows> rows;
  for (size_t i = 0; i < wanted.values.size(); ++i) {
    if (!is_batch(wanted, i)) continue;
    if (rows) refuse_batch();
    rows = Rows{static_cast<int>(i), wanted.values[i]};
  }
  return rows;
}

/// Those of Expand, whose rows may be the constant's or those that it is expanded to.
std::optional<Rows> Lowering::expanded_rows() {
  const Shape& shape = constant_shape(0);
  const Numbers& wanted = numbers(1);
  const int count = static_cast<int>(wanted.values.size()), rank = std::max(count, shape.rank());
  std::optional<Rows> own = sample_rows(0), to = rows_of_shape(wanted);
  if (own) own->axis += rank - shape.rank();
  if (to) to->axis += rank - count;
  if (own && to && *own != *to) refuse_batch();
  if (own && !to && own->axis >= rank - count) {
    const int64_t extent = to_integer(wanted, static_cast<size_t>(own->axis - (rank - count)));
    if (extent != 1) return rows_beside(*own, extent);
  }
  if (own || !to) return own;
  // Where the constant itself has several rows, it says how many samples there are.
  const int place = to->axis - (rank - shape.rank());
  return place >= 0 && shape[place] != 1 ? std::nullopt : to;
}

/// Where a literal extent takes the place of the rows: in a file whose batch has that number.
std::optional<Rows> Lowering::rows_beside(const Rows& rows, int64_t extent) const {
  if (extent == 1) return rows;
  if (extent != batch_ || rows.extent != batch_number()) refuse_batch();
  return {};
}

/// Those of inputs that are broadcast to one another, or joined along another axis.
std::optional<Rows> Lowering::common_rows() {
  std::vector<int> ranks;
  for (size_t i = 0; i < num_inputs(); ++i) {
    const bool is_view = has(i) && is_computed(i);
    ranks.push_back(is_view  ? view(term(node_->inputs[i]).activation).rank()
                    : has(i) ? constant_shape(i).rank()
                             : 0);
  }
  const int rank = *std::max_element(ranks.begin(), ranks.end());
  std::optional<Rows> all;
  for (size_t i = 0; i < num_inputs(); ++i) {
    std::optional<Rows> own = sample_rows(i);
    if (!own) continue;
    own->axis += rank - ranks[i];
    if (all && *all != *own) refuse_batch();
    all = own;
  }
  std::optional<Rows> result = all;
  for (size_t i = 0; i < num_inputs(); ++i) {
    const int place = all->axis - (rank - ranks[i]);
    if (!has(i) || sample_rows(i)) continue;
    if (is_computed(i)) {
      const Numbers extents = view(term(node_->inputs[i]).activation).extents();
      if (place < 0 || extents.values[static_cast<size_t>(place)] != all->extent) refuse_batch();
    } else if (place >= 0 && !rows_beside(*all, constant_shape(i)[place])) {
      result.reset();
    }
  }
  return result;
}

/// Those of an operator on axes of its first input, which has rows; others say which axes.
std::optional<Rows> Lowering::moved_rows() {
  const std::string& op = node_->op;
  Rows own = *sample_rows(0);
  Shape shape = constant_shape(0);
  shape[own.axis] = kBatch;  // the functions of axes refuse what they cannot do with it
  const int rank = shape.rank();
  if (op == "Squeeze") {
    const std::vector<int64_t> axes = integers(1, "axes");
    if (axes.empty()) refuse_batch();  // whether it is squeezed depends on its number
    own.axis = batch_axis(Shape(squeezed(shape, axes)));
  } else if (op == "Unsqueeze") {
    own.axis = batch_axis(Shape(unsqueezed(shape, integers(1, "axes"))));
  } else if (op == "Transpose") {
    const Dims order = transpose_order(integers("perm"), rank);
    own.axis = static_cast<int>(std::find(order.begin(), order.end(), own.axis) - order.begin());
  } else if (op == "Slice") {
    (void)slice_ranges(shape, integers(1, "starts"), integers(2, "ends"), integers(3, "axes"),
                       integers(4, "steps"));
  } else if (op == "Split" || op == "Gather") {
    const int axis = checked_axis(integer("axis", 0), rank);
    if (axis == own.axis) refuse_batch();
    if (op == "Gather" && axis < own.axis) own.axis += constant_shape(1).rank() - 1;
  } else if (op == "ReduceSum" || op == "ReduceProd") {
    const std::vector<int64_t> axes = integers(1, "axes");
    const bool is_all = axes.empty() && integer("noop_with_empty_axes", 0) == 0;
    const std::vector<bool> marked = marked_axes(axes, rank);
    if (is_all || marked[static_cast<size_t>(own.axis)]) refuse_batch();
    if (integer("keepdims", 1) == 0)
      own.axis -= static_cast<int>(std::count(marked.begin(), marked.begin() + own.axis, true));
  } else {
    refuse_batch();
  }
  return own;
}

std::optional<Rows> Lowering::rows_of_result() {
  const std::string& op = node_->op;
  if (op == "Shape" || op == "Size") return {};  // it is read as a number
  bool is_constant = true;
  std::vector<size_t> with;
  for (size_t i = 0; i < num_inputs(); ++i) {
    is_constant = is_constant && (!has(i) || this->is_constant(node_->inputs[i]));
    if (sample_rows(i)) with.push_back(i);
  }
  const bool is_first = with.size() == 1 && with[0] == 0;
  if (op == "ConstantOfShape" && is_constant && with.empty()) return rows_of_shape(numbers(0));
  if (op == "Expand" && is_constant && num_inputs() == 2 && (with.empty() || is_first))
    return expanded_rows();
  if (with.empty()) return {};
  const bool is_join = op == "Concat";
  if (is_join || is_elementwise(op)) {
    const std::optional<Rows> all = common_rows();
    if (is_join &&
        (!all || checked_axis(integer("axis", 0), constant_shape(with[0]).rank()) == all->axis))
      refuse_batch();
    return all;
  }
  // First states and lengths of sequences must be the same everywhere in any case.
  if ((op == "LSTM" || op == "GRU") && with[0] >= 4) return {};
  const bool is_index = with.size() == 1 && with[0] == 1;
  if (op == "Gather" && is_constant && is_index) {
    Rows own = *sample_rows(1);
    own.axis += checked_axis(integer("axis", 0), constant_shape(0).rank());
    return own;
  }
  if (!is_constant || !is_first) refuse_batch();
  return moved_rows();
}

/// Reshape, whose extents may name the batch.
bool Lowering::fold_reshaped_rows() {
  const std::optional<Rows> own = sample_rows(0);
  if (node_->op != "Reshape" || !own || !has(1) || sample_rows(1)) return false;
  check_attributes(*node_);
  if (own->extent != batch_number()) refuse_batch();
  Shape shape = constant_shape(0);
  shape[own->axis] = kBatch;
  const Numbers extents =
      View::of(shape).reshaped(numbers(1), integer("allowzero", 0) == 0, batch_).extents();
  const std::optional<Rows> rows = rows_of_shape(extents);
  if (!rows || *rows != Rows{rows->axis, batch_number()}) refuse_batch();
  std::vector<int64_t> to;
  for (size_t i = 0; i < extents.values.size(); ++i)
    to.push_back(is_batch(extents, i) ? 1 : to_integer(extents, i));
  require(to.size() <= kMaxRank, "makes more than 6 axes");
  if (const Initializer* from = term(node_->inputs[0]).tensor) {
    lowered_.made.push_back(*from);
    lowered_.made.back().name = std::string(node_->outputs[0]);
    lowered_.made.back().shape = Shape(to);
    set_tensor(0, lowered_.made.back());
  } else {
    Numbers numbers = this->numbers(0);
    numbers.shape = Shape(to);
    set_numbers(0, std::move(numbers));
  }
  terms_[node_->outputs[0]].rows = rows;
  return true;
}

}  // namespace wide::onnx
