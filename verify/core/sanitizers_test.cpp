// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Programs of one build run on another's library, under the sanitizers that it was compiled for: it
// is that library, and they are there.
#include "verify/support/sanitizers.hpp"

#include <dlfcn.h>

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "host/core/file.hpp"
#include "wide/version.hpp"

namespace wide::test {
namespace {

TEST_CASE("sanitizers: the library under test calls them, where they are") {
  Dl_info library{};
  REQUIRE(::dladdr(reinterpret_cast<const void*>(&version), &library) != 0);
  INFO(library.dli_fname);
  const std::string code = read_file(library.dli_fname);
  const bool calls = code.find("__asan_report_store8") != std::string::npos ||
                     code.find("__tsan_write8") != std::string::npos;
  CHECK(calls == is_watched());
  if (const char* wanted = std::getenv("WIDE_WATCHED_LIBRARY")) {
    CHECK(is_watched());
    CHECK(std::filesystem::equivalent(library.dli_fname, wanted));
  }
}

}  // namespace
}  // namespace wide::test
