// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// routed_linear on the CPU by linear's blocks. A block reads its rows of x where they are; its
// outputs are finished on the stack, in fp32, and go from there to their rows. Rows lie in slots as
// on the GPU (kernels/common/routed_slots.hpp), so that a task finds its member by a search and no
// list is made. Nothing of a routing is trusted: a row outside of the operands is none.
#include <algorithm>
#include <cstring>

#include "host/core/parallel.hpp"
#include "host/linear/linear_cpu_block.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/routed_linear_problem.hpp"
#include "host/linear/routed_linear_run.hpp"
#include "kernels/common/routed_slots.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kRows = cpu::kBlockRows, kColumns = cpu::kBlockColumns;

/// Rows [begin, end) in routed order, of `member`, or of none: num_members.
struct MemberRange {
  int64_t member = 0, begin = 0, end = 0;
};

class RoutedCpu {
 public:
  RoutedCpu(const RoutedLinearProblem& problem, const RoutedLinearArguments& arguments)
      : p_(problem),
        a_(arguments),
        first_rows_(static_cast<const int32_t*>(arguments.first_rows.data)),
        order_(static_cast<const int32_t*>(arguments.order.data)) {}

  int64_t first_row(int64_t member) const {
    return member == 0 ? 0 : std::clamp<int64_t>(first_rows_[member], 0, p_.num_rows);
  }
  MemberRange range_of(int64_t member) const {
    const bool is_last = member == p_.num_members;
    return {member, first_row(member), is_last ? p_.num_rows : first_row(member + 1)};
  }
  int64_t num_slots() const { return kernels::routed_slots(p_.num_rows, p_.num_members, kRows); }
  int64_t column_blocks() const { return (p_.out_features - 1) / kColumns + 1; }

  /// The rows of `range` from its `tile`-th sixteen on; there may be none.
  void run_block(const MemberRange& range, int64_t tile, int64_t column_block) const;
  /// The same by a slot.
  void run_slot(int64_t slot, int64_t column_block) const;

 private:
  using Sums = float[kRows][kColumns];

  /// The row at a place in routed order; -1: none.
  int64_t row_at(int64_t in_order) const {
    const int64_t row = order_[in_order];
    return row >= 0 && row < p_.num_rows ? row : -1;
  }
  /// Of x, for a place in routed order; where no row is, whatever is computed is dropped.
  const void* x_row(int64_t in_order) const {
    const int64_t row = p_.gathers ? std::max<int64_t>(row_at(in_order), 0) / p_.choices : in_order;
    return static_cast<const std::byte*>(a_.x.data) + row * p_.x_row_stride * element_;
  }
  /// Of an output's weights from its member's first: elements, or the bytes of whole strips.
  int64_t weight_offset(int64_t output) const {
    static_assert(kColumns % kQuantizedStrip == 0);
    return is_quantized(p_)
               ? output / kQuantizedStrip * quantized_strip_bytes(linear_quantized_weight(p_))
               : output * p_.weight.row;
  }
  void compute(int64_t member, int64_t first, int64_t rows, int64_t column, int64_t columns,
               Sums& sums) const;

  const RoutedLinearProblem& p_;
  const RoutedLinearArguments& a_;
  const int32_t* first_rows_;
  const int32_t* order_;
  int64_t element_ = dtype_bytes(p_.dtype);
};

void RoutedCpu::run_slot(int64_t slot, int64_t column_block) const {
  const auto first_slot = [&](int64_t member) { return first_row(member) / kRows + member; };
  int64_t member = 0, end = p_.num_members + 1;
  while (end - member > 1) {
    const int64_t middle = member + (end - member) / 2;
    (first_slot(middle) <= slot ? member : end) = middle;
  }
  run_block(range_of(member), slot - first_slot(member), column_block);
}

