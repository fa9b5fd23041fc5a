// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the fuzzers share: libFuzzer calls one_input() of a target with everything it thinks of. An
// error of ours is how bad input ends; anything else that is thrown, and a crash, is a finding.
// With WIDE_FUZZ_ACCEPTS in the environment so is an error of ours: that is how seeds are checked.
// scripts/fuzz builds and runs them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "wide/error.hpp"

namespace wide::fuzz {

/// Throws Error where the input is refused.
void one_input(std::string_view text);

inline void expect(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

/// Shows where two texts part: the input that makes them is seldom at hand where it was found.
inline void expect_same(std::string_view first, std::string_view second, const char* what) {
  const auto [a, b] = std::mismatch(first.begin(), first.end(), second.begin(), second.end());
  if (a == first.end() && b == second.end()) return;
  const size_t same = static_cast<size_t>(a - first.begin()),
               from = same - std::min<size_t>(same, 200);
  const std::string before(first.substr(from, 400)), after(second.substr(from, 400));
  std::fprintf(stderr, "fuzz: from character %zu: %s\nand then: %s\n", from, before.c_str(),
               after.c_str());
  expect(false, what);
}

}  // namespace wide::fuzz

extern "C" inline __attribute__((used)) int LLVMFuzzerTestOneInput(const uint8_t* data,
                                                                   size_t size) {
  try {
    wide::fuzz::one_input({reinterpret_cast<const char*>(data), size});
  } catch (const wide::Error& error) {
    wide::fuzz::expect(error.what()[0] != '\0', "an error without words");
    wide::fuzz::expect(std::getenv("WIDE_FUZZ_ACCEPTS") == nullptr, error.what());
  }
  return 0;
}
