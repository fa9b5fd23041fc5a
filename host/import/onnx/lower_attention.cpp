// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention as exporters spell it out: q k^T, scaled, capped and masked, softmax, times v. The
// heads are axes that views track, so that none of the transposes around it is computed.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"

namespace wide::onnx {

namespace {

struct Heads {
  int64_t heads = 1, positions = 1, features = 1;
  friend bool operator==(const Heads&, const Heads&) = default;
};

/// The extent of an axis of one part, which must have this step, or of none.
std::optional<int64_t> extent_of(const View::Axis& axis, int64_t step) {
  if (axis.empty()) return 1;
  if (axis.size() != 1 || axis[0].step != step) return std::nullopt;
  return axis[0].extent;
}

/// The heads of [batch, heads, positions, features] stored as [batch, positions, heads * features].
std::optional<Heads> heads_of(const View& view) {
  View::Axis lead;
  for (int i = 0; i + 2 < view.rank(); ++i)
    for (const View::Part& part : view.axis(i)) lead.push_back(part);
  if (lead.empty() || lead[0].extent != kBatch) return std::nullopt;
  lead.erase(lead.begin());
  while (lead.size() > 1 && lead[0].step == lead[1].extent * lead[1].step) {
    lead[1].extent *= lead[0].extent;
    lead.erase(lead.begin());
  }
  Heads own;
  const auto features = extent_of(view.axis(view.rank() - 1), 1);
  if (!features) return std::nullopt;
  own.features = *features;
  const auto heads = extent_of(lead, own.features);
  if (!heads) return std::nullopt;
  own.heads = *heads;
  const auto positions = extent_of(view.axis(view.rank() - 2), own.heads * own.features);
  if (!positions) return std::nullopt;
  own.positions = *positions;
  return own;
}

/// [batch, .., positions, features] such that heads_of() finds its heads: unchanged, or copied.
/// None where a copy is not enough.
std::optional<Moved> with_heads(Lowering& at, const Moved& operand) {
  const View view = at.view(operand);
  const int last = view.rank() - 1;
  if (last < 2 || view.rank() >= kMaxRank) return {};
  if (heads_of(view)) return operand;
  std::vector<int64_t> order{0, last - 1}, back{0};
  for (int i = 1; i + 1 < last; ++i) {
    order.push_back(i);
    back.push_back(i + 1);
  }
  order.push_back(last);
  back.insert(back.end(), {1, last});
  const Value copied = at.laid_out(operand.value, view.transposed(Dims(order)));
  if (copied.is_absent()) return {};
  const View laid = View::of(at.shape(copied));
  return Moved{copied, laid.transposed(Dims(back)), operand.factor};
}

/// The heads of an operand from with_heads().
Heads own_heads(Lowering& at, const Moved& operand) {
  return *heads_of(at.view(operand));
}

Value flattened(Lowering& at, const Moved& operand, const Heads& heads) {
  return at.reshaped(operand.value, {kBatch, heads.positions, heads.heads * heads.features});
}

/// The extent of an axis as it is seen, in a file whose batch has a number as that number.
long double seen_extent(Lowering& at, const View& view, int axis) {
  const Numbers all = view.extents();
  const auto place = static_cast<size_t>(axis);
  if (!is_batch(all, place) || at.batch() < 1) return all.values[place];
  return static_cast<long double>(batch_multiple(all, place)) * at.batch();
}

/// How many of the queries' heads read each of an operand's where its leading axes are broadcast to
/// theirs: the first ones are equal, any others 1. None where that is not so, as the heads that are
/// multiplied would not be those at the same places.
std::optional<int64_t> broadcast_repeats(Lowering& at, const View& queries, const View& operand) {
  const int lead = queries.rank() - 2;
  if (operand.rank() != queries.rank()) return {};
  int64_t repeats = 1;
  for (int i = 0; i < lead; ++i) {
    const long double wanted = seen_extent(at, queries, i), got = seen_extent(at, operand, i);
    if (wanted == got && (repeats == 1 || got == 1)) continue;
    if (got != 1 || is_batch(wanted)) return {};
    repeats *= static_cast<int64_t>(wanted);
  }
  return repeats;
}

/// The same with the repetition of heads, each in turn, which is removed from the operand.
std::optional<int64_t> repeats_of(Lowering& at, const View& queries, Moved& operand) {
  const View view = at.view(operand), once = view.once();
  const auto repeats = broadcast_repeats(at, queries, view);
  if (!repeats || view == once) return repeats;
  View::Axis lead;
  for (int i = 0; i + 2 < view.rank(); ++i)
    lead.insert(lead.end(), view.axis(i).begin(), view.axis(i).end());
  const bool is_last = !lead.empty() && lead.back().extent != kBatch && lead.back().step == 0;
  const int64_t own = is_last ? lead.back().extent : 1;
  const long double seen = static_cast<long double>(view.elements() * own);
  long double all = 1;
  const Numbers extents = view.extents();
  for (size_t i = 0; i < extents.values.size(); ++i)
    all *= is_batch(extents, i) ? static_cast<long double>(batch_multiple(extents, i))
                                : extents.values[i];
  if (!is_last || all != seen) return {};
  operand.view = once;
  return *repeats * own;
}

/// What attention cannot do is left to the file's own nodes.
void require(const Scores& scores, bool fits) {
  if (!fits) throw NoAttention{scores.product};
}

/// `own` or 1.
int64_t one_or(const Scores& scores, int64_t extent, int64_t own) {
  require(scores, extent == 1 || extent == own);
  return extent;
}

/// What is combined with scores has no axis that is neither 1 nor theirs: the result would have
/// more heads, or more samples.
void require_broadcast(Lowering& at, const Scores& scores, int rank,
                       const std::function<long double(int)>& extent) {
  const View q = at.view(scores.q);
  const int64_t keys = own_heads(at, scores.k).positions;
  const int missing = q.rank() - rank;
  require(scores, missing >= 0);
  for (int i = 0; i < rank; ++i) {
    const bool is_last = i + 1 == rank;
    const long double own =
        is_last ? static_cast<long double>(keys) : seen_extent(at, q, i + missing);
    require(scores, extent(i) == 1 || extent(i) == own);
  }
}
void require_broadcast(Lowering& at, const Scores& scores, const Shape& shape) {
  require_broadcast(at, scores, shape.rank(),
                    [&](int i) { return static_cast<long double>(shape[i]); });
}

/// A computed bias as an operand of flash_attention, [batch, heads or 1, queries or 1, keys]:
/// without repetitions.
Moved computed_bias(Lowering& at, const Scores& scores, const Moved& from) {
  const View seen = at.view(from);
  require_broadcast(at, scores, seen.rank(), [&](int i) { return seen_extent(at, seen, i); });
  const Heads q = own_heads(at, scores.q), k = own_heads(at, scores.k);
  const View once = seen.once();
  const int rank = seen.rank();
  const auto extent_at = [&](const View& of, int axis) {
    return of.extents().values[static_cast<size_t>(axis)];
  };
  require(scores, rank == at.view(scores.q).rank() && !once.axis(0).empty() &&
                      once.axis(0)[0].extent == kBatch &&
                      extent_at(once, rank - 1) == static_cast<long double>(k.positions));
  int64_t lead = 1;
  for (int i = 0; i + 2 < rank; ++i) {
    for (const View::Part& part : once.axis(i)) lead *= part.extent == kBatch ? 1 : part.extent;
  }
  const int64_t heads = one_or(scores, lead, q.heads),
                rows = one_or(scores, to_integer(once.extents(), static_cast<size_t>(rank - 2)),
                              q.positions);
  const Numbers wanted{{4},
                       kInt64,
                       {batch_number(), static_cast<long double>(heads),
                        static_cast<long double>(rows), static_cast<long double>(k.positions)}};
  const Value value = at.laid_out(from.value, once.reshaped(wanted, false, at.batch()));
  require(scores, !value.is_absent());
  return {value};
}

/// A causal mask becomes an attribute, which nothing weakens: so nothing in the file may, either. A
/// thousand below others, a score has no share in any softmax.
void require_hidden(const Scores& scores) {
  require(scores, !scores.is_causal || scores.hidden + scores.added <= -1e3);
}

/// Scales what was added to scores; a causal mask must stay one.
void scale_added(Lowering& at, Scores& scores, double factor) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  if (!scores.bias.value.is_absent() &&
      !holds(at.dtype(scores.bias.value), scores.bias.factor * factor))
    scores.bias = {at.multiplied(scores.bias.value, scores.bias.factor)};
  scores.bias.factor *= factor;
  if (scores.is_causal) scores.hidden *= factor;
  // Below 0 what was lowest is highest: too high where there is such a thing.
  scores.added = factor > 0 ? scores.added * factor : scores.bias.value.is_absent() ? 0 : kInfinite;
  require_hidden(scores);
}

void add_bias(Lowering& at, Scores& scores, Moved bias) {
  require(scores, !scores.is_normalised && at.dtype(bias.value) == at.dtype(scores.q.value));
  if (!scores.bias.value.is_absent()) {
    bias.value = at.multiplied(bias.value, bias.factor);
    const Value before = at.multiplied(scores.bias.value, scores.bias.factor);
    require(scores, at.shape(bias.value) == at.shape(before) && at.shape(before)[0] == kBatch);
    bias = {at.append(BinaryOp{}, {{"x", before}, {"other", bias.value}})};
  }
  scores.bias = bias;
}

/// The scale and the soft cap of c tanh(a q k^T) = cap tanh(scale q k^T / cap).
std::pair<float, float> scale_and_cap(const Scores& scores) {
  const double outside = scores.scale * scores.q.factor * scores.k.factor;
  if (!scores.scale_inside) return {static_cast<float>(outside), 0.0f};
  const double cap = std::abs(outside);  // tanh is odd: the scale has the sign
  require(scores, cap > 0 && cap <= 65536);
  return {static_cast<float>(*scores.scale_inside * outside), static_cast<float>(cap)};
}

enum class Mask { none, causal, other };

/// The mask of a constant on scores [.., rows, columns], by `is_hidden` of its elements.
Mask mask_of(const Shape& shape, const Heads& q, const Heads& k,
             const std::function<bool(int64_t)>& is_hidden,
             const std::function<bool(int64_t)>& is_kept) {
  const int rank = shape.rank();
  bool is_none = true, is_causal = rank >= 2 && q.positions == k.positions &&
                                   shape[rank - 2] == q.positions && shape[rank - 1] == k.positions;
  is_causal = is_causal && num_elements(shape) == q.positions * k.positions;
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    const bool is_behind = is_causal && i % k.positions > i / k.positions;
    is_none = is_none && is_kept(i);
    is_causal = is_causal && (is_behind ? is_hidden(i) : is_kept(i));
  }
  return is_none ? Mask::none : is_causal ? Mask::causal : Mask::other;
}

