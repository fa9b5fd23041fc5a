// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The grammar of axis values on the command line:
//   SPEC  := ITEM { "," ITEM } | "all"                                   all: of an axis of words
//   ITEM  := VALUE | LO ":" HI [ ":" STEP ] | LO ":" HI ":x" FACTOR      both ends inclusive
//   VALUE := INT [ K | M | G ] | "2^" INT | WORD                         K, M, G are binary
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wide/catalog.hpp"

namespace wide::bench {

/// What stands for all names of a list.
inline constexpr std::string_view kAll = "all";

/// Values of one axis, without duplicates. `axis` names it in errors and determines whether
/// integers or words are expected; with `powers` every value v stands for 2^v ("n[pow2]=1:5").
/// Throws invalid_argument for anything that the grammar or the axis does not allow.
std::vector<catalog::AxisValue> parse_values(const catalog::AxisInfo& axis, std::string_view spec,
                                             bool powers = false);

/// INT [ K | M | G ] | "2^" INT; throws as parse_values() does.
int64_t parse_integer(std::string_view axis, std::string_view text);

struct AxisOverride {
  std::string name;
  std::string spec;
  bool powers = false;
};

/// "NAME=SPEC", "NAME[pow2]=SPEC", "NAME=[SPEC]".
AxisOverride parse_override(std::string_view text);

/// "a,b,c" -> names; empty items are refused. `what` is for the error message.
std::vector<std::string> parse_list(std::string_view what, std::string_view text);
/// The same, with `all` in the place of "all".
std::vector<std::string> parse_list(std::string_view what, std::string_view text,
                                    std::span<const std::string_view> all);

}  // namespace wide::bench
