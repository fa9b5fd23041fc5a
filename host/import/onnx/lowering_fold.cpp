// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Nodes that are folded at import: constants, shapes, and values computed from them.
#include <algorithm>

#include "host/import/messages.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

void Lowering::fold_constant() {
  only({"value", "value_int", "value_ints", "value_float", "value_floats"});
  require(node_->attributes.size() == 1,
          "has " + std::to_string(node_->attributes.size()) + " attributes, expected one");
  const Attribute& a = node_->attributes[0];
  using Type = Attribute::Type;
  if (a.type == Type::tensor) {
    lowered_.made.push_back(read_tensor(file_, a.tensor, "node " + in_quotes(node_->name)));
    lowered_.made.back().name = std::string(node_->outputs[0]);
    set_tensor(0, lowered_.made.back());
    return;
  }
  Numbers numbers{{}, a.type == Type::f || a.type == Type::floats ? 1 : kInt64, {}};
  if (a.type == Type::f) numbers.values = {a.f};
  if (a.type == Type::i) numbers.values = {static_cast<long double>(a.i)};
  if (a.type == Type::ints || a.type == Type::floats) {
    for (const int64_t value : a.ints) numbers.values.push_back(static_cast<long double>(value));
    for (const float value : a.floats) numbers.values.push_back(value);
    numbers.shape = {std::ssize(numbers.values)};
  }
  require(a.type == Type::f || a.type == Type::i || numbers.shape.rank() == 1,
          "has a value of an unexpected type");
  set_numbers(0, std::move(numbers));
}

void Lowering::fold_shape() {
  only({"start", "end"});
  Numbers all = is_computed(0) ? view(moved(0)).extents() : extents_of(constant_shape(0));
  if (const std::optional<Rows> own = sample_rows(0))
    all.values[static_cast<size_t>(own->axis)] = own->extent;
  if (node_->op == "Size") {
    long double size = 1;
    for (size_t i = 0; i < all.values.size(); ++i) {
      if (is_batch(all, i)) unsupported("computes with the batch, whose number is not known");
      size *= all.values[i];
    }
    return set_numbers(0, {{}, kInt64, {size}});
  }
  const int64_t rank = all.shape[0];
  const auto place = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t first = place(std::max(integer("start", 0), -rank)),
                end = place(std::max(integer("end", rank), -rank));
  Numbers out{{std::max<int64_t>(0, end - first)}, kInt64, {}};
  for (int64_t i = first; i < end; ++i) out.values.push_back(all.values[static_cast<size_t>(i)]);
  set_numbers(0, std::move(out));
}

/// The elements `which` along an axis of a large constant.
Initializer Lowering::picked(const Initializer& from, int axis, const std::vector<int64_t>& which) {
  const int64_t element = from.type->bits / 8;
  support(element >= 1, "takes parts of " + std::string(from.type->name));
  Initializer to = from;
  to.shape[axis] = std::ssize(which);
  if (from.is_filled) return to;
  const int64_t bytes = checked_bytes(to.shape, element);
  allow(bytes);
  int64_t outer = 1, inner = element;
  for (int i = 0; i < axis; ++i) outer *= from.shape[i];
  for (int i = axis + 1; i < from.shape.rank(); ++i) inner *= from.shape[i];
  auto storage = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
  std::byte* out = storage->data();
  for (int64_t o = 0; o < outer; ++o) {
    for (const int64_t index : which)
      out = std::copy_n(from.data + (o * from.shape[axis] + index) * inner, inner, out);
  }
  to.data = storage->data();
  to.bytes = bytes;
  to.storage = std::move(storage);
  return to;
}

