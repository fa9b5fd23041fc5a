// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands against a ragged problem, and its members one by one.
#include "host/linear/ragged_linear_problem.hpp"

#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"
#include "host/linear/linear_problem.hpp"

namespace wide {

namespace {

constexpr std::string_view kRaggedLinearName = "ragged_linear";

template <class View>
View rows_of(const View& storage, const RaggedRows& rows, int64_t num_rows, int64_t features) {
  const bool is_empty = num_rows == 0 || features == 0;
  const int64_t span = is_empty ? 0 : (num_rows - 1) * rows.row + features;
  View view = storage;
  if (!is_empty) view = storage.narrow(0, rows.offset, span);
  view.shape = Shape{num_rows, features};
  view.strides = Strides{rows.row, 1};
  return view;
}

template <class View>
View checked_rows_of(const View& storage, const RaggedRows& rows, int64_t num_rows,
                     int64_t features) {
  WIDE_REQUIRE(rows.offset >= 0 && rows.row >= 0 && num_rows >= 0 && features >= 0,
               "ragged_linear: rows at offset " + std::to_string(rows.offset) +
                   " with row stride " + std::to_string(rows.row) + " of [" +
                   std::to_string(num_rows) + ", " + std::to_string(features) +
                   "], expected those of a problem that is laid out");
  check_ragged_storage("storage", storage, storage.dtype, 0);
  return rows_of(storage, rows, num_rows, features);
}

/// Of the first `elements`: what lies behind them is not the call's.
bool meet(const ConstTensorView& a, int64_t a_elements, const TensorView& y, int64_t y_elements) {
  return a_elements > 0 && y_elements > 0 &&
         may_overlap(a.narrow(0, 0, a_elements), y.narrow(0, 0, y_elements));
}

}  // namespace

TensorView ragged_rows(const TensorView& storage, const RaggedRows& rows, int64_t num_rows,
                       int64_t features) {
  return checked_rows_of(storage, rows, num_rows, features);
}

ConstTensorView ragged_rows(const ConstTensorView& storage, const RaggedRows& rows,
                            int64_t num_rows, int64_t features) {
  return checked_rows_of(storage, rows, num_rows, features);
}

void check_ragged_storage(std::string_view argument, const ConstTensorView& storage, Dtype dtype,
                          int64_t elements) {
  const auto name = [&] { return "ragged_linear: " + std::string(argument); };
  WIDE_REQUIRE(!storage.is_absent(), name() + " is absent, expected a storage of one axis with " +
                                         counted(elements, "element"));
  require_dtype(kRaggedLinearName, argument, storage, dtype);
  WIDE_REQUIRE(storage.rank() == 1 && (storage.shape[0] <= 1 || storage.strides[0] == 1),
               name() + " is " + to_string(storage.shape) + " with strides " +
                   to_string(storage.strides) + ", expected one contiguous axis");
  WIDE_REQUIRE(storage.shape[0] >= elements,
               name() + " is " + to_string(storage.shape) + ", expected at least " +
                   counted(elements, "element") + ": ragged_linear_extents()");
}

void check_ragged_linear_arguments(const RaggedLinearProblem& problem,
                                   const RaggedLinearExtents& extents,
                                   const RaggedLinearArguments& arguments, Device device) {
  const auto check = [&](std::string_view name, const ConstTensorView& storage, Dtype dtype,
                         int64_t elements) {
    check_ragged_storage(name, storage, dtype, elements);
    require_device(kRaggedLinearName, name, storage, device);
  };
  const auto check_optional = [&](std::string_view name, const ConstTensorView& storage,
                                  bool is_wanted, Dtype dtype, int64_t elements) {
    WIDE_REQUIRE(is_wanted || storage.is_absent(),
                 "ragged_linear: " + std::string(name) +
                     " is present, expected none: the plan's problem has none");
    if (is_wanted) check(name, storage, dtype, elements);
  };
  const Epilogue& epilogue = problem.epilogue;
  check("x", arguments.x, problem.dtype, extents.x);
  check("weight", arguments.weight, problem.dtype, extents.weight);
  check_optional("bias", arguments.bias, epilogue.has_bias, problem.dtype, extents.bias);
  check_optional("scale", arguments.scale, epilogue.scale != OutputScale::none, Dtype::fp32,
                 extents.scale);
  check_optional("residual", arguments.residual, epilogue.residual != Residual::none, problem.dtype,
                 extents.residual);
  check("y", arguments.y, problem.dtype, extents.y);
  const auto require_apart = [&](const char* name, const ConstTensorView& input, int64_t elements) {
    WIDE_REQUIRE(!meet(input, elements, arguments.y, extents.y),
                 "ragged_linear: y overlaps " + std::string(name) + ", expected memory of its own");
  };
  require_apart("x", arguments.x, extents.x);
  require_apart("weight", arguments.weight, extents.weight);
  require_apart("bias", arguments.bias, extents.bias);
  require_apart("scale", arguments.scale, extents.scale);
  // In place: every element is read by whoever writes it, before.
  if (arguments.residual.data != arguments.y.data) {
    require_apart("residual", arguments.residual, extents.residual);
  }
}

LinearProblem ragged_member_problem(const RaggedLinearProblem& problem, size_t index) {
  const RaggedLinearMember& member = problem.members[index];
  LinearProblem one;
  one.num_members = 1;
  one.batch = member.batch;
  one.in_features = member.in_features;
  one.out_features = member.out_features;
  one.dtype = problem.dtype;
  one.y_dtype = problem.dtype;
  one.allow_tf32 = problem.allow_tf32;
  one.epilogue = problem.epilogue;
  one.x.row = member.x.row;
  one.weight.row = member.weight.row;
  one.y.row = one.residual.row = member.y.row;
  return complete_linear_problem(one);
}

LinearArguments ragged_member_arguments(const RaggedLinearProblem& problem,
                                        const RaggedLinearArguments& arguments, size_t index) {
  const RaggedLinearMember& member = problem.members[index];
  const int64_t batch = member.batch, in = member.in_features, out = member.out_features;
  const RaggedRows parameters{member.bias_offset, out};
  LinearArguments one;
  one.x = rows_of(arguments.x, member.x, batch, in);
  one.weight = rows_of(arguments.weight, member.weight, out, in);
  if (problem.epilogue.has_bias) one.bias = rows_of(arguments.bias, parameters, 1, out);
  if (problem.epilogue.scale == OutputScale::per_member) {
    one.scale = rows_of(arguments.scale, {static_cast<int64_t>(index), 1}, 1, 1);
  } else if (problem.epilogue.scale == OutputScale::per_output) {
    one.scale = rows_of(arguments.scale, parameters, 1, out);
  }
  if (problem.epilogue.residual != Residual::none) {
    one.residual = rows_of(arguments.residual, member.y, batch, out);
  }
  one.y = rows_of(arguments.y, member.y, batch, out);
  return one;
}

}  // namespace wide
