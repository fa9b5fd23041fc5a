// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Graphs: operands and fields of operations that builders refuse, before there is a plan; and these
// fields as text.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "host/model/graph_reference.hpp"
#include "verify/model/graph_case.hpp"
#include "wide/layers.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using test::error_of;

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

TEST_CASE("graph: a layer whose operand is absent says which, and is not built without it") {
  GraphBuilder g("net");
  const Value x = g.input("x", {kBatch, 8}), none{};
  const auto refused = [](const std::string& message, const std::function<void()>& build) {
    CHECK(error_of(build) == "graph: fc: " + message + " is absent, expected one");
  };
  refused("x", [&] { (void)layers::linear(g, "fc", none, 4); });
  refused("x", [&] { (void)layers::conv(g, "fc", none, 4, {}); });
  refused("x", [&] { (void)layers::attention(g, "fc", none, 2); });
  refused("x", [&] { (void)layers::lstm(g, "fc", none, 4); });
  refused("x", [&] { (void)layers::layernorm(g, "fc", none); });
  refused("x", [&] { (void)layers::batchnorm(g, "fc", none); });
  refused("x", [&] { (void)layers::pointwise(g, "fc", none, PointwiseFunction::prelu); });
  refused("x", [&] { (void)layers::flatten(g, "fc", none); });
  refused("x", [&] { (void)layers::softmax(g, "fc", none); });
  refused("other", [&] { (void)layers::add(g, "fc", x, none); });
  refused("part0", [&] { (void)layers::concat(g, "fc", {none, x}, 1); });
  refused("part1", [&] { (void)layers::concat(g, "fc", {x, none}, 1); });
  CHECK(error_of([&] { g.output("y", none); }) ==
        "graph: output y is absent, expected one of net's values");
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

TEST_CASE("graph: numbers that no primitive takes are refused with the primitive's own words") {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto refusal = [](const Shape& shape, const Operation& op) {
    return error_of([&](auto& g) { (void)g.append("it", op, {{"x", g.input("x", shape)}}); });
  };
  const auto refuses = [&](const char* message, const PointwiseOp& op) {
    CHECK_THAT(refusal({kBatch, 4}, op), ContainsSubstring(message));
  };
  using enum PointwiseFunction;
  refuses("graph: it: pointwise: low is nan and high is 1", {.function = clamp, .low = kNan});
  refuses("pointwise: low is -1.000000 and high is nan", {.function = clamp, .high = kNan});
  refuses("low is 3.000000 and high is 1.000000, expected low <= high",
          {.function = clamp, .low = 3, .high = 1});
  refuses("slope is nan, expected a finite number", {.function = leaky_relu, .slope = kNan});
  refuses("alpha is inf, expected a finite number", {.function = elu, .alpha = kInfinity});
  refuses("beta is 0, expected a finite number, 2^-126 or more", {.function = softplus, .beta = 0});
  refuses("beta is -1,", {.function = softplus, .beta = -1});
  refuses("nothing was thrown", {.function = clamp, .low = -kInfinity, .high = kInfinity});

  const Shape image{kBatch, 4, 8, 9}, signal{kBatch, 4, 8};
  const auto pool = [&](const Shape& shape, PoolingMode mode, const PoolingWindow& rows,
                        const PoolingWindow& columns) {
    return refusal(shape, PoolingOp{.mode = mode, .rows = rows, .columns = columns});
  };
  constexpr PoolingMode kMax = PoolingMode::max, kMean = PoolingMode::average;
  const PoolingWindow two{.kernel = 2};
  CHECK(pool(image, kMax, two, {.kernel = 2, .padding = 2}) ==
        "graph: it: pooling: columns.padding is 2, expected 0 to 1");
  CHECK_THAT(pool(image, kMax, {.kernel = 3, .padding = 2}, two),
             ContainsSubstring("pooling: rows.padding is 2, expected 0 to 1"));
  CHECK_THAT(pool(image, kMax, two, {.kernel = 0}), ContainsSubstring("columns.kernel is 0"));
  CHECK_THAT(pool(image, kMax, {.kernel = 2, .stride = -1}, two), ContainsSubstring("rows.stride"));
  CHECK_THAT(pool(image, kMax, two, {.kernel = INT64_MAX}), ContainsSubstring("columns.kernel"));
  CHECK_THAT(pool(image, kMean, {.kernel = 2, .dilation = 2}, two),
             ContainsSubstring("rows.dilation is 2, expected 1 for averages"));
  CHECK_THAT(pool(signal, kMean, two, {.kernel = 2, .dilation = 2}),
             ContainsSubstring("columns.dilation is 2, expected 1 for averages"));
  CHECK(pool(image, kMax, {.kernel = 2, .dilation = 2}, two) == "nothing was thrown");
  CHECK(pool(signal, kMax, {.kernel = 0}, two) == "nothing was thrown");  // they have no rows
}

TEST_CASE("graph: scales, heads and paddings that no primitive takes are refused") {
  const auto attention = [](int64_t features, int64_t heads, std::optional<float> scale) {
    return error_of([&](auto& g) {
      const Value x = g.input("x", {kBatch, 4, features});
      (void)g.append("att", FlashAttentionOp{.heads = heads, .scale = scale},
                     {{"q", x}, {"k", x}, {"v", x}});
    });
  };
  CHECK(attention(8, 2, std::numeric_limits<float>::quiet_NaN()) ==
        "graph: att: flash_attention: scale is nan, expected a finite number");
  CHECK_THAT(attention(8, 2, -std::numeric_limits<float>::infinity()),
             ContainsSubstring("scale is -inf, expected a finite number"));
  CHECK_THAT(attention(514, 2, std::nullopt),
             ContainsSubstring("flash_attention: head_dim is 257, expected in [1, 256]"));
  CHECK(attention(512, 2, -0.5f) == "nothing was thrown");

  const auto scores = [](int64_t window, float soft_cap, const ValueType& slopes) {
    return error_of([&](auto& g) {
      const Value x = g.input("x", {kBatch, 4, 8});
      const bool is_computed = slopes.shape[0] == kBatch;
      const Value own = is_computed ? g.input("slopes", slopes.shape, slopes.dtype)
                                    : g.parameter("slopes", slopes.shape, slopes.dtype);
      (void)layers::flash_attention(g, "att", x, x, x, 2,
                                    {.window = window, .soft_cap = soft_cap, .slopes = own});
    });
  };
  const ValueType two{Dtype::fp32, {2}};
  CHECK(scores(3, 50, two) == "nothing was thrown");
  CHECK(scores(-1, 0, two) == "graph: att: flash_attention: window is -1, expected >= 0");
  CHECK(scores(0, -2, two) ==
        "graph: att: flash_attention: soft_cap is -2, expected a number from 0, which is none, to "
        "65536");
  CHECK_THAT(scores(0, std::numeric_limits<float>::quiet_NaN(), two),
             ContainsSubstring("flash_attention: soft_cap is nan, expected a number from 0"));
  CHECK(scores(0, 0, {Dtype::fp32, {4}}) == "graph: att: slopes is [4], expected [2]");
  CHECK(scores(0, 0, {Dtype::fp16, {2}}) == "graph: att: slopes is fp16, expected fp32");
  CHECK(scores(0, 0, {Dtype::fp32, {kBatch, 2}}) ==
        "graph: att: slopes is computed, of shape [B, 2], expected a parameter");

  using Attributes = std::vector<std::pair<std::string, std::string>>;
  CHECK(operation_attributes(FlashAttentionOp{.heads = 2, .window = 3, .soft_cap = 30}) ==
        Attributes{{"heads", "2"}, {"window", "3"}, {"soft_cap", "30"}});
  CHECK(operation_attributes(FlashAttentionOp{.heads = 2}) == Attributes{{"heads", "2"}});
  CHECK(operation_attributes(MatmulOp{}).empty());
  CHECK(
      operation_attributes(MatmulOp{
          .alpha = 0.5f, .activation = Activation::relu, .residual = Residual::after_activation}) ==
      Attributes{{"alpha", "0.5"}, {"activation", "relu"}, {"residual", "after_activation"}});

  const auto embedding = [](int64_t padding_id) {
    return error_of([&](auto& g) {
      const Value ids = g.input("ids", {kBatch, 4}, Dtype::int32), table = g.parameter("t", {7, 8});
      (void)g.append("emb", EmbeddingOp{.padding_id = padding_id},
                     {{"ids", ids}, {"table", table}});
    });
  };
  CHECK(embedding(7) ==
        "graph: emb: embedding: padding_id is 7, expected -1 or an id below vocab = 7");
  CHECK_THAT(embedding(-2), ContainsSubstring("padding_id is -2"));
  for (const int64_t good : {-1, 0, 6}) CHECK(embedding(good) == "nothing was thrown");
}

TEST_CASE("graph: numbers of attributes and messages are those that were given") {
  GraphBuilder g("net");
  const Value x = g.input("x", {kBatch, 8});
  (void)layers::dropout(g, "drop", x, 0.12345678f);
  CHECK_THAT(to_string(g.graph(), GraphStyle::json),
             ContainsSubstring("\"probability\": \"0.12345678\""));
  CHECK_THAT(error_of([](GraphBuilder& b) {
               (void)layers::layernorm(b, "norm", b.input("x", {kBatch, 8}), -1e-9f);
             }),
             ContainsSubstring("epsilon is -1e-09, expected a finite number >= 0"));
}

TEST_CASE(
    "graph: tables that are gathered from, and keys that lengths may hide, may cost nothing") {
  const auto built = [](bool has_lengths) {
    GraphBuilder g("net");
    const Value x =
        layers::embedding(g, "table", g.input("ids", {kBatch, 4}, Dtype::int64), 100, 8);
    layers::AttentionLayer layer;
    if (has_lengths) layer.key_lengths = g.input("lengths", {kBatch}, Dtype::int32);
    g.output("y", layers::attention(g, "attention", x, 2, layer));
    return std::move(g).build();
  };
  for (const bool has_lengths : {false, true}) {
    const Graph graph = built(has_lengths);
    CHECK(catalog::embedding_table_bytes(graph) == 100 * 8 * 4);
    const double hidden = has_lengths ? 4.0 * 4 * 4 * 8 : 0;  // two products of 4 by 4 by 8
    CHECK(catalog::graph_flops(graph) - catalog::least_graph_flops(graph) == hidden);
  }
}

TEST_CASE("graph: a convolution costs its products with positions, not with padding") {
  const auto flops = [](const Shape& shape, const layers::ConvLayer& layer) {
    GraphBuilder g("net");
    g.output("y", layers::conv(g, "conv", g.input("x", shape), 5, layer));
    return catalog::graph_flops(std::move(g).build());
  };
  // Of three taps of 4 outputs 10 are inside; of those two apart, 8 of 4 again.
  CHECK(flops({kBatch, 2, 4, 4}, {.kernel = {3, 3}}) == 2.0 * 5 * 2 * 2 * 2 * 9);
  CHECK(flops({kBatch, 2, 4, 4}, {.kernel = {3, 3}, .padding = {1, 1}}) == 2.0 * 5 * 2 * 10 * 10);
  CHECK(flops({kBatch, 2, 4, 6}, {.kernel = {3, 1}, .padding = {2, 0}, .dilation = {2, 1}}) ==
        2.0 * 5 * 2 * 8 * 6);
}

TEST_CASE("graph: a product costs a product of each pair of a row and a column") {
  GraphBuilder g("net");
  const Value left = g.input("left", {kBatch, 3, 4, 5}),
              right = g.input("right", {kBatch, 3, 6, 5});
  g.output("y", layers::matmul(g, "product", left, right, {.transposes_right = true}));
  CHECK(catalog::graph_flops(std::move(g).build()) == 2.0 * 3 * 4 * 5 * 6);
}

TEST_CASE("graph: a transposed convolution costs its products within the result") {
  const auto flops = [](const Shape& shape, const layers::ConvTransposeLayer& layer) {
    GraphBuilder g("net");
    g.output("y", layers::conv_transpose(g, "up", g.input("x", shape), 6, layer));
    return catalog::graph_flops(std::move(g).build());
  };
  // Of three taps of 3 inputs, two apart, one before the first output and one behind the last.
  CHECK(flops({kBatch, 2, 3}, {.kernel = {1, 3}, .stride = {1, 2}}) == 2.0 * 6 * 2 * 9);
  CHECK(flops({kBatch, 2, 3}, {.kernel = {1, 3}, .stride = {1, 2}, .padding = {0, 1}}) ==
        2.0 * 6 * 2 * 7);
  CHECK(flops({kBatch, 2, 3, 5}, {.kernel = {2, 2}, .stride = {2, 2}, .groups = 2}) ==
        2.0 * 3 * 2 * (3 * 2) * (5 * 2));
}