/// Gather's or Slice's part of a large constant.
Initializer Lowering::picked_by_node(Initializer from) {
  if (node_->op == "Gather") {
    const int axis = checked_axis(integer("axis", 0), from.shape.rank());
    const Numbers& at = numbers(1);
    std::vector<int64_t> which = to_integers(at);
    for (int64_t& index : which) {
      require(index >= -from.shape[axis] && index < from.shape[axis],
              "takes element " + std::to_string(index) + ", expected one of " +
                  std::to_string(from.shape[axis]));
      if (index < 0) index += from.shape[axis];
    }
    Initializer to = picked(from, axis, which);
    std::vector<int64_t> extents(to.shape.begin(), to.shape.begin() + axis);
    extents.insert(extents.end(), at.shape.begin(), at.shape.end());
    extents.insert(extents.end(), to.shape.begin() + axis + 1, to.shape.end());
    to.shape = Shape(extents);
    return to;
  }
  const std::vector<SliceRange> ranges =
      slice_ranges(from.shape, integers(1, "starts"), integers(2, "ends"), integers(3, "axes"),
                   integers(4, "steps"));
  for (int axis = 0; axis < from.shape.rank(); ++axis) {
    const SliceRange& range = ranges[static_cast<size_t>(axis)];
    if (range.step == 1 && range.count == from.shape[axis]) continue;
    if (from.is_filled) {
      from.shape[axis] = range.count;
      continue;
    }
    std::vector<int64_t> which;
    for (int64_t i = 0; i < range.count; ++i) which.push_back(range.first + i * range.step);
    from = picked(from, axis, which);
  }
  return from;
}

/// Joins large constants.
Initializer Lowering::joined_tensors() {
  std::vector<const Initializer*> parts;
  for (size_t i = 0; i < num_inputs(); ++i) {
    const Term& own = term(node_->inputs[i]);
    parts.push_back(own.tensor != nullptr ? own.tensor : &tensor(i, Dtype::fp32));
  }
  require(node_->find("axis") != nullptr, "has no axis, expected one");
  Initializer to = *parts[0];
  const Shape first = to.shape;
  const int axis = checked_axis(integer("axis", 0), first.rank());
  int64_t outer = 1, inner = to.type->bits / 8;
  support(inner >= 1, "joins " + std::string(to.type->name));
  for (int i = 0; i < first.rank(); ++i) (i < axis ? outer : inner) *= i == axis ? 1 : first[i];
  to.shape[axis] = 0;
  for (const Initializer* part : parts) {
    Shape like = part->shape;
    if (like.rank() == first.rank()) like[axis] = first[axis];
    require(like == first && part->type == to.type, "joins " + to_string(first) + " and " +
                                                        to_string(part->shape) +
                                                        ", expected one type and shapes that fit");
    to.shape[axis] += part->shape[axis];
  }
  to.bytes = checked_bytes(to.shape, to.type->bits / 8);
  allow(to.bytes);
  auto storage = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(to.bytes));
  std::byte* out = storage->data();
  for (int64_t o = 0; o < outer; ++o) {
    for (const Initializer* part : parts) {
      const int64_t bytes = part->shape[axis] * inner, element = to.type->bits / 8;
      if (!part->is_filled) out = std::copy_n(part->data + o * bytes, bytes, out);
      for (int64_t i = 0; part->is_filled && i < bytes; i += element)
        out = std::copy_n(part->data, element, out);
    }
  }
  to.is_filled = false;
  to.data = storage->data();
  to.storage = std::move(storage);
  return to;
}

/// Whether Expand leaves a constant unchanged: elements repeated per sample are stored once.
bool Lowering::is_expanded(const Shape& shape) {
  const Numbers& wanted = numbers(1);
  const int missing = shape.rank() - static_cast<int>(wanted.values.size());
  bool is_same = missing >= 0;
  for (size_t i = 0; is_same && i < wanted.values.size(); ++i) {
    const int64_t own = shape[missing + static_cast<int>(i)];
    is_same = is_batch(wanted, i) || to_integer(wanted, i) == 1 || to_integer(wanted, i) == own;
  }
  return is_same;
}