/// Finished but for the gates.
void RoutedCpu::compute(int64_t member, int64_t first, int64_t rows, int64_t column,
                        int64_t columns, Sums& sums) const {
  LinearProblem one;
  one.num_members = 1, one.batch = rows;
  one.in_features = p_.in_features, one.out_features = columns;
  one.dtype = p_.dtype, one.y_dtype = Dtype::fp32;
  one.weight_format = p_.weight_format, one.group_size = p_.group_size;
  one.epilogue = p_.epilogue;
  one.weight.row = p_.weight.row;
  one.y.row = one.residual.row = kColumns;

  const auto at = [](const ConstTensorView& operand, int64_t element, const Shape& shape) {
    const auto* data = static_cast<const std::byte*>(operand.data);
    return ConstTensorView(data + element * dtype_bytes(operand.dtype), operand.dtype, shape,
                           Device{});
  };
  LinearArguments operands;
  operands.x = a_.x;
  const void* x_rows[kRows] = {};
  for (int64_t r = 0; r < rows; ++r) x_rows[r] = x_row(first + r);
  operands.weight = at(a_.weight, member * p_.weight.member + weight_offset(column),
                       {1, columns, p_.in_features});
  if (p_.epilogue.has_bias) {
    operands.bias = at(a_.bias, member * p_.bias_member_stride + column, {1, columns});
  }
  if (p_.epilogue.scale != OutputScale::none) {
    const bool is_per_output = p_.epilogue.scale == OutputScale::per_output;
    operands.scale = at(a_.scale, member * p_.scale_member_stride + (is_per_output ? column : 0),
                        {1, is_per_output ? columns : 1});
  }
  alignas(16) std::byte residual[kRows * kColumns * sizeof(float)];
  if (p_.epilogue.residual != Residual::none) {
    const auto* from = static_cast<const std::byte*>(a_.residual.data);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t row = p_.scatters ? row_at(first + r) : first + r;
      std::byte* to = residual + r * kColumns * element_;
      const auto size = static_cast<size_t>(columns * element_);
      std::memset(to, 0, size);
      if (row < 0) continue;
      std::memcpy(to, from + (row * p_.residual_row_stride + column) * element_, size);
    }
    operands.residual = ConstTensorView(residual, p_.dtype, {rows, kColumns}, Device{});
  }
  operands.y = TensorView(sums, Dtype::fp32, {rows, kColumns}, Device{});
  run_linear_cpu_block(one, operands, 0, 0, x_rows);
}

void RoutedCpu::run_block(const MemberRange& range, int64_t tile, int64_t column_block) const {
  const int64_t first = range.begin + tile * kRows;
  const int64_t rows = std::min(kRows, range.end - first);
  if (rows <= 0) return;
  const int64_t column = column_block * kColumns;
  const int64_t columns = std::min(kColumns, p_.out_features - column);
  const bool is_of_none = range.member == p_.num_members;
  Sums sums;
  if (!is_of_none) compute(range.member, first, rows, column, columns, sums);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = row_at(first + r);
    if (row < 0) continue;
    const int64_t to = p_.scatters ? row : first + r;
    auto* y = static_cast<std::byte*>(a_.y.data) + (to * p_.y_row_stride + column) * element_;
    if (is_of_none) {
      std::memset(y, 0, static_cast<size_t>(columns * element_));
      continue;
    }
    if (p_.has_gates) {
      const float gate = static_cast<const float*>(a_.gates.data)[row];
      for (int64_t c = 0; c < columns; ++c) sums[r][c] *= gate;
    }
    encode_row(p_.dtype, sums[r], y, columns);
  }
}

}  // namespace

void run_routed_linear_cpu(const Context& context, RoutedLinearStrategy strategy,
                           const RoutedLinearProblem& problem,
                           const RoutedLinearArguments& arguments) {
  const RoutedCpu routed(problem, arguments);
  const int64_t column_blocks = routed.column_blocks();
  if (strategy == RoutedLinearStrategy::wide) {
    return parallel_for(context, routed.num_slots() * column_blocks, [&](int64_t task) {
      routed.run_slot(task / column_blocks, task % column_blocks);
    });
  }
  for (int64_t member = 0; member <= problem.num_members; ++member) {
    const MemberRange range = routed.range_of(member);
    const int64_t tiles = (range.end - range.begin + kRows - 1) / kRows;
    parallel_for(context, std::max<int64_t>(tiles, 0) * column_blocks, [&](int64_t task) {
      routed.run_block(range, task / column_blocks, task % column_blocks);
    });
  }
}

}  // namespace wide
