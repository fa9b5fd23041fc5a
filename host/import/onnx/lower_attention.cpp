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
std::optional<Heads> heads_of(const View& view, int positions_axis, int features_axis) {
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
  const auto features = extent_of(view.axis(features_axis), 1);
  if (!features) return std::nullopt;
  own.features = *features;
  const auto heads = extent_of(lead, own.features);
  if (!heads) return std::nullopt;
  own.heads = *heads;
  const auto positions = extent_of(view.axis(positions_axis), own.heads * own.features);
  if (!positions) return std::nullopt;
  own.positions = *positions;
  return own;
}

/// [batch, .., positions, features], or with the last two transposed, such that heads_of() finds
/// its heads: unchanged, or copied.
Moved with_heads(Lowering& at, const Moved& operand, bool is_transposed, const char* what) {
  const View view = at.view(operand);
  const int last = view.rank() - 1;
  at.support(last >= 2, "multiplies two activations of " + counted(view.rank(), "axis", "axes") +
                            ", which no primitive computes outside of attention");
  const int positions = is_transposed ? last : last - 1, features = is_transposed ? last - 1 : last;
  if (heads_of(view, positions, features)) return operand;
  std::vector<int64_t> order{0, positions}, back{0};
  for (int i = 1; i + 1 < last; ++i) {
    order.push_back(i);
    back.push_back(i + 1);
  }
  order.push_back(features);
  for (const int64_t place :
       is_transposed ? std::vector<int64_t>{last, 1} : std::vector<int64_t>{1, last})
    back.push_back(place);
  const Value copied =
      order.size() > kMaxRank ? Value{} : at.laid_out(operand.value, view.transposed(Dims(order)));
  at.support(!copied.is_absent(), std::string("multiplies two activations of which ") + what +
                                      " is not [batch, heads, positions, features]: attention is "
                                      "the only product of activations");
  const View laid = View::of(at.shape(copied));
  return {copied, laid.transposed(Dims(back)), operand.factor};
}

/// The heads of an operand from with_heads().
Heads own_heads(Lowering& at, const Moved& operand, bool is_transposed) {
  const View view = at.view(operand);
  const int last = view.rank() - 1;
  return *heads_of(view, is_transposed ? last : last - 1, is_transposed ? last - 1 : last);
}

Value flattened(Lowering& at, const Moved& operand, const Heads& heads) {
  return at.reshaped(operand.value, {kBatch, heads.positions, heads.heads * heads.features});
}

/// Removes the repetition of heads from the operand; returns how many of the queries' heads in turn
/// read each.
int64_t take_repeats(Lowering& at, Moved& operand) {
  const View view = at.view(operand), once = view.once();
  if (view == once) return 1;
  View::Axis lead;
  for (int i = 0; i + 2 < view.rank(); ++i)
    lead.insert(lead.end(), view.axis(i).begin(), view.axis(i).end());
  const bool is_last = !lead.empty() && lead.back().extent != kBatch && lead.back().step == 0;
  const int64_t repeats = is_last ? lead.back().extent : 1;
  const long double seen = static_cast<long double>(view.elements() * repeats);
  long double all = 1;
  const Numbers extents = view.extents();
  for (size_t i = 0; i < extents.values.size(); ++i)
    all *= is_batch(extents, i) ? static_cast<long double>(batch_multiple(extents, i))
                                : extents.values[i];
  at.support(is_last && all == seen,
             "multiplies by what is repeated, expected heads, each repeated in turn");
  operand.view = once;
  return repeats;
}

/// The extent of an axis as it is seen, in a file whose batch has a number as that number.
long double seen_extent(Lowering& at, const View& view, int axis) {
  const Numbers all = view.extents();
  const auto place = static_cast<size_t>(axis);
  if (!is_batch(all, place) || at.batch() < 1) return all.values[place];
  return static_cast<long double>(batch_multiple(all, place)) * at.batch();
}

