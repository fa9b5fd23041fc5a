// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Side-cars: a result's document, a zero byte, and the file that its samples lie in. What is taken
// out of a document that was made whole comes back the same.
#include "bench/document/json_field.hpp"
#include "bench/document/result_json.hpp"
#include "bench/document/samples_file.hpp"
#include "verify/fuzz/fuzz.hpp"

void wide::fuzz::one_input(std::string_view text) {
  using nlohmann::ordered_json;
  const size_t end = text.find('\0');
  const std::string_view words = text.substr(0, end);
  bench::require_shallow("result", words);
  auto document = ordered_json::parse(words, nullptr, false);
  if (document.is_discarded()) throw Error(ErrorCode::invalid_argument, "not JSON");
  bench::place_samples(document,
                       std::string(end == std::string_view::npos ? "" : text.substr(end + 1)));
  const bench::RunResult result = bench::parse_document(document);
  const std::string whole =
      to_json(result).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  auto again = to_json(result);
  std::string bytes = bench::take_samples(again, "samples");
  bench::place_samples(again, std::move(bytes));
  again.erase("samples_file");
  expect(again.dump(-1, ' ', false, ordered_json::error_handler_t::replace) == whole,
         "samples that were taken out come back differently");
}