/// A large constant in another shape, with its axes in another order, parts of it, or several
/// joined.
bool Lowering::fold_tensor() {
  const std::string& op = node_->op;
  const bool is_shape = op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten";
  const bool is_copy = is_shape || op == "Identity" || op == "Expand";
  const bool is_part = op == "Gather" || op == "Slice", is_join = op == "Concat";
  if (!is_copy && !is_part && !is_join && op != "Transpose") return false;
  check_attributes(*node_);
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (has(i) && is_computed(i)) return false;
    if (!has(i) && !is_part) return false;
  }
  if (!is_join && term(node_->inputs[0]).tensor == nullptr) return false;
  Initializer to = is_join ? joined_tensors() : *term(node_->inputs[0]).tensor;
  const Initializer from = to;
  if (op == "Expand" && !is_expanded(from.shape)) return false;
  to.name = std::string(node_->outputs[0]);
  if (is_part) {
    to = picked_by_node(std::move(to));
  } else if (is_shape) {
    std::vector<const Numbers*> inputs{nullptr};
    for (size_t i = 1; i < num_inputs(); ++i) inputs.push_back(&numbers(i));
    to.shape = Shape(changed_shape(*node_, from.shape, inputs));
  } else if (op == "Transpose") {
    const Dims order = transpose_order(integers("perm"), from.shape.rank());
    const int64_t element = from.type->bits / 8;
    support(element >= 1, "moves axes of " + std::string(from.type->name));
    for (int axis = 0; axis < order.rank(); ++axis)
      to.shape[axis] = from.shape[static_cast<int>(order[axis])];
    if (!from.is_filled) {
      allow(from.bytes);
      to.storage = std::make_shared<const std::vector<std::byte>>(
          moved_axes(from.data, element, from.shape, order));
      to.data = to.storage->data();
    }
  }
  lowered_.made.push_back(std::move(to));
  set_tensor(0, lowered_.made.back());
  return true;
}

/// Numbers where they are few, else one element that represents all. Rows of samples are one row.
void Lowering::fold_filled() {
  only({"value"});
  Initializer filled = to_initializer({{}, 1, {0}}, "");
  if (const Attribute* a = node_->find("value"))
    filled = read_tensor(file_, a->tensor, "node " + in_quotes(node_->name));
  const std::optional<Numbers> read = numbers_of(filled);
  require(read && read->values.size() == 1, "has a value, expected one number");
  const Numbers& wanted = numbers(0);
  support(std::ssize(wanted.values) <= kMaxRank, "fills more than 6 axes");
  std::vector<int64_t> extents;
  for (size_t i = 0; i < wanted.values.size(); ++i) {
    extents.push_back(is_batch(wanted, i) ? 1 : to_integer(wanted, i));
    require(extents.back() >= 0, "fills a negative number of elements");
  }
  const Shape shape(extents);
  support(is_small(shape), "fills " + to_string(shape) + ", which no device holds");
  if (num_elements(shape) <= kMaxNumbers) {
    Numbers numbers{shape, read->type, {}};
    numbers.values.assign(static_cast<size_t>(num_elements(shape)), read->values[0]);
    return set_numbers(0, std::move(numbers));
  }
  filled.name = std::string(node_->outputs[0]);
  filled.shape = shape;
  filled.is_filled = true;
  lowered_.made.push_back(std::move(filled));
  set_tensor(0, lowered_.made.back());
}

/// Whether the node was folded: its inputs are constants, or their shapes suffice.
bool Lowering::fold_node() {
  if (node_->op == "Constant") return fold_constant(), true;
  if (node_->op == "Shape" || node_->op == "Size") return fold_shape(), true;
  if (node_->op == "ConstantOfShape") return fold_filled(), true;
  std::vector<const Numbers*> inputs;
  int64_t joined = 0;
  for (size_t i = 0; i < num_inputs(); ++i) {
    if (has(i) && is_computed(i)) return false;
    if (has(i)) {
      const Term& own = term(node_->inputs[i]);
      const int64_t size = num_elements(constant_shape(i));
      joined = std::min(joined, kMaxNumbers) + size;
      const bool is_joined = node_->op == "Concat" && joined > kMaxNumbers &&
                             (own.tensor != nullptr || own.numbers->is_float());
      const bool is_large = size > (own.tensor != nullptr ? kMaxNumbers : kMaxComputed);
      if (is_large || is_joined) return fold_tensor();
    }
    inputs.push_back(has(i) ? &numbers(i) : nullptr);
  }
  if (inputs.empty()) return false;
  std::optional<std::vector<Numbers>> outputs = fold(*node_, inputs);
  if (!outputs) return false;
  for (size_t i = 0; i < outputs->size(); ++i) set_numbers(i, std::move((*outputs)[i]));
  return true;
}

}  // namespace wide::onnx
