// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where values that live at different times may share memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace wide {

/// A piece of memory that is needed from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int64_t first = 0, last = 0;
};

struct Packing {
  std::vector<int64_t> offsets;  ///< multiples of 256
  int64_t bytes = 0;             ///< of all
};

/// The largest piece first, each at the lowest offset that is free during its lifetime. Without
/// `reuses` each has its own.
Packing pack_lifetimes(std::span<const Lifetime> lifetimes, bool reuses);

}  // namespace wide
