// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Gives every member of a ragged problem its place, or says why there is none. Offsets are computed
// with overflow checks once here, so that nothing behind it needs any.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <string>
#include <utility>

#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"
#include "host/core/text.hpp"
#include "host/linear/ragged_linear_problem.hpp"
#include "wide/ragged_linear.hpp"

namespace wide {

static std::string text(const RaggedRows& rows) {
  return text(rows.offset) + "/" + text(rows.row);
}
static std::string text(const RaggedLinearMember& m) {
  return "{batch " + text(m.batch) + ", in " + text(m.in_features) + ", out " +
         text(m.out_features) + ", x " + text(m.x) + ", weight " + text(m.weight) + ", y " +
         text(m.y) + ", bias " + text(m.bias_offset) + "}";
}

namespace {

constexpr int64_t kPlaceBytes = 16;  // what a member begins at a multiple of

void require_of_member(size_t member, const char* operand, const char* field, int64_t value,
                       int64_t least) {
  WIDE_REQUIRE(value >= least, "ragged_linear: " + std::string(operand) + field + " of member " +
                                   std::to_string(member) + " is " + text(value) +
                                   ", expected >= " + text(least));
}

/// Gives the members of one operand their places, one behind the other.
class Storage {
 public:
  Storage(const char* name, Dtype dtype) : name_(name), bytes_(dtype_bytes(dtype)) {}

  void place(size_t member, RaggedRows& rows, int64_t num_rows, int64_t features) {
    require_of_member(member, name_, ".offset", rows.offset, -1);
    require_of_member(member, name_, ".row", rows.row, 0);
    if (rows.row == 0 || num_rows <= 1 || features == 0) rows.row = features;
    if (rows.offset < 0) rows.offset = next_;
    int64_t end = rows.offset, bytes = 0;
    bool overflows = false;
    if (num_rows > 0 && features > 0) {
      overflows = __builtin_mul_overflow(num_rows - 1, rows.row, &end) ||
                  __builtin_add_overflow(end, features, &end) ||
                  __builtin_add_overflow(end, rows.offset, &end);
    }
    // Behind the place, rounded up; whatever the dtype, fp32 sums of as many outputs fit as well.
    const int64_t step = kPlaceBytes / bytes_;
    overflows = overflows || __builtin_add_overflow(end, step - 1, &next_) ||
                __builtin_mul_overflow(next_, int64_t{4}, &bytes);
    WIDE_REQUIRE(!overflows, "ragged_linear: " + std::string(name_) + " of member " +
                                 std::to_string(member) + " is [" + text(num_rows) + ", " +
                                 text(features) + "] at offset " + text(rows.offset) +
                                 " with row stride " + text(rows.row) +
                                 ", expected an end that fits in 64 bits");
    next_ = next_ / step * step;
  }

 private:
  const char* name_;
  int64_t bytes_;
  int64_t next_ = 0;
};

/// A member's outputs in the storage of y.
struct Outputs {
  size_t member;
  int64_t begin, end;  ///< elements
  int64_t num_rows, row, features;
};

/// `first` begins no later than `second`, which begins before `first` ends.
bool interleave(const Outputs& first, const Outputs& second) {
  if (first.num_rows == 1 || (second.num_rows > 1 && first.row != second.row)) return false;
  const int64_t column = (second.begin - first.begin) % first.row;
  return column >= first.features && column + second.features <= first.row;
}

void require_interleaved(const Outputs& first, const Outputs& second) {
  WIDE_REQUIRE(interleave(first, second), "ragged_linear: y of member " +
                                              std::to_string(second.member) + " begins at offset " +
                                              text(second.begin) + ", inside that of member " +
                                              std::to_string(first.member) +
                                              ", expected outputs apart or interleaved at one row "
                                              "stride");
}

/// Outputs that have begun and not ended where a sweep over the storage has come to. Each has
/// columns of its own in rows of one stride, a circle of them, so that what begins now overlaps
/// none where it overlaps neither of its neighbours.
class OutputSweep {
 public:
  /// `outputs` begin no earlier than those added before, and outlive this.
  void add(const Outputs& outputs) {
    for (; !ends_.empty() && ends_.top().first <= outputs.begin; ends_.pop()) {
      by_column_.erase(ends_.top().second);
    }
    if (by_column_.empty()) row_ = outputs.row;
    const int64_t column = outputs.begin % row_;
    if (!by_column_.empty()) {
      const auto begin = by_column_.begin(), end = by_column_.end();
      const auto next = by_column_.upper_bound(column);
      require_interleaved(*std::prev(next == begin ? end : next)->second, outputs);
      require_interleaved(*(next == end ? begin : next)->second, outputs);
    }
    by_column_.emplace(column, &outputs);
    ends_.emplace(outputs.end, column);
  }

 private:
  using End = std::pair<int64_t, int64_t>;  ///< element, column

