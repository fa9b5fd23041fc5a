// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Keeping operands out of the L2. Either it is flushed before every sample: that is one call, or,
// where one may be too short for a pair of events, calls on as many copies of the operands, each of
// which is taken once. Or samples follow one another, and by the time that a copy is taken again
// the others have replaced it. The arithmetic is here, without a device: too few copies or calls
// make a warm measurement that claims to be cold (flashinfer #4468: 36 % too fast).
#pragma once

#include <cstdint>

#include "bench/document/result.hpp"

namespace wide::bench {

struct ColdRule {
  Cache cache = Cache::flush;
  double l2_factor = 2;
  int64_t l2_bytes = 0;         ///< as the device reports it
  int64_t touched_bytes = 0;    ///< by one call, of its operands
  int64_t footprint_bytes = 0;  ///< of its operands; of tables, a call touches few rows
  /// Bytes that are flushed, or rotated over.
  double covered_bytes() const { return l2_factor * static_cast<double>(l2_bytes); }
};

/// More copies of small operands would take longer to make than to measure; behind a flush fewer
/// calls last long enough, however short they are.
inline constexpr int64_t kMaxCopies = 256, kMaxFlushedCopies = 128;

/// Copies behind a flush, which have to be made for every case, together take at most this many
/// times the bytes that are flushed.
inline constexpr double kMaxCopiedFlushes = 4;

/// Copies of the operands that calls take in turn, all contenders' alike. Behind a flush those of
/// calls that touch less than the L2 holds: as many as cover what is flushed, but at most
/// kMaxFlushedCopies and kMaxCopiedFlushes; 1 of others, which last long enough. Without a flush at
/// least two, and enough that together they cover the L2 by the factor. Throws unsupported if the
/// L2's size is unknown, or if the latter takes more than kMaxCopies.
int64_t copies_of(const ColdRule& rule);

/// How many calls behind a flush, each on its own copy, last `sample_ns` together, as near as the
/// copies allow; two at least where there are two, so that all calls of a case are timed alike.
int64_t flushed_calls(double once_ns, double sample_ns, int64_t copies);

/// At least `wanted` calls, rounded up so that every copy is used equally often.
int64_t rotated_calls(int64_t wanted, int64_t copies);

/// Whether calls that take copies in turn find them evicted from the L2.
bool covers_l2(const ColdRule& rule, int64_t copies, int64_t calls);

}  // namespace wide::bench
