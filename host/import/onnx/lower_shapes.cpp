// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators that move elements: shapes, parts, and identities.
#include <algorithm>
#include <numeric>
#include <string>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

int64_t per_sample(const Shape& shape) {
  int64_t size = 1;
  for (int axis = 1; axis < shape.rank(); ++axis) size *= shape[axis];
  return size;
}

/// Sets x with these extents after the batch, which must stay in front.
void set_reshaped(Lowering& at, Value x, const std::vector<int64_t>& extents) {
  at.support(extents.size() < kMaxRank,
             "makes " + counted(extents.size(), "axis", "axes") + ", expected at most 5");
  at.set(at.reshaped(x, Shape(extents)));
}

/// The same elements with other axes.
void set_view(Lowering& at, const Moved& x, View view) {
  at.set(0, {x.value, std::move(view), x.factor, x.range});
}

void lower_reshape(Lowering& at) {
  at.only({"allowzero"});
  const Moved x = at.moved(0);
  set_view(at, x, at.view(x).reshaped(at.numbers(1), at.integer("allowzero", 0) == 0, at.batch()));
}

void lower_flatten(Lowering& at) {
  at.only({"axis"});
  const Value x = at.x(0);
  const Shape& shape = at.shape(x);
  const int64_t axis = at.integer("axis", 1);
  int64_t behind = 1;
  const int64_t split = axis < 0 ? axis + shape.rank() : axis;
  at.require(split >= 0 && split <= shape.rank(),
             "has axis " + std::to_string(axis) + ", expected at most " +
                 std::to_string(shape.rank()) + " from either end");
  for (int64_t i = 1; i < split; ++i) behind *= shape[static_cast<int>(i)];
  at.support(split >= 1 && behind == 1, "flattens the batch with other axes");
  set_reshaped(at, x, {kBatch, per_sample(shape)});
}

void lower_squeeze(Lowering& at) {
  at.only({"axes"});
  const Moved x = at.moved(0);
  set_view(at, x, at.view(x).squeezed(at.integers(1, "axes"), at.batch()));
}
void lower_unsqueeze(Lowering& at) {
  at.only({"axes"});
  const Moved x = at.moved(0);
  set_view(at, x, at.view(x).unsqueezed(at.integers(1, "axes")));
}
/// Views may have more axes than what is computed here.
void support_axes(Lowering& at, const View& view) {
  at.support(view.rank() <= kMaxRank, "has an input of " + counted(view.rank(), "axis", "axes") +
                                          ", expected at most " + std::to_string(kMaxRank));
}
void lower_transpose(Lowering& at) {
  at.only({"perm"});
  const Moved x = at.moved(0);
  const View view = at.view(x);
  support_axes(at, view);
  set_view(at, x, view.transposed(transpose_order(at.integers("perm"), view.rank())));
}

/// Parts whose axes were moved alike.
bool lower_moved_concat(Lowering& at) {
  std::vector<Moved> parts;
  bool is_moved = false;
  for (size_t i = 0; i < at.num_inputs(); ++i) {
    if (!at.is_computed(i)) return false;
    const Moved own = at.moved(i);
    is_moved = is_moved || (own.view && !own.view->in_place());
  }
  if (!is_moved) return false;
  for (size_t i = 0; i < at.num_inputs(); ++i) parts.push_back(at.elements(i));
  const int axis = checked_axis(at.integer("axis", 0), at.view(parts[0]).rank());
  const std::optional<Moved> y = at.joined(parts, axis);
  if (y) at.set(0, *y);
  return y.has_value();
}

void lower_concat(Lowering& at) {
  at.only({"axis"});
  at.require(at.node().find("axis") != nullptr, "has no axis, expected one");
  if (lower_moved_concat(at)) return;
  std::vector<Operand> parts;
  Value like;
  for (size_t i = 0; i < at.num_inputs(); ++i) {
    if (like.is_absent() && at.is_computed(i)) like = at.x(i);
  }
  const Shape shape = at.shape(like);
  const int axis = checked_axis(at.integer("axis", 0), shape.rank());
  at.support(axis > 0, "joins batches");
  for (size_t i = 0; i < at.num_inputs(); ++i) {
    Value part;
    if (at.is_computed(i)) {
      part = at.x(i);
    } else {  // the same in every row of the batch, so that it has one row or none
      const Shape& own = at.constant_shape(i);
      at.support(own.rank() == shape.rank() && (own[0] == 1 || at.repeats_rows(i)),
                 "joins the constant " + to_string(own) + ", expected one row");
      const Shape row(std::span(own.begin() + 1, own.end()));
      part = own[0] == 1 ? at.reshaped(at.parameter(i, at.dtype(like)), row)
                         : at.changed(i, at.dtype(like), row, element_of);
    }
    parts.push_back({"part" + std::to_string(i), part});
  }
  at.set(parts.size() == 1 ? parts[0].value : at.append(ConcatOp{axis}, parts));
}

