// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Activations as operators read them: in place, or with axes that need not be moved as long as
// elements or rows are independent.
#include <algorithm>

#include "host/core/check.hpp"
#include "host/import/messages.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

/// A value with an axis that is cut: [B, before, extent, behind], without those of 1.
Shape cut_shape(const View::Cut& cut) {
  std::vector<int64_t> extents{kBatch};
  if (cut.before != 1) extents.push_back(cut.before);
  extents.push_back(cut.extent);
  if (cut.behind != 1) extents.push_back(cut.behind);
  return Shape(extents);
}
int place_of(const View::Cut& cut) {
  return cut.before != 1 ? 2 : 1;
}

}  // namespace

View Lowering::view(const Moved& moved) const {
  return moved.view ? *moved.view : View::of(shape(moved.value));
}

Moved Lowering::moved(size_t input) {
  support(is_computed(input), "reads the constant " + shown(input) + " as input " +
                                  std::to_string(input) +
                                  ", expected what depends on the graph's inputs");
  const Term& found = term(node_->inputs[input]);
  if (found.scores != nullptr) throw NoAttention{found.scores->product};
  return found.activation;
}

const Scores* Lowering::scores(size_t input) {
  return is_computed(input) ? term(node_->inputs[input]).scores.get() : nullptr;
}

Value Lowering::repeated(Value value, const View& view) {
  View::Axis parts, once;
  std::vector<int64_t> to{kBatch};
  const Numbers extents = view.extents();
  for (int i = 1; i < view.rank(); ++i) {
    for (const View::Part& part : view.axis(i)) {
      if (part.extent == kBatch) return {};
      if (part.step != 0) once.push_back(part);
      const bool repeats_on = part.step == 0 && !parts.empty() && parts.back().step == 0;
      if (repeats_on)
        parts.back().extent *= part.extent;
      else
        parts.push_back(part);
    }
    to.push_back(to_integer(extents, static_cast<size_t>(i)));
  }
  value = laid_out(value, View::of({view.axis(0), once}));
  if (value.is_absent() || to.size() >= kMaxRank) return {};
  int64_t before = 1, behind = view.elements();
  for (const auto& [extent, step] : parts) {
    if (step == 0)
      value = append(UpsampleOp{.factor = {extent, 1}},
                     {{"x", reshaped(value, {kBatch, before, 1, behind})}});
    else
      behind /= extent;
    before *= extent;
  }
  return reshaped(value, Shape(to));
}

Value Lowering::laid_out(Value value, const View& view) {
  if (const std::optional<Shape> to = view.in_place()) return reshaped(value, *to);
  if (view != view.once()) return repeated(value, view);
  const std::optional<View::Copies> copies = view.copies();
  if (!copies) return {};
  for (const View::Copy& copy : copies->steps)
    value = append(TransposeOp{copy.order}, {{"x", reshaped(value, copy.from)}});
  return reshaped(value, copies->to);
}

Value Lowering::settle(Term& term, const std::string& what) {
  Moved& own = term.activation;
  if (term.scores != nullptr) throw NoAttention{term.scores->product};
  if (own.view) {
    const Value value = laid_out(own.value, *own.view);
    if (value.is_absent())
      throw_unsupported(what + " has its batch elsewhere than in front, or has more axes than 5");
    own.value = value;
    own.view.reset();
  }
  own.value = multiplied(own.value, std::exchange(own.factor, 1.0));
  return own.value;
}

Value Lowering::x(size_t input) {
  (void)moved(input);  // refuses what is not an activation
  return settle(terms_[node_->inputs[input]], "onnx: " + file_.where + ": node " +
                                                  in_quotes(node_->name) + " (" + node_->op +
                                                  ") reads " + shown(input) + ", which");
}

Value Lowering::multiplied(Value value, double factor) {
  if (factor == 1) return value;
  if (shape(value) == Shape{kBatch})  // one number per row
    return reshaped(multiplied(reshaped(value, {kBatch, 1}), factor), {kBatch});
  return append(BinaryOp{BinaryFunction::multiply},
                {{"x", value}, {"other", constant(factor, dtype(value))}});
}

std::pair<Value, Value> Lowering::broadcast(Value x, Value other) {
  const Shape from = shape(x), to = shape(other);
  bool fits = from.rank() == to.rank();
  std::vector<long double> wanted;
  for (int axis = 0; fits && axis < from.rank(); ++axis) {
    fits = from[axis] == to[axis] || (axis > 0 && (from[axis] == 1 || to[axis] == 1));
    wanted.push_back(axis == 0 ? batch_number()
                               : static_cast<long double>(std::max(from[axis], to[axis])));
  }
  support(fits, "combines " + to_string(from) + " and " + to_string(to) +
                    ", expected as many axes, the same or 1 after the batch");
  const auto whole = [&](Value value) {
    const Numbers all{{std::ssize(wanted)}, kInt64, wanted};
    return laid_out(value, View::of(shape(value)).repeated(all, batch_));
  };
  return {whole(x), whole(other)};
}

