// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on shapes, done when a model is imported. Plain loops: no tensor here is large.
#include <algorithm>
#include <cmath>
#include <functional>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "host/import/onnx/axes.hpp"
#include "host/import/onnx/fold_functions.hpp"
#include "host/import/onnx/numbers.hpp"

namespace wide::onnx {

namespace {

using Inputs = std::vector<const Numbers*>;

int64_t checked_size(const Shape& shape) {
  const int64_t size = num_elements(shape);
  WIDE_REQUIRE(size <= kMaxComputed, "computes " + to_string(shape) +
                                         " of constants, expected at most " +
                                         std::to_string(kMaxComputed) + " numbers");
  return size;
}

Shape shape_of(const std::vector<int64_t>& extents) {
  WIDE_REQUIRE(extents.size() <= kMaxRank,
               "computes " + counted(extents.size(), "axis", "axes") + ", expected at most 6");
  return Shape(extents);
}

/// Calls visit(place) for every place of a shape, in row-major order.
template <class Visit>
void for_each_place(const Shape& shape, const Visit& visit) {
  const int64_t size = checked_size(shape);
  Dims place = shape;
  for (int axis = 0; axis < shape.rank(); ++axis) place[axis] = 0;
  for (int64_t i = 0; i < size; ++i) {
    visit(place);
    for (int axis = shape.rank(); axis-- > 0;) {
      if (++place[axis] < shape[axis]) break;
      place[axis] = 0;
    }
  }
}

/// The element at a place of a shape that `numbers` is broadcast to.
size_t broadcast_index(const Numbers& numbers, const Dims& place) {
  int64_t index = 0;
  const int missing = place.rank() - numbers.shape.rank();
  for (int axis = 0; axis < numbers.shape.rank(); ++axis) {
    const int64_t extent = numbers.shape[axis];
    index = index * extent + (extent == 1 ? 0 : place[axis + missing]);
  }
  return static_cast<size_t>(index);
}

Shape broadcast_shape(const Inputs& inputs) {
  std::vector<int64_t> extents;
  for (const Numbers* in : inputs) {
    std::vector<int64_t> own(in->shape.begin(), in->shape.end());
    if (own.size() > extents.size())
      extents.insert(extents.begin(), own.size() - extents.size(), 1);
    const size_t missing = extents.size() - own.size();
    for (size_t i = 0; i < own.size(); ++i) {
      int64_t& extent = extents[i + missing];
      WIDE_REQUIRE(own[i] == extent || own[i] == 1 || extent == 1,
                   "combines " + to_string(inputs[0]->shape) + " and " + to_string(in->shape) +
                       ", expected shapes that fit");
      if (extent == 1) extent = own[i];
    }
  }
  return shape_of(extents);
}

void require_count(const Inputs& inputs, size_t least, size_t most, size_t first = 0) {
  bool holds = inputs.size() >= least && inputs.size() <= most;
  for (size_t i = first; holds && i < least; ++i) holds = inputs[i] != nullptr;
  WIDE_REQUIRE(holds, "has " + counted(inputs.size(), "input") + ", expected " +
                          std::to_string(least) +
                          (least == most ? "" : " to " + std::to_string(most)));
}

/// Requires a whole number of 64 bits: larger ones would mean the batch.
long double whole(long double value) {
  WIDE_REQUIRE(std::fabs(value) < 0x1p65L, "computes a whole number beyond 64 bits");
  return std::trunc(value);
}

/// Operations whose result is the same for every batch: multiplying and dividing multiples of it,
/// and comparing them with one another. No other arithmetic is possible.
long double apply_to_batch(std::string_view op, long double a, long double b) {
  if (op == "Equal") {
    if (is_batch(a) && is_batch(b) && a == b) return 1;
    if (a < 1 || b < 1) return 0;  // a batch has at least one row
  }
  const bool is_left = !is_batch(b), is_right = !is_batch(a);
  if ((op == "Add" || (op == "Sub" && is_left)) && (is_left ? b : a) == 0) return is_left ? a : b;
  const long double factor = is_left ? b : a;
  const bool is_factor = (is_left || is_right) && factor >= 1 && factor < 0x1p40L;
  if (op == "Mul" && is_factor && a / batch_number() * b < 0x1p60L &&
      b / batch_number() * a < 0x1p60L)
    return a * b;
  if (op == "Div" && is_left && is_factor && std::fmod(a / batch_number(), b) == 0) return a / b;
  refuse_batch();
}

Numbers elementwise(const OnnxNode& node, const Inputs& inputs, const NumberPairFunction& operation,
                    bool is_bool = false) {
  require_count(inputs, 2, 2);
  WIDE_REQUIRE(inputs[0]->is_float() == inputs[1]->is_float() || node.op == "Pow",
               "combines whole numbers with others");
  Numbers out{broadcast_shape(inputs), is_bool ? kBool : inputs[0]->type, {}};
  for_each_place(out.shape, [&](const Dims& place) {
    const long double a = inputs[0]->values[broadcast_index(*inputs[0], place)],
                      b = inputs[1]->values[broadcast_index(*inputs[1], place)];
    const bool has_batch = !inputs[0]->is_float() && (is_batch(a) || is_batch(b));
    if (has_batch)
      out.values.push_back(apply_to_batch(node.op, a, b));
    else
      out.values.push_back(out.is_float() ? operation(a, b) : whole(operation(a, b)));
  });
  return out;
}

/// For any number of inputs.
Numbers extreme(const OnnxNode& node, const Inputs& inputs, const NumberPairFunction& operation) {
  require_count(inputs, 1, inputs.size());
  Numbers out = *inputs[0];
  for (size_t i = 1; i < inputs.size(); ++i) out = elementwise(node, {&out, inputs[i]}, operation);
  return out;
}

Numbers map_each(const Inputs& inputs, const std::function<long double(long double)>& function) {
  require_count(inputs, 1, 1);
  Numbers out = *inputs[0];
  for (long double& value : out.values) {
    if (!out.is_float() && is_batch(value)) refuse_batch();
    value = out.is_float() ? function(value) : whole(function(value));
  }
  return out;
}

std::vector<int64_t> integers(const OnnxNode& node, const Inputs& inputs, size_t input,
                              const char* attribute) {
  if (inputs.size() > input && inputs[input] != nullptr) return to_integers(*inputs[input]);
  const Attribute* a = node.find(attribute);
  WIDE_REQUIRE(a == nullptr || a->type == Attribute::Type::ints,
               "has attribute " + in_quotes(attribute) + ", expected integers");
  return a == nullptr ? std::vector<int64_t>{} : a->ints;
}

int64_t integer(const OnnxNode& node, const char* attribute, int64_t usual) {
  const Attribute* a = node.find(attribute);
  WIDE_REQUIRE(a == nullptr || a->type == Attribute::Type::i,
               "has attribute " + in_quotes(attribute) + ", expected an integer");
  return a == nullptr ? usual : a->i;
}

Numbers with_shape(const Numbers& in, const std::vector<int64_t>& extents) {
  Numbers out{shape_of(extents), in.type, in.values};
  WIDE_REQUIRE(num_elements(out.shape) == std::ssize(in.values), "makes " + to_string(out.shape) +
                                                                     " of " + to_string(in.shape) +
                                                                     ", expected as many elements");
  return out;
}

Numbers fold_cast(const OnnxNode& node, const Inputs& inputs) {
  require_count(inputs, 1, 1);
  const ElementType* to = find_element_type(integer(node, "to", 0));
  WIDE_REQUIRE(to != nullptr, "casts to a type that is unknown, expected one of TensorProto's");
  const bool is_float = is_floating_type(to->number), is_double = to->number == 11;
  if (to->bits < 8 || to->number == 14 || to->number == 15 ||
      (is_float && !is_double && !to->dtype))
    throw_unsupported("casts to " + std::string(to->name));
  const bool saturates = to->dtype && is_fp8(*to->dtype) && integer(node, "saturate", 1) != 0;
  const long double largest = saturates && *to->dtype == Dtype::fp8_e4m3 ? 448 : 57344;
  Numbers out = *inputs[0];
  for (long double& value : out.values) {
    if (!out.is_float() && is_batch(value) && (is_float || to->number == kBool)) refuse_batch();
    if (saturates) value = std::clamp(value, -largest, largest);  // NaN stays
    if (is_float || (!out.is_float() && is_batch(value))) continue;
    const long double number = to->number == kBool ? value != 0 : whole(value);
    value = number;
    // Of whole numbers the higher bits are discarded; what becomes of others is not said.
    if (out.is_float() && wrapped(number, to->number) != number)
      throw_unsupported("casts " + text(static_cast<double>(number)) + ", which " +
                        std::string(to->name) + " does not have");
  }
  out.type = to->number;
  return out;
}

Numbers fold_gather(const OnnxNode& node, const Inputs& inputs) {
  require_count(inputs, 2, 2);
  const Numbers &data = *inputs[0], &at = *inputs[1];
  const int axis = checked_axis(integer(node, "axis", 0), data.shape.rank());
  std::vector<int64_t> extents(data.shape.begin(), data.shape.begin() + axis);
  extents.insert(extents.end(), at.shape.begin(), at.shape.end());
  extents.insert(extents.end(), data.shape.begin() + axis + 1, data.shape.end());
  Numbers out{shape_of(extents), data.type, {}};
  for_each_place(out.shape, [&](const Dims& place) {
    int64_t which = 0;
    for (int i = 0; i < at.shape.rank(); ++i) which = which * at.shape[i] + place[axis + i];
    int64_t index = to_integer(at, static_cast<size_t>(which));
    const int64_t extent = data.shape[axis];
    WIDE_REQUIRE(
        index >= -extent && index < extent,
        "takes element " + std::to_string(index) + ", expected one of " + std::to_string(extent));
    if (index < 0) index += extent;
    int64_t source = 0;
    for (int i = 0; i < data.shape.rank(); ++i) {
      const int64_t step = i < axis ? place[i] : i == axis ? index : place[i - 1 + at.shape.rank()];
      source = source * data.shape[i] + step;
    }
    out.values.push_back(data.values[static_cast<size_t>(source)]);
  });
  return out;
}

Numbers fold_concat(const OnnxNode& node, const Inputs& inputs) {
  require_count(inputs, 1, inputs.size());
  for (const Numbers* in : inputs) WIDE_REQUIRE(in != nullptr, "has an input without a name");
  WIDE_REQUIRE(node.find("axis") != nullptr, "has no axis, expected one");
  const int axis = checked_axis(integer(node, "axis", 0), inputs[0]->shape.rank());
  Numbers out{inputs[0]->shape, inputs[0]->type, {}};
  out.shape[axis] = 0;
  for (const Numbers* in : inputs) {
    Shape like = in->shape;
    WIDE_REQUIRE(like.rank() == out.shape.rank(), "joins shapes of different ranks");
    out.shape[axis] += like[axis];
    like[axis] = inputs[0]->shape[axis];
    WIDE_REQUIRE(in->is_float() == out.is_float(), "joins whole numbers with others");
    WIDE_REQUIRE(like == inputs[0]->shape, "joins " + to_string(in->shape) + " and " +
                                               to_string(inputs[0]->shape) +
                                               ", expected shapes that fit");
  }
  for_each_place(out.shape, [&](const Dims& place) {
    Dims own = place;
    size_t part = 0;
    while (own[axis] >= inputs[part]->shape[axis]) own[axis] -= inputs[part++]->shape[axis];
    out.values.push_back(inputs[part]->values[broadcast_index(*inputs[part], own)]);
  });
  return out;
}

Numbers fold_slice(const OnnxNode& node, const Inputs& inputs) {
  require_count(inputs, 1, 5);
  const Numbers& data = *inputs[0];
  const std::vector<SliceRange> ranges = slice_ranges(
      data.shape, integers(node, inputs, 1, "starts"), integers(node, inputs, 2, "ends"),
      integers(node, inputs, 3, "axes"), integers(node, inputs, 4, "steps"));
  Numbers out{data.shape, data.type, {}};
  for (int axis = 0; axis < data.shape.rank(); ++axis)
    out.shape[axis] = ranges[static_cast<size_t>(axis)].count;
  for_each_place(out.shape, [&](Dims place) {
    for (int axis = 0; axis < place.rank(); ++axis) {
      const SliceRange& range = ranges[static_cast<size_t>(axis)];
      place[axis] = range.first + place[axis] * range.step;
    }
    out.values.push_back(data.values[broadcast_index(data, place)]);
  });
  return out;
}

Numbers fold_transpose(const OnnxNode& node, const Inputs& inputs) {
  require_count(inputs, 1, 1);
  const Numbers& in = *inputs[0];
  const Dims order = transpose_order(integers(node, {}, 1, "perm"), in.shape.rank());
  Numbers out = in;
  for (int axis = 0; axis < order.rank(); ++axis)
    out.shape[axis] = in.shape[static_cast<int>(order[axis])];
  out.values.clear();
  for_each_place(out.shape, [&](const Dims& place) {
    Dims source = place;
    for (int axis = 0; axis < order.rank(); ++axis)
      source[static_cast<int>(order[axis])] = place[axis];
    out.values.push_back(in.values[broadcast_index(in, source)]);
  });
  return out;
}

Numbers fold_range(const Inputs& inputs) {
  require_count(inputs, 3, 3);
  for (const Numbers* in : inputs) {
    WIDE_REQUIRE(in->values.size() == 1,
                 "ranges over " + to_string(in->shape) + ", expected scalars");
    if (in->has_batch()) refuse_batch();
  }
  const long double start = inputs[0]->values[0], limit = inputs[1]->values[0],
                    delta = inputs[2]->values[0];
  const long double steps = (limit - start) / delta;  // of floats in double, as others count them
  const long double count = std::ceil(inputs[0]->is_float() ? static_cast<double>(steps) : steps);
  WIDE_REQUIRE(delta != 0 && count <= kMaxNumbers, "ranges over too many numbers");
  Numbers out{
      {std::max<int64_t>(0, static_cast<int64_t>(std::max(count, 0.0L)))}, inputs[0]->type, {}};
  for (int64_t i = 0; i < out.shape[0]; ++i)
    out.values.push_back(start + static_cast<long double>(i) * delta);
  return out;
}

Numbers fold_filled(const std::vector<int64_t>& extents, const Numbers& value) {
  Numbers out{shape_of(extents), value.type, {}};
  out.values.assign(static_cast<size_t>(checked_size(out.shape)), value.values.at(0));
  return out;
}

Numbers fold_where(const Inputs& inputs) {
  require_count(inputs, 3, 3);
  WIDE_REQUIRE(inputs[1]->is_float() == inputs[2]->is_float(),
               "chooses between whole numbers and others");
  Numbers out{broadcast_shape(inputs), inputs[1]->type, {}};
  for_each_place(out.shape, [&](const Dims& place) {
    const Numbers& from =
        *inputs[inputs[0]->values[broadcast_index(*inputs[0], place)] != 0 ? 1 : 2];
    out.values.push_back(from.values[broadcast_index(from, place)]);
  });
  return out;
}

Numbers fold_expand(const Inputs& inputs) {
  require_count(inputs, 2, 2);
  // Rows repeated for each sample are one row.
  std::vector<int64_t> extents;
  for (size_t i = 0; i < inputs[1]->values.size(); ++i)
    extents.push_back(is_batch(*inputs[1], i) ? 1 : to_integer(*inputs[1], i));
  const Numbers wanted = fold_filled(extents, {{}, kInt64, {0}});
  const Inputs both{inputs[0], &wanted};
  Numbers out{broadcast_shape(both), inputs[0]->type, {}};
  for_each_place(out.shape, [&](const Dims& place) {
    out.values.push_back(inputs[0]->values[broadcast_index(*inputs[0], place)]);
  });
  return out;
}

Numbers fold_reduce(const OnnxNode& node, const Inputs& inputs, bool is_product) {
  require_count(inputs, 1, 2);
  const Numbers& in = *inputs[0];
  std::vector<bool> reduced(static_cast<size_t>(in.shape.rank()));
  const std::vector<int64_t> axes = integers(node, inputs, 1, "axes");
  for (const int64_t axis : axes)
    reduced[static_cast<size_t>(checked_axis(axis, in.shape.rank()))] = true;
  if (axes.empty())
    std::fill(reduced.begin(), reduced.end(), integer(node, "noop_with_empty_axes", 0) == 0);
  Numbers kept{in.shape, in.type, {}};
  std::vector<int64_t> extents;
  for (int axis = 0; axis < in.shape.rank(); ++axis) {
    const bool is_reduced = reduced[static_cast<size_t>(axis)];
    if (is_reduced) kept.shape[axis] = 1;
    if (!is_reduced || integer(node, "keepdims", 1) != 0) extents.push_back(kept.shape[axis]);
  }
  kept.values.assign(static_cast<size_t>(checked_size(kept.shape)), is_product ? 1 : 0);
  for_each_place(in.shape, [&](const Dims& place) {
    const long double value = in.values[broadcast_index(in, place)];
    if (!in.is_float() && is_batch(value)) refuse_batch();
    long double& total = kept.values[broadcast_index(kept, place)];
    total = is_product ? total * value : total + value;
    if (!in.is_float()) total = whole(total);
  });
  return with_shape(kept, extents);
}

std::vector<Numbers> fold_split(const OnnxNode& node, const Inputs& inputs) {
  require_count(inputs, 1, 2);
  const Numbers& in = *inputs[0];
  const int axis = checked_axis(integer(node, "axis", 0), in.shape.rank());
  const std::vector<int64_t> sizes =
      split_sizes(in.shape[axis], node.outputs.size(), integers(node, inputs, 1, "split"),
                  node.find("num_outputs") != nullptr);
  std::vector<Numbers> parts;
  int64_t first = 0;
  for (const int64_t size : sizes) {
    Numbers part{in.shape, in.type, {}};
    part.shape[axis] = size;
    for_each_place(part.shape, [&](Dims place) {
      place[axis] += first;
      part.values.push_back(in.values[broadcast_index(in, place)]);
    });
    parts.push_back(std::move(part));
    first += size;
  }
  return parts;
}

}  // namespace

std::vector<int64_t> changed_shape(const OnnxNode& node, const Shape& shape, const Inputs& inputs) {
  const int64_t size = num_elements(shape);
  std::vector<int64_t> extents;
  if (node.op == "Squeeze") {
    extents = squeezed(shape, integers(node, inputs, 1, "axes"));
  } else if (node.op == "Unsqueeze") {
    extents = unsqueezed(shape, integers(node, inputs, 1, "axes"));
  } else if (node.op == "Flatten") {
    const int64_t axis = integer(node, "axis", 1);
    WIDE_REQUIRE(axis >= -shape.rank() && axis <= shape.rank(),
                 "flattens at an axis that is not there");
    const int64_t split = axis < 0 ? axis + shape.rank() : axis;
    int64_t front = 1;
    for (int64_t i = 0; i < split; ++i) front *= shape[static_cast<int>(i)];
    extents = {front, front == 0 ? 0 : size / front};
  } else {
    require_count(inputs, 2, 2, 1);
    extents = to_integers(*inputs[1]);
    int64_t known = 1;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] == 0 && integer(node, "allowzero", 0) == 0 &&
          i < static_cast<size_t>(shape.rank()))
        extents[i] = shape[static_cast<int>(i)];
      WIDE_REQUIRE(extents[i] >= -1 && extents[i] <= std::max(size, kMaxNumbers),
                   "makes an extent of " + std::to_string(extents[i]));
      if (extents[i] != -1) known = std::min(known, size + 1) * extents[i];
      known = std::min(known, size + 1);
    }
    for (int64_t& extent : extents) {
      if (extent == -1) extent = known == 0 ? 0 : size / known;
    }
  }
  WIDE_REQUIRE(num_elements(shape_of(extents)) == size, "makes " + to_string(Shape(extents)) +
                                                            " of " + to_string(shape) +
                                                            ", expected as many elements");
  return extents;
}

