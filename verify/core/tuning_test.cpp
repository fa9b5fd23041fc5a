// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The tuning cache as a file: what is kept comes back, what is no cache is refused and left alone.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <filesystem>
#include <iterator>
#include <limits>
#include <thread>
#include <vector>

#include "host/core/file.hpp"
#include "host/core/verified.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/known_devices.hpp"
#include "wide/wide.hpp"

namespace wide {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace test;  // devices

const TuningEntry kEntry{"small_m", "m16n64", 12.25, 8, "0123abcd"};

template <class Call>
std::pair<ErrorCode, std::string> error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ErrorCode::cuda, "nothing was thrown"};
}

TEST_CASE("what a tuning cache keeps comes back from its file") {
  TuningCache cache;
  cache.set(kH200, "linear", "n=4 batch=16", kEntry);
  cache.set(kH200, "linear", "n=8 batch=16", {"cublaslt", "", 1e-3, 1, ""});
  cache.set(kH200, "linear", "n=9 batch=16", {"cublaslt", "h1", 1, 3, "", true, "asked"});
  cache.set(gpu("a \"name\"\nwith everything", 0, 2), "linear", "", {"wide", "", 1e6, 2, "x"});
  const TemporaryFolder folder;
  cache.save("t.json");
  const TuningCache loaded = TuningCache::load("t.json");
  CHECK(loaded == cache);
  CHECK(loaded.size() == 4);
  cache.save("t.json");  // over itself
  CHECK(TuningCache::load("t.json") == cache);
  REQUIRE(loaded.find(kH200, "linear", "n=4 batch=16") != nullptr);
  CHECK(*loaded.find(kH200, "linear", "n=4 batch=16") == kEntry);
  CHECK(TuningCache::parse(TuningCache().to_text(), "empty").size() == 0);
}

