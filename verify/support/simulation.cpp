// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/simulation.hpp"

#include <dlfcn.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

namespace wide::test {

namespace {

template <class Function>
Function* symbol(const char* name) {
  void* found = ::dlsym(RTLD_DEFAULT, name);
  if (found == nullptr) FAIL("the simulated runtime has no " << name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

bool Simulation::is_present() {
  return ::dlsym(RTLD_DEFAULT, "wide_simcuda_present") != nullptr;
}

void Simulation::fail_at(int64_t k, int error, bool is_sticky) {
  symbol<void(int64_t, int, int)>("wide_simcuda_fail_at")(k, error, is_sticky ? 1 : 0);
}

int64_t Simulation::num_calls() {
  return symbol<int64_t()>("wide_simcuda_num_calls")();
}

std::string Simulation::failed_call() {
  return symbol<const char*()>("wide_simcuda_failed_call")();
}

void Simulation::reset_device() {
  symbol<void()>("wide_simcuda_reset_device")();
}

std::string Simulation::findings() {
  return symbol<const char*()>("wide_simcuda_findings_text")();
}

void Simulation::clear_findings() {
  symbol<void()>("wide_simcuda_clear_findings")();
}

std::string Simulation::leaks() {
  return symbol<const char*()>("wide_simcuda_leaks_text")();
}

void require_simulation() {
  if (Simulation::is_present()) return;
  const char* is_required = std::getenv("WIDE_REQUIRE_SIMULATION");
  if (is_required != nullptr)
    FAIL("WIDE_REQUIRE_SIMULATION is set, but another runtime is in front");
  SKIP("runs on the simulated CUDA runtime only");
}

}  // namespace wide::test