namespace {

/// The results before they are rounded.
std::optional<std::vector<Numbers>> computed(const OnnxNode& node, const Inputs& inputs) {
  const auto one = [](Numbers numbers) { return std::vector<Numbers>{std::move(numbers)}; };
  const std::string& op = node.op;
  const bool has_all =
      std::none_of(inputs.begin(), inputs.end(), [](auto* in) { return in == nullptr; });
  if (const auto found = arithmetic().find(op); found != arithmetic().end() && has_all) {
    if (op == "Min" || op == "Max") return one(extreme(node, inputs, found->second));
    if (op == "Div" && inputs.size() == 2 && !inputs[0]->is_float()) {
      for (const long double value : inputs[1]->values) WIDE_REQUIRE(value != 0, "divides by zero");
    }
    return one(elementwise(node, inputs, found->second));
  }
  if (op == "Mod" && has_all)
    return one(elementwise(node, inputs, modulo(integer(node, "fmod", 0))));
  if (const auto found = comparisons().find(op); found != comparisons().end() && has_all)
    return one(elementwise(node, inputs, found->second, true));
  if (const auto found = functions().find(op); found != functions().end() && has_all)
    return one(map_each(inputs, found->second));
  if (op == "Identity" && has_all && inputs.size() == 1) return one(*inputs[0]);
  if (op == "Cast") return one(fold_cast(node, inputs));
  if (op == "Gather") return one(fold_gather(node, inputs));
  if (op == "Concat") return one(fold_concat(node, inputs));
  if (op == "Slice") return one(fold_slice(node, inputs));
  if (op == "Transpose") return one(fold_transpose(node, inputs));
  if (op == "Range") return one(fold_range(inputs));
  if (op == "Where") return one(fold_where(inputs));
  if (op == "Expand") return one(fold_expand(inputs));
  if (op == "ReduceProd" || op == "ReduceSum")
    return one(fold_reduce(node, inputs, op == "ReduceProd"));
  if (op == "ScatterND") return one(scattered(node, inputs));
  if (op == "Split") return fold_split(node, inputs);
  if (op == "Squeeze" || op == "Unsqueeze" || op == "Flatten" || op == "Reshape") {
    WIDE_REQUIRE(!inputs.empty() && inputs[0] != nullptr, "has no first input");
    const Numbers& in = *inputs[0];
    return one({shape_of(changed_shape(node, in.shape, inputs)), in.type, in.values});
  }
  return {};
}

}  // namespace

std::optional<std::vector<Numbers>> fold(const OnnxNode& node, const Inputs& inputs) {
  check_attributes(node);
  std::optional<std::vector<Numbers>> outputs = computed(node, inputs);
  if (outputs) std::for_each(outputs->begin(), outputs->end(), round_to_type);
  return outputs;
}

}  // namespace wide::onnx
