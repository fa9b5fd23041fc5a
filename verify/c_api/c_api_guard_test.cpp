// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What functions of the C headers are made of, where C itself cannot bring it about: errors of
// every kind, and structs of versions that are still to come.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <new>
#include <stdexcept>

#include "host/c_api/builder.hpp"
#include "wide/error.hpp"

using namespace wide;
using namespace wide::c_api;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Equals;

namespace {

/// A struct in three versions; the library is of the second.
struct First {
  size_t struct_size;
  int64_t a;
};
struct Second {
  size_t struct_size;
  int64_t a, b;
};
struct Third {
  size_t struct_size;
  int64_t a, b, c;
};

}  // namespace

template <>
inline constexpr size_t wide::c_api::kFirstSize<Second> = sizeof(First);

namespace {

template <class Given>
const Second* as_second(const Given& given) {
  return reinterpret_cast<const Second*>(&given);
}

struct Failure {
  wide_status status;
  std::string message;
};

template <class Call>
Failure failure_of(const Call& call) {
  const wide_status status = guarded("call", call);
  return {status, status == WIDE_OK ? "" : wide_last_error()};
}

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

TEST_CASE("c api: structs of earlier versions have defaults, of later ones nothing unknown") {
  const First first{sizeof first, 1};
  const Second second{sizeof second, 1, 2};
  const Third zero{sizeof zero, 1, 2, 0}, set{sizeof set, 1, 2, 3};
  CHECK(sized(as_second(first), "options").a == 1);
  CHECK(sized(as_second(first), "options").b == 0);
  CHECK(sized(&second, "options").b == 2);
  CHECK(sized(as_second(zero), "options").b == 2);
  const auto [status, message] = failure_of([&] { (void)sized(as_second(set), "options"); });
  CHECK(status == WIDE_UNSUPPORTED);
  CHECK_THAT(message, ContainsSubstring("options of struct_size 32 has something at byte 24, "
                                        "expected zeros after the 24 bytes of WIDE_API_VERSION"));
  for (const size_t size : {size_t{0}, size_t{8}, size_t{17}, size_t{25}, size_t{1} << 62}) {
    const Second wrong{size, 1, 2};
    const auto [code, text] = failure_of([&] { (void)sized(&wrong, "options"); });
    CHECK(code == WIDE_INVALID_ARGUMENT);
    CHECK_THAT(text, ContainsSubstring("options.struct_size is " + std::to_string(size) +
                                       ", expected sizeof = 24"));
  }
}

TEST_CASE("c api: elements of an array are as far apart as their version says") {
  const First first[2] = {{sizeof(First), 1}, {sizeof(First), 2}};
  const Third third[2] = {{sizeof(Third), 1, 2, 0}, {sizeof(Third), 3, 4, 0}};
  CHECK(sized(element_of(as_second(first[0]), 1), "elements").a == 2);
  CHECK(sized(element_of(as_second(third[0]), 1), "elements").b == 4);
}

TEST_CASE(
    "c api: what is written is no longer than the caller's struct, and leaves nothing unset") {
  Third third{sizeof third, -1, -1, -1};
  write(reinterpret_cast<Second*>(&third), Second{0, 1, 2});
  CHECK((third.struct_size == sizeof third && third.a == 1 && third.b == 2 && third.c == 0));
  Third room{sizeof(First), -1, -1, -1};
  write(reinterpret_cast<Second*>(&room), Second{0, 1, 2});
  CHECK((room.struct_size == sizeof(First) && room.a == 1 && room.b == -1 && room.c == -1));
  Second wrong{8, -1, -1};
  CHECK(failure_of([&] { write(&wrong, Second{0, 1, 2}); }).status == WIDE_INVALID_ARGUMENT);
  CHECK(wrong.a == -1);
}