/// Has no share in any softmax: numbers that exporters use for minus infinity, some rounded.
bool is_minus_infinity(double number) {
  return number <= -9e3;
}

/// Notes what a constant adds: to later keys where it is a causal mask, else anywhere.
void note_constant(Scores& scores, Mask mask, const Shape& shape, int64_t keys,
                   const std::function<double(int64_t)>& number) {
  double most = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    if (mask != Mask::causal || i % keys > i / keys) most = std::max(most, number(i));
  }
  if (mask == Mask::causal) {
    scores.hidden = std::max(scores.hidden, most);
    scores.is_causal = true;
  } else {
    scores.added += most;
  }
  require_hidden(scores);
}

/// A constant added to scores: nothing, a causal mask, or [1, heads or 1, queries or 1, keys].
void add_constant(Lowering& at, Scores& scores, const Shape& shape,
                  const std::function<double(int64_t)>& number) {
  const Heads q = own_heads(at, scores.q), k = own_heads(at, scores.k);
  require_broadcast(at, scores, shape);
  at.support(num_elements(shape) <= int64_t{1} << 26,
             "adds " + to_string(shape) + " to attention's scores, which is too large a constant");
  const Mask mask = mask_of(
      shape, q, k, [&](int64_t i) { return is_minus_infinity(number(i)); },
      [&](int64_t i) { return number(i) == 0; });
  require(scores, !scores.is_normalised || mask == Mask::none);
  note_constant(scores, mask, shape, k.positions, number);
  if (mask != Mask::other) return;
  const int rank = shape.rank(), own_rank = at.view(scores.q).rank();
  const auto extent = [&](int from_last) {
    return rank >= from_last ? shape[rank - from_last] : int64_t{1};
  };
  const int64_t rows = one_or(scores, extent(2), q.positions),
                heads = own_rank == 4 ? one_or(scores, extent(3), q.heads) : 1;
  require(scores, extent(1) == k.positions && num_elements(shape) == heads * rows * k.positions);
  add_bias(at, scores,
           {at.constants({heads, rows, k.positions}, at.dtype(scores.q.value), number)});
}

