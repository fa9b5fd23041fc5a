// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Keeping operands out of the L2. Either it is flushed before every call, and one call is timed
// alone; or calls take copies of the operands in turn, and by the time a copy is used again the
// others have replaced it. Which of the two suits a case, and the arithmetic of the latter, are
// here, without a device: too few copies or calls make a warm measurement that claims to be cold
// (flashinfer #4468: 36 % too fast).
#pragma once

#include <cstdint>

#include "bench/document/result.hpp"

namespace wide::bench {

struct ColdRule {
  Cache cache = Cache::flush;
  double l2_factor = 2;
  int64_t l2_bytes = 0;       ///< as the device reports it
  int64_t touched_bytes = 0;  ///< by one call, of its operands
  /// Bytes that are flushed, or rotated over.
  double covered_bytes() const { return l2_factor * static_cast<double>(l2_bytes); }
};

/// More copies of small operands would take longer to make than to measure.
inline constexpr int64_t kMaxCopies = 256;

/// The rule's cache, or what Cache::automatic is for it. Calls that touch less than the L2 holds
/// may be too short for a pair of events around a single one: they rotate, unless that takes more
/// than kMaxCopies. All others follow a flush. All contenders of a case are timed by one method.
Cache chosen_cache(const ColdRule& rule);

/// Copies of the operands that calls take in turn: at least two, and enough that together
/// they cover the L2 by the factor; 1 unless calls rotate. Throws unsupported if the L2's size
/// is unknown, or if that takes more than kMaxCopies.
int64_t copies_of(const ColdRule& rule);

/// At least `wanted` calls, rounded up so that every copy is used equally often.
int64_t rotated_calls(int64_t wanted, int64_t copies);

/// Whether calls that take copies in turn find them evicted from the L2.
bool covers_l2(const ColdRule& rule, int64_t copies, int64_t calls);

}  // namespace wide::bench
