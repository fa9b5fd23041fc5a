// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators of one element, of two, and of a row.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"
#include "host/model/broadcast.hpp"

namespace wide::onnx {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Value pointwise(Lowering& at, Value x, const PointwiseOp& op) {
  return at.append(op, {{"x", x}});
}
Value binary(Lowering& at, BinaryFunction function, Value x, Value other) {
  const bool is_row = at.shape(other).rank() > 0 && at.shape(other)[0] == kBatch;
  bool fits = !is_row || at.shape(x) == at.shape(other);
  if (!fits) {
    // One number per channel, like gates of squeeze and excitation, or per feature.
    const auto repeats = [&](Value of, Value along) {
      return repeats_channels(at.shape(of), at.shape(along)) ||
             repeats_features(at.shape(of), at.shape(along));
    };
    const bool commutes = function == BinaryFunction::add || function == BinaryFunction::multiply;
    if (commutes && repeats(x, other)) std::swap(x, other);
    fits = repeats(other, x);
  }
  if (!fits) std::tie(x, other) = at.broadcast(x, other);
  if (at.shape(x).rank() == 1) {  // one number per row
    const bool is_batch = at.shape(other) == Shape{kBatch};
    const Value y = binary(at, function, at.reshaped(x, {kBatch, 1}),
                           is_batch ? at.reshaped(other, {kBatch, 1}) : other);
    return at.reshaped(y, {kBatch});
  }
  return at.append(BinaryOp{function}, {{"x", x}, {"other", other}});
}
/// What is computed from each element of x, wherever its axes are.
template <class Compute>
void set_elements(Lowering& at, const Compute& compute) {
  const Moved x = at.elements(0);
  at.set_like(x, compute(x.value));
}
void set_pointwise(Lowering& at, const PointwiseOp& op) {
  set_elements(at, [&](Value x) { return pointwise(at, x, op); });
}
Value with_number(Lowering& at, BinaryFunction function, Value x, double number) {
  return binary(at, function, x, at.constant(number, at.dtype(x)));
}

template <PointwiseFunction kFunction>
void lower_function(Lowering& at) {
  at.only({});
  if (kFunction == PointwiseFunction::tanh && lower_scores_tanh(at)) return;
  set_pointwise(at, {.function = kFunction});
}

void lower_gelu(Lowering& at) {
  at.only({"approximate"});
  at.support_joined_rank();
  const std::string_view mode = at.text("approximate", "none");
  at.require(mode == "none" || mode == "tanh",
             "has approximate " + std::string(mode) + ", expected none or tanh");
  set_pointwise(
      at, {.function = mode == "tanh" ? PointwiseFunction::gelu_tanh : PointwiseFunction::gelu});
}
void lower_leaky_relu(Lowering& at) {
  at.only({"alpha"});
  set_pointwise(at,
                {.function = PointwiseFunction::leaky_relu, .slope = at.number("alpha", 0.01f)});
}
void lower_elu(Lowering& at) {
  at.only({"alpha"});
  set_pointwise(at, {.function = PointwiseFunction::elu, .alpha = at.number("alpha", 1)});
}
/// gamma * elu(x)
void lower_selu(Lowering& at) {
  at.only({"alpha", "gamma"});
  const float alpha = at.number("alpha", 1.67326319217681884765625f),
              gamma = at.number("gamma", 1.05070102214813232421875f);
  set_elements(at, [&](Value x) {
    const Value elu = pointwise(at, x, {.function = PointwiseFunction::elu, .alpha = alpha});
    return with_number(at, BinaryFunction::multiply, elu, static_cast<double>(gamma));
  });
}
/// relu(x) + alpha * (exp(min(x, 0) / alpha) - 1): what is above 0 is not divided, and so cannot
/// overflow.
void lower_celu(Lowering& at) {
  at.only({"alpha"});
  const float alpha = at.number("alpha", 1);
  const Moved own = at.elements(0);
  const Value x = own.value;
  at.support(alpha > 0 && holds(at.dtype(x), static_cast<double>(alpha)),
             "has alpha " + text(static_cast<double>(alpha)) + ", expected one above 0 that " +
                 std::string(dtype_name(at.dtype(x))) + " has in full");
  const Value negative =
      pointwise(at, x, {.function = PointwiseFunction::clamp, .low = -kInfinity, .high = 0});
  const Value below =
      pointwise(at, with_number(at, BinaryFunction::divide, negative, static_cast<double>(alpha)),
                {.function = PointwiseFunction::elu, .alpha = alpha});
  const Value above = pointwise(at, x, {.function = PointwiseFunction::relu});
  at.set_like(own, binary(at, BinaryFunction::add, above, below));
}
void lower_hard_sigmoid(Lowering& at) {
  at.only({"alpha", "beta"});
  const float alpha = at.number("alpha", 0.2f), beta = at.number("beta", 0.5f);
  set_elements(at, [&](Value x) {
    Value y = with_number(at, BinaryFunction::multiply, x, static_cast<double>(alpha));
    y = with_number(at, BinaryFunction::add, y, static_cast<double>(beta));
    return pointwise(at, y, {.function = PointwiseFunction::clamp, .low = 0, .high = 1});
  });
}
/// x * tanh(softplus(x))
void lower_mish(Lowering& at) {
  at.only({});
  set_elements(at, [&](Value x) {
    const Value soft = pointwise(at, x, {.function = PointwiseFunction::softplus});
    return binary(at, BinaryFunction::multiply, x,
                  pointwise(at, soft, {.function = PointwiseFunction::tanh}));
  });
}
void lower_neg(Lowering& at) {
  at.only({});
  set_elements(at, [&](Value x) { return with_number(at, BinaryFunction::multiply, x, -1); });
}

/// relu(x) + relu(-x)
Value absolute(Lowering& at, Value x) {
  const Value above = pointwise(at, x, {.function = PointwiseFunction::relu});
  const Value negative = with_number(at, BinaryFunction::multiply, x, -1);
  return binary(at, BinaryFunction::add, above,
                pointwise(at, negative, {.function = PointwiseFunction::relu}));
}
void lower_abs(Lowering& at) {
  at.only({});
  set_elements(at, [&](Value x) { return absolute(at, x); });
}
/// x / (1 + |x|)
void lower_softsign(Lowering& at) {
  at.only({});
  set_elements(at, [&](Value x) {
    return binary(at, BinaryFunction::divide, x,
                  with_number(at, BinaryFunction::add, absolute(at, x), 1));
  });
}

void lower_clip(Lowering& at) {
  at.only({"min", "max"});
  const auto bound = [&](size_t input, const char* attribute, float usual) {
    return at.has(input) ? static_cast<float>(at.scalar(input)) : at.number(attribute, usual);
  };
  // Before opset 11 what is not said is the largest number.
  const float most = at.opset() < 11 ? std::numeric_limits<float>::max() : kInfinity;
  const float low = bound(1, "min", -most), high = bound(2, "max", most);
  at.support(low <= high, "clips to " + text(static_cast<double>(low)) + " and more, and to " +
                              text(static_cast<double>(high)) +
                              " and less, expected bounds in order");
  set_pointwise(at, {.function = PointwiseFunction::clamp, .low = low, .high = high});
}

/// The larger or smaller of x and constants of one number.
template <bool kIsMax>
void lower_extreme(Lowering& at) {
  at.only({});
  if (at.num_inputs() == 1) return at.set(0, at.moved(0));
  at.support(at.num_inputs() == 2,
             "compares " + counted(at.num_inputs(), "input") + ", expected x and a number");
  const size_t data = at.is_computed(0) ? 0 : 1;
  at.support(!at.is_computed(1 - data),
             "compares two activations, for which there is no primitive");
  const Moved x = at.elements(data);
  at.support_rank(1 - data, at.view(x).rank());
  const auto number = static_cast<float>(at.scalar(1 - data));
  at.set_like(x, pointwise(at, x.value,
                           {.function = PointwiseFunction::clamp,
                            .low = kIsMax ? number : -kInfinity,
                            .high = kIsMax ? kInfinity : number}));
}

/// A constant as an operand of x: one number, x's last axes, or its channels.
Value other_of(Lowering& at, size_t input, Value x) {
  const Shape shape = at.shape(x), own = at.constant_shape(input);
  const Dtype dtype = at.dtype(x);
  at.support_rank(input, shape.rank());
  if (num_elements(own) == 1) return at.reshaped(at.parameter(input, dtype), {1});
  const int missing = shape.rank() - own.rank();
  const bool is_repeated = missing == 0 && own[0] != 1 && at.repeats_rows(input);
  at.support(missing > 0 || (missing == 0 && own[0] == 1) || is_repeated,
             "combines " + to_string(shape) + " and the constant " + to_string(own) +
                 ", which has a batch or more axes");
  std::vector<int64_t> extents(own.begin() + (missing == 0 ? 1 : 0), own.end());
  while (extents.size() > 1 && extents.front() == 1) extents.erase(extents.begin());
  const int skipped = shape.rank() - static_cast<int>(extents.size());
  bool is_suffix = true, is_channel = skipped == 1 && shape.rank() >= 3 && extents[0] == shape[1];
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t extent = shape[static_cast<int>(i) + skipped];
    is_suffix = is_suffix && extents[i] == extent;
    is_channel = is_channel && (i == 0 || extents[i] == 1);
    at.support(extents[i] == extent || extents[i] == 1, "combines " + to_string(shape) +
                                                            " and the constant " + to_string(own) +
                                                            ", which does not fit or is larger");
  }
  if (is_repeated && (is_suffix || is_channel))
    return at.changed(input, dtype, Shape(extents), element_of);
  if (is_suffix || is_channel) return at.reshaped(at.parameter(input, dtype), Shape(extents));
  const Shape full(std::span(shape.begin() + skipped, shape.end()));
  const Shape from(extents);
  return at.changed(input, dtype, full, [=](const Initializer& t, int64_t i) {
    int64_t source = 0, step = 1;
    for (int axis = full.rank(); axis-- > 0; i /= full[axis]) {
      if (from[axis] == 1) continue;
      source += i % full[axis] * step;
      step *= from[axis];
    }
    return element_of(t, source);
  });
}

