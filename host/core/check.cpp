// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Out of line, so that a check in a header costs its callers a comparison and a call.
#include "host/core/check.hpp"

#include "wide/error.hpp"

namespace wide {

std::string range_text(int64_t first, int64_t count) {
  int64_t end = 0;
  const std::string begin = std::to_string(first);
  const bool has_end = !__builtin_add_overflow(first, count, &end);
  return "[" + begin + ", " +
         (has_end ? std::to_string(end) : begin + " + " + std::to_string(count)) + ")";
}

void throw_invalid_argument(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, message);
}

void throw_unsupported(const std::string& message) {
  throw Error(ErrorCode::unsupported, message);
}

void no_cuda(std::string_view primitive) {
  throw_unsupported(std::string(primitive) + ": this build of wide has no CUDA");
}

}  // namespace wide