/// Added to or multiplied by the other input.
void combine(Lowering& at, Scores& scores, size_t other) {
  const std::string& op = at.node().op;
  if (!at.is_computed(other)) at.support_rank(other, at.view(scores.q).rank());
  if (op == "Add" && at.is_computed(other)) {
    add_bias(at, scores, computed_bias(at, scores, at.elements(other)));
  } else if (op == "Add") {
    add_constant(at, scores, at.constant_shape(other), at.reader(other));
  } else {
    require(scores, (op == "Mul" || (op == "Div" && other == 1)) && !at.is_computed(other) &&
                        !scores.is_normalised);
    const double number = at.scalar(other);
    scores.scale = op == "Div" ? scores.scale / number : scores.scale * number;
    require(scores, std::isfinite(scores.scale));
    scale_added(at, scores, op == "Div" ? 1 / number : number);
  }
}

/// Whether each row of a condition on scores [.., keys] keeps one.
bool keeps_keys(const Shape& shape, const std::function<bool(int64_t)>& is_kept) {
  const int64_t keys = shape.rank() == 0 ? 1 : shape.back();
  bool keeps = true;
  for (int64_t row = 0; keeps && row < num_elements(shape); row += keys) {
    keeps = false;
    for (int64_t i = row; !keeps && i < row + keys; ++i) keeps = is_kept(i);
  }
  return keeps;
}