/// Every step-th element: one of each run of as many.
Moved strided_part(Lowering& at, const Moved& x, int axis, const SliceRange& range) {
  Numbers extents = at.view(x).extents();
  const auto place = static_cast<size_t>(axis);
  const int64_t extent = to_integer(extents, place), length = range.count * range.step;
  const int64_t begin = std::min(range.first, extent - length);
  at.support(range.step > 0 && begin >= 0 && range.first - begin < range.step,
             "slices " + std::to_string(extent) + " elements in steps of " +
                 std::to_string(range.step) + ", expected whole steps forward");
  Moved y = at.part(x, axis, begin, length);
  extents.values[place] = static_cast<long double>(range.count);
  extents.values.insert(extents.values.begin() + axis + 1, static_cast<long double>(range.step));
  extents.shape = {std::ssize(extents.values)};
  y.view = at.view(y).reshaped(extents, false, at.batch());
  y = at.part(y, axis + 1, range.first - begin, 1);
  y.view = at.view(y).without(axis + 1);
  return y;
}

void lower_slice(Lowering& at) {
  at.only({"starts", "ends", "axes"});
  const Moved x = at.moved(0);
  std::vector<int64_t> extents;
  support_axes(at, at.view(x));
  const Numbers own = at.view(x).extents();
  for (size_t i = 0; i < own.values.size(); ++i)
    extents.push_back(is_batch(own, i) ? kBatch : to_integer(own, i));
  const std::vector<SliceRange> ranges =
      slice_ranges(Shape(extents), at.integers(1, "starts"), at.integers(2, "ends"),
                   at.integers(3, "axes"), at.integers(4, "steps"));
  Moved y = x;
  for (size_t axis = 0; axis < ranges.size(); ++axis) {
    const SliceRange& range = ranges[axis];
    if (extents[axis] == kBatch) continue;
    at.support(range.count >= 1,
               "slices no elements of axis " + std::to_string(axis) + ", expected at least one");
    const bool is_whole = range.step == 1 || range.count == 1;
    y = is_whole ? at.part(y, static_cast<int>(axis), range.first, range.count)
                 : strided_part(at, y, static_cast<int>(axis), range);
  }
  at.set(0, y);
}

void lower_split(Lowering& at) {
  at.only({"axis", "split", "num_outputs"});
  const Moved x = at.moved(0);
  const Numbers extents = at.view(x).extents();
  const int axis = checked_axis(at.integer("axis", 0), at.view(x).rank());
  at.support(!is_batch(extents, static_cast<size_t>(axis)), "splits the batch");
  const std::vector<int64_t> sizes =
      split_sizes(to_integer(extents, static_cast<size_t>(axis)), at.node().outputs.size(),
                  at.integers(1, "split"), at.node().find("num_outputs") != nullptr);
  int64_t first = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (at.is_used(i)) {
      at.support(sizes[i] >= 1, "makes a part without elements");
      at.set(i, at.part(x, axis, first, sizes[i]));
    }
    first += sizes[i];
  }
}

void lower_identity(Lowering& at) {
  at.only({});
  if (!lower_scores_unchanged(at)) at.set(0, at.moved(0));
}

void lower_dropout(Lowering& at) {
  at.only({"is_test", "ratio", "seed"});
  at.support(at.opset() >= 7 || at.integer("is_test", 0) != 0,
             "is in training mode, expected inference");
  at.support(!at.is_used(1), "writes its mask, which no primitive does");
  const double ratio = at.has(1) ? at.scalar(1) : static_cast<double>(at.number("ratio", 0.5f));
  at.support(!at.has(2) || at.scalar(2) == 0 || ratio == 0,
             "is in training mode and drops " + text(ratio) + ", expected inference, or 0");
  if (lower_scores_unchanged(at)) return;
  const View view = at.view(at.moved(0));
  const Moved x = view == view.once() ? at.elements(0) : Moved{at.x(0)};
  const int rank = at.shape(x.value).rank();
  if (rank < 2 || rank > 5) return at.set(0, x);
  at.set_like(x, at.append(DropoutOp{static_cast<float>(ratio)}, {{"x", x.value}}));
}

/// Repeated elements are read in place, by operators that can.
void lower_expand(Lowering& at) {
  at.only({});
  const Moved x = at.moved(0);
  set_view(at, x, at.view(x).repeated(at.numbers(1), at.batch()));
}