Value combined(Lowering& at, BinaryFunction function, size_t left, size_t right) {
  if (at.is_computed(left)) {
    const Value x = at.x(left);
    return binary(at, function, x, at.is_computed(right) ? at.x(right) : other_of(at, right, x));
  }
  Value x = at.x(right);
  at.support(function != BinaryFunction::divide,
             "divides a constant by an activation, for which there is no primitive");
  if (function == BinaryFunction::subtract) {
    x = with_number(at, BinaryFunction::multiply, x, -1);
    function = BinaryFunction::add;
  }
  return binary(at, function, x, other_of(at, left, x));
}

bool is_moved(Lowering& at, size_t input) {
  if (!at.is_computed(input)) return false;
  const Moved own = at.moved(input);
  return own.view && !own.view->in_place();
}

/// A constant with x's view, in the layout of x's value: tables of rotary embeddings.
Value moved_constant(Lowering& at, size_t input, const Moved& x) {
  const View view = at.view(x);
  const Shape own = at.constant_shape(input), lying = at.shape(x.value);
  struct Step {
    int64_t extent, step, own_step;  ///< of x's elements, and of the constant's
  };
  std::vector<Step> steps;
  int64_t own_step = 1;
  for (int i = own.rank(), axis = view.rank(); i-- > 0;) {
    at.support(--axis >= 0, "has more axes than what it is combined with");
    const View::Axis& parts = view.axis(axis);
    int64_t behind = own_step;
    for (size_t part = parts.size(); own[i] != 1 && part-- > 0;) {
      at.support(parts[part].step != 0, "combines the constant " + to_string(own) +
                                            " and an activation that is repeated or its batch");
      steps.push_back({parts[part].extent, parts[part].step, behind});
      behind *= parts[part].extent;
    }
    own_step *= own[i];
    at.support(own[i] == 1 || behind == own_step,
               "combines " + to_string(own) + " and an activation of other extents");
  }
  return at.changed(input, at.dtype(x.value), Shape(std::span(lying.begin() + 1, lying.end())),
                    [steps](const Initializer& t, int64_t i) {
                      int64_t from = 0;
                      for (const Step& s : steps) from += i / s.step % s.extent * s.own_step;
                      return element_of(t, from);
                    });
}

