// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What functions of the C headers are made of, where C itself cannot bring it about: errors of
// every kind.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <new>
#include <stdexcept>

#include "host/c_api/builder.hpp"

using namespace wide;
using namespace wide::c_api;
using Catch::Matchers::Equals;

namespace {

struct Failure {
  wide_status status;
  std::string message;
};

/// A builder's call that throws `error`, then what every later one says.
template <class Thrown>
std::pair<Failure, Failure> failures(const Thrown& error, const char* name) {
  wide_builder builder{GraphBuilder("g")};
  const wide_status status =
      extended("first", &builder, name, [&](GraphBuilder&) { throw Thrown(error); });
  const Failure first{status, wide_last_error()};
  bool is_built = false;
  const wide_status later =
      extended("later", &builder, "other", [&](GraphBuilder&) { is_built = true; });
  CHECK(!is_built);
  wide_graph* graph = nullptr;
  CHECK(wide_graph_create(&builder, &graph) == later);
  CHECK(graph == nullptr);
  extended("later", &builder, "other", [&](GraphBuilder&) { is_built = true; });
  return {first, {later, wide_last_error()}};
}

}  // namespace

TEST_CASE("c api: a builder's error keeps its kind and its message") {
  const auto [refused, again] = failures(Error(ErrorCode::unsupported, "not so wide"), "fc");
  CHECK(refused.status == WIDE_UNSUPPORTED);
  CHECK_THAT(refused.message, Equals("first: fc: not so wide"));
  CHECK(again.status == WIDE_UNSUPPORTED);
  CHECK_THAT(again.message, Equals("later: first: fc: not so wide"));

  const auto [mistake, mistake_again] = failures(std::out_of_range("vector::at"), "fc");
  CHECK(mistake.status == WIDE_INTERNAL_ERROR);
  CHECK_THAT(mistake.message, Equals("first: fc: vector::at"));
  CHECK(mistake_again.status == WIDE_INTERNAL_ERROR);
  CHECK_THAT(mistake_again.message, Equals("later: first: fc: vector::at"));
}

TEST_CASE("c api: memory that is out, and what is no exception, stay a builder's first error") {
  const auto [full, full_again] = failures(std::bad_alloc(), "fc");
  CHECK(full.status == WIDE_OUT_OF_MEMORY);
  CHECK_THAT(full.message, Equals("first: the host has no memory left"));
  CHECK(full_again.status == WIDE_OUT_OF_MEMORY);

  const auto [odd, odd_again] = failures(7, nullptr);
  CHECK(odd.status == WIDE_INTERNAL_ERROR);
  CHECK(odd_again.status == WIDE_INTERNAL_ERROR);
}