/// Elements before and behind those of each axis; below 0 fewer.
struct Pads {
  int64_t before = 0, behind = 0;
};

std::vector<Pads> pads_of(Lowering& at, int rank) {
  const std::vector<int64_t> all = at.integers(1, "pads");
  std::vector<int64_t> axes = at.integers(3, "axes");
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
  }
  at.require(all.size() == 2 * axes.size(),
             "has " + counted(all.size(), "pad") + ", expected " + std::to_string(2 * axes.size()));
  constexpr int64_t kMost = int64_t{1} << 30;
  for (const int64_t pad : all)
    at.support(pad >= -kMost && pad <= kMost,
               "pads by " + std::to_string(pad) + ", expected at most 2^30");
  std::vector<Pads> pads(static_cast<size_t>(rank));
  for (size_t i = 0; i < axes.size(); ++i)
    pads[static_cast<size_t>(checked_axis(axes[i], rank))] = {all[i], all[i + axes.size()]};
  return pads;
}

/// One axis of x, longer at its ends.
Value padded(Lowering& at, Value x, int axis, const Pads& pads, const std::string& mode,
             double number) {
  const int64_t extent = at.shape(x)[axis];
  constexpr int64_t kMostCopies = 64;  // of single elements, a copy each
  const auto one = [&](int64_t place, int64_t count) {
    return at.append(SliceOp{axis, place, count}, {{"x", x}});
  };
  std::vector<Value> parts;
  const auto add = [&](int64_t count, bool is_before) {
    if (mode == "constant" && count > 0) {
      Shape row(std::span(at.shape(x).begin() + 1, at.shape(x).end()));
      row[axis - 1] = count;
      return parts.push_back(at.constants(row, at.dtype(x), [=](int64_t) { return number; }));
    }
    const bool is_wrapped = mode == "wrap";
    const int64_t most = is_wrapped          ? extent
                         : mode == "reflect" ? std::min(extent - 1, kMostCopies)
                                             : kMostCopies;
    at.support(count <= most, "pads " + std::to_string(extent) + " elements by " +
                                  std::to_string(count) + " of themselves, expected at most " +
                                  std::to_string(most));
    if (is_wrapped && count > 0) parts.push_back(one(is_before ? extent - count : 0, count));
    for (int64_t i = 0; !is_wrapped && i < count; ++i) {
      const int64_t away = mode == "edge" ? 0 : is_before ? count - i : i + 1;
      parts.push_back(one(is_before ? away : extent - 1 - away, 1));
    }
  };
  add(pads.before, true);
  const int64_t first = std::max<int64_t>(-pads.before, 0);
  const int64_t count = extent - first - std::max<int64_t>(-pads.behind, 0);
  at.support(count >= 1, "leaves no elements of " + std::to_string(extent));
  parts.push_back(count == extent ? x : one(first, count));
  add(pads.behind, false);
  std::vector<Operand> operands;
  for (const Value part : parts)
    operands.push_back({"part" + std::to_string(operands.size()), part});
  return parts.size() == 1 ? parts[0] : at.append(ConcatOp{axis}, operands);
}

void lower_pad(Lowering& at) {
  at.only({"mode", "pads", "value"});
  const std::vector<Pads> pads = pads_of(at, at.view(at.moved(0)).rank());
  const auto pads_none = [](const Pads& own) { return own.before == 0 && own.behind == 0; };
  if (std::ranges::all_of(pads, pads_none)) return at.set(0, at.moved(0));
  const std::string mode(at.text("mode", "constant"));
  at.require(mode == "constant" || mode == "reflect" || mode == "edge" || mode == "wrap",
             "has mode " + mode + ", expected constant, reflect, edge or wrap");
  at.support(pads_none(pads[0]), "pads the batch");
  const double number = at.has(2) ? at.scalar(2) : static_cast<double>(at.number("value", 0));
  Value x = at.x(0);
  for (size_t axis = 1; axis < pads.size(); ++axis)
    if (!pads_none(pads[axis])) x = padded(at, x, static_cast<int>(axis), pads[axis], mode, number);
  at.set(x);
}

}  // namespace

void add_shape_operators(std::map<std::string_view, Lower>& table) {
  table["Reshape"] = lower_reshape;
  table["Flatten"] = lower_flatten;
  table["Squeeze"] = lower_squeeze;
  table["Unsqueeze"] = lower_unsqueeze;
  table["Transpose"] = lower_transpose;
  table["Concat"] = lower_concat;
  table["Slice"] = lower_slice;
  table["Split"] = lower_split;
  table["Identity"] = lower_identity;
  table["Dropout"] = lower_dropout;
  table["Expand"] = lower_expand;
  table["Pad"] = lower_pad;
}

}  // namespace wide::onnx
