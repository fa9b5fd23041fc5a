// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Small words that everything in the simulated GPU uses.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace wide::simt {

constexpr int kLanes = 32;
using LaneMask = uint32_t;
constexpr LaneMask kAllLanes = 0xffffffffu;

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  int64_t count() const { return int64_t{x} * y * z; }
};

/// A line of a kernel's source. The text belongs to the module that the line is of.
struct Location {
  const char* file = nullptr;
  int line = 0;
  bool operator==(const Location&) const = default;
};
/// "linear_simt.cu:214", or nothing.
std::string to_string(const Location& location);

/// What the simulated GPU refuses to run, because it would have to guess: named, with its line.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// When an asynchronous copy lands: as late as it may, at once, or at any time in between.
enum class Delivery { lazy, eager, random };

struct Options {
  uint32_t seed = 0;  ///< 0: warps in order; else a random, repeatable order
  Delivery delivery = Delivery::lazy;
};

}  // namespace wide::simt
