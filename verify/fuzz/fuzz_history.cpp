// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Histories as text files: an index is refused as a whole, or its runs, tags and series can be
// asked for, and one more run can be added to it.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "bench/history/history.hpp"
#include "bench/history/names.hpp"
#include "verify/fuzz/fuzz.hpp"

namespace {

std::string make_folder() {
  std::string name = std::filesystem::temp_directory_path() / "wide-fuzz-XXXXXX";
  wide::fuzz::expect(::mkdtemp(name.data()) != nullptr, "no folder for the history");
  static const struct Removed {
    std::string path;
    ~Removed() { std::filesystem::remove_all(path); }
  } removed{name};
  return name;
}

}  // namespace

void wide::fuzz::one_input(std::string_view text) {
  static const std::string folder = make_folder();
  std::filesystem::remove_all(folder + "/runs");
  std::filesystem::create_directory(folder + "/runs");
  std::ofstream(folder + "/index.jsonl", std::ios::binary).write(text.data(), std::ssize(text));
  const auto store = bench::open_history("jsonl:" + folder);
  const auto runs = store->runs();
  for (const bench::HistorySeries& series : bench::series_of(store->points()))
    (void)bench::noise_band(series);
  for (const char* name : {"@last", "@last~1", "@a"}) {
    try {
      (void)bench::find_run(*store, name);
    } catch (const Error&) {  // not there
    }
  }
  bench::HistoryRecord record;
  record.run.id = "one-more";
  record.run.started = "2026-01-01T00:00:00Z";
  if (store->add(record)) expect(store->runs().size() == runs.size() + 1, "a run got lost");
}