TEST_CASE("an entry that a file could not give back is refused before it is in one") {
  TuningCache cache;
  cache.set(kH200, "linear", "n=4", kEntry);
  const auto refuses = [&](const char* message, const TuningEntry& entry) {
    const auto [code, what] = error_of([&] { cache.set(kH200, "linear", "n=4", entry); });
    CHECK(code == ErrorCode::invalid_argument);
    CHECK_THAT(what, ContainsSubstring(message));
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  refuses("tuning: time_us is 0, expected a finite number above 0", {"wide", "", 0, 1, ""});
  refuses("time_us is -1e-09, expected", {"wide", "", -1e-9, 1, ""});
  refuses("time_us is nan", {"wide", "", std::numeric_limits<double>::quiet_NaN(), 1, ""});
  refuses("time_us is inf", {"wide", "", kInfinity, 1, ""});
  refuses("num_candidates is -3, expected a number in [0, 2147483647]", {"wide", "", 1, -3, ""});
  refuses("num_candidates is 2147483648", {"wide", "", 1, int64_t{1} << 31, ""});
  refuses("tuning: strategy is no UTF-8", {"\xff", "", 1, 1, ""});
  refuses("policy is no UTF-8", {"wide", "\xc3", 1, 1, ""});
  refuses("kernel_hash is no UTF-8", {"wide", "", 1, 1, "\xff"});
  const auto refuses_key = [&](const char* message, const DeviceInfo& device,
                               std::string_view primitive, std::string_view problem) {
    const auto [code, what] = error_of([&] { cache.set(device, primitive, problem, kEntry); });
    CHECK(code == ErrorCode::invalid_argument);
    CHECK_THAT(what, ContainsSubstring(message));
  };
  refuses_key("the device's name is no UTF-8", gpu("\xfe", 90, 132), "linear", "n=4");
  refuses_key("the device's compute_capability is -1", gpu("it", -1, 132), "linear", "n=4");
  refuses_key("the device's num_multiprocessors is -132", gpu("it", 90, -132), "linear", "n=4");
  refuses_key("primitive is no UTF-8", kH200, "\xff", "n=4");
  refuses_key("problem is no UTF-8", kH200, "linear", "\xff");
  CHECK(cache.size() == 1);
  CHECK(*cache.find(kH200, "linear", "n=4") == kEntry);
  const DeviceInfo odd = gpu("", 0, 0);
  cache.set(odd, "", "\xc3\xbc", {"", "", std::numeric_limits<double>::denorm_min(), 0, ""});
  cache.set(odd, "", "most", {"", "", std::numeric_limits<double>::max(), 2147483647, ""});
  CHECK(TuningCache::parse(cache.to_text(), "text") == cache);
}

TEST_CASE("an entry is for its device, primitive and problem alone") {
  TuningCache cache;
  cache.set(kH200, "linear", "n=4", kEntry);
  CHECK(cache.find(gpu("NVIDIA H200", 90, 66), "linear", "n=4") == nullptr);  // half of one
  CHECK(cache.find(gpu("NVIDIA H100", 90, 132), "linear", "n=4") == nullptr);
  CHECK(cache.find(gpu("NVIDIA H200", 80, 132), "linear", "n=4") == nullptr);
  CHECK(cache.find(kH200, "conv1d", "n=4") == nullptr);
  CHECK(cache.find(kH200, "linear", "n=40") == nullptr);
  cache.set(kH200, "linear", "n=4", {"simt", "", 1, 2, ""});
  CHECK(cache.size() == 1);
  CHECK(cache.find(kH200, "linear", "n=4")->strategy == "simt");
}

/// One entry's text with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  TuningCache cache;
  cache.set(kH200, "linear", "n=4", kEntry);
  std::string text = cache.to_text();
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST_CASE("what is no tuning cache is refused by name and left as it is") {
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"", "no JSON"},
      {"{", "no JSON"},
      {"[]", "no tuning cache"},
      {"{}", "no tuning cache"},
      {"null", "no tuning cache"},
      {R"({"schema": {"name": "wbench.result", "version": 1}})", "no tuning cache"},
      {R"({"schema": {"name": "wide.tuning"}})", "has no \"version\""},
      {R"({"schema": {"name": "wide.tuning", "version": "1"}})", "expected a count"},
      {R"({"schema": {"name": "wide.tuning", "version": 1}})", "no list \"entries\""},
      {R"({"schema": {"name": "wide.tuning", "version": 1}, "entries": [1]})", "is no object"},
      {changed("\"version\": 1", "\"version\": 2"), "its version is 2, this build reads version 1"},
      {changed("\"small_m\"", "7"), "\"strategy\" is 7, expected a text"},
      {changed("\"strategy\"", "\"strategem\""), "entry 0 has no \"strategy\""},
      {changed("12.25", "0"), "\"time_us\" is 0, expected a number above 0"},
      {changed("12.25", "-1"), "expected a number above 0"},
      {changed("12.25", "null"), "expected a number above 0"},
      {changed("false", "0"), "\"is_autos_own\" is 0, expected true or false"},
      {changed("132", "1e99"), "expected a count"},
      {changed("132", "-1"), "expected a count"},
  }));
  INFO(text);
  const TemporaryFolder folder;
  write_file("t.json", text);
  const auto [code, what] = error_of([&] { (void)TuningCache::load("t.json"); });
  CHECK(code == ErrorCode::invalid_argument);
  CHECK_THAT(what, ContainsSubstring(message) && ContainsSubstring("t.json"));
  CHECK(read_file("t.json") == text);
}

TEST_CASE("an entry that is there twice is refused, an unknown field is not") {
  TuningCache cache;
  cache.set(kH200, "linear", "n=4", kEntry);
  cache.set(kH200, "linear", "n=5", kEntry);
  std::string text = cache.to_text();
  text.replace(text.find("n=5"), 3, "n=4");
  CHECK_THAT(error_of([&] { (void)TuningCache::parse(text, "it"); }).second,
             ContainsSubstring("entry 1 is there twice"));
  CHECK(TuningCache::parse(changed("\"policy\"", "\"later\": [1], \"policy\""), "it").size() == 1);
  const TuningCache older = TuningCache::parse(changed("is_autos_own", "later"), "it");
  CHECK_FALSE(older.find(kH200, "linear", "n=4")->is_autos_own);
}

TEST_CASE("nesting without end neither crashes nor passes") {
  const std::string deep(200000, '[');
  CHECK_THROWS_AS(TuningCache::parse(deep, "it"), Error);
  CHECK_THROWS_AS(TuningCache::parse(deep + std::string(200000, ']'), "it"), Error);
}

