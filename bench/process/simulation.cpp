// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/process/simulation.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/document/result_json.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

template <class Function>
Function* symbol(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

/// Path of a library that `target` builds, in the build tree relative to this program.
std::filesystem::path built(const char* library, const char* target) {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  const std::filesystem::path path = program.parent_path().parent_path() / "verify" / library;
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorCode::unsupported, "--sim: there is no " + path.string() +
                                            "; it is built where a CUDA toolkit is found, as the "
                                            "target " +
                                            target);
  }
  return path;
}

/// Prepends `path` to the variable's value.
void prepend(const char* variable, const std::filesystem::path& path) {
  const char* others = std::getenv(variable);
  const std::string all = path.string() + (others == nullptr ? "" : ":" + std::string(others));
  ::setenv(variable, all.c_str(), 1);
}

}  // namespace

bool is_simulated() {
  static const bool is_present = symbol<int()>("wide_simcuda_present") != nullptr;
  return is_present;
}

std::string simulated_reason(std::string reason) {
  static const bool has_vendors = symbol<void(int64_t)>("wide_simvendors_fail_at") != nullptr;
  // As cuBLAS and cuDNN call it, which find no driver.
  const bool is_theirs = reason.find("_STATUS_NOT_INITIALIZED") != std::string::npos;
  if (!is_theirs || !is_simulated() || has_vendors) return reason;
  return "vendors' libraries are not simulated here, expected wbench --sim verify, which checks "
         "their calls";
}

void restart_simulated(const std::vector<std::string>& argv, SimulatedVendors vendors) {
  prepend("LD_LIBRARY_PATH", built("simcuda/lib/libcudart.so.13", "wide_simcudart").parent_path());
  if (vendors == SimulatedVendors::yes) {
    prepend("LD_PRELOAD", built("simvendors/libwide_simvendors.so", "wide_simvendors"));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : argv)
    arguments.push_back(const_cast<char*>(argument.c_str()));  // execv does not write to it
  arguments.push_back(nullptr);
  ::execv("/proc/self/exe", arguments.data());
  throw Error(ErrorCode::unsupported,
              std::string("--sim: cannot start wbench again: ") + std::strerror(errno));
}

void forget_launches() {
  if (is_simulated()) symbol<void()>("wide_simcuda_clear_launches")();
}

std::vector<LaunchCounters> counted_launches() {
  if (!is_simulated()) return {};
  try {
    return launches_from_json(
        nlohmann::ordered_json::parse(symbol<const char*()>("wide_simcuda_counters_json")()));
  } catch (const std::exception& error) {
    throw Error(ErrorCode::unsupported,
                std::string("the simulated runtime's counters: ") + error.what());
  }
}

}  // namespace wide::bench
