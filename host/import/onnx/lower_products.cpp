// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Products of two activations, as MatMul and Einsum write them: attention's where they can be, else
// matrices by matrices. Axes that only one factor has are rows or columns, so that nothing is
// repeated for the other one.
#include <algorithm>
#include <numeric>
#include <string>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

/// A piece of an axis in front of the matrices: its step in each factor, none where it is repeated.
struct Lead {
  int axis = 0;
  int64_t extent = 1;
  std::optional<int64_t> left{}, right{};
};

bool is_batch_part(const View::Part& part) {
  return part.extent == kBatch;
}

/// The outer part of an axis, cut off such that it has this extent.
std::optional<int64_t> take_step(View::Axis& axis, int64_t extent) {
  View::Part& part = axis.front();
  const int64_t rest = part.extent / extent, step = part.step * rest;
  const bool repeats = part.step == 0;
  part.extent = rest;
  if (rest == 1) axis.erase(axis.begin());
  return repeats ? std::nullopt : std::optional(step);
}

/// The pieces of one axis of both factors, of which one may have an extent of 1.
void match(Lowering& at, int axis, View::Axis left, View::Axis right, std::vector<Lead>& all) {
  const bool is_broadcast = left.empty() || right.empty();
  while (!left.empty() || !right.empty()) {
    const bool has_left = !left.empty(), has_right = !right.empty();
    const bool is_batch =
        (has_left && is_batch_part(left[0])) || (has_right && is_batch_part(right[0]));
    at.support(has_left == has_right || is_broadcast, "multiplies axes of different extents");
    if (is_batch) {
      at.support(has_left && has_right && is_batch_part(left[0]) && is_batch_part(right[0]),
                 "broadcasts samples of the batch to one another");
      all.push_back({axis, kBatch, 0, 0});
      left.erase(left.begin()), right.erase(right.begin());
      continue;
    }
    const int64_t extent = !has_left    ? right[0].extent
                           : !has_right ? left[0].extent
                                        : std::min(left[0].extent, right[0].extent);
    for (const View::Axis* own : {&left, &right})
      at.support(own->empty() || own->front().extent % extent == 0,
                 "multiplies axes that consist of other parts");
    Lead lead{.axis = axis, .extent = extent};
    if (has_left) lead.left = take_step(left, extent);
    if (has_right) lead.right = take_step(right, extent);
    all.push_back(lead);
  }
}

/// The axis i of `rank`, of a view that may have fewer.
View::Axis aligned(const View& view, int i, int rank) {
  const int own = i - (rank - view.rank());
  return own < 0 ? View::Axis{} : view.axis(own);
}

int64_t extent_of(const View::Axis& axis) {
  return std::accumulate(axis.begin(), axis.end(), int64_t{1},
                         [](int64_t all, const View::Part& part) { return all * part.extent; });
}

enum class Side { both, left, right, none };
Side side_of(const Lead& lead) {
  return lead.left && lead.right ? Side::both
         : lead.left             ? Side::left
         : lead.right            ? Side::right
                                 : Side::none;
}

/// A factor [batch, what both have, what it has alone and its rows, what is summed].
Value matrices(Lowering& at, const Moved& factor, const std::vector<Lead>& leads, bool is_left,
               const char* what) {
  const View view = at.view(factor);
  View::Axis both, own;
  for (const Lead& lead : leads) {
    const auto step = is_left ? lead.left : lead.right;
    if (lead.extent == kBatch || !step) continue;
    (side_of(lead) == Side::both ? both : own).push_back({lead.extent, *step});
  }
  const View::Axis &rows = view.axis(view.rank() - 2), &summed = view.axis(view.rank() - 1);
  at.support(
      std::ranges::none_of(rows, is_batch_part) && std::ranges::none_of(summed, is_batch_part),
      std::string("multiplies two activations of which the ") + what +
          " has its batch among the rows, the columns or what is summed");
  own.insert(own.end(), rows.begin(), rows.end());
  std::vector<View::Axis> axes{{{kBatch, 0}}};
  if (!both.empty()) axes.push_back(both);
  axes.push_back(own);
  axes.push_back(summed);
  const Value value = at.laid_out(factor.value, View::of(axes));
  at.support(!value.is_absent(), std::string("multiplies two activations of which the ") + what +
                                     " repeats rows, columns or what is summed");
  return value;
}

