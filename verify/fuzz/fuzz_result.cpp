// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Results: a document is refused with an error of ours, or what was read of it is written and read
// again without a change.
#include "bench/document/result_json.hpp"
#include "verify/fuzz/fuzz.hpp"

namespace {

std::string written(std::string_view text) {
  using nlohmann::ordered_json;
  return to_json(wide::bench::parse_result(text))
      .dump(1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

void wide::fuzz::one_input(std::string_view text) {
  const std::string once = written(text);
  expect_same(once, written(once), "what was written is read differently");
}
