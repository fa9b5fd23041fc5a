// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which devices a build for some architectures runs on, at hand or not.
#include "host/core/device_code.hpp"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>

#include "verify/support/known_devices.hpp"

namespace wide::test {
namespace {

/// The compute capabilities that run what is built for these architectures.
std::string devices_of(std::string_view architectures) {
  std::string text;
  for (const int capability : {75, 80, 86, 89, 90, 100, 103, 120}) {
    if (device_code_reason(gpu("a GPU", capability, 1), architectures).empty())
      text += (text.empty() ? "" : " ") + std::to_string(capability);
  }
  return text;
}

TEST_CASE("device code: PTX runs on what comes later, code within a major number") {
  CHECK(devices_of("80,90a") == "80 86 89 90 100 103 120");
  CHECK(devices_of("80") == "80 86 89 90 100 103 120");
  CHECK(devices_of("86-virtual") == "86 89 90 100 103 120");
  CHECK(devices_of("80-real") == "80 86 89");
  CHECK(devices_of("86-real") == "86 89");
  CHECK(devices_of("80-real,100-real") == "80 86 89 100 103");
  CHECK(devices_of("90a") == "90");
  CHECK(devices_of("90a-real") == "90");
  CHECK(devices_of("90a-virtual,120-real") == "90 120");
  CHECK(devices_of("100f") == "100 103");
  CHECK(devices_of("103f-real") == "103");
}

TEST_CASE("device code: of what only the compiler knows nothing is refused") {
  CHECK(devices_of("native") == devices_of(""));
  CHECK(devices_of("all-major") == devices_of(""));
  CHECK(device_code_reason(kT4, "").empty());
}

TEST_CASE("device code: a reason names the device, the build and what is missing") {
  CHECK(device_code_reason(kA100, "90a,120-real") ==
        "NVIDIA A100 has compute capability 8.0, this build has code for "
        "CMAKE_CUDA_ARCHITECTURES 90a,120-real, expected them to include 80");
  CHECK(device_code_reason(kH200, "80-real") ==
        "NVIDIA H200 has compute capability 9.0, this build has code for "
        "CMAKE_CUDA_ARCHITECTURES 80-real, expected them to include 90a");
  CHECK(device_code_reason(kT4, "80,90a") ==
        "Tesla T4 has compute capability 7.5, this build has code for CMAKE_CUDA_ARCHITECTURES "
        "80,90a, expected a device of 8.0 or later");
}

}  // namespace
}  // namespace wide::test
