// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Samples beside a result: written and read back bit for bit, refused where the file is not the one
// that was written, and done without where summaries are enough.
#include "bench/document/samples_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <filesystem>
#include <limits>

#include "bench/document/result_json.hpp"
#include "bench/document/sha256.hpp"
#include "bench/process/exit_code.hpp"
#include "host/core/file.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/bench/sample_result.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/schema.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

const std::string kFile = "r.json", kBeside = "r.json.samples.f64le";

/// What loading a file complains of, after the kind of error; empty where it does not.
std::string complaint(Samples samples, const std::string& file = kFile) {
  try {
    (void)load_result(file, samples);
  } catch (const Error& error) {
    return std::string(error.code() == ErrorCode::io ? "io: " : "bad: ") + error.what();
  }
  return "";
}

/// r.json, with something else in one place.
void write_with(const char* place, const Json& value) {
  Json document = Json::parse(read_file(kFile));
  document[Json::json_pointer(place)] = value;
  write_file(kFile, document.dump());
}

constexpr const char* kSamples = "/cases/0/strategies/0/measurements/0/samples";

RunResult result_of(const std::vector<int>& sizes) {
  RunResult r = sample_result();
  r.cases.resize(1);
  r.cases[0].strategies.resize(1);
  r.cases[0].baselines.clear();
  auto& measurements = r.cases[0].strategies[0].measurements;
  const Measurement one = measurements[0];
  measurements.clear();
  for (const int size : sizes) {
    measurements.push_back(one);
    Measurement& m = measurements.back();
    m.regime = kRegimes.begin()[(measurements.size() - 1) % kRegimes.size()];
    m.samples_ns.assign(static_cast<size_t>(size), 7.5);
    Statistics& s = m.stats;
    s.n = size;
    for (double* value :
         {&s.min_ns, &s.q1_ns, &s.median_ns, &s.q3_ns, &s.max_ns, &s.ci_lo_ns, &s.ci_hi_ns})
      *value = 7.5;
  }
  r.cases[0].speedups.clear();
  make_consistent(r.cases[0]);
  return r;
}

}  // namespace

TEST_CASE("a document that is no object has no samples") {
  for (const char* text : {"[]", "7", "null", "[{\"cases\":[]}]"}) {
    nlohmann::ordered_json document = nlohmann::ordered_json::parse(text);
    CHECK_NOTHROW(place_samples(document, "12345678"));
    CHECK(document == nlohmann::ordered_json::parse(text));
  }
}

