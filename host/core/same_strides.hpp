// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// That operands lie as a plan's problem has them; throws invalid_argument with both.
#pragma once

#include <string>
#include <string_view>

#include "host/core/check.hpp"
#include "wide/channels.hpp"
#include "wide/strides.hpp"

namespace wide {

inline std::string strides_text(const RowStrides& s) {
  return "{row " + std::to_string(s.row) + ", member " + std::to_string(s.member) + "}";
}
inline std::string strides_text(const ChannelStrides& s) {
  return "{batch " + std::to_string(s.batch) + ", member " + std::to_string(s.member) +
         ", channel " + std::to_string(s.channel) + ", row " + std::to_string(s.row) + ", column " +
         std::to_string(s.column) + "}";
}

template <class Strides>
void require_same_strides(std::string_view primitive, std::string_view operand, const Strides& got,
                          const Strides& expected) {
  WIDE_REQUIRE(got == expected, std::string(primitive) + ": the operands' stride of " +
                                    std::string(operand) + " is " + strides_text(got) +
                                    ", expected the plan's = " + strides_text(expected));
}

/// `what` it is: "member stride of bias".
inline void require_same_stride(std::string_view primitive, std::string_view what, int64_t got,
                                int64_t expected) {
  WIDE_REQUIRE(got == expected, std::string(primitive) + ": the operands' " + std::string(what) +
                                    " is " + std::to_string(got) +
                                    ", expected the plan's = " + std::to_string(expected));
}

}  // namespace wide