/// Where axes were moved: two operands moved alike, a number, or one row for all rows.
void combine_moved(Lowering& at, BinaryFunction function) {
  if (at.is_computed(0) && at.is_computed(1)) {
    const Moved a = at.elements(0), b = at.elements(1);
    if (at.view(a) != at.view(b)) return at.set(binary(at, function, at.x(0), at.x(1)));
    return at.set_like(a, binary(at, function, a.value, at.reshaped(b.value, at.shape(a.value))));
  }
  const size_t data = at.is_computed(0) ? 0 : 1;
  const bool is_factor =
      function == BinaryFunction::multiply || (function == BinaryFunction::divide && data == 0);
  const Shape& own = at.constant_shape(1 - data);
  at.support_rank(1 - data, at.view(at.moved(data)).rank());
  if (num_elements(own) == 1 && is_factor) {
    Moved x = at.moved(data);
    const double number = at.scalar(1 - data);
    x.factor = function == BinaryFunction::divide ? x.factor / number : x.factor * number;
    if (holds(at.dtype(x.value), x.factor)) return at.set(0, x);  // else each by itself
  }
  at.support(data == 0 || function != BinaryFunction::divide,
             "divides a constant by an activation, for which there is no primitive");
  const bool is_row = own.rank() > 0 && own.back() == num_elements(own);
  Moved x = is_row && own.back() != 1 ? at.rows(data) : at.elements(data);
  if (data == 1 && function == BinaryFunction::subtract) {
    x.value = with_number(at, BinaryFunction::multiply, x.value, -1);
    function = BinaryFunction::add;
  }
  const Value other =
      is_row || num_elements(own) == 1
          ? at.reshaped(at.parameter(1 - data, at.dtype(x.value)), {num_elements(own)})
          : moved_constant(at, 1 - data, x);
  at.set_like(x, binary(at, function, x.value, other));
}

