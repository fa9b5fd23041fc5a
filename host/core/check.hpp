// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How arguments are refused. A macro, so that a message of many parts is put together only where
// it is needed.
#pragma once

#include <string>

#include "wide/error.hpp"

namespace wide {

[[noreturn]] void throw_invalid_argument(const std::string& message);
[[noreturn]] void throw_unsupported(const std::string& message);

}  // namespace wide

#define WIDE_REQUIRE(condition, message)                         \
  do {                                                           \
    if (!(condition)) ::wide::throw_invalid_argument((message)); \
  } while (false)