TEST_CASE("files that cannot be read or written are io errors") {
  const TuningCache cache;
  CHECK(error_of([&] { (void)TuningCache::load("/no/such/file"); }).first == ErrorCode::io);
  CHECK(error_of([&] { (void)TuningCache::load("/tmp"); }).first == ErrorCode::io);
  CHECK(error_of([&] { cache.save("/no/such/folder/file"); }).first == ErrorCode::io);
  CHECK(error_of([&] { cache.save("/dev/full"); }).first == ErrorCode::io);
}

TEST_CASE("a file that is replaced keeps its permissions, and links to it stay") {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  const TuningCache empty;
  empty.save("new");
  const auto mode_of = [](const char* path) { return fs::status(path).permissions(); };
  CHECK((mode_of("new") & fs::perms::owner_all) ==
        (fs::perms::owner_read | fs::perms::owner_write));
  for (const fs::perms mode : {fs::perms(0600), fs::perms(0640), fs::perms(0755)}) {
    fs::permissions("new", mode);
    empty.save("new");
    CHECK(mode_of("new") == mode);
  }
  fs::create_directory("in");
  fs::create_symlink("in/behind", "first");  // of a file that is still to be made
  fs::create_symlink("first", "second");
  for (const char* link : {"first", "second", "second"}) {
    fs::remove(std::string(link) == "first" ? "in/behind" : "none");
    write_file(link, link);
    CHECK(fs::read_symlink("first") == "in/behind");
    CHECK(fs::read_symlink("second") == "first");
    CHECK(read_file("in/behind") == link);
  }
  CHECK(std::distance(fs::directory_iterator("in"), fs::directory_iterator()) == 1);
  fs::create_symlink("loop", "loop");
  CHECK(error_of([&] { empty.save("loop"); }).first == ErrorCode::io);
}

TEST_CASE("a cache takes another's entries, the newer of two") {
  TuningCache all, newer;
  all.set(kH200, "linear", "n=4", kEntry);
  all.set(kH200, "linear", "n=5", kEntry);
  newer.set(kH200, "linear", "n=5", {"simt", "", 1, 2, ""});
  newer.set(kH200, "linear", "n=6", kEntry);
  all.merge(newer);
  CHECK(all.size() == 3);
  CHECK(*all.find(kH200, "linear", "n=4") == kEntry);
  CHECK(all.find(kH200, "linear", "n=5")->strategy == "simt");
}

TEST_CASE("those that change a file by turns lose nothing") {
  const test::TemporaryFolder folder;
  std::filesystem::create_symlink("t.json", "link");
  write_file("t.json", "");
  constexpr int kThreads = 4, kTurns = 25;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([thread] {
      const std::string name = thread % 2 == 0 ? "t.json" : "link";
      for (int turn = 0; turn < kTurns; ++turn) {
        const FileLock lock(name);
        write_file(name, read_file(name) + "x");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(read_file("t.json").size() == kThreads * kTurns);
  CHECK_FALSE(std::filesystem::exists("t.json.lock"));
  CHECK(error_of([] { const FileLock lock("/no/such/folder/t.json"); }).first == ErrorCode::io);
}

TEST_CASE("an open file of the process is written to, not replaced") {
  const test::TemporaryFolder folder;
  const int fd = ::open("target", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(fd >= 0);
  REQUIRE(::write(fd, "a", 1) == 1);
  const std::string name = "/dev/fd/" + std::to_string(fd);
  write_file(name, "b");
  REQUIRE(::write(fd, "c", 1) == 1);
  ::close(fd);
  CHECK(read_file("target") == "abc");
}

TEST_CASE("a lock leaves no file of its own, and the files of others") {
  namespace fs = std::filesystem;
  const test::TemporaryFolder folder;
  { const FileLock lock("cache"); }
  CHECK_FALSE(fs::exists("cache.lock"));
  write_file("cache.lock", "somebody's");
  { const FileLock lock("cache"); }
  CHECK(read_file("cache.lock") == "somebody's");
}

TEST_CASE("a build knows its kernels by a hash") {
  const bool has_hashes = !kernel_hash("layernorm").empty();  // not without Python
  CHECK((kernel_hash("linear").size() == 64) == has_hashes);
  CHECK(kernel_hash("linear") != (has_hashes ? kernel_hash("layernorm") : "none"));
  CHECK(kernel_hash("no_such_primitive").empty());
}

}  // namespace
}  // namespace wide
