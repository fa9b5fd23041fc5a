// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The message of a call that is refused.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "wide/error.hpp"

namespace wide::test {

/// What a call throws; where it is not the expected code that is told first.
inline std::string error_of(const std::function<void()>& call,
                            std::optional<ErrorCode> expected = {}) {
  try {
    call();
  } catch (const Error& error) {
    const bool is_other = expected.has_value() && error.code() != *expected;
    return (is_other ? "other code: " : "") + std::string(error.what());
  }
  return "nothing was thrown";
}

}  // namespace wide::test
