// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Words that the findings of both memories share.
#pragma once

#include <cstdint>
#include <string>

namespace wide::simt {

/// "0x40"
inline std::string hexadecimal(uint64_t value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), "0123456789abcdef"[value % 16]);
    value /= 16;
  } while (value != 0);
  return "0x" + digits;
}

constexpr const char* kUnsynchronised = ", without synchronisation in between";

}  // namespace wide::simt
