// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Problems that are refused: each is a good one, spoilt in one place, and the message that says so.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <span>
#include <type_traits>

#include "wide/error.hpp"

namespace wide::test {

template <class Problem>
struct Refusal {
  void (*spoil)(Problem&);
  const char* message;
};

/// `check` throws where a problem is refused; the good one is not.
template <class Problem, class Check>
void check_refusals(const Problem& good,
                    std::span<const Refusal<std::type_identity_t<Problem>>> refusals,
                    const Check& check) {
  CHECK_NOTHROW(check(good));
  for (const Refusal<Problem>& refusal : refusals) {
    Problem bad = good;
    refusal.spoil(bad);
    CHECK_THROWS_MATCHES(check(bad), Error, Catch::Matchers::Message(refusal.message));
  }
}

}  // namespace wide::test
