// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the threads of a CPU context have of the thread and the process that call them, and how
// many there are; and what memory is left.
#include "host/core/parallel.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cfenv>
#include <chrono>
#include <climits>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <thread>

#include "host/core/cpu_device.hpp"
#include "host/core/float_control.hpp"
#include "verify/support/folder.hpp"

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

#ifndef __SANITIZE_THREAD__  // which knows no threads that a child starts
TEST_CASE("parallel_for: in the child of a fork it runs, and its context can go") {
  std::optional<Context> context = two_threads();
  const auto sum_of_all = [&] {
    std::atomic<int64_t> sum{0};
    parallel_for(*context, 100, [&](int64_t task) { sum += task; });
    return sum.load();
  };
  CHECK(sum_of_all() == 4950);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until the other thread sleeps
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::alarm(20);  // seconds until it is killed where it hangs
    bool is_right = true;
    for (int i = 0; i < 10; ++i) is_right = is_right && sum_of_all() == 4950;
    context.reset();
    is_right = is_right && two_threads().info().num_multiprocessors == 2;  // one of its own
    ::_exit(is_right ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(status == 0);
  CHECK(sum_of_all() == 4950);  // and here as before
}
#endif

// As where a scheduler wakes threads on the processor of who wakes them, to save power.
TEST_CASE("parallel_for: a thread leaves its caller's processor, and may come back") {
  const Context context = two_threads();
  cpu_set_t usable;
  REQUIRE(sched_getaffinity(0, sizeof(usable), &usable) == 0);
  if (std::min(CPU_COUNT(&usable), usable_cpu_threads()) < 2) SKIP("needs two processors");
  const int busy = sched_getcpu();
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(static_cast<size_t>(busy), &here);
  const auto caller = std::this_thread::get_id();
  const auto by_the_other = [&](const auto& body) {
    std::atomic<int> num_begun{0};
    parallel_for(context, 2, [&](int64_t) {
      ++num_begun;
      while (num_begun < 2) std::this_thread::yield();
      if (std::this_thread::get_id() != caller) body();
    });
  };
  REQUIRE(sched_setaffinity(0, sizeof(here), &here) == 0);
  bool has_left = false;
  cpu_set_t its{};
  for (int i = 0; i < 3 && !has_left; ++i) {  // one may meet other programs' threads
    by_the_other([&] {
      sched_setaffinity(0, sizeof(here), &here);
      sched_setaffinity(0, sizeof(usable), &usable);
    });
    by_the_other([&] {
      has_left = sched_getcpu() != busy;
      sched_getaffinity(0, sizeof(its), &its);
    });
  }
  REQUIRE(sched_setaffinity(0, sizeof(usable), &usable) == 0);
  CHECK(has_left);
  CHECK(CPU_EQUAL(&its, &usable));
}

TEST_CASE("parallel_for: each thread begins with the same task every time") {
  const Context context = two_threads();
  const auto caller = std::this_thread::get_id();
  for (int i = 0; i < 10; ++i) {
    std::array<int64_t, 2> first{-1, -1};
    std::atomic<int> num_begun{0};
    parallel_for(context, 9, [&](int64_t task) {
      int64_t& its = first[std::this_thread::get_id() == caller ? 0 : 1];
      if (its >= 0) return;
      its = task;
      ++num_begun;
      while (num_begun < 2) std::this_thread::yield();
    });
    CHECK(first == std::array<int64_t, 2>{0, 5});
  }
}

TEST_CASE("contexts of the CPU have as many threads whichever thread makes them") {
  const int expected = Context::cpu().info().num_multiprocessors;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  REQUIRE(sched_getaffinity(0, sizeof(mask), &mask) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &mask)) ++first;
  CPU_ZERO(&mask);
  CPU_SET(first, &mask);
  bool is_pinned = false;
  int got = 0;
  std::thread([&] {
    is_pinned = sched_setaffinity(0, sizeof(mask), &mask) == 0;
    got = Context::cpu().info().num_multiprocessors;
  }).join();
  REQUIRE(is_pinned);
  CHECK(got == expected);
}

TEST_CASE("what the CPU is is read once, as reading a member back makes a context") {
  const DeviceInfo first = cpu_device_info(1);
  rlimit own{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &own) == 0);
  const rlimit none{0, own.rlim_max};  // no file can be opened
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const DeviceInfo again = cpu_device_info(2);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &own) == 0);
  CHECK(again.name == first.name);
  CHECK(again.last_level_cache_bytes == first.last_level_cache_bytes);
  CHECK(again.num_multiprocessors == 2);
}

TEST_CASE("a CPU has its model's name, or on ARM its numbers") {
  const auto name = [](const char* text) {
    std::istringstream cpuinfo(text);
    return cpu_model_name(cpuinfo);
  };
  CHECK(name("processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu\n") == "AMD EPYC");
  CHECK(name("processor\t: 0\nCPU implementer\t: 0x41\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n") ==
        "CPU implementer 0x41 part 0xd4f");
  CHECK(name("processor\t: 0\nFeatures\t:\n") == "CPU");
}

TEST_CASE("a control group's quota is processors, rounded up") {
  CHECK(cpu_quota("200000 100000") == 2);
  CHECK(cpu_quota("150000 100000\n") == 2);
  CHECK(cpu_quota("1000 100000") == 1);
  CHECK(cpu_quota("100001 100000") == 2);
  CHECK(cpu_quota("9223372036854775807 1") == INT_MAX);
  for (const char* none : {"max 100000", "", "100000", "0 100000", "-1 100000", "100000 0",
                           "99999999999999999999 100000", "many few"}) {
    CAPTURE(none);
    CHECK(cpu_quota(none) == INT_MAX);
  }
}

TEST_CASE("memory that is available is the machine's, and no more than a control group has left") {
  const test::TemporaryFolder folder;  // and the current one
  const auto put = [](const std::filesystem::path& path, const char* text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  CHECK(available_memory_bytes(".") == INT64_MAX);
  put("proc/meminfo", "MemTotal: 9000 kB\nMemFree: 10 kB\nMemAvailable:    8000 kB\n");
  CHECK(available_memory_bytes(".") == 8000 * 1024);
  SECTION("of version 2") {
    put("sys/fs/cgroup/memory.current", "5000\n");
    put("sys/fs/cgroup/memory.max", "max\n");
    CHECK(available_memory_bytes(".") == 8000 * 1024);
    put("sys/fs/cgroup/memory.max", "6000\n");
    CHECK(available_memory_bytes(".") == 1000);
    put("sys/fs/cgroup/memory.stat", "anon 1\ninactive_file 300\nactive_file 20\n");
    CHECK(available_memory_bytes(".") == 1320);
    put("sys/fs/cgroup/memory.max", "4000\n");
    CHECK(available_memory_bytes(".") == 0);
  }
  SECTION("of version 1") {
    put("sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(available_memory_bytes(".") == 8000 * 1024);
    put("sys/fs/cgroup/memory/memory.limit_in_bytes", "7000\n");
    CHECK(available_memory_bytes(".") == 2000);
  }
  CHECK(available_memory_bytes() > 0);
}
