// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Graphs: operands and fields of operations that builders refuse, before there is a plan.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <string>

#include "wide/error.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string error_of(const std::function<void(GraphBuilder&)>& build) {
  GraphBuilder g("net");
  try {
    build(g);
  } catch (const Error& error) {
    return (error.code() == ErrorCode::invalid_argument ? "" : "other code: ") +
           std::string(error.what());
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("graph: an operand that is given twice is refused, a value that is used twice is not") {
  const Shape rows{kBatch, 4};
  CHECK_THAT(error_of([&](auto& g) {
               const Value x = g.input("x", rows), a = g.input("a", rows);
               (void)g.append("act", PointwiseOp{}, {{"x", x}, {"x", a}});
             }),
             ContainsSubstring("graph: act: operand x is given twice, expected once"));
  CHECK_THAT(error_of([&](auto& g) {
               const Value x = g.input("x", rows);
               (void)g.append("add", BinaryOp{}, {{"x", x}, {"other", x}, {"other", x}});
             }),
             ContainsSubstring("graph: add: operand other is given twice, expected once"));
  GraphBuilder g("net");
  const Value x = g.input("x", rows);
  CHECK_NOTHROW(g.append("add", BinaryOp{}, {{"x", x}, {"other", x}}));
  // One that is absent is left out: it is not given.
  CHECK_NOTHROW(g.append("act", PointwiseOp{}, {{"x", x}, {"x", Value{}}}));
}

TEST_CASE("graph: adaptive pools have outputs") {
  const Shape image{kBatch, 6, 8, 9}, signal{kBatch, 6, 8};
  const auto refusal = [&](const Shape& shape, int64_t height, int64_t width) {
    return error_of([&](auto& g) {
      (void)layers::adaptive_average_pool(g, "pool", g.input("x", shape), height, width);
    });
  };
  CHECK(refusal(image, 0, 2) == "graph: pool: pooling: out_height is 0, expected 1 to 1073741824");
  CHECK(refusal(image, 2, 0) == "graph: pool: pooling: out_width is 0, expected 1 to 1073741824");
  CHECK_THAT(refusal(image, 0, 0), ContainsSubstring("out_height is 0"));
  CHECK_THAT(refusal(image, -3, 1), ContainsSubstring("out_height is -3"));
  CHECK_THAT(refusal(image, 1, int64_t{1} << 60), ContainsSubstring("out_width is 115292150460"));
  CHECK_THAT(refusal(signal, 1, 0), ContainsSubstring("out_width is 0"));
  CHECK(refusal(signal, 0, 2) == "nothing was thrown");  // signals have no height
  CHECK_THAT(error_of([&](auto& g) {
               (void)g.append("pool", PoolingOp{.mode = PoolingMode::adaptive_average},
                              {{"x", g.input("x", image)}});
             }),
             ContainsSubstring("pool: pooling: out_height is 0"));
}
