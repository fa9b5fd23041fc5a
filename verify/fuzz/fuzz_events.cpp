// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Event logs: whatever a killed run left of one is refused, or becomes a document that the reader
// of results takes or refuses in its turn.
#include "bench/document/events.hpp"
#include "bench/document/result_json.hpp"
#include "verify/fuzz/fuzz.hpp"

void wide::fuzz::one_input(std::string_view text) {
  (void)bench::are_events(text);
  const auto document = bench::document_of_events(text);
  using nlohmann::ordered_json;
  (void)bench::parse_result(document.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}
