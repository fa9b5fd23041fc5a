// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a CPU context have of the thread and the process that call them.
#include "host/core/parallel.hpp"

#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cfenv>
#include <cmath>
#include <limits>
#include <thread>

#include "host/core/float_control.hpp"

using namespace wide;

namespace {

Context two_threads() {
  return Context::cpu({.num_threads = 2, .allocator = nullptr});
}

/// What two threads have computed, each in a task: the first waits for the second.
std::array<float, 2> by_both_threads(const Context& context, float a, float b) {
  std::array<float, 2> results{};
  std::atomic<int> num_begun{0};
  parallel_for(context, 2, [&](int64_t task) {
    ++num_begun;
    while (num_begun < 2) std::this_thread::yield();
    const volatile float left = a, right = b;
    results[static_cast<size_t>(task)] = left * right;
  });
  return results;
}

}  // namespace

TEST_CASE("parallel_for: all threads round as the caller does") {
  const Context context = two_threads();
  const float a = std::nextafter(1.0F, 2.0F), above = std::nextafter(a, 2.0F);
  const std::array<float, 2> near{above, above};
  const std::array<float, 2> up{std::nextafter(above, 2.0F), std::nextafter(above, 2.0F)};
  CHECK(by_both_threads(context, a, a) == near);
  REQUIRE(std::fesetround(FE_UPWARD) == 0);
  const std::array<float, 2> got = by_both_threads(context, a, a);
  REQUIRE(std::fesetround(FE_TONEAREST) == 0);
  CHECK(got == up);
  CHECK(by_both_threads(context, a, a) == near);  // the threads are what they were
}

#if defined(__x86_64__)
TEST_CASE("parallel_for: all threads flush denormal numbers where the caller does") {
  constexpr uint64_t kFlushes = 0x8040;  // FTZ and DAZ
  const Context context = two_threads();
  const float least = std::numeric_limits<float>::min();
  CHECK(by_both_threads(context, least, 0.5F) == std::array<float, 2>{least / 2, least / 2});
  std::array<float, 2> flushed{1, 1};
  {
    const FloatControl flushes(float_control() | kFlushes);
    flushed = by_both_threads(context, least, 0.5F);
  }
  CHECK(flushed == std::array<float, 2>{0, 0});
  CHECK(by_both_threads(context, least, 0.5F) == std::array<float, 2>{least / 2, least / 2});
}
#endif
