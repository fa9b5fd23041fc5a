// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/recurrent/recurrent_problem.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "host/core/extent.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/text.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide {

namespace {

void check_sizes(const RecurrentProblem& p) {
  require_at_least("recurrent", "num_members", p.num_members, 1);
  require_at_least("recurrent", "batch", p.batch, 0);
  require_at_least("recurrent", "steps", p.steps, 0);
  require_at_least("recurrent", "in_features", p.in_features, 1);
  require_at_least("recurrent", "hidden", p.hidden, 1);
  require_float_dtype("recurrent", p.dtype);
  require_enumerator("recurrent", "cell", p.cell, kAllRecurrentCells.back());
  WIDE_REQUIRE(p.cell == RecurrentCell::lstm || !p.has_last_cell,
               "recurrent: has_last_cell is true, expected false: a gru has no cell state");
  // The largest product of extents: x's part of the gates.
  (void)checked_bytes({p.batch, p.steps, p.num_members, recurrent_gates(p.cell), p.hidden}, 4);
  (void)checked_bytes({p.batch, p.steps, p.num_members, p.in_features}, 4);
}

/// No stride is below 0, and the extent fits in 64 bits. `strides` are for the message.
template <class Strides>
void require_extent(const char* field, const std::array<SteppedAxis, 3>& axes, int64_t features,
                    const Strides& strides) {
  for (const SteppedAxis& axis : axes) {
    WIDE_REQUIRE(axis.stride >= 0, "recurrent: " + std::string(field) + " has strides " +
                                       text(strides) + ", expected none below 0");
  }
  WIDE_REQUIRE(extent_fits(axes, features), "recurrent: " + std::string(field) + " has strides " +
                                                text(strides) +
                                                ", expected an extent that fits in 64 bits");
}

/// Axes nest in some order, each stepping over everything inside.
bool is_disjoint(std::array<SteppedAxis, 3> axes, int64_t features) {
  std::sort(axes.begin(), axes.end(),
            [](const SteppedAxis& a, const SteppedAxis& b) { return a.stride < b.stride; });
  int64_t inside = features;
  for (const SteppedAxis& axis : axes) {
    if (axis.extent <= 1) continue;
    if (axis.stride < inside) return false;
    inside += (axis.extent - 1) * axis.stride;
  }
  return true;
}

std::array<SteppedAxis, 3> axes_of(const RecurrentProblem& p, const RecurrentStrides& s) {
  return {{{s.batch, p.batch}, {s.step, p.steps}, {s.member, p.num_members}}};
}
std::array<SteppedAxis, 3> axes_of(const RecurrentProblem& p, const RowStrides& s) {
  return {{{s.row, p.batch}, {0, 1}, {s.member, p.num_members}}};
}

/// The strides of a state [B, N, H] if it exists; else none.
RowStrides complete_state(const char* field, const RecurrentProblem& p, bool exists,
                          const RowStrides& given) {
  if (!exists) return {};
  return complete_strides(name_of("recurrent", field), given, packed_rows(p.num_members, p.hidden),
                          p.batch, p.num_members, p.hidden);
}

}  // namespace

RecurrentStrides complete_recurrent_strides(const RecurrentProblem& p,
                                            const RecurrentStrides& given, int64_t features,
                                            bool is_shared) {
  const RowStrides row = packed_rows(is_shared ? 1 : p.num_members, features);
  const RecurrentStrides packed{p.steps * row.row, row.row, is_shared ? 0 : row.member};
  RecurrentStrides strides = given == RecurrentStrides{} ? packed : given;
  if (p.num_members == 1 && !is_shared) strides.member = packed.member;
  if (p.steps <= 1) strides.step = packed.step;
  if (p.batch <= 1 &&
      __builtin_mul_overflow(std::max<int64_t>(p.steps, 1), strides.step, &strides.batch)) {
    throw_invalid_argument("recurrent: " + counted(p.steps, "step") + " of " + text(strides.step) +
                           " elements do not fit in 64 bits");
  }
  if (p.steps <= 1 && p.batch <= 1) strides.batch = packed.batch;
  return strides;
}

RecurrentRows recurrent_rows(const RecurrentProblem& p) {
  const RecurrentStrides& s = p.x;
  if (p.steps <= 1) return {false, s.batch};
  if (p.batch <= 1 || s.batch == p.steps * s.step) return {false, s.step};
  WIDE_REQUIRE(s.step == p.batch * s.batch,
               "recurrent: x has strides " + text(s) + ", expected sequences of " +
                   counted(p.steps, "step") + ", or steps of " + text(p.batch) +
                   " sequences, that fold into rows of one stride");
  return {true, s.batch};
}

RecurrentStrides recurrent_gate_strides(const RecurrentProblem& p, int64_t members) {
  const int64_t features = recurrent_gates(p.cell) * p.hidden, row = members * features;
  return recurrent_rows(p).is_step_after_step ? RecurrentStrides{row, p.batch * row, features}
                                              : RecurrentStrides{p.steps * row, row, features};
}

LinearProblem recurrent_input_product(const RecurrentProblem& p, int64_t members) {
  LinearProblem product;
  product.num_members = members;
  product.batch = p.batch * p.steps;
  product.in_features = p.in_features;
  product.out_features = recurrent_gates(p.cell) * p.hidden;
  product.dtype = p.dtype;
  product.allow_tf32 = p.allow_tf32;
  product.shared_input = p.shared_input && (members > 1 || p.num_members == 1);
  product.epilogue.has_bias = p.has_bias;
  product.x = {recurrent_rows(p).stride, product.shared_input ? 0 : p.x.member};
  product.weight = p.input_weight;
  product.bias_member_stride = p.input_bias_member_stride;
  return complete_linear_problem(product);
}

