// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `run --lock-clocks`: what is asked of a driver that is played by a library, that it is given
// back, and what is said where the driver refuses.
#include "bench/nvml/clock_lock.hpp"

#include <dlfcn.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "bench/process/exit_code.hpp"
#include "bench/process/interrupt.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/folder.hpp"
#include "wide/error.hpp"

namespace wide::bench {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

constexpr const char* kBus = "0000:3b:00.0";

/// The driver's library, kept open so that what it remembers outlives a lock.
class FakeDriver {
 public:
  FakeDriver() : library_(::dlopen(WIDE_FAKE_NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL)) {
    std::ofstream("script.txt") << "1980 70000 33 0 0\n";
    setenv("WIDE_NVML", WIDE_FAKE_NVML_LIBRARY, 1);
    setenv("WIDE_FAKE_NVML", "script.txt", 1);
  }
  ~FakeDriver() {
    unsetenv("WIDE_FAKE_NVML_LOCK");
    unsetenv("WIDE_NVML");
    ::dlclose(library_);
  }
  FakeDriver(const FakeDriver&) = delete;
  unsigned locked() const { return call<unsigned>("wide_fake_nvml_locked"); }
  int users() const { return call<int>("wide_fake_nvml_open"); }

 private:
  template <class Number>
  Number call(const char* name) const {
    return reinterpret_cast<Number (*)()>(::dlsym(library_, name))();
  }
  test::TemporaryFolder folder_;
  void* library_;
};

TEST_CASE("clocks are locked while the lock lives, and given back however it ends") {
  const FakeDriver driver;
  {
    const ClockLock lock(kBus, "max");
    CHECK(driver.locked() == 1980);
    CHECK(lock.locked() == LockedClocks{"max", 1980.0});
  }
  CHECK((driver.locked() == 0 && driver.users() == 0));
  {
    const ClockLock lock(kBus, "1200");
    CHECK(driver.locked() == 1200);
    CHECK(lock.locked() == LockedClocks{"1200", 1200.0});
  }
  const auto fails = [] {
    const ClockLock lock(kBus, "base");
    throw std::runtime_error("planned");
  };
  CHECK_THROWS_AS(fails(), std::runtime_error);
  CHECK(driver.locked() == 0);
  const ClockLock base(kBus, "base");
  CHECK(driver.locked() == 0xffffff01u);  // NVML's word for it
  CHECK(base.locked() == LockedClocks{"base", std::nullopt});
}

TEST_CASE("a driver that refuses is quoted, and what would help is said") {
  const FakeDriver driver;
  setenv("WIDE_FAKE_NVML_LOCK", "4", 1);
  CHECK_THROWS_MATCHES(ClockLock(kBus, "base"), Error,
                       MessageMatches(ContainsSubstring("--lock-clocks base") &&
                                      ContainsSubstring("\"Insufficient Permissions\"") &&
                                      ContainsSubstring("as root") && ContainsSubstring(kBus)));
  setenv("WIDE_FAKE_NVML_LOCK", "3", 1);
  CHECK_THROWS_MATCHES(ClockLock(kBus, "max"), Error,
                       MessageMatches(ContainsSubstring("\"Not Supported\"")));
  CHECK((driver.locked() == 0 && driver.users() == 0));
  unsetenv("WIDE_FAKE_NVML_LOCK");
  CHECK_THROWS_MATCHES(ClockLock(kBus, "1981"), Error,
                       MessageMatches(ContainsSubstring("1981 MHz, expected at most 1980")));
  CHECK_THROWS_AS(ClockLock("0000:99:00.0", "max"), Error);
  setenv("WIDE_NVML", "libno-such-nvml.so", 1);
  CHECK_THROWS_MATCHES(ClockLock(kBus, "max"), Error,
                       MessageMatches(ContainsSubstring("libno-such-nvml.so")));
}

TEST_CASE(
    "clocks that cannot be locked are the environment's fault, words that are none the user's") {
  const std::string tiny = "run --op linear --n 2 --batch 2 --d 8 -d cpu -q --lock-clocks ";
  const Outcome cpu = wbench(tiny + "base");
  CHECK(cpu.code == kEnvironment);
  CHECK_THAT(cpu.err, ContainsSubstring("--lock-clocks base: device cpu has no clocks to lock"));
  CHECK(cpu.out.empty());
  for (const char* word : {"fast", "0", "-5", "1980MHz", "1e3"}) {
    INFO(word);
    const Outcome wrong = wbench(tiny + word);
    CHECK(wrong.code == kUsage);
    CHECK_THAT(wrong.err, ContainsSubstring("expected base, max or a number of MHz"));
  }
  CHECK_THAT(wbench(tiny + "1200 --dry-run").out, ContainsSubstring("--lock-clocks 1200"));
}

TEST_CASE("a run that is told to end, ends as if it were done") {
  for (const int signal : {SIGINT, SIGTERM}) {
    install_interrupt_handler();
    CHECK_FALSE(is_interrupted());
    std::raise(signal);
    CHECK(is_interrupted());
    set_interrupted(false);
  }
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
}

}  // namespace
}  // namespace wide::bench
