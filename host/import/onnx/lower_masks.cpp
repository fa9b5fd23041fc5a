// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The operators of masks: Booleans and whole numbers are numbers in a graph, so that its usual
// arithmetic applies.
#include <algorithm>
#include <cmath>
#include <string>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

Value combined(Lowering& at, BinaryFunction function, Value x, Value other) {
  return at.append(BinaryOp{function}, {{"x", x}, {"other", other}});
}
/// factor * x + term
Value scaled(Lowering& at, Value x, double factor, double term) {
  const Value y = at.multiplied(x, factor);
  if (term == 0) return y;
  return combined(at, BinaryFunction::add, y, at.constant(term, at.dtype(y)));
}
/// 0 where x is at most 0, 1 where it is at least 1: for whole numbers, whether they are above 0.
Value above_zero(Lowering& at, Value x) {
  return at.append(PointwiseOp{.function = PointwiseFunction::clamp, .low = 0, .high = 1},
                   {{"x", x}});
}
Value squared(Lowering& at, Value x) {
  return combined(at, BinaryFunction::multiply, x, x);
}

void set_truth(Lowering& at, const Moved& like, Value y) {
  at.set_like(like, y);
  at.claim(Range::truth);
}

Moved truths(Lowering& at, size_t input) {
  const Moved x = at.elements(input);
  at.support(x.range == Range::truth,
             "reads input " + std::to_string(input) + ", which is not known to be truths");
  return x;
}

/// Whether a cast keeps every number. Of 32 bits and more a type has all that a graph computes
/// with.
bool keeps_numbers(const ElementType& from, const ElementType& to) {
  const int sign_bit = is_signed_type(from.number) ? 0 : 1;
  return is_signed_type(to.number) ? to.bits >= std::min(32, from.bits + sign_bit)
                                   : sign_bit == 1 && to.bits >= std::min(32, from.bits);
}

/// Whole numbers and Booleans may be cast to one another, and to the type that the graph uses.
void lower_cast(Lowering& at) {
  at.only({"to", "saturate"});
  const ElementType* to = find_element_type(at.integer("to", 0));
  at.require(to != nullptr, "casts to type " + std::to_string(at.integer("to", 0)) +
                                ", expected one of TensorProto's");
  const Scores* scores = at.scores(0);
  if (scores != nullptr && to->dtype == at.dtype(scores->q.value)) {
    (void)lower_scores_unchanged(at);
    return;
  }
  const Moved x = at.elements(0);
  const Dtype from = at.dtype(x.value);
  const bool is_whole = x.range >= Range::whole && !is_floating_type(to->number) && to->bits >= 8;
  at.support(to->dtype == from || (is_whole && to->number != 8),
             "casts " + std::string(dtype_name(from)) + " to " + std::string(to->name) +
                 ", for which there is no primitive");
  if (to->number == kBool && x.range != Range::truth)
    return set_truth(at, x, above_zero(at, squared(at, x.value)));
  const ElementType* integers = find_element_type(at.integer_type(0));
  const bool discards = integers != nullptr && x.range != Range::truth &&
                        !is_floating_type(to->number) && !keeps_numbers(*integers, *to);
  at.support(!discards, "casts " + std::string(integers ? integers->name : "") + " to " +
                            std::string(to->name) +
                            ", which discards bits, for which there is no primitive");
  at.set(0, x);
}

void lower_not(Lowering& at) {
  at.only({});
  const Moved x = truths(at, 0);
  set_truth(at, x, scaled(at, x.value, -1, 1));
}

/// For two operands that were computed alike.
template <bool kIsAnd>
void lower_logic(Lowering& at) {
  at.only({});
  at.support(at.is_computed(0) && at.is_computed(1),
             "combines truths and a constant, expected what is computed");
  const Moved a = truths(at, 0), b = truths(at, 1);
  at.support(at.view(a) == at.view(b),
             "combines truths of different axes: no primitive repeats what is computed");
  const Value other = at.reshaped(b.value, at.shape(a.value));
  set_truth(at, a,
            kIsAnd ? combined(at, BinaryFunction::multiply, a.value, other)
                   : above_zero(at, combined(at, BinaryFunction::add, a.value, other)));
}

/// The constant that whole numbers are compared with, itself one.
double compared_with(Lowering& at, const Moved& x, size_t input) {
  const double number = at.uniform(input, x);
  at.support(x.range >= Range::whole && std::trunc(number) == number,
             "compares what are not known to be whole numbers, for which there is no primitive");
  const Dtype dtype = at.dtype(x.value);
  const double most = most_whole(dtype) - 1;  // one more is computed with
  at.support(std::fabs(number) <= most, "compares whole numbers in " +
                                            std::string(dtype_name(dtype)) + " with " +
                                            text(number) + ", expected at most " + text(most));
  return number;
}

