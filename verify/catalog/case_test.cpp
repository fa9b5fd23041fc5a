// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Cases, axis values, and what is said about names that do not exist. The primitive here has axes
// and nothing else.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>

#include "host/core/nearest.hpp"
#include "verify/support/cases.hpp"
#include "wide/error.hpp"

namespace wide::test {

namespace {

using catalog::AxisValue;
using catalog::Case;
using Catch::Matchers::Message;

catalog::PrimitiveSpec scale_spec() {
  catalog::PrimitiveSpec spec;
  spec.name = "scale";
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "rows", int64_t{16}, {}, 0},
               {"dtype", "of all", "fp32", {"fp32", "fp16"}, 0}};
  spec.sweeps = {{"quick", {{"n", {int64_t{2}, int64_t{4}}}}}, {"ci", {{"n", {int64_t{2}}}}}};
  return spec;
}

Case make(const Values& values) {
  return catalog::make_case(scale_spec(), values);
}

std::vector<std::string> nearest(std::string_view name) {
  const std::vector<std::string_view> names{"linear", "embedding", "layernorm", "attention",
                                            "flash_attention"};
  return nearest_of(name, names);
}

}  // namespace

TEST_CASE("names in other capitals, and ones that go on, are meant") {
  const std::vector<std::string_view> options{"--aa", "--d", "--n", "--batch", "--baseline"};
  CHECK(nearest_of("--N", options) == std::vector<std::string>{"--n"});
  CHECK(nearest_of("--batch-size", options) == std::vector<std::string>{"--batch"});
  CHECK(nearest_of("--nothing", options).empty());
}

TEST_CASE("a case has every axis of its primitive, in the primitive's order") {
  const Case point = make({{"dtype", "fp16"}, {"n", int64_t{8}}});
  REQUIRE(point.entries().size() == 3);
  CHECK(point.op() == "scale");
  CHECK(point.entries()[0].name == "n");
  CHECK(point.integer("n") == 8);
  CHECK(point.integer("batch") == 16);
  CHECK(point.word("dtype") == "fp16");
  CHECK(point.dtype() == Dtype::fp16);
}

TEST_CASE("a case prints what was asked for, and not the defaults") {
  CHECK(make({{"dtype", "fp16"}, {"n", int64_t{8}}}).to_string() == "n=8 dtype=fp16");
  CHECK(make({}).to_string() == "");
  CHECK(make({{"batch", int64_t{16}}}).to_string() == "batch=16");
  CHECK(catalog::to_string(AxisValue(int64_t{-3})) == "-3");
  CHECK(catalog::to_string(AxisValue("bf16")) == "bf16");
}

TEST_CASE("cases compare by their values") {
  CHECK(make({{"n", int64_t{8}}}) == make({{"n", int64_t{8}}}));
  CHECK(make({{"n", int64_t{8}}}) != make({{"n", int64_t{9}}}));
}

TEST_CASE("the last of two values for an axis counts") {
  CHECK(make({{"n", int64_t{8}}, {"n", int64_t{9}}}).integer("n") == 9);
}

TEST_CASE("illegal values and unknown axes are refused by name") {
  CHECK_THROWS_MATCHES(make({{"bacth", int64_t{8}}}), Error,
                       Message("scale: unknown axis \"bacth\", did you mean batch?"));
  CHECK_THROWS_MATCHES(make({{"zzzzzzzzzz", int64_t{8}}}), Error,
                       Message("scale: unknown axis \"zzzzzzzzzz\", expected one of n, batch, "
                               "dtype"));
  CHECK_THROWS_MATCHES(make({{"n", int64_t{0}}}), Error,
                       Message("scale: axis n is 0, expected >= 1"));
  CHECK_THROWS_MATCHES(make({{"batch", int64_t{-1}}}), Error,
                       Message("scale: axis batch is -1, expected >= 0"));
  CHECK_THROWS_MATCHES(make({{"n", "four"}}), Error,
                       Message("scale: axis n is \"four\", expected an integer"));
  CHECK_THROWS_MATCHES(make({{"dtype", "f16"}}), Error,
                       Message("scale: unknown dtype \"f16\", did you mean fp16?"));
  CHECK_THROWS_AS(make({{"dtype", int64_t{16}}}), Error);
  CHECK_THROWS_AS(make({{"", int64_t{1}}}), Error);
}

TEST_CASE("asking a case for what it has not is an error") {
  const Case point = make({});
  CHECK_THROWS_MATCHES(point.integer("seq"), Error, Message("scale: there is no axis \"seq\""));
  CHECK_THROWS_AS(point.integer("dtype"), Error);
  CHECK_THROWS_AS(point.word("n"), Error);
}

TEST_CASE("sweeps and primitives are found by name, or the near ones are named") {
  CHECK(catalog::find_sweep(scale_spec(), "ci").name == "ci");
  CHECK_THROWS_MATCHES(catalog::find_sweep(scale_spec(), "quik"), Error,
                       Message("scale: unknown preset \"quik\", did you mean quick?"));
  CHECK(catalog::find_primitive("linear").name == "linear");
  CHECK_THROWS_MATCHES(catalog::find_primitive("linaer"), Error,
                       Message("unknown op \"linaer\", did you mean linear?"));
  CHECK_THROWS_AS(catalog::find_primitive(""), Error);
  CHECK_THROWS_AS(catalog::find_primitive("LINEAR"), Error);
}

TEST_CASE("near names: slips, beginnings and parts, best first, never more than three") {
  CHECK(nearest("linear") == std::vector<std::string>{"linear"});
  CHECK(nearest("linaer").front() == "linear");
  CHECK(nearest("layer_norm").front() == "layernorm");
  CHECK(nearest("embed").front() == "embedding");
  CHECK(nearest("attention") == std::vector<std::string>{"attention", "flash_attention"});
  CHECK(nearest("convolution").empty());
  CHECK(nearest("").empty());
  CHECK(nearest("e").size() <= 3);
}

TEST_CASE("a strategy's kind has a name") {
  CHECK(catalog::to_string(catalog::StrategyKind::sequential) == "sequential");
  CHECK(catalog::to_string(catalog::StrategyKind::vendor) == "vendor");
  CHECK(catalog::to_string(catalog::StrategyKind::hand_written) == "hand_written");
}

TEST_CASE("the cases of tests are legal, odd and differ from axis to axis") {
  const auto spec = scale_spec();
  const Case odd = odd_case(spec, 3, 7);
  CHECK(odd.integer("n") == 3);
  CHECK(odd.integer("batch") == 7);
  CHECK(ci_cases(spec).size() == 2);  // both dtypes
  CHECK(word_combinations(spec).size() == 2);
  REQUIRE(edge_cases(spec).size() == 2);
  CHECK(edge_cases(spec)[0].integer("n") == 1);
  CHECK(edge_cases(spec)[1].integer("batch") == 0);
}

}  // namespace wide::test
