// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// --where: which cases an expression keeps, and everything that must be refused with a message that
// shows what was written.
#include "bench/cases/where.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "bench/process/exit_code.hpp"
#include "verify/bench/cli_case.hpp"
#include "verify/support/refusals.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

using Catch::Matchers::ContainsSubstring;

/// Whether the expression holds for n=4 batch=6 d=1024 dtype=fp16 of linear.
bool holds(const std::string& text) {
  const catalog::PrimitiveSpec& spec = catalog::find_primitive("linear");
  const std::pair<std::string, catalog::AxisValue> values[] = {{"n", int64_t{4}},
                                                               {"batch", int64_t{6}},
                                                               {"d", int64_t{1024}},
                                                               {"dtype", std::string("fp16")}};
  return Where(text, spec).holds(catalog::make_case(spec, values));
}

std::string refusal(const std::string& text) {
  return test::refusal_of([&] { (void)holds(text); });
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("an expression over axes is what arithmetic says") {
  for (const char* text : {"",
                           "n == 4",
                           "n*batch*d <= 24K",
                           "n*batch*d < 1M and dtype == fp16",
                           "d == 2^10",
                           "d==1K",
                           "fp16 == dtype",
                           "dtype != fp32",
                           "n + batch * 2 == 16",
                           "(n + batch) * 2 == 20",
                           "10 - n - batch == 0",
                           "d / n / batch == 42",
                           "d % batch == 4",
                           "-d % batch == -4",
                           "--n == 4",
                           "- (n - batch) == 2",
                           "1 < n",
                           "n >= 4 and n <= 4 and not n != 4",
                           "n == 5 or batch == 6 and d == 1024",
                           "not (n == 5 or batch == 5)",
                           "not n == 5",
                           "group == 128",
                           "128 == (group)",
                           "group != 64",
                           "dtype == dtype",
                           "n == 4 or d / (n - 4) == 1",
                           "n != 4 and d / 0 == 1 or batch == 6",
                           " n\t>\n3 ",
                           "9223372036854775807 > d",
                           "-9223372036854775807 - 1 < n"}) {
    INFO(text);
    CHECK(holds(text));
    if (*text != '\0') CHECK(!holds("not (" + std::string(text) + ")"));
  }
  CHECK(!holds("n == 5 and batch == 6 or d == 1"));
  CHECK(holds(repeated("n + ", 20'000) + "n > 0"));  // long is not deep
  CHECK(holds(repeated("n == 5 or ", 20'000) + "n == 4"));
  CHECK(holds(repeated("(", 99) + "n" + repeated(")", 99) + " == 4"));
}

TEST_CASE("what is no condition over the primitive's axes is refused") {
  const auto says = [](const std::string& text, const std::string& why) {
    INFO(text);
    CHECK_THAT(refusal(text), ContainsSubstring("--where: \"") && ContainsSubstring(why));
  };
  says("batsh == 4", "linear: unknown axis \"batsh\", did you mean batch");
  says("n == batsh", "unknown axis \"batsh\"");
  says("batsh", "unknown axis \"batsh\"");
  says("dtype == fp61", "unknown dtype \"fp61\", did you mean fp16");
  says("group == 32", "unknown group \"32\"");
  says("dtype < fp32", "dtype, which has words");
  says("dtype + 1 == 2", "dtype, which has words");
  says("n", "\"n\" is no condition");
  says("n * 2", "a number is no condition");
  says("dtype and n == 4", "\"dtype\" is no condition");
  says("(n == 4) + 1 == 2", "+ of a condition");
  says("1 < n < 9", "\"<\" is where an operator or the end is expected");
  says("n = 4", "\"=\" is where an operator or the end is expected; == compares");
  says("n == 4 && d == 2", "\"&\" is where");
  says("n ==", "it ends where a number");
  says("n == and", "\"and\" is where a number");
  says("(n == 4", "a parenthesis is not closed");
  says("n == 4)", "\")\" is where");
  says("n == 12x", "expected an integer");
  says("n == 2^63", "expected a power of two");
  says("n == 9223372036854775808", "at most 2^63 - 1");
  for (const char* text : {"n*9223372036854775807 > 1", "n - 9223372036854775807 - 6 < 1",
                           "n + 9223372036854775807 > 1", "(-9223372036854775807 - 1) / -1 > 0",
                           "-(-9223372036854775807 - 1) > 0"})
    says(text, "a number beyond 64 bits in linear n=4 batch=6 d=1024");
  says("d / (n - 4) > 0", "a division by zero in linear n=4");
  says("d % 0 > 0", "a division by zero");
  for (const char* deep : {"(", "-", "not "})
    says(repeated(deep, 1000) + "n", "nested more deeply");
}

TEST_CASE("commands keep the cases of --where, and say where none is left") {
  const std::string cases = " --op linear --n 2,4 --batch 2,8 --d 8 -d cpu --dry-run --where ";
  for (const char* command : {"run", "verify"}) {
    const Outcome some = wbench(command + cases + "n*batch>8");
    CHECK(some.code == kSuccess);
    CHECK_THAT(some.out, ContainsSubstring("2 cases") && !ContainsSubstring("n=2 batch=2"));
    CHECK_THAT(some.out, !ContainsSubstring("--where"));  // a case's own command needs none
    const Outcome none = wbench(command + cases + "n>4");
    CHECK(none.code == kNothingRan);
    CHECK_THAT(none.err, ContainsSubstring("no case matches --where \"n>4\""));
    CHECK(wbench(command + cases + "nn>4").code == kUsage);
  }
  CHECK_THAT(wbench("run" + cases + "n>4 --filter x").err,
             ContainsSubstring("--filter \"x\" and --where \"n>4\""));
}

}  // namespace wide::bench
