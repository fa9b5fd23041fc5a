// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of the kernels that traverse packed tensors element by element.
#pragma once

#include <cstdint>

namespace wide::kernels {

/// The granularity of a second operand.
enum class SecondOperand : uint8_t {
  none,
  elements,  ///< each feature of each member, of each row where its row stride is not 0
  members,   ///< each member, or all of them where its member stride is 0
  rows,      ///< each feature of each member, contiguous; joined rows repeat it
};

/// x, y [rows, members, features]; strides in elements.
struct PackedParams {
  const void* x = nullptr;
  const void* second = nullptr;
  void* y = nullptr;  ///< may be x, or a second operand that has its strides
  int64_t num_members = 0, rows = 0, features = 0;
  int64_t x_row_stride = 0, x_member_stride = 0;
  int64_t y_row_stride = 0, y_member_stride = 0;
  int64_t second_row_stride = 0, second_member_stride = 0;
  SecondOperand second_operand = SecondOperand::none;
};

}  // namespace wide::kernels