template <BinaryFunction kFunction>
void lower_binary(Lowering& at) {
  at.only({});
  at.require(at.num_inputs() == 2, "has " + counted(at.num_inputs(), "input") + ", expected 2");
  at.support(kFunction != BinaryFunction::divide || (!at.is_integer(0) && !at.is_integer(1)),
             "divides integers, which are rounded towards zero, for which there is no primitive");
  if (lower_scores_arithmetic(at)) return;
  const Dtype dtype = at.dtype(at.moved(at.is_computed(0) ? 0 : 1).value);
  const Range range = kFunction == BinaryFunction::divide
                          ? Range::any
                          : std::min({at.range(0, dtype), at.range(1, dtype), Range::whole});
  if (is_moved(at, 0) || is_moved(at, 1))
    combine_moved(at, kFunction);
  else
    at.set(combined(at, kFunction, 0, 1));
  at.claim(range);
}

/// Whether a term of a sum can be added to each element of the first where they lie: an activation
/// whose axes were moved alike, or a number.
bool is_term(Lowering& at, size_t input, const View& first) {
  if (at.is_computed(input)) return at.view(at.moved(input)) == first;
  const Shape& own = at.constant_shape(input);
  return num_elements(own) == 1 && own.rank() <= first.rank();
}

template <bool kIsMean>
void lower_sum(Lowering& at) {
  at.only({});
  size_t first = 0;
  while (first + 1 < at.num_inputs() && !at.is_computed(first)) ++first;
  const View view = at.view(at.moved(first));
  bool is_alike = true;
  for (size_t i = 0; i < at.num_inputs(); ++i) is_alike = is_alike && is_term(at, i, view);
  const Moved like = is_alike ? at.elements(first) : Moved{at.x(first)};
  Value total = like.value;
  const auto term = [&](size_t i) {
    if (!is_alike) return at.is_computed(i) ? at.x(i) : other_of(at, i, total);
    return at.is_computed(i) ? at.reshaped(at.elements(i).value, at.shape(total))
                             : at.reshaped(at.parameter(i, at.dtype(total)), {1});
  };
  for (size_t i = 0; i < at.num_inputs(); ++i) {
    if (i != first) total = binary(at, BinaryFunction::add, total, term(i));
  }
  if (kIsMean && at.num_inputs() > 1)
    total = with_number(at, BinaryFunction::divide, total, static_cast<double>(at.num_inputs()));
  at.set_like(like, total);
}

void lower_pow(Lowering& at) {
  at.only({});
  const Moved x = at.elements(0);
  at.support_rank(1, at.view(x).rank());
  const double power = at.scalar(1);
  at.support(power == 1 || power == 2 || power == 3,
             "raises to the power of " + text(power) + ", expected 1, 2 or 3");
  Value y = x.value;
  for (int i = 1; i < static_cast<int>(power); ++i)
    y = binary(at, BinaryFunction::multiply, y, x.value);
  at.set_like(x, y);
}

/// Per-channel slopes have no function of their own: relu(x) - slope * relu(-x).
void lower_prelu(Lowering& at) {
  at.only({});
  const int rank = at.view(at.moved(0)).rank();
  at.support_rank(1, rank);
  const Shape& own = at.constant_shape(1);
  const int64_t size = num_elements(own);
  const auto with_slope = [&](Value x) {
    return at.append(PointwiseOp{.function = PointwiseFunction::prelu},
                     {{"x", x}, {"slope", at.reshaped(at.parameter(1, at.dtype(x)), {size})}});
  };
  if (size == 1) return set_elements(at, with_slope);
  const Value x = at.x(0);
  const Dtype dtype = at.dtype(x);
  // Before opset 7 a list of slopes is for channels, since then for the last axis, as usual.
  const bool is_old = at.opset() < 7 && rank > 1 && own == Shape{at.shape(x)[1]};
  const bool is_row =
      own.rank() > 0 && own.back() == size && size == at.shape(x).back() && (!is_old || rank == 2);
  if (is_row) return at.set(with_slope(x));
  Value slope;
  if (is_old) {
    std::vector<int64_t> channels(static_cast<size_t>(rank - 1), 1);
    channels.front() = size;
    slope = at.reshaped(at.parameter(1, dtype), Shape(channels));
  } else {
    slope = other_of(at, 1, x);
  }
  const Value above = pointwise(at, x, {.function = PointwiseFunction::relu});
  const Value below = pointwise(at, with_number(at, BinaryFunction::multiply, x, -1),
                                {.function = PointwiseFunction::relu});
  at.set(binary(at, BinaryFunction::subtract, above,
                binary(at, BinaryFunction::multiply, below, slope)));
}