std::string shown(const View& view) {
  const Numbers all = view.extents();
  std::string list;
  for (size_t i = 0; i < all.values.size(); ++i) {
    const int64_t number = is_batch(all, i) ? batch_multiple(all, i) : to_integer(all, i);
    const std::string own = is_batch(all, i) && number == 1 ? "batch" : std::to_string(number);
    list += (i == 0 ? "" : ", ") + own + (is_batch(all, i) && number != 1 ? " * batch" : "");
  }
  return "[" + list + "]";
}

/// How many of the queries' heads read each of an operand's where its leading axes are broadcast to
/// theirs: the first ones are equal, any others 1. The node is refused where that is not so, as the
/// heads that are multiplied would not be those at the same places.
int64_t broadcast_repeats(Lowering& at, const View& queries, const View& operand) {
  const int lead = queries.rank() - 2;
  bool fits = operand.rank() == queries.rank();
  int64_t repeats = 1;
  for (int i = 0; fits && i < lead; ++i) {
    const long double wanted = seen_extent(at, queries, i), got = seen_extent(at, operand, i);
    if (wanted == got && (repeats == 1 || got == 1)) continue;
    fits = got == 1 && !is_batch(wanted);
    if (fits) repeats *= static_cast<int64_t>(wanted);
  }
  at.support(fits, "broadcasts the leading axes of " + shown(queries) + " and " + shown(operand) +
                       ", expected the same, or the second's last ones 1");
  return repeats;
}

/// `own` or 1, else the node is refused.
int64_t one_or(Lowering& at, int64_t extent, int64_t own) {
  at.support(extent == 1 || extent == own, "adds " + counted(extent, "head") +
                                               " or rows to attention's scores, expected 1 "
                                               "or " +
                                               std::to_string(own));
  return extent;
}

/// Refuses what is combined with scores where it has an axis that is neither 1 nor theirs: the
/// result would have more heads, or more samples.
void require_broadcast(Lowering& at, const Scores& scores, int rank,
                       const std::function<long double(int)>& extent, const std::string& text) {
  const View q = at.view(scores.q);
  const int64_t keys = own_heads(at, scores.k, true).positions;
  const int missing = q.rank() - rank;
  bool fits = missing >= 0;
  for (int i = 0; fits && i < rank; ++i) {
    const bool is_last = i + 1 == rank;
    const long double own =
        is_last ? static_cast<long double>(keys) : seen_extent(at, q, i + missing);
    fits = extent(i) == 1 || extent(i) == own;
  }
  at.support(fits, "combines attention's scores of queries " + shown(q) + " and " +
                       std::to_string(keys) + " keys with " + text +
                       ", expected 1 or their extent along each axis");
}
void require_broadcast(Lowering& at, const Scores& scores, const Shape& shape) {
  require_broadcast(
      at, scores, shape.rank(), [&](int i) { return static_cast<long double>(shape[i]); },
      "the constant " + to_string(shape));
}

/// A computed bias as an operand of flash_attention: without repetitions.
Moved computed_bias(Lowering& at, const Scores& scores, const Moved& from) {
  const View seen = at.view(from);
  require_broadcast(
      at, scores, seen.rank(), [&](int i) { return seen_extent(at, seen, i); }, shown(seen));
  const Heads q = own_heads(at, scores.q, false), k = own_heads(at, scores.k, true);
  const View once = seen.once();
  const int rank = seen.rank();
  const auto extent_at = [&](const View& of, int axis) {
    return of.extents().values[static_cast<size_t>(axis)];
  };
  const bool fits = rank == at.view(scores.q).rank() && !once.axis(0).empty() &&
                    once.axis(0)[0].extent == kBatch &&
                    extent_at(once, rank - 1) == static_cast<long double>(k.positions);
  at.support(fits,
             "adds to attention's scores what is not [batch, heads or 1, queries or 1, keys]");
  int64_t lead = 1;
  for (int i = 0; i + 2 < rank; ++i) {
    for (const View::Part& part : once.axis(i)) lead *= part.extent == kBatch ? 1 : part.extent;
  }
  const int64_t heads = one_or(at, lead, q.heads),
                rows = one_or(at, to_integer(once.extents(), static_cast<size_t>(rank - 2)),
                              q.positions);
  const Numbers wanted{{4},
                       kInt64,
                       {batch_number(), static_cast<long double>(heads),
                        static_cast<long double>(rows), static_cast<long double>(k.positions)}};
  const Value value = at.laid_out(from.value, once.reshaped(wanted, false, at.batch()));
  at.support(!value.is_absent(),
             "adds to attention's scores what has its batch elsewhere than in front");
  return {value};
}

