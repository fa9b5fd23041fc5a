// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Greedy by size: within a few percent of the optimum for the chains and ladders of networks, and
// the same on every machine.
#include "host/model/memory.hpp"

#include <algorithm>
#include <numeric>

#include "host/core/workspace.hpp"

namespace wide {

Packing pack_lifetimes(std::span<const Lifetime> lifetimes, bool reuses) {
  Packing packing;
  packing.offsets.assign(lifetimes.size(), 0);
  std::vector<size_t> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<size_t> placed;  // by offset
  for (const size_t i : by_size) {
    int64_t offset = reuses ? 0 : packing.bytes;
    for (const size_t other : placed) {
      const bool meets = lifetimes[other].first <= lifetimes[i].last &&
                         lifetimes[i].first <= lifetimes[other].last;
      if (!meets || !reuses) continue;
      if (packing.offsets[other] >= offset + aligned_bytes(lifetimes[i].bytes)) break;
      offset = std::max(offset, packing.offsets[other] + aligned_bytes(lifetimes[other].bytes));
    }
    packing.offsets[i] = offset;
    packing.bytes = std::max(packing.bytes, offset + aligned_bytes(lifetimes[i].bytes));
    placed.insert(std::upper_bound(
                      placed.begin(), placed.end(), i,
                      [&](size_t a, size_t b) { return packing.offsets[a] < packing.offsets[b]; }),
                  i);
  }
  return packing;
}

}  // namespace wide
