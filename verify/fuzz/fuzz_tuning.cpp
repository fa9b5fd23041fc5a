// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tuning caches: what is accepted is written and read again without a change.
#include "verify/fuzz/fuzz.hpp"
#include "wide/tuning.hpp"

void wide::fuzz::one_input(std::string_view text) {
  const TuningCache cache = TuningCache::parse(text, "cache");
  expect(TuningCache::parse(cache.to_text(), "cache") == cache,
         "a tuning cache is read differently from what was written");
}