/// Scores where a condition holds, elsewhere a number that hides them.
void hide(Lowering& at, Scores& scores, size_t input) {
  const size_t other = 3 - input;
  require(scores, !at.is_computed(other));
  require_broadcast(at, scores, at.constant_shape(other));
  const double hidden = at.uniform(other);
  require(scores, is_minus_infinity(hidden));
  if (at.is_computed(0)) {
    const Moved added = choose(at, input == 1 ? 0 : hidden, input == 1 ? hidden : 0);
    return add_bias(at, scores, computed_bias(at, scores, added));
  }
  const bool is_lowest = hidden <= -most_finite(at.dtype(scores.q.value));
  const double number = is_lowest ? -std::numeric_limits<double>::infinity() : hidden;
  const auto condition = at.reader(0);
  const auto is_kept = [=](int64_t i) { return (condition(i) != 0) == (input == 1); };
  // Where all of a query's keys are hidden alike, a finite number hides none.
  require(scores, is_lowest || keeps_keys(at.constant_shape(0), is_kept));
  add_constant(at, scores, at.constant_shape(0),
               [=](int64_t i) { return is_kept(i) ? 0 : number; });
}

/// Changes the scores that a node reads, which are then its result; false where it reads none.
bool with_scores(Lowering& at, size_t input, const std::function<void(Scores&)>& change) {
  if (at.scores(input) == nullptr) return false;
  Scores scores = *at.scores(input);
  try {
    change(scores);
  } catch (const Error& error) {
    require(scores, error.code() != ErrorCode::unsupported);
    throw;
  }
  at.set_scores(std::move(scores));
  return true;
}

}  // namespace

