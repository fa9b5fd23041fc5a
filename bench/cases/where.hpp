// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which cases to keep, as an expression over a primitive's axes (--where):
//   OR    := AND { "or" AND }         AND := NOT { "and" NOT }        NOT := "not" NOT | TEST
//   TEST  := SUM [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" ) SUM ]
//   SUM   := TERM { ( "+" | "-" ) TERM }                  TERM := SIGN { ( "*" | "/" | "%" ) SIGN }
//   SIGN  := "-" SIGN | INT [ K | M | G ] | "2^" INT | AXIS | WORD | "(" OR ")"
// Words are compared with axes that have words, by == and !=; numbers are 64 bits, and overflow
// is an error; / and % truncate towards zero.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "wide/catalog.hpp"

namespace wide::bench {

class Where {
 public:
  /// An empty text holds for every case. Throws invalid_argument for what the grammar or the
  /// primitive's axes do not allow, with the nearest names.
  Where(std::string_view text, const catalog::PrimitiveSpec& spec);

  /// For a case of the same primitive. Throws invalid_argument, with the case, if a number
  /// overflows 64 bits or is divided by zero.
  bool holds(const catalog::Case& point) const;

  /// One step of a stack machine, so that a long expression needs no deep recursion.
  struct Step {
    enum class Code : uint8_t {
      constant,
      axis,
      negate,
      invert,
      add,
      subtract,
      multiply,
      divide,
      modulo,
      equal,
      unequal,
      less,
      less_equal,
      greater,
      greater_equal,
      end_if_false,  ///< jumps and keeps the top of the stack; otherwise drops it
      end_if_true,
    };
    Code code = Code::constant;
    catalog::AxisValue value{};  ///< of a constant
    size_t target = 0;           ///< an axis' index, or where to jump
  };

 private:
  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace wide::bench