/// A causal mask becomes an attribute, which nothing weakens: so nothing in the file may, either. A
/// thousand below others, a score has no share in any softmax.
void require_hidden(Lowering& at, const Scores& scores) {
  const double most = scores.hidden + scores.added;
  at.support(!scores.is_causal || most <= -1e3,
             "leaves later keys hidden by " + text(most) + ", expected at most -1000");
}

/// Scales what was added to scores; a causal mask must stay one.
void scale_added(Lowering& at, Scores& scores, double factor) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  at.support(!scores.is_causal || factor > 0,
             "scales a causal mask by " + text(factor) + ", expected a number above 0");
  if (!scores.bias.value.is_absent() &&
      !holds(at.dtype(scores.bias.value), scores.bias.factor * factor))
    scores.bias = {at.multiplied(scores.bias.value, scores.bias.factor)};
  scores.bias.factor *= factor;
  if (scores.is_causal) scores.hidden *= factor;
  // Below 0 what was lowest is highest: too high where there is such a thing.
  scores.added = factor > 0 ? scores.added * factor : scores.bias.value.is_absent() ? 0 : kInfinite;
  require_hidden(at, scores);
}

void add_bias(Lowering& at, Scores& scores, Moved bias) {
  at.support(!scores.is_normalised, "adds after the softmax");
  at.support(at.dtype(bias.value) == at.dtype(scores.q.value),
             "adds " + std::string(dtype_name(at.dtype(bias.value))) +
                 " to attention's scores of " + std::string(dtype_name(at.dtype(scores.q.value))));
  if (!scores.bias.value.is_absent()) {
    bias.value = at.multiplied(bias.value, bias.factor);
    const Value before = at.multiplied(scores.bias.value, scores.bias.factor);
    at.support(at.shape(bias.value) == at.shape(before) && at.shape(before)[0] == kBatch,
               "adds " + to_string(at.shape(bias.value)) + " to attention's scores that have " +
                   to_string(at.shape(before)) + " added: no primitive repeats what is computed");
    bias = {at.append(BinaryOp{}, {{"x", before}, {"other", bias.value}})};
  }
  scores.bias = bias;
}

/// The scale and the soft cap of c tanh(a q k^T) = cap tanh(scale q k^T / cap).
std::pair<float, float> scale_and_cap(Lowering& at, const Scores& scores) {
  const double outside = scores.scale * scores.q.factor * scores.k.factor;
  if (!scores.scale_inside) return {static_cast<float>(outside), 0.0f};
  const double cap = std::abs(outside);  // tanh is odd: the scale has the sign
  at.support(cap > 0 && cap <= 65536,
             "caps scores at " + std::to_string(outside) + ", expected a number up to 65536");
  return {static_cast<float>(*scores.scale_inside * outside), static_cast<float>(cap)};
}