LinearProblem recurrent_hidden_product(const RecurrentProblem& p, int64_t members,
                                       const RowStrides& hidden) {
  LinearProblem product;
  product.num_members = members;
  product.batch = p.batch;
  product.in_features = p.hidden;
  product.out_features = recurrent_gates(p.cell) * p.hidden;
  product.dtype = p.dtype;
  product.allow_tf32 = p.allow_tf32;
  product.epilogue.has_bias = p.has_bias;
  product.x = hidden;
  product.weight = p.hidden_weight;
  product.bias_member_stride = p.hidden_bias_member_stride;
  return complete_linear_problem(product);
}

RowStrides recurrent_step_strides(const RecurrentProblem& p) {
  return {p.y.batch, p.y.member};
}
RowStrides recurrent_first_strides(const RecurrentProblem& p, int64_t members) {
  return p.has_first_state ? p.first_hidden : packed_rows(members, p.hidden);
}

RecurrentProblem complete_recurrent_problem(RecurrentProblem p) {
  check_sizes(p);
  const bool has_cell = p.cell == RecurrentCell::lstm;
  WIDE_REQUIRE(!p.shared_input || p.x.member == 0,
               "recurrent: x has member stride " + text(p.x.member) + ", expected 0: shared_input");
  p.x = complete_recurrent_strides(p, p.x, p.in_features, p.shared_input);
  p.y = complete_recurrent_strides(p, p.y, p.hidden, false);
  require_extent("x", axes_of(p, p.x), p.in_features, p.x);
  require_extent("y", axes_of(p, p.y), p.hidden, p.y);
  WIDE_REQUIRE(is_empty(p) || is_disjoint(axes_of(p, p.y), p.hidden),
               "recurrent: y has strides " + text(p.y) +
                   ", expected elements that do not overlap each other");
  p.first_hidden = complete_state("first_hidden", p, p.has_first_state, p.first_hidden);
  p.first_cell = complete_state("first_cell", p, p.has_first_state && has_cell, p.first_cell);
  p.last_cell = complete_state("last_cell", p, p.has_last_cell, p.last_cell);
  WIDE_REQUIRE(!p.has_last_cell || p.batch == 0 || is_disjoint(axes_of(p, p.last_cell), p.hidden),
               "recurrent: last_cell has strides " + text(p.last_cell) +
                   ", expected elements that do not overlap each other");
  // The products' problems check and complete their own fields.
  const LinearProblem input = recurrent_input_product(p, p.num_members);
  const LinearProblem hidden =
      recurrent_hidden_product(p, p.num_members, recurrent_step_strides(p));
  p.input_weight = input.weight;
  p.hidden_weight = hidden.weight;
  p.input_bias_member_stride = input.bias_member_stride;
  p.hidden_bias_member_stride = hidden.bias_member_stride;
  return p;
}

static std::string text(RecurrentCell cell) {
  return text(recurrent_cell_name(cell));
}

constexpr auto kRecurrentFields = [](const auto& same, const RecurrentProblem& got,
                                     const RecurrentProblem& plan) {
  same("dtype", got.dtype, plan.dtype);
  same("num_members", got.num_members, plan.num_members);
  same("batch", got.batch, plan.batch);
  same("steps", got.steps, plan.steps);
  same("in_features", got.in_features, plan.in_features);
  same("hidden", got.hidden, plan.hidden);
  same.presence("input_bias", got.has_bias, plan.has_bias);
  same.presence("first_hidden", got.has_first_state, plan.has_first_state);
  same.presence("last_cell", got.has_last_cell, plan.has_last_cell);
  same("stride of x", got.x, plan.x);
  same("stride of y", got.y, plan.y);
  same("stride of input_weight", got.input_weight, plan.input_weight);
  same("stride of hidden_weight", got.hidden_weight, plan.hidden_weight);
  same("member stride of input_bias", got.input_bias_member_stride, plan.input_bias_member_stride);
  same("member stride of hidden_bias", got.hidden_bias_member_stride,
       plan.hidden_bias_member_stride);
  same("stride of first_hidden", got.first_hidden, plan.first_hidden);
  same("stride of first_cell", got.first_cell, plan.first_cell);
  same("stride of last_cell", got.last_cell, plan.last_cell);
  same("cell", got.cell, plan.cell);
  same("is_reversed", got.is_reversed, plan.is_reversed);
  same("shared_input", got.shared_input, plan.shared_input);
  same("allow_tf32", got.allow_tf32, plan.allow_tf32);
};

void require_same_recurrent_problem(const RecurrentProblem& got, const RecurrentProblem& plan) {
  require_same_problem("recurrent", got, plan, kRecurrentFields);
}
std::string problem_key(const RecurrentProblem& complete) {
  return key_of_fields(complete, kRecurrentFields);
}
TuningKey tuning_key(const RecurrentProblem& problem) {
  return {"recurrent", problem_key(complete_recurrent_problem(problem))};
}

bool is_empty(const RecurrentProblem& problem) {
  return problem.batch == 0 || problem.steps == 0;
}

}  // namespace wide