/// Before opset 13 over all axes from one on, since then over one.
template <bool kIsLog>
void lower_softmax(Lowering& at) {
  at.only({"axis"});
  if (!kIsLog && lower_scores_softmax(at)) return;
  const bool is_old = at.opset() < 13;
  if (!is_old && is_moved(at, 0)) {
    const Moved rows = at.rows(0);
    const int rank = at.view(rows).rank();
    at.support(checked_axis(at.integer("axis", -1), rank) == rank - 1,
               "is over another axis than the last one");
    return at.set_like(rows, at.append(SoftmaxOp{kIsLog}, {{"x", rows.value}}));
  }
  const Value x = at.x(0);
  const Shape shape = at.shape(x);
  const int axis = checked_axis(at.integer("axis", is_old ? 1 : -1), shape.rank());
  at.support(axis > 0, "is over axis 0, the batch, expected another");
  if (!is_old && axis != shape.rank() - 1) {  // that axis moved to the end, and back
    Dims order = shape;
    for (int i = 0; i < shape.rank(); ++i) order[i] = i;
    std::swap(order[axis], order[shape.rank() - 1]);
    const Value rows = at.laid_out(x, View::of(shape).transposed(order));
    const Value y = at.append(SoftmaxOp{kIsLog}, {{"x", rows}});
    return at.set(0, {y, View::of(at.shape(y)).transposed(order)});
  }
  std::vector<int64_t> rows(shape.begin(), shape.begin() + axis);
  int64_t size = 1;
  for (int i = axis; i < shape.rank(); ++i) size *= shape[i];
  rows.push_back(size);
  at.set(at.reshaped(at.append(SoftmaxOp{kIsLog}, {{"x", at.reshaped(x, Shape(rows))}}), shape));
}

}  // namespace

void add_elementwise_operators(std::map<std::string_view, Lower>& table) {
  using enum PointwiseFunction;
  table["Relu"] = lower_function<relu>;
  table["Sigmoid"] = lower_function<sigmoid>;
  table["Tanh"] = lower_function<tanh>;
  table["HardSwish"] = lower_function<hardswish>;
  table["Softplus"] = lower_function<softplus>;
  table["Gelu"] = lower_gelu;
  table["LeakyRelu"] = lower_leaky_relu;
  table["Elu"] = lower_elu;
  table["Selu"] = lower_selu;
  table["Celu"] = lower_celu;
  table["HardSigmoid"] = lower_hard_sigmoid;
  table["Mish"] = lower_mish;
  table["Neg"] = lower_neg;
  table["Abs"] = lower_abs;
  table["Softsign"] = lower_softsign;
  table["Clip"] = lower_clip;
  table["Max"] = lower_extreme<true>;
  table["Min"] = lower_extreme<false>;
  table["PRelu"] = lower_prelu;
  table["Pow"] = lower_pow;
  table["Add"] = lower_binary<BinaryFunction::add>;
  table["Sub"] = lower_binary<BinaryFunction::subtract>;
  table["Mul"] = lower_binary<BinaryFunction::multiply>;
  table["Div"] = lower_binary<BinaryFunction::divide>;
  table["Sum"] = lower_sum<false>;
  table["Mean"] = lower_sum<true>;
  table["Softmax"] = lower_softmax<false>;
  table["LogSoftmax"] = lower_softmax<true>;
}

Lower find_lower(std::string_view op) {
  static const std::map<std::string_view, Lower> table = [] {
    std::map<std::string_view, Lower> all;
    add_dense_operators(all);
    add_einsum_operator(all);
    add_elementwise_operators(all);
    add_mask_operators(all);
    add_recurrent_operators(all);
    add_shape_operators(all);
    add_window_operators(all);
    add_upsampling_operators(all);
    return all;
  }();
  const auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace wide::onnx
