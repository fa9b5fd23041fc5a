// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Folding of leading axes, with messages that name the argument.
#include "host/core/rows.hpp"

#include <limits>
#include <string>

#include "host/core/check.hpp"
#include "host/core/extent.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"

namespace wide {

namespace {

int64_t checked_product(int64_t num_members, int64_t features) {
  WIDE_REQUIRE(num_members >= 1,
               "num_members is " + std::to_string(num_members) + ", expected >= 1");
  WIDE_REQUIRE(features >= 0, "features is " + std::to_string(features) + ", expected >= 0");
  WIDE_REQUIRE(features <= std::numeric_limits<int64_t>::max() / num_members,
               "num_members * features = " + std::to_string(num_members) + " * " +
                   std::to_string(features) + " does not fit in 64 bits, expected fewer");
  return num_members * features;
}

/// The first `num_axes` axes as rows with one stride; `packed_stride` where there is at most one.
MemberRows fold_rows(const ArgumentName& name, const ConstTensorView& view, int num_axes,
                     int64_t packed_stride) {
  int64_t rows = 1;
  int64_t stride = packed_stride;
  bool is_stepped = false, folds = true;
  for (int axis = num_axes - 1; axis >= 0; --axis) {
    const int64_t extent = view.shape[axis];
    if (extent != 1) {
      if (!is_stepped) stride = view.strides[axis];
      if (is_stepped && view.strides[axis] != rows * stride) folds = false;
      is_stepped = true;
    }
    rows *= extent;
  }
  if (rows <= 1 || packed_stride == 0) return {rows, {packed_stride, 0}};
  WIDE_REQUIRE(folds, name + " has shape " + to_string(view.shape) + " and strides " +
                          to_string(view.strides) +
                          ", expected leading axes that fold into rows of one stride");
  return {rows, {stride, 0}};
}

}  // namespace

int64_t member_features(std::string_view primitive, std::string_view argument,
                        const ConstTensorView& view, int64_t num_members, int64_t known) {
  const ArgumentName name{primitive, argument};
  const int rank = view.rank();
  require_at_least(primitive, "num_members", num_members, 1);
  WIDE_REQUIRE(rank >= 1,
               name + " is " + to_string(view.shape) + ", expected [.., num_members * features]");
  const int64_t last = view.shape.back();
  const bool fits_packed = last % num_members == 0;
  const bool fits_explicit = rank >= 2 && view.shape[rank - 2] == num_members;
  WIDE_REQUIRE(fits_packed || fits_explicit,
               name + " is " + to_string(view.shape) +
                   ", expected [.., num_members * features] with num_members = " +
                   std::to_string(num_members));
  if (!fits_explicit || last == num_members * known) return last / num_members;
  if (!fits_packed || last == known) return last;
  const bool has_gaps = rank >= 3 && num_members > 1 && view.strides[rank - 2] != last;
  WIDE_REQUIRE(!has_gaps, name + " is " + to_string(view.shape) + " with strides " +
                              to_string(view.strides) +
                              ", which fits [.., num_members, features] and padded rows [.., "
                              "num_members * features]: expected `features` in the problem");
  return last / num_members;
}

RowStrides packed_rows(int64_t num_members, int64_t features) {
  return {checked_product(num_members, features), features};
}

RowStrides fill_strides(const ArgumentName& name, const RowStrides& strides,
                        const RowStrides& packed, int64_t rows, int64_t num_members,
                        int64_t features) {
  WIDE_REQUIRE(strides.row >= 0 && strides.member >= 0,
               name + " has strides " + text(strides) + ", expected none below 0");
  RowStrides completed = strides == RowStrides{} || features == 0 ? packed : strides;
  if (rows <= 1) completed.row = packed.row;
  if (num_members <= 1) completed.member = packed.member;
  return completed;
}

RowStrides complete_strides(const ArgumentName& name, const RowStrides& strides,
                            const RowStrides& packed, int64_t rows, int64_t num_members,
                            int64_t features) {
  const RowStrides completed = fill_strides(name, strides, packed, rows, num_members, features);
  const SteppedAxis axes[] = {{completed.row, rows}, {completed.member, num_members}};
  WIDE_REQUIRE(extent_fits(axes, features), name + " has strides " + text(completed) +
                                                ", expected an extent that fits in 64 bits");
  return completed;
}

int64_t complete_stride(const ArgumentName& name, int64_t stride, int64_t steps, int64_t count) {
  WIDE_REQUIRE(stride >= 0, name + " is " + text(stride) + ", expected >= 0");
  const int64_t completed = stride == 0 || steps <= 1 || count == 0 ? count : stride;
  const SteppedAxis axes[] = {{completed, steps}};
  WIDE_REQUIRE(extent_fits(axes, count),
               name + " is " + text(completed) + ", expected an extent that fits in 64 bits");
  return completed;
}

MemberRows member_rows(std::string_view primitive, std::string_view argument,
                       const ConstTensorView& view, int64_t num_members, int64_t features) {
  const ArgumentName name = name_of(primitive, argument);
  const RowStrides packed = packed_rows(num_members, features);
  const int rank = view.rank();
  require_view(primitive, argument, view);
  const bool is_packed = rank >= 1 && view.shape.back() == packed.row;
  const bool is_explicit =
      rank >= 2 && view.shape.back() == features && view.shape[rank - 2] == num_members;
  WIDE_REQUIRE(is_packed || is_explicit,
               name + " is " + to_string(view.shape) +
                   ", expected [.., num_members * features] = [.., " + std::to_string(packed.row) +
                   "] or [.., num_members, features] = [.., " + std::to_string(num_members) + ", " +
                   std::to_string(features) + "]");
  require_last_axis_contiguous(primitive, argument, view);
  if (is_packed) {
    MemberRows folded = fold_rows(name, view, rank - 1, packed.row);
    folded.strides.member = packed.member;
    return folded;
  }
  MemberRows folded = fold_rows(name, view, rank - 2, packed.row);
  folded.strides.member = num_members == 1 ? packed.member : view.strides[rank - 2];
  return folded;
}

MemberRows shared_rows(std::string_view primitive, std::string_view argument,
                       const ConstTensorView& view, int64_t features) {
  const ArgumentName name = name_of(primitive, argument);
  require_view(primitive, argument, view);
  WIDE_REQUIRE(view.rank() >= 1 && view.shape.back() == features,
               name + " is " + to_string(view.shape) + ", expected [.., features] = [.., " +
                   std::to_string(features) + "]");
  require_last_axis_contiguous(primitive, argument, view);
  return fold_rows(name, view, view.rank() - 1, features);
}

void require_disjoint_rows(std::string_view primitive, std::string_view argument,
                           const MemberRows& rows, int64_t num_members, int64_t features) {
  const RowStrides& s = rows.strides;
  if (rows.rows == 0 || features == 0) return;
  const int64_t members_end = (num_members - 1) * s.member + features;
  const int64_t rows_end = (rows.rows - 1) * s.row + features;
  const bool members_inside =
      (num_members == 1 || s.member >= features) && (rows.rows == 1 || s.row >= members_end);
  const bool rows_inside =
      (rows.rows == 1 || s.row >= features) && (num_members == 1 || s.member >= rows_end);
  WIDE_REQUIRE(members_inside || rows_inside,
               name_of(primitive, argument) + " has row stride " + std::to_string(s.row) +
                   " and member stride " + std::to_string(s.member) + ", expected rows of " +
                   std::to_string(features) + " elements that do not overlap");
}

}  // namespace wide
