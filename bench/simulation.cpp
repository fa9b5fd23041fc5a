// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/simulation.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "bench/result_json.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr const char* kLibrary = "libcudart.so.13";

template <class Function>
Function* symbol(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

/// Beside this program in the build tree.
std::filesystem::path library_folder() {
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  return program.parent_path().parent_path() / "verify" / "simcuda" / "lib";
}

}  // namespace

bool is_simulated() {
  static const bool is_present = symbol<int()>("wide_simcuda_present") != nullptr;
  return is_present;
}

void restart_simulated(const std::vector<std::string>& argv) {
  const std::filesystem::path folder = library_folder();
  if (!std::filesystem::exists(folder / kLibrary)) {
    throw Error(ErrorCode::unsupported, "--sim: there is no " + (folder / kLibrary).string() +
                                            "; it is built where a CUDA toolkit is found, as the "
                                            "target wide_simcudart");
  }
  const char* others = std::getenv("LD_LIBRARY_PATH");
  const std::string path = folder.string() + (others == nullptr ? "" : ":" + std::string(others));
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
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
