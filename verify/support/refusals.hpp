// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Calls and problems that are refused, with the message that says so; a problem is a good one,
// spoilt in one place.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <functional>
#include <span>
#include <string>
#include <type_traits>

#include "verify/support/error_of.hpp"
#include "wide/error.hpp"

namespace wide::test {

/// What the Error that a call throws says, which is of this code.
inline std::string message_of(ErrorCode code, const std::function<void()>& call) {
  const std::string text = error_of(call, code);
  CHECK_FALSE(text.starts_with("other code: "));
  return text;
}

inline std::string refusal_of(const std::function<void()>& call) {
  return message_of(ErrorCode::invalid_argument, call);
}

template <class Problem>
struct Refusal {
  void (*spoil)(Problem&);
  const char* message;
};

/// `check` throws where a problem is refused, `name` before the message; the good one is not.
template <class Problem, class Check>
void check_refusals(const Problem& good,
                    std::span<const Refusal<std::type_identity_t<Problem>>> refusals,
                    const Check& check, const std::string& name = "") {
  CHECK_NOTHROW(check(good));
  for (const Refusal<Problem>& refusal : refusals) {
    Problem bad = good;
    refusal.spoil(bad);
    CHECK_THROWS_MATCHES(check(bad), Error, Catch::Matchers::Message(name + refusal.message));
  }
}

}  // namespace wide::test
