// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/timer/cold.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "host/core/text.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

double copies_that_cover(const ColdRule& rule) {
  return std::ceil(rule.covered_bytes() /
                   static_cast<double>(std::max<int64_t>(rule.touched_bytes, 1)));
}

int64_t copies_behind_flush(const ColdRule& rule) {
  if (rule.touched_bytes >= rule.l2_bytes) return 1;
  const double made = kMaxCopiedFlushes * rule.covered_bytes() /
                      static_cast<double>(std::max<int64_t>(rule.footprint_bytes, 1));
  const double copies =
      std::min({copies_that_cover(rule), static_cast<double>(kMaxFlushedCopies), made});
  return std::max<int64_t>(1, static_cast<int64_t>(copies));
}

}  // namespace

int64_t copies_of(const ColdRule& rule) {
  if (rule.l2_bytes <= 0)
    throw Error(ErrorCode::unsupported, "the device does not say how large its L2 is");
  if (rule.cache == Cache::flush) return copies_behind_flush(rule);
  if (rule.cache != Cache::rotate) return 1;
  const double copies = copies_that_cover(rule);
  if (copies > kMaxCopies) {
    throw Error(ErrorCode::unsupported,
                "rotation would take more than " + std::to_string(kMaxCopies) +
                    " copies for calls that touch " + counted(rule.touched_bytes, "byte") +
                    "; --cache flush needs none");
  }
  return std::max<int64_t>(2, static_cast<int64_t>(copies));
}

int64_t flushed_calls(double once_ns, double sample_ns, int64_t copies) {
  const double calls = std::ceil(sample_ns / std::max(once_ns, 1.0));
  const double most = static_cast<double>(copies);
  return static_cast<int64_t>(std::clamp(calls, std::min(2.0, most), most));
}

int64_t rotated_calls(int64_t wanted, int64_t copies) {
  return (std::max(wanted, copies) + copies - 1) / copies * copies;
}

bool covers_l2(const ColdRule& rule, int64_t copies, int64_t calls) {
  return copies >= 2 && calls >= copies && calls % copies == 0 &&
         static_cast<double>(copies) * static_cast<double>(rule.touched_bytes) >=
             rule.covered_bytes();
}

}  // namespace wide::bench