TEST_CASE("SHA-256 is that of FIPS 180-4") {
  const auto hash = [](size_t count, char c) { return sha256(std::string(count, c)); };
  CHECK(sha256("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash(55, 'a') == "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  CHECK(hash(56, 'a') == "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a");
  CHECK(hash(63, 'a') == "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  CHECK(hash(64, 'a') == "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  CHECK(hash(119, 'a') == "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
  CHECK(hash(1'000'000, 'a') == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  CHECK(sha256(all) == "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880");
}

TEST_CASE("a result with a side-car is read back bit for bit") {
  const test::TemporaryFolder folder;
  RunResult result = consistent(sample_result());
  result.cases[0].baselines[0].measurements[0].samples_sm_mhz.clear();
  Measurement& first = result.cases[0].strategies[0].measurements[0];
  first.samples_ns[0] = first.stats.min_ns = 5e-324;
  write_result(result, kFile, SamplesIn::side_car);
  const std::string text = read_file(kFile);
  CHECK(to_json(load_result(kFile)).dump() == to_json(result).dump());
  CHECK(load_document(kFile) == document_text(result));
  CHECK(test::schema_complaint("bench/result.schema.json", text) == "");
  const Json document = Json::parse(text), file = document.at("samples_file");
  CHECK(file.at("file") == kBeside);
  CHECK(file.at("bytes") == fs::file_size(kBeside));
  CHECK(file.at("sha256") == sha256(read_file(kBeside)));
  CHECK(document.at(Json::json_pointer(kSamples)).dump() ==
        R"({"time_ns":{"offset":0,"count":40},"round":{"offset":40,"count":40},)"
        R"("sm_mhz":{"offset":80,"count":40},"order":{"offset":120,"count":40},)"
        R"("t_rel_s":{"offset":160,"count":40},"flags":{"offset":200,"count":40}})");
  // The smallest double there is, lowest byte first.
  CHECK(read_file(kBeside).substr(0, 8) == std::string("\x01\0\0\0\0\0\0\0", 8));
  // The folder is the document's, wherever one is.
  fs::create_directory("elsewhere");
  fs::current_path("elsewhere");
  CHECK(to_json(load_result("../r.json")).dump() == to_json(result).dump());
  fs::current_path("..");
}

TEST_CASE("small results keep their samples, and large ones lay them beside") {
  const auto wants = [](const std::vector<int>& sizes, SamplesIn where) {
    return wants_side_car(result_of(sizes), where);
  };
  CHECK_FALSE(wants({4096}, SamplesIn::automatic));
  CHECK(wants({4097}, SamplesIn::automatic));
  CHECK(wants({3, 4097, 3}, SamplesIn::automatic));
  CHECK_FALSE(wants(std::vector<int>(16, 4096), SamplesIn::automatic));
  std::vector<int> many(16, 4096);
  many.push_back(1);
  CHECK(wants(many, SamplesIn::automatic));
  CHECK(wants({1}, SamplesIn::side_car));
  CHECK_FALSE(wants({4097}, SamplesIn::document));
  CHECK_FALSE(wants({4097}, SamplesIn::nowhere));
  const test::TemporaryFolder folder;
  write_result(result_of({4097}), kFile, SamplesIn::automatic);
  CHECK(fs::exists(kBeside));
  // The next result of that name leaves nothing of it.
  write_result(result_of({40}), kFile, SamplesIn::automatic);
  CHECK_FALSE(fs::exists(kBeside));
  write_result(result_of({4097}), "/dev/null", SamplesIn::automatic);
  CHECK_FALSE(fs::exists("/dev/null.samples.f64le"));
  CHECK_THROWS_AS(write_result(result_of({40}), "/dev/null", SamplesIn::side_car), Error);
}

TEST_CASE("writing over a result that is interrupted leaves the old one or the new one") {
  const test::TemporaryFolder folder;
  const std::string pending = kBeside + ".new";
  const RunResult old = consistent(sample_result());
  RunResult later = old;
  later.cases[0].strategies[0].measurements[0].samples_sm_mhz[0] *= 2;
  write_result(old, kFile, SamplesIn::side_car);
  const std::string old_samples = read_file(kBeside);
  write_result(later, "later.json", SamplesIn::side_car);
  fs::copy_file("later.json.samples.f64le", pending);  // the document is still to be written
  CHECK(to_json(load_result(kFile)).dump() == to_json(old).dump());
  write_result(later, kFile, SamplesIn::side_car);
  CHECK_FALSE(fs::exists(pending));
  fs::rename(kBeside, pending);  // the side-car is still to be renamed
  write_file(kBeside, old_samples);
  CHECK(to_json(load_result(kFile)).dump() == to_json(later).dump());
  write_result(old, kFile, SamplesIn::side_car);
  CHECK(to_json(load_result(kFile)).dump() == to_json(old).dump());
}

TEST_CASE("a side-car that is missing is an error where samples are needed, and else is said") {
  const test::TemporaryFolder folder;
  write_result(consistent(sample_result()), kFile, SamplesIn::side_car);
  fs::remove(kBeside);
  CHECK_THAT(complaint(Samples::needed), ContainsSubstring("io: r.json: its samples are missing") &&
                                             ContainsSubstring("expected " + kBeside));
  CHECK_THROWS_AS(load_document(kFile), Error);
  const RunResult result = load_result(kFile, Samples::if_there);
  CHECK(result.samples_missing == kBeside);
  CHECK_THAT(samples_note(result), ContainsSubstring(kBeside));
  const Measurement& m = result.cases[0].strategies[0].measurements[0];
  CHECK((m.samples_ns.empty() && m.samples_round.empty() && m.samples_sm_mhz.empty()));
  CHECK(m.stats == consistent(sample_result()).cases[0].strategies[0].measurements[0].stats);
  CHECK(samples_note(sample_result()).empty());
}

TEST_CASE("a side-car that is not the one that was written is refused, needed or not") {
  const test::TemporaryFolder folder;
  write_result(consistent(sample_result()), kFile, SamplesIn::side_car);
  const std::string bytes = read_file(kBeside);
  const Samples samples = GENERATE(Samples::needed, Samples::if_there);
  CHECK(complaint(samples) == "");
  const auto check_refused = [&](const std::string& text) {
    CHECK_THAT(complaint(samples), ContainsSubstring("bad: r.json: ") && ContainsSubstring(text));
  };
  const std::string size = std::to_string(bytes.size());
  write_file(kBeside, bytes.substr(0, bytes.size() - 1));
  check_refused(kBeside + ": the side-car of samples has " + std::to_string(bytes.size() - 1) +
                " bytes, expected " + size);
  write_file(kBeside, bytes + "x");
  check_refused("expected " + size);
  write_file(kBeside, "");
  check_refused("has 0 bytes");
  std::string altered = bytes;
  altered[bytes.size() / 2] ^= 1;
  write_file(kBeside, altered);
  check_refused("was altered: its SHA-256 is " + sha256(altered) + ", expected " + sha256(bytes));
  fs::remove(kBeside);
  fs::create_directory(kBeside);
  check_refused("is no regular file");
  fs::remove(kBeside);
  REQUIRE(::mkfifo(kBeside.c_str(), 0644) == 0);  // which nobody ever writes to
  check_refused("is no regular file");
}

TEST_CASE("no name leads out of the result's folder") {
  const test::TemporaryFolder folder;
  write_result(result_of({40, 40}), "secret.json", SamplesIn::side_car);
  const std::string bytes = read_file("secret.json.samples.f64le");
  fs::create_directory("in");
  fs::current_path("in");
  write_result(result_of({40, 40}), kFile, SamplesIn::side_car);
  for (const std::string& name :
       {std::string("../secret.json.samples.f64le"), fs::absolute(kBeside).string(), "./" + kBeside,
        std::string("../in/" + kBeside), std::string("/etc/passwd"), std::string(".."),
        std::string("."), std::string(), std::string("r.json\0x", 8)}) {
    INFO(name);
    write_with("/samples_file/file", name);
    CHECK_THAT(complaint(Samples::if_there),
               ContainsSubstring("$.samples_file.file is ") &&
                   ContainsSubstring("expected the name of a file in the result's folder"));
    if (name.find('\0') == std::string::npos && name.find('/') != std::string::npos)
      CHECK(test::schema_complaint("bench/result.schema.json", read_file(kFile)) != "");
  }
  write_with("/samples_file/file", 7);
  CHECK_THAT(complaint(Samples::if_there), ContainsSubstring("expected a string"));
  write_with("/samples_file/file", "link");
  fs::create_symlink("../secret.json.samples.f64le", "link");
  CHECK_THAT(complaint(Samples::if_there),
             ContainsSubstring("expected a file in the result's folder, not "));
  fs::remove("link");
  fs::create_symlink(kBeside, "link");  // which stays
  CHECK(complaint(Samples::needed) == "");
  fs::current_path("..");
}

TEST_CASE("slices that are none of the side-car's are refused") {
  const test::TemporaryFolder folder;
  write_result(result_of({40, 40}), kFile, SamplesIn::side_car);
  const std::string whole = read_file(kFile);
  const std::string size = std::to_string(fs::file_size(kBeside) / 8);
  const auto with = [&](const std::string& place, const Json& value) {
    write_file(kFile, whole);
    write_with((kSamples + place).c_str(), value);
    return complaint(Samples::needed);
  };
  const std::string outside = "expected a slice of the " + size + " values of the side-car";
  for (const int64_t bad : {int64_t{-1}, int64_t{1} << 40, std::numeric_limits<int64_t>::max(),
                            std::numeric_limits<int64_t>::min()}) {
    INFO(bad);
    CHECK_THAT(with("/time_ns/offset", bad),
               ContainsSubstring("samples.time_ns is ") && ContainsSubstring(outside));
    CHECK_THAT(with("/round/count", bad), ContainsSubstring(outside));
  }
  CHECK_THAT(with("/time_ns/offset", "0"), ContainsSubstring("expected an integer"));
  CHECK_THAT(with("/time_ns", Json::object({{"offset", 0}})),
             ContainsSubstring("time_ns.count is missing"));
  CHECK_THAT(with("/time_ns/count", 41), ContainsSubstring("40 rounds") ||
                                             ContainsSubstring("each value of the side-car once"));
  CHECK_THAT(with("/round/count", 39), ContainsSubstring("40 samples with 39 rounds"));
  CHECK_THAT(with("/sm_mhz/count", 39), ContainsSubstring("40 samples with 39 sm_mhz"));
  CHECK_THAT(with("/round/offset", 0), ContainsSubstring("expected an integer"));
  // A document of slices that are more than their file would be as large as it likes.
  CHECK_THAT(with("/time_ns", {{"offset", 0}, {"count", 240}}),
             ContainsSubstring("each value of the side-car once"));
  write_file(kFile, whole);
  write_with("/samples_file/dtype", "f32le");
  CHECK_THAT(complaint(Samples::needed), ContainsSubstring("dtype is \"f32le\", expected f64le"));
  write_file(kFile, whole);
  write_with("/samples_file/bytes", -8);
  CHECK_THAT(complaint(Samples::needed), ContainsSubstring("expected -8"));
}

TEST_CASE("values that are no samples are refused") {
  const auto restored = [](double value) {
    Json document = to_json(sample_result());
    std::string bytes = take_samples(document, kBeside);
    std::memcpy(bytes.data() + 8 * 41, &value, 8);  // of the second round
    try {
      place_samples(document, bytes);
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  CHECK(restored(3).empty());
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), 0.5, 1e300,
                           -std::numeric_limits<double>::infinity()})
    CHECK_THAT(restored(bad), ContainsSubstring("samples.round: value 41 of the side-car is ") &&
                                  ContainsSubstring("expected an integer"));
}

TEST_CASE("every command does with a side-car, or says what it does without") {
  const test::TemporaryFolder folder;
  const std::string store = " --store h ";
  const Outcome run = wbench("run " + kTiny + "--samples sidecar --json r.json --save" + store);
  REQUIRE(run.code == kSuccess);
  CHECK(fs::exists(kBeside));
  const RunResult result = load_result(kFile);
  CHECK(result.cases[0].strategies[0].measurements[0].samples_ns.size() >= 3);
  // The history has whole documents, and knows the run in either form.
  CHECK_THAT(wbench("history add r.json" + store).out, ContainsSubstring("is there"));
  Json again = Json::parse(read_file(kFile));
  again["run"]["id"] = again["run"]["process"] = "again";
  write_file("again.json", again.dump());
  const auto works = [&] {
    CHECK(wbench("show r.json").code == kSuccess);
    CHECK(wbench("show @last" + store).code == kSuccess);
    CHECK(wbench("show r.json --export csv=-").code == kSuccess);
    CHECK(wbench("compare r.json again.json").code == kSuccess);
    CHECK(wbench("report r.json --html r.html").code == kSuccess);
  };
  works();
  CHECK(wbench("show r.json --export trace=-").out ==
        wbench("show @last --export trace=-" + store).out);
  CHECK_THAT(wbench("show r.json").out, !ContainsSubstring("samples are missing"));
  const std::string note =
      wbench("compare r.json again.json").err;  // that one run a side tells little
  CHECK_THAT(note, StartsWith("wbench: compare: no cell could be judged"));
  CHECK(std::count(note.begin(), note.end(), '\n') == 1);
  CHECK_THAT(read_file("r.html"), !ContainsSubstring("samples are missing"));
  const std::string bytes = read_file(kBeside);
  fs::remove(kBeside);
  works();
  CHECK_THAT(wbench("show r.json").out, ContainsSubstring("samples are missing"));
  CHECK_THAT(wbench("compare r.json again.json").err, ContainsSubstring("samples are missing"));
  CHECK_THAT(read_file("r.html"), ContainsSubstring("samples are missing"));
  for (const char* command : {"show r.json --export trace=-",
                              "show r.json --export google-benchmark=-", "history add r.json"}) {
    INFO(command);
    const Outcome o = wbench(command + store);
    CHECK((o.code == kRuntimeError && o.out.empty()));
    CHECK_THAT(o.err, ContainsSubstring("its samples are missing"));
  }
  write_file(kBeside, bytes + "x");
  for (const char* command : {"show r.json", "compare r.json r.json", "history add r.json",
                              "report r.json --html x.html", "show r.json --export csv=-"}) {
    INFO(command);
    const Outcome o = wbench(command);
    CHECK(o.code == kUsage);
    CHECK_THAT(o.err, ContainsSubstring("r.json: ") && ContainsSubstring("bytes, expected"));
  }
}

TEST_CASE("a run's samples go where it is told") {
  const test::TemporaryFolder folder;
  CHECK(wbench("run " + kTiny + "--samples none --json r.json --save --store h").code == kSuccess);
  const RunResult without = load_result(kFile);
  const Measurement& m = without.cases[0].strategies[0].measurements[0];
  CHECK((m.samples_ns.empty() && m.samples_round.empty() && m.stats.n >= 3));
  CHECK(test::schema_complaint("bench/result.schema.json", read_file(kFile)) == "");
  CHECK(load_document(kFile) == read_file(kFile));
  CHECK_THAT(wbench("history add r.json --store h").out, ContainsSubstring("is there"));
  const Outcome trace = wbench("show r.json --export trace=-");
  CHECK(trace.code == kUsage);
  CHECK_THAT(trace.err, ContainsSubstring("was written without its samples"));
  CHECK(wbench("show r.json --export md=-").code == kSuccess);
  const Outcome beside_nothing = wbench("run " + kTiny + "--samples sidecar --json -");
  CHECK((beside_nothing.code == kUsage && beside_nothing.out.empty()));
  CHECK_THAT(beside_nothing.err, ContainsSubstring("expected --json FILE"));
  CHECK(wbench("run " + kTiny + "--samples beside").code == kUsage);
  // What cannot be laid beside leaves no result that asks for it.
  fs::create_directory("x.json.samples.f64le");
  const Outcome taken = wbench(
      "verify --op linear --n 2 --batch 2 --d 8 --device cpu --samples sidecar --json x.json");
  CHECK(taken.code == kRuntimeError);
  CHECK_THAT(taken.err, ContainsSubstring("x.json.samples.f64le"));
  CHECK_FALSE(fs::exists("x.json"));
}

}  // namespace wide::bench
