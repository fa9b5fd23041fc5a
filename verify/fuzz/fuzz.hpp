// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the fuzzers share: libFuzzer calls one_input() of a target with everything it thinks of. An
// error of ours is how bad input ends; anything else that is thrown, and a crash, is a finding.
// With WIDE_FUZZ_ACCEPTS in the environment so is an error of ours: that is how seeds are checked.
// scripts/fuzz builds and runs them.
#pragma once

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
