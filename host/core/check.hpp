// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How arguments are refused. A macro, so that a message of many parts is put together only where
// it is needed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wide {

/// "linear: weight", put together only where it becomes part of a message: calls that are right
/// allocate nothing.
struct ArgumentName {
  std::string_view primitive, argument;
  friend std::string operator+(const ArgumentName& name, const char* text) {
    return std::string(name.primitive) + ": " + std::string(name.argument) + text;
  }
};

inline ArgumentName name_of(std::string_view primitive, std::string_view argument) {
  return {primitive, argument};
}

/// "[2, 6)" of the 4 elements from 2 on; "[2, 2 + 9223372036854775807)" where the sum overflows.
std::string range_text(int64_t first, int64_t count);

[[noreturn]] void throw_invalid_argument(const std::string& message);
[[noreturn]] void throw_unsupported(const std::string& message);
/// Stands in for CUDA's part of a primitive in a build without CUDA: no CUDA context can exist
/// there, so that reaching it is a bug in the library.
[[noreturn]] void no_cuda(std::string_view primitive);

}  // namespace wide

#define WIDE_REQUIRE(condition, message)                         \
  do {                                                           \
    if (!(condition)) ::wide::throw_invalid_argument((message)); \
  } while (false)