Moved Lowering::elements(size_t input) {
  const Moved own = moved(input);
  const Range range = own.factor == 1 ? own.range : std::min(own.range, Range::finite);
  if (!own.view || own.view->in_place()) return {x(input), {}, 1, range};
  return {multiplied(own.value, own.factor), own.view, 1, range};
}

Moved Lowering::batch_first(const Moved& own) {
  const View seen = view(own);
  std::vector<View::Axis> axes(static_cast<size_t>(seen.rank()));
  View::Axis front, lead;
  int64_t step = 1;
  for (int i = seen.rank(); i-- > 0;) {
    const View::Axis& parts = seen.axis(i);
    for (size_t k = parts.size(); k-- > 0;) {
      const bool is_batch = parts[k].extent == kBatch;
      View::Axis& axis = axes[static_cast<size_t>(i)];
      axis.insert(axis.begin(), {parts[k].extent, is_batch ? 0 : step});
      if (is_batch) {
        front.push_back(parts[k]);
        continue;
      }
      step *= parts[k].extent;
      if (i + 1 < seen.rank()) lead.insert(lead.begin(), parts[k]);
    }
  }
  if (front.size() != 1 || seen.rank() < 2) return {};
  const Value value = laid_out(own.value, View::of({front, lead, seen.axis(seen.rank() - 1)}));
  return value.is_absent() ? Moved{} : Moved{value, View::of(axes), own.factor, own.range};
}

Moved Lowering::rows(size_t input) {
  Moved own = elements(input);
  if (!own.view) return own;
  const auto last_axis = [&] {
    const int rank = own.view->rank();
    const auto cut = rank == 0 ? std::nullopt : own.view->cut(rank - 1);
    return cut && cut->behind == 1 ? cut : std::nullopt;
  };
  auto cut = last_axis();
  if (!cut) {
    if (own.view->in_place() || own.view->copies()) return {x(input)};
    own = batch_first(own);
    cut = own.view ? last_axis() : std::nullopt;
    if (!cut) return {x(input)};  // which says what is in the way
  }
  own.value = reshaped(own.value, cut->before == 1 ? Shape{kBatch, cut->extent}
                                                   : Shape{kBatch, cut->before, cut->extent});
  return own;
}

Moved Lowering::part(const Moved& of, int axis, int64_t first, int64_t count) {
  const View own = view(of);
  if (!of.view) {
    if (first == 0 && count == shape(of.value)[axis]) return of;
    return {append(SliceOp{axis, first, count}, {{"x", of.value}}), {}, of.factor, of.range};
  }
  if (first == 0 &&
      static_cast<long double>(count) == own.extents().values[static_cast<size_t>(axis)])
    return of;
  const auto cut = own.cut(axis);
  if (!cut) {
    const Value value = laid_out(of.value, own);
    support(!value.is_absent(), "takes a part of an axis that was moved together with the batch");
    return part({value, {}, of.factor, of.range}, axis, first, count);
  }
  const SliceOp slice{place_of(*cut), first, count};
  const Value y = append(slice, {{"x", reshaped(of.value, cut_shape(*cut))}});
  return {y, own.resized(axis, count), of.factor, of.range};
}

std::optional<Moved> Lowering::joined(const std::vector<Moved>& parts, int axis) {
  // Joined before the batch, like layers' last states: after the batch each keeps its layout.
  const auto own_view = [&](const Moved& part) {
    const View own = view(part);
    return axis == 0 && own.axis(0).empty() ? own.opened(0) : own;
  };
  const View first = own_view(parts[0]);
  const auto lying = first.cut(axis);
  if (!lying) return {};
  std::vector<Operand> operands;
  int64_t total = 0;
  for (const Moved& part : parts) {
    const View own = own_view(part);
    const auto cut = own.rank() == first.rank() ? own.cut(axis) : std::nullopt;
    const bool fits = cut && cut->before == lying->before && cut->behind == lying->behind &&
                      own.resized(axis, lying->extent) == first.resized(axis, lying->extent) &&
                      dtype(part.value) == dtype(parts[0].value);
    if (!fits) return {};
    total += cut->extent;
    operands.push_back(
        {"part" + std::to_string(operands.size()), reshaped(part.value, cut_shape(*cut))});
  }
  return Moved{append(ConcatOp{place_of(*lying)}, operands), first.resized(axis, total)};
}

void Lowering::set(size_t output, Moved moved) {
  if (output < node_->outputs.size() && !node_->outputs[output].empty())
    terms_[node_->outputs[output]] = {.activation = std::move(moved)};
}

void Lowering::set_like(const Moved& like, Value y) {
  if (!like.view) return set(y);
  const bool is_same = shape(y) == shape(like.value);
  set(0, {y, is_same ? *like.view : like.view->resized(like.view->rank() - 1, shape(y).back())});
}

void Lowering::set_scores(Scores scores) {
  Term& term = terms_[node_->outputs.at(0)];
  term = {.activation = scores.q};
  term.scores = std::make_shared<const Scores>(std::move(scores));
}

}  // namespace wide::onnx