  int64_t row_ = 1;  ///< stride of all
  std::map<int64_t, const Outputs*> by_column_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
};

void require_apart(const RaggedLinearProblem& problem) {
  std::vector<Outputs> all;
  for (size_t i = 0; i < problem.members.size(); ++i) {
    const RaggedLinearMember& member = problem.members[i];
    const int64_t rows = member.batch, features = member.out_features;
    if (rows == 0 || features == 0) continue;
    WIDE_REQUIRE(rows == 1 || member.y.row >= features,
                 "ragged_linear: y.row of member " + std::to_string(i) + " is " +
                     text(member.y.row) + ", expected >= out_features = " + text(features));
    all.push_back({i, member.y.offset, member.y.offset + (rows - 1) * member.y.row + features, rows,
                   member.y.row, features});
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Outputs& a, const Outputs& b) { return a.begin < b.begin; });
  OutputSweep sweep;
  for (const Outputs& outputs : all) sweep.add(outputs);
}

void check_problem(const RaggedLinearProblem& problem) {
  WIDE_REQUIRE(!problem.members.empty(), "ragged_linear: members is empty, expected at least one");
  require_float_dtype("ragged_linear", problem.dtype);
  require_enumerators("ragged_linear", problem.epilogue);
  WIDE_REQUIRE(
      std::isfinite(problem.epilogue.alpha),
      "ragged_linear: alpha is " + text(problem.epilogue.alpha) + ", expected a finite factor");
}

}  // namespace

RaggedLinearProblem lay_out_ragged_linear(RaggedLinearProblem problem) {
  check_problem(problem);
  Storage x("x", problem.dtype), weight("weight", problem.dtype), y("y", problem.dtype);
  Storage bias("bias", problem.dtype);
  for (size_t i = 0; i < problem.members.size(); ++i) {
    RaggedLinearMember& member = problem.members[i];
    require_of_member(i, "", "batch", member.batch, 0);
    require_of_member(i, "", "in_features", member.in_features, 0);
    require_of_member(i, "", "out_features", member.out_features, 0);
    x.place(i, member.x, member.batch, member.in_features);
    weight.place(i, member.weight, member.out_features, member.in_features);
    y.place(i, member.y, member.batch, member.out_features);
    RaggedRows vector{member.bias_offset, 0};
    bias.place(i, vector, 1, member.out_features);
    member.bias_offset = vector.offset;
  }
  require_apart(problem);
  return problem;
}

RaggedLinearExtents ragged_linear_extents(const RaggedLinearProblem& problem) {
  return extents_of_laid_out(lay_out_ragged_linear(problem));
}

RaggedLinearExtents extents_of_laid_out(const RaggedLinearProblem& whole) {
  RaggedLinearExtents extents;
  int64_t parameters = 0;
  const auto grow = [](int64_t& extent, const RaggedRows& rows, int64_t num_rows,
                       int64_t features) {
    if (num_rows == 0 || features == 0) return;
    extent = std::max(extent, rows.offset + (num_rows - 1) * rows.row + features);
  };
  for (const RaggedLinearMember& member : whole.members) {
    grow(extents.x, member.x, member.batch, member.in_features);
    grow(extents.weight, member.weight, member.out_features, member.in_features);
    grow(extents.y, member.y, member.batch, member.out_features);
    grow(parameters, {member.bias_offset, 0}, 1, member.out_features);
  }
  const Epilogue& epilogue = whole.epilogue;
  if (epilogue.has_bias) extents.bias = parameters;
  if (epilogue.scale == OutputScale::per_output) extents.scale = parameters;
  if (epilogue.scale == OutputScale::per_member) {
    extents.scale = static_cast<int64_t>(whole.members.size());
  }
  if (epilogue.residual != Residual::none) extents.residual = extents.y;
  return extents;
}

constexpr auto kRaggedLinearFields = [](const auto& same, const RaggedLinearProblem& got,
                                        const RaggedLinearProblem& plan) {
  same("members", got.members, plan.members);
  same("dtype", got.dtype, plan.dtype);
  same("allow_tf32", got.allow_tf32, plan.allow_tf32);
  same.presence("bias", got.epilogue.has_bias, plan.epilogue.has_bias);
  same("activation", got.epilogue.activation, plan.epilogue.activation);
  same("scale", got.epilogue.scale, plan.epilogue.scale);
  same("residual", got.epilogue.residual, plan.epilogue.residual);
  same("alpha", got.epilogue.alpha, plan.epilogue.alpha);
};

std::string problem_key(const RaggedLinearProblem& complete) {
  return key_of_fields(complete, kRaggedLinearFields);
}
TuningKey tuning_key(const RaggedLinearProblem& problem) {
  return {"ragged_linear", problem_key(lay_out_ragged_linear(problem))};
}

}  // namespace wide
