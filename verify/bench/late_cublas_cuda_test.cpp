// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuBLAS is loaded when its first function is called, where there is a driver, and nowhere else;
// and what stands in front of it gets the calls. It must be this process's first test case.
#include <dlfcn.h>

#include <array>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdio>
#include <string>

#include "host/core/file.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/simulation.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

bool is_cublas_loaded() {
  const std::string mapped = read_file("/proc/self/maps");
  REQUIRE(mapped.find("/libcudart.so") != std::string::npos);
  return mapped.find("/libcublasLt.so") != std::string::npos;
}

/// What the program would load before its main().
std::string loaded_with(const std::string& program) {
  std::FILE* listing = ::popen(("LD_TRACE_LOADED_OBJECTS=1 " + program).c_str(), "r");
  REQUIRE(listing != nullptr);
  std::string files;
  std::array<char, 4096> part;
  while (size_t bytes = std::fread(part.data(), 1, part.size(), listing)) {
    files.append(part.data(), bytes);
  }
  REQUIRE(::pclose(listing) == 0);
  return files;
}

TEST_CASE("cuBLAS is loaded by its first call, where there is a driver") {
  CHECK_FALSE(is_cublas_loaded());
  const Context context = require_cuda();
  CHECK_FALSE(is_cublas_loaded());
  const VendorHandles handles(context);
  const bool has_driver = ::dlopen("libcuda.so.1", RTLD_NOW) != nullptr;
  CHECK(is_cublas_loaded() == has_driver);
  if (!has_driver) {
    CHECK(handles.cublas() == nullptr);
    CHECK_THAT(handles.cublas_unavailable_reason(),
               StartsWith("cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED: libcuda.so.1: "));
  } else if (Simulation::is_present()) {  // the driver is none, which the library itself found out
    CHECK(handles.cublas_unavailable_reason() == "cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED");
  } else {
    CHECK(handles.cublas_unavailable_reason().empty());
  }
}

TEST_CASE("wbench starts without cuBLAS") {
  const std::string files = loaded_with(WIDE_BINARY_DIR "/bench/wbench");
  CHECK_THAT(files, ContainsSubstring("libcudart.so"));
  CHECK_THAT(files, !ContainsSubstring("libcublas"));
}

}  // namespace
}  // namespace wide::test
