// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One member's part of what a plan reads or writes.
#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "wide/model.hpp"
#include "wide/pack.hpp"

namespace wide {

namespace {

std::string type_text(Dtype dtype, const Shape& shape) {
  return std::string(dtype_name(dtype)) + " " + to_string(shape);
}

template <class View>
View view_of_member(const ModelOperand& operand, const View& view, int64_t index) {
  const std::string name = "model: " + operand.name;
  const bool is_ragged = !operand.first_rows.empty();
  Shape expected = operand.shape;
  const bool is_batch_in_front = !operand.is_stacked && !is_ragged && expected.rank() > 0;
  if (is_batch_in_front && view.rank() > 0) expected[0] = view.shape[0];  // a chunked model's
  WIDE_REQUIRE(view.dtype == operand.dtype && view.shape == expected,
               name + " is " + type_text(view.dtype, view.shape) + ", expected " +
                   type_text(operand.dtype, expected));
  WIDE_REQUIRE(index >= 0 && index < operand.num_members,
               name + ": member is " + std::to_string(index) + ", expected one in [0, " +
                   std::to_string(operand.num_members) + ")");
  if (operand.member_axis < 0) return view;
  if (is_ragged) {
    const auto& rows = operand.first_rows;
    WIDE_REQUIRE(std::ssize(rows) == operand.num_members + 1,
                 name + " has rows of " + counted(std::ssize(rows) - 1, "member") +
                     ", expected of num_members = " + std::to_string(operand.num_members));
    const auto i = static_cast<size_t>(index);
    return view.narrow(0, rows[i], rows[i + 1] - rows[i]);
  }
  using Kind = PackedOperand::Kind;
  const PackedOperand packed{operand.name, operand.is_stacked ? Kind::stacked : Kind::joined,
                             operand.member_axis, 1, kMaxRank};
  return member_view(packed, view, operand.num_members, index);
}

}  // namespace

TensorView member_view(const ModelOperand& operand, const TensorView& view, int64_t index) {
  return view_of_member(operand, view, index);
}
ConstTensorView member_view(const ModelOperand& operand, const ConstTensorView& view,
                            int64_t index) {
  return view_of_member(operand, view, index);
}

}  // namespace wide