/// Whole numbers x against a number n: whether sign * (x - n) is at least `least`.
void compare(Lowering& at, double sign, double least) {
  at.only({});
  const size_t data = at.is_computed(0) ? 0 : 1;
  at.support(!at.is_computed(1 - data),
             "compares two activations, for which there is no primitive");
  if (data == 1) sign = -sign;
  const Moved x = at.elements(data);
  const double number = compared_with(at, x, 1 - data);
  set_truth(at, x, above_zero(at, scaled(at, x.value, sign, 1 - least - sign * number)));
}
void lower_greater(Lowering& at) {
  compare(at, 1, 1);
}
void lower_greater_or_equal(Lowering& at) {
  compare(at, 1, 0);
}
void lower_less(Lowering& at) {
  compare(at, -1, 1);
}
void lower_less_or_equal(Lowering& at) {
  compare(at, -1, 0);
}

/// 1 - min((x - n)^2, 1)
void lower_equal(Lowering& at) {
  at.only({});
  const size_t data = at.is_computed(0) ? 0 : 1;
  at.support(!at.is_computed(1 - data),
             "compares two activations, for which there is no primitive");
  const Moved x = at.elements(data);
  const double number = compared_with(at, x, 1 - data);
  const Value differs = above_zero(at, squared(at, scaled(at, x.value, 1, -number)));
  set_truth(at, x, scaled(at, differs, -1, 1));
}

/// Replaces infinities by the largest finite numbers, by which Booleans can be multiplied.
double finite(Lowering& at, double number, Dtype dtype) {
  at.support(!std::isnan(number), "chooses NaN, by which no truth can be multiplied");
  return std::clamp(number, -most_finite(dtype), most_finite(dtype));
}

/// A number where a condition holds, elsewhere another or a computed, finite value.
void lower_where(Lowering& at) {
  at.only({});
  at.require(at.num_inputs() == 3, "has " + counted(at.num_inputs(), "input") + ", expected 3");
  if (lower_scores_where(at)) return;
  at.support(at.is_computed(0), "chooses by a constant, for which there is no primitive");
  if (!at.is_computed(1) && !at.is_computed(2)) {
    const Moved condition = at.elements(0);
    at.set(0, choose(at, at.uniform(1, condition), at.uniform(2, condition)));
    return;
  }
  const size_t data = at.is_computed(1) ? 1 : 2;
  at.support(!at.is_computed(3 - data),
             "chooses between activations, for which there is no primitive");
  const Moved condition = truths(at, 0), x = at.elements(data);
  at.support(at.view(condition) == at.view(x) && x.range >= Range::finite &&
                 at.dtype(condition.value) == at.dtype(x.value),
             "chooses among numbers that are not known to be finite or of other axes or another "
             "type than what it chooses by");
  const double number = finite(at, at.uniform(3 - data, x), at.dtype(x.value));
  const double sign = data == 1 ? 1 : -1, start = data == 1 ? 0 : 1;
  const Value is_kept = scaled(at, condition.value, sign, start);
  const Value kept =
      combined(at, BinaryFunction::multiply, at.reshaped(x.value, at.shape(is_kept)), is_kept);
  const Value filled = scaled(at, condition.value, -sign * number, (1 - start) * number);
  at.set_like(condition, combined(at, BinaryFunction::add, kept, filled));
  at.claim(Range::finite);
}

}  // namespace

Moved choose(Lowering& at, double if_true, double if_false) {
  Moved x = truths(at, 0);
  const Dtype dtype = at.dtype(x.value);
  const double high = finite(at, if_true, dtype), low = finite(at, if_false, dtype);
  // Each number by itself: their difference would round away the smaller one.
  Value y = scaled(at, x.value, -low, low);
  if (low == 0)
    y = at.multiplied(x.value, high);
  else if (high != 0)
    y = combined(at, BinaryFunction::add, at.multiplied(x.value, high), y);
  x.value = y;
  x.range = Range::finite;
  return x;
}

void add_mask_operators(std::map<std::string_view, Lower>& table) {
  table["Cast"] = lower_cast;
  table["Not"] = lower_not;
  table["And"] = lower_logic<true>;
  table["Or"] = lower_logic<false>;
  table["Equal"] = lower_equal;
  table["Greater"] = lower_greater;
  table["GreaterOrEqual"] = lower_greater_or_equal;
  table["Less"] = lower_less;
  table["LessOrEqual"] = lower_less_or_equal;
  table["Where"] = lower_where;
}

}  // namespace wide::onnx