/// softmax(scale q k^T + bias) v, the scaled product capped or not
void finish_attention(Lowering& at, const Scores& scores) {
  at.support(scores.is_normalised, "multiplies scores without a softmax");
  Moved values = at.elements(1);
  int64_t repeats = broadcast_repeats(at, at.view(scores.q), at.view(values));
  repeats *= take_repeats(at, values);
  const Moved v = with_heads(at, values, false, "the second");
  const Heads q = own_heads(at, scores.q, false), k = own_heads(at, scores.k, true),
              own = own_heads(at, v, false);
  at.support(own == k && repeats == scores.repeats,
             "multiplies scores by values of other heads, positions or features");
  const auto [scale, soft_cap] = scale_and_cap(at, scores);
  std::vector<Operand> operands{{"q", flattened(at, scores.q, q)},
                                {"k", flattened(at, scores.k, k)},
                                {"v", flattened(at, v, own)}};
  if (!scores.bias.value.is_absent())
    operands.push_back({"bias", at.multiplied(scores.bias.value, scores.bias.factor)});
  const Value y = at.append(FlashAttentionOp{.heads = q.heads,
                                             .kv_heads = repeats == 1 ? 0 : k.heads,
                                             .is_causal = scores.is_causal,
                                             .scale = scale,
                                             .soft_cap = soft_cap},
                            operands);
  at.set(0, {y, at.view(scores.q)});
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
void note_constant(Lowering& at, Scores& scores, Mask mask, const Shape& shape, int64_t keys,
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
  require_hidden(at, scores);
}

/// A constant added to scores: nothing, a causal mask, or other numbers.
void add_constant(Lowering& at, Scores& scores, const Shape& shape,
                  const std::function<double(int64_t)>& number) {
  const Heads q = own_heads(at, scores.q, false), k = own_heads(at, scores.k, true);
  require_broadcast(at, scores, shape);
  at.support(num_elements(shape) <= int64_t{1} << 26,
             "adds " + to_string(shape) + " to attention's scores, which is too large a constant");
  const Mask mask = mask_of(
      shape, q, k, [&](int64_t i) { return is_minus_infinity(number(i)); },
      [&](int64_t i) { return number(i) == 0; });
  at.support(!scores.is_normalised || mask == Mask::none, "adds after the softmax");
  note_constant(at, scores, mask, shape, k.positions, number);
  if (mask != Mask::other) return;
  const int rank = shape.rank(), own_rank = at.view(scores.q).rank();
  const auto extent = [&](int from_last) {
    return rank >= from_last ? shape[rank - from_last] : int64_t{1};
  };
  const int64_t rows = one_or(at, extent(2), q.positions),
                heads = own_rank == 4 ? one_or(at, extent(3), q.heads) : 1;
  at.support(extent(1) == k.positions && num_elements(shape) == heads * rows * k.positions,
             "adds " + to_string(shape) +
                 " to attention's scores, expected [1, heads or 1, queries or 1, keys]");
  add_bias(at, scores,
           {at.constants({heads, rows, k.positions}, at.dtype(scores.q.value), number)});
}

}  // namespace

void lower_products(Lowering& at) {
  if (const Scores* scores = at.scores(0)) return finish_attention(at, *scores);
  Moved keys = at.moved(1);
  int64_t repeats = broadcast_repeats(at, at.view(at.moved(0)), at.view(keys));
  repeats *= take_repeats(at, keys);
  Scores scores{.q = with_heads(at, at.moved(0), false, "the first"),
                .k = with_heads(at, keys, true, "the second, transposed,"),
                .repeats = repeats};
  const Heads q = own_heads(at, scores.q, false), k = own_heads(at, scores.k, true);
  at.require(q.features == k.features, "multiplies " + counted(q.features, "feature") + " by " +
                                           std::to_string(k.features) +
                                           ", expected the same number");
  at.support(q.heads == k.heads * repeats,
             "multiplies " + counted(q.heads, "head") + " by " + std::to_string(k.heads) +
                 " times " + std::to_string(repeats) + ", expected the same number");
  at.set_scores(std::move(scores));
}

