// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The grammar of axis values: every form, and everything that must be refused with a message that
// shows what was written.
#include "bench/cases/value_spec.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "verify/support/refusals.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

const catalog::AxisInfo kN{"n", "members", int64_t{4}, {}, 1};
const catalog::AxisInfo kIn{"in", "0: as d", int64_t{0}, {}, 0};
const catalog::AxisInfo kDtype{"dtype", "", std::string("fp32"), {"fp32", "fp16", "bf16"}, 0};

std::vector<int64_t> integers(std::string_view spec, bool powers = false) {
  std::vector<int64_t> values;
  for (const auto& value : parse_values(kN, spec, powers))
    values.push_back(std::get<int64_t>(value));
  return values;
}

std::string refusal(const catalog::AxisInfo& axis, std::string_view spec, bool powers = false) {
  return test::refusal_of([&] { (void)parse_values(axis, spec, powers); });
}

}  // namespace

TEST_CASE("every form of an axis value") {
  using List = std::vector<int64_t>;
  CHECK(integers("4") == List{4});
  CHECK(integers("4,8,16") == List{4, 8, 16});
  CHECK(integers("16,4,8") == List{16, 4, 8});  // in the order they are written
  CHECK(integers("4:6") == List{4, 5, 6});
  CHECK(integers("4:16:4") == List{4, 8, 12, 16});
  CHECK(integers("4:15:4") == List{4, 8, 12});
  CHECK(integers("1:64:x2") == List{1, 2, 4, 8, 16, 32, 64});
  CHECK(integers("3:100:x3") == List{3, 9, 27, 81});
  CHECK(integers("7:7") == List{7});
  CHECK(integers("1K,2M,1G") == List{1024, 2 << 20, 1 << 30});
  CHECK(integers("2^0,2^5") == List{1, 32});
  CHECK(integers("1K:4K:x2") == List{1024, 2048, 4096});
  CHECK(integers("2^2:2^4:x2") == List{4, 8, 16});
  CHECK(integers("2,4:6,100") == List{2, 4, 5, 6, 100});
  CHECK(integers("1:3", true) == List{2, 4, 8});
  CHECK(integers("0", true) == List{1});
}

TEST_CASE("all stands for all words of an axis, and for all names of a list") {
  const std::vector<catalog::AxisValue> all{"fp32", "fp16", "bf16"};
  CHECK(parse_values(kDtype, "all") == all);
  CHECK(parse_values(kDtype, "bf16,all").front() == catalog::AxisValue("bf16"));
  CHECK(parse_values(kDtype, "bf16,all").size() == 3);
  CHECK_THAT(refusal(kN, "all"), ContainsSubstring("\"all\""));
  const std::string_view known[] = {"a", "b"};
  using Names = std::vector<std::string>;
  CHECK(parse_list("x", "all", known) == Names{"a", "b"});
  CHECK(parse_list("x", "c,b,all", known) == Names{"c", "b", "a"});
  CHECK(parse_list("x", "c", known) == Names{"c"});
}

TEST_CASE("repeated values are kept once, where they came first") {
  CHECK(integers("8,4,8,4") == std::vector<int64_t>{8, 4});
  CHECK(integers("4,2:4") == std::vector<int64_t>{4, 2, 3});
  CHECK(parse_values(kDtype, "fp16,fp16").size() == 1);
}

TEST_CASE("ranges stop at the largest integer instead of wrapping") {
  CHECK(integers("9223372036854775806:9223372036854775807").size() == 2);
  CHECK(integers("4611686018427387904:9223372036854775807:x2").size() == 1);
  CHECK(integers("1:9223372036854775807:x2").size() == 63);
}

TEST_CASE("the axis says what is least") {
  CHECK(parse_values(kIn, "0").size() == 1);
  CHECK_THAT(refusal(kN, "0"), ContainsSubstring("--n: \"0\", expected values >= 1"));
}

TEST_CASE("words are checked, with the nearest in the message") {
  CHECK(parse_values(kDtype, "bf16,fp32") ==
        std::vector<catalog::AxisValue>{std::string("bf16"), std::string("fp32")});
  CHECK_THAT(refusal(kDtype, "fp61"), ContainsSubstring("fp16"));
  CHECK_THAT(refusal(kDtype, "16"), ContainsSubstring("--dtype"));
  CHECK_THAT(refusal(kDtype, "fp16,"), ContainsSubstring("single commas"));
}

TEST_CASE("nonsense is refused") {
  const std::string spec = GENERATE(
      "", ",", "4,", ",4", "4,,8", "4-", "-1", "+4", "1e3", "4.0", "0x10", " 4", "4 ", "4 ,8",
      "four", "4x", "x2", "K", "4k", "4KK", "1K2", "4:", ":4", ":", "::", "4:8:", "4::2", "4:8:0",
      "4:8:-1", "4:8:x1", "4:8:x0", "4:8:x", "4:8:2:2", "8:4", "2^", "2^-1", "2^63", "2^64", "2^x",
      "3^2", "^2", "99999999999999999999", "9223372036854775808", "9007199254740993G", "1:1000000",
      "0:4", "-4:4", "4;8", "[4,8]", "4\n");
  INFO("\"" << spec << "\"");
  const std::string message = refusal(kN, spec);
  CHECK_THAT(message, ContainsSubstring("--n: \""));
  CHECK_THAT(message, ContainsSubstring("expected"));
}

TEST_CASE("nonsense powers are refused") {
  const std::string spec = GENERATE("63", "-1", "1K", "60:64");
  INFO(spec);
  CHECK(refusal(kN, spec, true) != "nothing was thrown");
}

TEST_CASE("many values are told apart in no time, and too many refused however they are written") {
  CHECK(integers("1:100000").size() == 100'000);
  CHECK(integers("1:60000,1:60000").size() == 60'000);
  CHECK_THAT(refusal(kN, "1:60000,50000:110000"), ContainsSubstring("at most 100000 values"));
}

TEST_CASE("overrides of any axis") {
  const AxisOverride plain = parse_override("n=4,8");
  CHECK((plain.name == "n" && plain.spec == "4,8" && !plain.powers));
  const AxisOverride bracketed = parse_override("n=[4,8]");
  CHECK(bracketed.spec == "4,8");
  const AxisOverride powers = parse_override("n[pow2]=[1:5]");
  CHECK((powers.name == "n" && powers.spec == "1:5" && powers.powers));
  for (const char* text : {"", "n", "=4"}) {
    INFO(text);
    CHECK_THROWS_MATCHES(parse_override(text), Error,
                         MessageMatches(ContainsSubstring("expected NAME=SPEC")));
  }
}

TEST_CASE("lists of names") {
  CHECK(parse_list("op", "a,b,a") == std::vector<std::string>{"a", "b"});
  for (const char* text : {"", "a,", ",a", "a,,b"}) CHECK_THROWS_AS(parse_list("op", text), Error);
}

}  // namespace wide::bench
