// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From operands to the problem. num_members, hidden and in are read off the weights, whose shapes
// have each of them by itself; the others must fit.
#include <string>
#include <utility>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/rows.hpp"
#include "host/recurrent/recurrent_problem.hpp"

namespace wide {

namespace {

[[noreturn]] void refuse(std::string_view argument, const ConstTensorView& view,
                         const std::string& expected) {
  throw_invalid_argument("recurrent: " + std::string(argument) + " is " +
                         (view.is_absent() ? "absent" : to_string(view.shape)) + ", expected " +
                         expected);
}

/// Strides that are all 0 would mean "packed" in a problem.
template <class Strides>
void require_steps(std::string_view argument, const ConstTensorView& view, const Strides& strides) {
  WIDE_REQUIRE(view.num_elements() <= 1 || strides != Strides{},
               "recurrent: " + std::string(argument) + " has strides " + to_string(view.strides) +
                   ", expected rows or members that do not all start at one place");
}

RowStrides describe_weight(std::string_view argument, const ConstTensorView& weight,
                           const RecurrentProblem& p, int64_t features, const char* axes) {
  const int64_t rows = recurrent_gates(p.cell) * p.hidden;
  require_dtype(kRecurrentName, argument, weight, p.dtype);
  require_shape(kRecurrentName, argument, weight, axes, {p.num_members, rows, features});
  require_last_axis_contiguous(kRecurrentName, argument, weight);
  const RowStrides strides{rows <= 1 ? features : weight.strides[1],
                           p.num_members == 1 ? rows * features : weight.strides[0]};
  require_steps(argument, weight, strides);
  return strides;
}

/// The weights' shapes, from which the others follow.
void describe_weights(const RecurrentArguments& a, RecurrentProblem& p) {
  constexpr const char* kInput = "[num_members, gates * hidden, in_features]";
  constexpr const char* kHidden = "[num_members, gates * hidden, hidden]";
  if (a.hidden_weight.rank() != 3 || a.hidden_weight.shape[0] < 1) {
    refuse("hidden_weight", a.hidden_weight, kHidden);
  }
  if (a.input_weight.rank() != 3) refuse("input_weight", a.input_weight, kInput);
  p.num_members = a.hidden_weight.shape[0];
  p.hidden = a.hidden_weight.shape[2];
  p.in_features = a.input_weight.shape[2];
  p.input_weight = describe_weight("input_weight", a.input_weight, p, p.in_features, kInput);
  p.hidden_weight = describe_weight("hidden_weight", a.hidden_weight, p, p.hidden, kHidden);
}

void describe_biases(const RecurrentArguments& a, RecurrentProblem& p) {
  const auto look_at = [&](std::string_view argument, const ConstTensorView& bias) {
    if (bias.is_absent() == p.has_bias) {
      refuse(argument, bias, p.has_bias ? "both biases" : "neither bias");
    }
    if (!p.has_bias) return int64_t{0};
    require_dtype(kRecurrentName, argument, bias, p.dtype);
    require_shape(kRecurrentName, argument, bias, "[num_members, gates * hidden]",
                  {p.num_members, recurrent_gates(p.cell) * p.hidden});
    require_last_axis_contiguous(kRecurrentName, argument, bias);
    WIDE_REQUIRE(p.num_members == 1 || bias.strides[0] != 0,
                 "recurrent: " + std::string(argument) + " has strides " + to_string(bias.strides) +
                     ", expected one vector per member: stride > 0");
    return bias.strides[0];
  };
  p.has_bias = !a.input_bias.is_absent();
  p.input_bias_member_stride = look_at("input_bias", a.input_bias);
  p.hidden_bias_member_stride = look_at("hidden_bias", a.hidden_bias);
}

/// Sequences [B, T, N*D] or [B, T, N, D]; [B, T, D] where all members share one.
RecurrentStrides describe_sequences(std::string_view argument, const ConstTensorView& view,
                                    const RecurrentProblem& p, int64_t features, bool is_shared) {
  const int rank = view.rank();
  const bool is_explicit =
      rank == 4 && !is_shared && view.shape[2] == p.num_members && view.shape[3] == features;
  const int64_t row = is_shared ? features : packed_rows(p.num_members, features).row;
  if (!is_explicit && (rank != 3 || view.shape[2] != row)) {
    refuse(argument, view,
           is_shared ? "shared_input: [B, T, in_features] = [B, T, " + std::to_string(row) + "]"
                     : "[B, T, num_members * features] = [B, T, " + std::to_string(row) +
                           "] or [B, T, num_members, features]");
  }
  require_last_axis_contiguous(kRecurrentName, argument, view);
  const int64_t member = is_shared ? 0 : is_explicit ? view.strides[2] : features;
  return {view.strides[0], view.strides[1], member};
}

void describe_x_and_y(const RecurrentArguments& a, RecurrentProblem& p) {
  p.x = describe_sequences("x", a.x, p, p.in_features, p.shared_input);
  p.y = describe_sequences("y", a.y, p, p.hidden, false);
  p.batch = a.x.shape[0];
  p.steps = a.x.shape[1];
  WIDE_REQUIRE(a.y.shape[0] == p.batch && a.y.shape[1] == p.steps,
               "recurrent: y is " + to_string(a.y.shape) + ", expected x's batch and steps = [" +
                   std::to_string(p.batch) + ", " + std::to_string(p.steps) + ", ..]");
  require_dtype(kRecurrentName, "y", a.y, p.dtype);
  require_steps("x", a.x, p.x = complete_recurrent_strides(p, p.x, p.in_features, p.shared_input));
}

RowStrides describe_state(std::string_view argument, const ConstTensorView& view,
                          const RecurrentProblem& p, Dtype dtype) {
  if (view.rank() != 2 && view.rank() != 3) {
    refuse(argument, view, "[B, num_members * hidden] or [B, num_members, hidden]");
  }
  require_dtype(kRecurrentName, argument, view, dtype);
  const MemberRows rows = member_rows(kRecurrentName, argument, view, p.num_members, p.hidden);
  WIDE_REQUIRE(rows.rows == p.batch, "recurrent: " + std::string(argument) + " is " +
                                         to_string(view.shape) +
                                         ", expected x's batch = " + std::to_string(p.batch));
  require_steps(argument, view, rows.strides);
  return rows.strides;
}

void describe_states(const RecurrentArguments& a, RecurrentProblem& p) {
  const bool has_cell = p.cell == RecurrentCell::lstm;
  p.has_first_state = !a.first_hidden.is_absent();
  p.has_last_cell = !a.last_cell.is_absent();
  p.first_hidden = p.first_cell = p.last_cell = {};
  if (p.has_first_state) {
    p.first_hidden = describe_state("first_hidden", a.first_hidden, p, p.dtype);
  }
  if (!a.first_cell.is_absent() && !(has_cell && p.has_first_state)) {
    refuse("first_cell", a.first_cell,
           has_cell ? "none without first_hidden" : "none: a gru has no cell state");
  }
  if (has_cell && p.has_first_state) {
    p.first_cell = describe_state("first_cell", a.first_cell, p, Dtype::fp32);
  }
  if (!has_cell && p.has_last_cell) {
    refuse("last_cell", a.last_cell, "none: a gru has no cell state");
  }
  if (p.has_last_cell) p.last_cell = describe_state("last_cell", a.last_cell, p, Dtype::fp32);
}

void require_apart(const RecurrentArguments& a) {
  const Device device = a.x.device;
  const std::pair<const char*, const ConstTensorView*> inputs[] = {
      {"x", &a.x},
      {"input_weight", &a.input_weight},
      {"hidden_weight", &a.hidden_weight},
      {"input_bias", &a.input_bias},
      {"hidden_bias", &a.hidden_bias},
      {"first_hidden", &a.first_hidden},
      {"first_cell", &a.first_cell}};
  const auto require = [&](const char* name, const ConstTensorView& input, const char* output_name,
                           const TensorView& output) {
    require_own_memory(kRecurrentName, output_name, output, name, input);
  };
  for (const auto& [name, input] : inputs) {
    if (input->is_absent()) continue;
    require_device(kRecurrentName, name, *input, device);
    require(name, *input, "y", a.y);
    const bool is_in_place = input == &a.first_cell && is_same_view(*input, a.last_cell);
    if (!is_in_place) require(name, *input, "last_cell", a.last_cell);
  }
  require_device(kRecurrentName, "y", a.y, device);
  if (a.last_cell.is_absent()) return;
  require_device(kRecurrentName, "last_cell", a.last_cell, device);
  require("y", a.y, "last_cell", a.last_cell);
}

}  // namespace

RecurrentProblem describe_recurrent(const RecurrentArguments& arguments,
                                    const RecurrentProblem& like) {
  RecurrentProblem p;
  p.cell = like.cell;
  p.is_reversed = like.is_reversed;
  p.shared_input = like.shared_input;
  p.allow_tf32 = like.allow_tf32;
  p.dtype = arguments.x.dtype;
  describe_weights(arguments, p);
  describe_biases(arguments, p);
  describe_x_and_y(arguments, p);
  describe_states(arguments, p);
  require_apart(arguments);
  return complete_recurrent_problem(std::move(p));
}

}  // namespace wide