bool lower_scores_arithmetic(Lowering& at) {
  const size_t input = at.scores(0) != nullptr ? 0 : 1;
  if (at.scores(input) == nullptr) return false;
  Scores scores = *at.scores(input);
  const size_t other = 1 - input;
  const std::string& op = at.node().op;
  if (!at.is_computed(other)) at.support_rank(other, at.view(scores.q).rank());
  if (op == "Add" && at.is_computed(other)) {
    at.support(at.scores(other) == nullptr, "adds scores to scores");
    add_bias(at, scores, computed_bias(at, scores, at.elements(other)));
  } else if (op == "Add") {
    add_constant(at, scores, at.constant_shape(other), at.reader(other));
  } else {
    at.support((op == "Mul" || (op == "Div" && input == 0)) && !at.is_computed(other),
               "is no function of attention's scores");
    at.support(!scores.is_normalised, "scales after the softmax");
    const double number = at.scalar(other);
    scores.scale = op == "Div" ? scores.scale / number : scores.scale * number;
    at.support(std::isfinite(scores.scale),
               "scales by " + text(number) + ", expected a finite scale");
    scale_added(at, scores, op == "Div" ? 1 / number : number);
  }
  at.set_scores(std::move(scores));
  return true;
}

bool lower_scores_softmax(Lowering& at) {
  if (at.scores(0) == nullptr) return false;
  Scores scores = *at.scores(0);
  const int rank = at.view(scores.q).rank();
  const int64_t axis = at.integer("axis", at.opset() < 13 ? 1 : -1);
  at.support(!scores.is_normalised && (axis == -1 || axis == rank - 1),
             "is over axis " + std::to_string(axis) + " of scores, expected the last one, once");
  scores.is_normalised = true;
  at.set_scores(std::move(scores));
  return true;
}

/// Through a node that computes nothing.
bool lower_scores_unchanged(Lowering& at) {
  const Scores* scores = at.scores(0);
  if (scores != nullptr) at.set_scores(Scores(*scores));
  return scores != nullptr;
}

/// Scores that are capped, as c tanh(s / c), before anything is added to them.
bool lower_scores_tanh(Lowering& at) {
  if (at.scores(0) == nullptr) return false;
  Scores scores = *at.scores(0);
  const bool is_scaled_only = !scores.is_normalised && !scores.is_causal && !scores.scale_inside &&
                              scores.bias.value.is_absent();
  at.support(is_scaled_only,
             "is of scores that are masked, capped or normalised, expected none of it");
  scores.scale_inside = scores.scale * scores.q.factor * scores.k.factor;
  scores.scale = scores.q.factor = scores.k.factor = 1;
  at.set_scores(std::move(scores));
  return true;
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
bool lower_scores_where(Lowering& at) {
  const size_t input = at.scores(1) != nullptr ? 1 : 2, other = 3 - input;
  if (at.scores(input) == nullptr) return false;
  at.support(!at.is_computed(other), "chooses between scores and what is computed");
  Scores scores = *at.scores(input);
  require_broadcast(at, scores, at.constant_shape(other));
  const double hidden = at.uniform(other);
  at.support(is_minus_infinity(hidden),
             "replaces scores by " + text(hidden) + ", expected minus infinity");
  if (!at.is_computed(0)) {
    const bool is_lowest = hidden <= -most_finite(at.dtype(scores.q.value));
    const double number = is_lowest ? -std::numeric_limits<double>::infinity() : hidden;
    const auto condition = at.reader(0);
    const auto is_kept = [=](int64_t i) { return (condition(i) != 0) == (input == 1); };
    at.support(is_lowest || keeps_keys(at.constant_shape(0), is_kept),
               "replaces all scores of a query by " + text(hidden) + ", expected minus infinity");
    add_constant(at, scores, at.constant_shape(0),
                 [=](int64_t i) { return is_kept(i) ? 0 : number; });
  } else {
    add_bias(
        at, scores,
        computed_bias(at, scores, choose(at, input == 1 ? 0 : hidden, input == 1 ? hidden : 0)));
  }
  at.set_scores(std::move(scores));
  return true;
}

}  // namespace wide::onnx