std::optional<Scores> begin_attention(Lowering& at, const Moved& left, const Moved& right) {
  Moved keys = right;
  const auto repeats = repeats_of(at, at.view(left), keys);
  if (!repeats) return {};
  const auto q = with_heads(at, left), k = with_heads(at, keys);
  if (!q || !k) return {};
  const Heads own = own_heads(at, *q), others = own_heads(at, *k);
  const bool fits = own.features == others.features && own.heads == others.heads * *repeats;
  if (!fits) return {};
  return Scores{.product = &at.node(), .q = *q, .k = *k, .repeats = *repeats};
}

Moved finish_attention(Lowering& at, const Scores& scores, const Moved& v) {
  Moved values = v;
  const auto repeats = repeats_of(at, at.view(scores.q), values);
  const auto own = repeats ? with_heads(at, values) : std::nullopt;
  const Heads q = own_heads(at, scores.q), k = own_heads(at, scores.k);
  require(scores,
          scores.is_normalised && own && own_heads(at, *own) == k && *repeats == scores.repeats);
  const auto [scale, soft_cap] = scale_and_cap(scores);
  std::vector<Operand> operands{{"q", flattened(at, scores.q, q)},
                                {"k", flattened(at, scores.k, k)},
                                {"v", at.multiplied(flattened(at, *own, k), own->factor)}};
  if (!scores.bias.value.is_absent())
    operands.push_back({"bias", at.multiplied(scores.bias.value, scores.bias.factor)});
  const Value y = at.append(FlashAttentionOp{.heads = q.heads,
                                             .kv_heads = *repeats == 1 ? 0 : k.heads,
                                             .is_causal = scores.is_causal,
                                             .scale = scale,
                                             .soft_cap = soft_cap},
                            operands);
  return {y, at.view(scores.q)};
}

bool lower_scores_arithmetic(Lowering& at) {
  const size_t input = at.scores(0) != nullptr ? 0 : 1;
  return with_scores(at, input, [&](Scores& scores) { combine(at, scores, 1 - input); });
}

bool lower_scores_softmax(Lowering& at) {
  return with_scores(at, 0, [&](Scores& scores) {
    const int64_t axis = at.integer("axis", at.opset() < 13 ? 1 : -1);
    require(scores, !scores.is_normalised && (axis == -1 || axis == at.view(scores.q).rank() - 1));
    scores.is_normalised = true;
  });
}

/// Through a node that computes nothing.
bool lower_scores_unchanged(Lowering& at) {
  return with_scores(at, 0, [](Scores&) {});
}

/// Scores that are capped, as c tanh(s / c), before anything is added to them.
bool lower_scores_tanh(Lowering& at) {
  return with_scores(at, 0, [](Scores& scores) {
    require(scores, !scores.is_normalised && !scores.is_causal && !scores.scale_inside &&
                        scores.bias.value.is_absent());
    scores.scale_inside = scores.scale * scores.q.factor * scores.k.factor;
    scores.scale = scores.q.factor = scores.k.factor = 1;
  });
}

bool lower_scores_where(Lowering& at) {
  const size_t input = at.scores(1) != nullptr ? 1 : 2;
  return with_scores(at, input, [&](Scores& scores) { hide(at, scores, input); });
}

}  // namespace wide::onnx
