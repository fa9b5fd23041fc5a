// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention as exporters spell it out: q k^T, scaled and masked in any order, softmax, times v. The
// heads are axes that a view knows of, so that none of the transposes around it is computed.
#include <cmath>
#include <string>

#include "host/import/onnx/lowering.hpp"
#include "wide/convert.hpp"

namespace wide::onnx {

namespace {

struct Heads {
  int64_t heads = 1, positions = 1, features = 1;
  friend bool operator==(const Heads&, const Heads&) = default;
};

/// An extent of one part, or of none, which must take so many elements a step.
std::optional<int64_t> extent_of(const View::Axis& axis, int64_t step) {
  if (axis.empty()) return 1;
  if (axis.size() != 1 || axis[0].step != step) return std::nullopt;
  return axis[0].extent;
}

/// Of [batch, heads, positions, features] that lie as [batch, positions, heads * features].
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

/// [batch, .., positions, features], or with the last two transposed, such that heads_of() knows
/// its heads: as it is, or copied.
Moved with_heads(Lowering& at, const Moved& operand, bool is_transposed, const char* what) {
  const View view = at.view(operand);
  const int last = view.rank() - 1;
  at.support(last >= 2, "multiplies two activations of " + std::to_string(view.rank()) +
                            " axes, which no primitive computes outside of attention");
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

/// Of an operand that with_heads() gave.
Heads own_heads(Lowering& at, const Moved& operand, bool is_transposed) {
  const View view = at.view(operand);
  const int last = view.rank() - 1;
  return *heads_of(view, is_transposed ? last : last - 1, is_transposed ? last - 1 : last);
}

Value flattened(Lowering& at, const Moved& operand, const Heads& heads) {
  return at.reshaped(operand.value, {kBatch, heads.positions, heads.heads * heads.features});
}

/// softmax(scale q k^T) v
void finish_attention(Lowering& at, const Scores& scores) {
  at.support(scores.is_normalised, "multiplies scores without a softmax");
  const Moved v = with_heads(at, at.elements(1), false, "the second");
  const Heads q = own_heads(at, scores.q, false), k = own_heads(at, scores.k, true),
              own = own_heads(at, v, false);
  at.support(own == k, "multiplies scores by values of other heads, positions or features");
  const double scale = scores.scale * scores.q.factor * scores.k.factor;
  const Value y = at.append(
      FlashAttentionOp{
          .heads = q.heads, .is_causal = scores.is_causal, .scale = static_cast<float>(scale)},
      {{"q", flattened(at, scores.q, q)},
       {"k", flattened(at, scores.k, k)},
       {"v", flattened(at, v, own)}});
  at.set(0, {y, at.view(scores.q)});
}

enum class Mask { none, causal, other };

/// What a constant does to scores [.., rows, columns]; `is_hidden` says it of an element.
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

/// Takes no part in any softmax: what exporters have for minus infinity, some of them rounded.
bool is_minus_infinity(double number) {
  return number <= -9e3;
}

void add_mask(Lowering& at, Scores& scores, const Shape& shape,
              const std::function<bool(int64_t)>& is_hidden,
              const std::function<bool(int64_t)>& is_kept) {
  const Mask mask = mask_of(shape, own_heads(at, scores.q, false), own_heads(at, scores.k, true),
                            is_hidden, is_kept);
  at.support(mask != Mask::other,
             "masks attention by " + to_string(shape) +
                 ", expected a causal mask: key lengths or other masks cannot be told from it");
  at.support(!scores.is_normalised || mask == Mask::none, "masks behind the softmax");
  scores.is_causal = scores.is_causal || mask == Mask::causal;
}

}  // namespace

void lower_products(Lowering& at) {
  if (const Scores* scores = at.scores(0)) return finish_attention(at, *scores);
  Scores scores{.q = with_heads(at, at.moved(0), false, "the first"),
                .k = with_heads(at, at.moved(1), true, "the second, transposed,")};
  const Heads q = own_heads(at, scores.q, false), k = own_heads(at, scores.k, true);
  at.require(q.heads == k.heads && q.features == k.features,
             "multiplies " + std::to_string(q.heads) + " x " + std::to_string(q.features) +
                 " features by " + std::to_string(k.heads) + " x " + std::to_string(k.features));
  at.set_scores(std::move(scores));
}

bool lower_scores_arithmetic(Lowering& at) {
  const size_t input = at.scores(0) != nullptr ? 0 : 1;
  if (at.scores(input) == nullptr) return false;
  Scores scores = *at.scores(input);
  const size_t other = 1 - input;
  const std::string& op = at.node().op;
  at.support(!at.is_computed(other),
             "combines attention's scores and what is computed, expected a constant");
  if (op == "Add") {
    const Shape shape = at.constant_shape(other);
    const auto number = at.reader(other);
    add_mask(
        at, scores, shape, [&](int64_t i) { return is_minus_infinity(number(i)); },
        [&](int64_t i) { return number(i) == 0; });
  } else {
    at.support(op == "Mul" || (op == "Div" && input == 0), "is no function of attention's scores");
    at.support(!scores.is_normalised, "scales behind the softmax");
    const double number = at.scalar(other);
    scores.scale = op == "Div" ? scores.scale / number : scores.scale * number;
    at.support(std::isfinite(scores.scale), "scales by " + std::to_string(number));
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

namespace {

/// Scores where a constant says so, elsewhere a number that hides them.
void lower_where(Lowering& at) {
  at.only({});
  at.require(at.num_inputs() == 3,
             "has " + std::to_string(at.num_inputs()) + " inputs, expected 3");
  at.support(!at.is_computed(0), "chooses by what is computed, for which there is no primitive");
  const size_t input = at.is_computed(1) ? 1 : 2, other = 3 - input;
  at.support(at.scores(input) != nullptr && !at.is_computed(other),
             "chooses between activations, for which there is no primitive");
  Scores scores = *at.scores(input);
  at.support(
      is_minus_infinity(at.scalar(other)),
      "replaces scores by " + std::to_string(at.scalar(other)) + ", expected minus infinity");
  const auto condition = at.reader(0);
  const auto is_kept = [&](int64_t i) { return (condition(i) != 0) == (input == 1); };
  add_mask(
      at, scores, at.constant_shape(0), [&](int64_t i) { return !is_kept(i); }, is_kept);
  at.set_scores(std::move(scores));
}

}  // namespace

void add_attention_operators(std::map<std::string_view, Lower>& table) {
  table["Where"] = lower_where;
}

}  // namespace wide::onnx
