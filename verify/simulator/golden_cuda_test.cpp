// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The golden vectors (golden/): this device, real or simulated, makes of fixed inputs what a real
// one has made of them. What has no fixture yet is named and skipped. WIDE_GOLDEN_WRITE=DIR writes
// fixtures instead, on a real device only, and passes over what is unfinished there.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "verify/golden/golden.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/simulation.hpp"

namespace wide::test {
namespace {

namespace fs = std::filesystem;
using golden::Case;

const fs::path kFixtures = fs::path(WIDE_SOURCE_DIR) / "verify/golden/fixtures";
constexpr uintmax_t kMaxBytes = 2 << 20;  // of all fixtures

bool runs_here(const Case& one, const Context& context) {
  const char* folder = std::getenv("WIDE_GOLDEN_WRITE");
  if (folder != nullptr && golden::is_unfinished(folder, one)) return false;
  const int capability = context.info().compute_capability;
  return capability >= one.min_capability && (!one.is_sm90a || capability == 90);
}

std::vector<std::byte> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file);
  std::vector<std::byte> bytes(fs::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  REQUIRE(file);
  return bytes;
}

/// Where they differ first, in words; -1: nowhere.
int64_t first_difference(const std::vector<std::byte>& wanted, const std::vector<std::byte>& got,
                         golden::Tolerance tolerance) {
  for (size_t i = 0; i + 4 <= wanted.size(); i += 4) {
    if (std::memcmp(&wanted[i], &got[i], 4) == 0) continue;
    float a, b;
    std::memcpy(&a, &wanted[i], 4);
    std::memcpy(&b, &got[i], 4);
    if (!tolerance || !is_near(static_cast<double>(a), static_cast<double>(b), *tolerance)) {
      return static_cast<int64_t>(i / 4);
    }
  }
  return -1;
}

}  // namespace

TEST_CASE("golden vectors: this device makes what a real one made") {
  const Context context = require_cuda();
  const char* folder = std::getenv("WIDE_GOLDEN_WRITE");
  if (folder != nullptr && Simulation::is_present())
    FAIL("a simulated GPU's results prove nothing");
  std::string missing;
  int num_compared = 0, num_missing = 0;
  for (const Case& one : golden::all_cases()) {
    if (!runs_here(one, context)) continue;
    INFO(one.name);
    if (folder != nullptr) {
      golden::write_fixture(folder, one);
      continue;
    }
    const std::vector<std::byte> got = one.run();
    const fs::path path = kFixtures / (one.name + ".bin");
    if (!fs::exists(path)) {
      missing += " " + one.name;
      ++num_missing;
      continue;
    }
    const std::vector<std::byte> wanted = read(path);
    REQUIRE(wanted.size() == got.size());
    CHECK(first_difference(wanted, got, one.tolerance) == -1);
    ++num_compared;
  }
  if (num_missing == 0) return;
  WARN("no real GPU has made a fixture yet for" << missing);
  SKIP(num_compared << " golden vectors compared, " << num_missing
                    << " not made yet by a real GPU");
}

TEST_CASE("golden vectors: a swizzle moves bytes and changes no product") {
  const Context context = require_cuda();
  std::map<std::string, std::vector<std::byte>> products;  // by name without the swizzle
  for (const Case& one : golden::all_cases()) {
    const bool has_swizzle = one.name.starts_with("wgmma") && one.name.ends_with("b");
    if (!has_swizzle || !runs_here(one, context)) continue;
    INFO(one.name);
    const std::vector<std::byte> got = one.run();
    const auto [place, is_new] = products.emplace(one.name.substr(0, one.name.rfind('_')), got);
    CHECK(place->second == got);
  }
}

TEST_CASE("golden vectors: two runs make the same, and no two cases share a name") {
  const Context context = require_cuda();
  std::map<std::string, std::vector<std::byte>> results;
  for (const Case& one : golden::all_cases()) {
    if (!runs_here(one, context)) continue;
    INFO(one.name);
    const auto [place, is_new] = results.emplace(one.name, one.run());
    CHECK(is_new);
    CHECK(one.run() == place->second);
  }
  CHECK(results.size() > 30);
}

TEST_CASE("a fixture is whole, and what did not come to its end is not run again") {
  const TemporaryFolder there;
  const fs::path folder = fs::current_path();
  int runs = 0;
  const auto bytes = std::vector<std::byte>(3, std::byte{7});
  const Case good{.name = "good", .run = [&] { return ++runs, bytes; }};
  const Case bad{.name = "bad", .run = [&]() -> std::vector<std::byte> {
                   ++runs;
                   CHECK(golden::is_unfinished(folder, Case{.name = "bad"}));
                   throw std::runtime_error("unspecified launch failure");
                 }};
  CHECK_THROWS(golden::write_fixture(folder, bad));
  for (int i = 0; i < 2; ++i) {
    golden::write_fixture(folder, bad);
    golden::write_fixture(folder, good);
  }
  CHECK(runs == 2);
  CHECK(golden::is_unfinished(folder, bad));
  CHECK(!golden::is_unfinished(folder, good));
  CHECK(!fs::exists(folder / "bad.bin"));
  CHECK(read(folder / "good.bin") == bytes);
}

TEST_CASE("golden vectors: what may hang comes last") {
  const std::vector<Case> cases = golden::all_cases();
  const auto steps = [](const Case& one) { return one.name.find("_steps") != std::string::npos; };
  const auto first = std::find_if(cases.begin(), cases.end(), steps);
  CHECK(cases.end() - first == 4);
  CHECK(std::all_of(first, cases.end(), steps));
}

TEST_CASE("a kernel's own shared memory counts in what it gets unasked and in all that there is") {
  const Context context = require_cuda();
  constexpr int kUnasked = 48 * 1024 - golden::kOwnSharedBytes;
  const auto most =
      static_cast<int>(context.info().shared_bytes_per_block) - golden::kOwnSharedBytes;
  if (Simulation::is_present()) Simulation::clear_findings();
  CHECK(golden::launch_with_shared(kUnasked) == cudaSuccess);
  CHECK(golden::launch_with_shared(kUnasked + 16) == cudaErrorInvalidValue);
  CHECK(golden::allow_shared(most + 1) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(golden::allow_shared(most) == cudaSuccess);
  CHECK(golden::launch_with_shared(most) == cudaSuccess);
  if (!Simulation::is_present()) return;
  CHECK(Simulation::findings().empty());
  CHECK(golden::allow_shared(kUnasked) == cudaSuccess);
  CHECK(Simulation::findings().find("another thread's launch may need") != std::string::npos);
  Simulation::clear_findings();
}

TEST_CASE("golden vectors: the fixtures are few bytes, and each is some case's") {
  uintmax_t bytes = 0;
  if (!fs::exists(kFixtures)) return;
  const std::vector<Case> cases = golden::all_cases();
  for (const fs::directory_entry& entry : fs::directory_iterator(kFixtures)) {
    if (entry.path().extension() != ".bin") continue;
    bytes += entry.file_size();
    INFO(entry.path());
    CHECK(std::any_of(cases.begin(), cases.end(),
                      [&](const Case& one) { return one.name == entry.path().stem(); }));
  }
  CHECK(bytes < kMaxBytes);
}

}  // namespace wide::test