/// Where the axes in front, rows and columns lie in the result of matrices().
View result_view(const std::vector<Lead>& leads, int num_leads, int64_t rows, int64_t columns) {
  int64_t behind_left = rows, behind_right = columns, all_right = columns, all_left = rows;
  for (const Lead& lead : leads) {
    if (side_of(lead) == Side::left) all_left *= lead.extent;
    if (side_of(lead) == Side::right) all_right *= lead.extent;
  }
  int64_t behind = all_left * all_right;
  std::vector<View::Axis> axes(static_cast<size_t>(num_leads) + 2);
  for (size_t i = leads.size(); i-- > 0;) {
    const Lead& lead = leads[i];
    View::Part part{lead.extent, 0};
    if (lead.extent != kBatch && side_of(lead) == Side::both) {
      part.step = std::exchange(behind, behind * lead.extent);
    } else if (side_of(lead) == Side::left) {
      part.step = std::exchange(behind_left, behind_left * lead.extent) * all_right;
    } else if (side_of(lead) == Side::right) {
      part.step = std::exchange(behind_right, behind_right * lead.extent);
    }
    View::Axis& axis = axes[static_cast<size_t>(lead.axis)];
    axis.insert(axis.begin(), part);
  }
  axes[axes.size() - 2] = {{rows, all_right}};
  axes.back() = {{columns, 1}};
  return View::of(axes);
}

/// x, its last two axes exchanged.
Moved turned(Lowering& at, Moved x) {
  const View view = at.view(x);
  std::vector<View::Axis> axes;
  for (int i = 0; i < view.rank(); ++i) axes.push_back(view.axis(i));
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  x.view = View::of(axes);
  return x;
}

}  // namespace

void set_product(Lowering& at, const Moved& y) {
  const View view = at.view(y);
  const auto shape = view.in_place();
  if (!shape || y.factor != 1) return at.set(0, y);
  at.set(at.reshaped(y.value, *shape));
}

void lower_factors(Lowering& at, const Moved& left, const Moved& right) {
  if (!at.is_plain()) {
    if (auto scores = begin_attention(at, left, right)) return at.set_scores(*std::move(scores));
  }
  set_product(at, product(at, left, right));
}

Moved product(Lowering& at, const Moved& left, const Moved& right) {
  const View own = at.view(left), other = at.view(right);
  at.support(own.rank() >= 2 && other.rank() >= 2,
             "multiplies vectors of two activations, expected matrices");
  const int rank = std::max(own.rank(), other.rank());
  std::vector<Lead> leads;
  for (int i = 0; i + 2 < rank; ++i)
    match(at, i, aligned(own, i, rank), aligned(other, i, rank), leads);
  const View::Axis &summed = own.axis(own.rank() - 1), &others = other.axis(other.rank() - 1);
  at.require(extent_of(summed) == extent_of(others),
             "sums over " + std::to_string(extent_of(summed)) + " elements of one activation and " +
                 std::to_string(extent_of(others)) + " of the other, expected as many");
  const double alpha = left.factor * right.factor;
  at.support(holds(Dtype::fp32, alpha), "multiplies by " + text(alpha));
  at.support(at.dtype(left.value) == at.dtype(right.value), "multiplies activations of two types");
  const Value y = at.append(MatmulOp{.alpha = static_cast<float>(alpha)},
                            {{"left", matrices(at, left, leads, true, "first")},
                             {"right", matrices(at, right, leads, false, "second")}});
  return {y, result_view(leads, rank - 2, extent_of(own.axis(own.rank() - 2)),
                         extent_of(other.axis(other.rank() - 2)))};
}

void lower_products(Lowering& at) {
  at.support(at.view(at.moved(1)).rank() >= 2, "multiplies by a vector, expected a matrix");
  if (at.is_computed(0)) {
    if (const Scores* scores = at.scores(0))
      return at.set(0, finish_attention(at, *scores, at.moved(1)));
    return lower_factors(at, at.moved(0), turned(at, at.moved(1)));
  }
  // A x is (x^T A^T)^T, rows of which are linear's.
  const Shape& matrix = at.constant_shape(0);
  at.support(matrix.rank() == 2, "multiplies " + to_string(matrix) + ", expected a matrix");
  const Moved x = turned(at, at.elements(1));
  const Value rows = at.laid_out(x.value, at.view(x));
  at.support(!rows.is_absent(), "multiplies what has its batch elsewhere than in front");
  Shape shape = at.shape(rows);
  const int64_t summed = shape.back(),
                all = num_elements(Shape(std::span(shape.begin() + 1, shape.end())));
  const Value y = at.append(LinearOp{}, {{"x", at.reshaped(rows, {kBatch, all / summed, summed})},
                                         {"weight", at.parameter(0, at.dtype(rows))}});
  shape[shape.rank() - 1] = matrix[0];
  set_product(at, turned(at, {at.reshaped(y, shape)}));
}

}  // namespace wide::onnx
