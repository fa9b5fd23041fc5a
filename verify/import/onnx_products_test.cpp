// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Products of two activations that are no attention, and Einsum: imported, they compute what loops
// over the file's nodes do, wherever the batch and broadcast axes are.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <limits>
#include <set>

#include "host/import/onnx/view.hpp"
#include "verify/import/onnx_steps.hpp"
#include "verify/support/refusals.hpp"
#include "wide/error.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide;
using namespace wide::test::onnx;
using Catch::Matchers::ContainsSubstring;
using Strings = std::vector<std::string>;

constexpr int64_t kB = 2, kT = 6, kE = 12;

Tensors constants() {
  Tensors all;
  add_tensor(all, "square", {kE, kE});
  add_tensor(all, "column", {kE, 1});
  add_tensor(all, "mixes", {5, kT});
  add_tensor(all, "per_head", {kE, 3, 4});
  add_tensor(all, "window", {kT, kE});
  add_tensor(all, "bias", {3, kT, kT});
  add_tensor(all, "some", {kT, kT});
  add_tensor(all, "heads_bias", {1, 3, 3, 3});
  add_tensor(all, "window_mask", {1, 2, 1, 3, 3});
  add_tensor(all, "of_columns", {1, 1, kT * kE});
  add_tensor(all, "of_rows", {1, kT * kE, 1});
  all["half"] = {{}, {0.5}};
  return all;
}

std::string file_of(const Steps& steps, int64_t batch = -1) {
  std::set<std::string> read;
  for (const Step& step : steps) read.insert(step.in.begin(), step.in.end());
  Strings initializers;
  for (const auto& [name, tensor] : constants()) {
    const std::vector<float> values(tensor.values.begin(), tensor.values.end());
    if (read.contains(name)) initializers.push_back(floats(name, tensor.shape, values));
  }
  File file = network({kT, kE}, nodes_of(steps), initializers);
  if (batch > 0) file.inputs = {value("x", {batch, kT, kE})};
  return file.bytes_of();
}

void check(const Steps& steps, const Strings& expected, int64_t batch = -1) {
  const Extents shape{batch > 0 ? batch : kB, kT, kE};
  CHECK(judged(file_of(steps, batch), steps, constants(), shape) == expected);
}

std::string refusal(const Steps& steps, int64_t batch = -1) {
  return test::message_of(ErrorCode::unsupported, [&] { (void)parse(file_of(steps, batch)); });
}

Steps einsum(const std::string& equation, const Strings& in, const std::string& out = "y") {
  return {{"Einsum", in, {out}, {}, equation}};
}

/// x [B, T, E] as heads [B, 3, T, 4], or its axes in another order.
Steps heads(const std::string& name, const Extents& order = {0, 2, 1, 3}) {
  return {{"Reshape", {"x"}, {name + "1"}, {0, 0, 3, 4}},
          {"Transpose", {name + "1"}, {name}, order}};
}

}  // namespace

TEST_CASE("onnx: products of two activations, matrix by matrix") {
  const Steps turned{{"Transpose", {"x"}, {"t"}, {0, 2, 1}}};
  check(turned + Steps{{"MatMul", {"x", "t"}, {"y"}}}, {"matmul"});
  check(turned + Steps{{"MatMul", {"t", "x"}, {"y"}}}, {"transpose", "transpose", "matmul"});
  check(turned + Steps{{"MatMul", {"x", "t"}, {"s"}}, {"MatMul", {"s", "x"}, {"y"}}},
        {"matmul", "transpose", "matmul"});
  // Of heads: what lies between them is no attention.
  const Steps both = heads("q") + heads("k", {0, 2, 3, 1});
  check(both + Steps{{"MatMul", {"q", "k"}, {"s"}}, {"Relu", {"s"}, {"y"}}},
        {"transpose", "transpose", "matmul", "pointwise"});
  check(both + Steps{{"Mul", {"q", "half"}, {"h"}}, {"MatMul", {"h", "k"}, {"y"}}},
        {"transpose", "transpose", "matmul"});
}

TEST_CASE("onnx: an axis that one factor has alone is rows or columns, and not repeated") {
  const Steps row{{"Unsqueeze", {"x"}, {"u"}, {1}}};  // [B, 1, T, E]
  const Steps k = heads("k", {0, 2, 1, 3});           // [B, 3, T, 4]
  const Steps columns{{"Reshape", {"x"}, {"c"}, {0, 1, 4, 18}}};
  check(k + columns + Steps{{"MatMul", {"k", "c"}, {"y"}}}, {"transpose", "transpose", "matmul"});
  const Steps left{{"Reshape", {"x"}, {"l"}, {0, 1, 12, 6}}};
  check(k + left + Steps{{"MatMul", {"l", "k"}, {"y"}}}, {"transpose", "matmul", "transpose"});
  // Samples stay apart where the axes of one are fewer.
  CHECK_THAT(
      refusal(row + Steps{{"Transpose", {"x"}, {"t"}, {0, 2, 1}}, {"MatMul", {"u", "t"}, {"y"}}}),
      ContainsSubstring("(MatMul) broadcasts samples of the batch to one another"));
}

TEST_CASE("onnx: a batch that is merged with other axes, or behind them") {
  for (const int64_t batch : {int64_t{-1}, int64_t{1}, int64_t{3}}) {
    CAPTURE(batch);
    // Windows of two positions as samples of their own.
    const Steps windows{{"Reshape", {"x"}, {"w"}, {-1, 2, kE}},
                        {"Transpose", {"w"}, {"t"}, {0, 2, 1}},
                        {"MatMul", {"w", "t"}, {"s"}},
                        {"MatMul", {"s", "w"}, {"m"}}};
    check(windows + Steps{{"Reshape", {"m"}, {"y"}, {batch > 0 ? batch : -1, kT, kE}}},
          {"matmul", "transpose", "matmul"}, batch);
    const Steps behind{{"Transpose", {"x"}, {"b"}, {1, 0, 2}},
                       {"Transpose", {"x"}, {"t"}, {1, 2, 0}}};
    CHECK_THAT(refusal(behind + Steps{{"MatMul", {"b", "t"}, {"y"}}}, batch),
               ContainsSubstring("(MatMul) multiplies two activations of which the first has its "
                                 "batch among the rows"));
    check(Steps{{"Transpose", {"x"}, {"b"}, {1, 0, 2}},
                {"Unsqueeze", {"b"}, {"c"}, {3}},
                {"Unsqueeze", {"b"}, {"r"}, {2}},
                {"MatMul", {"c", "r"}, {"p"}},
                {"Transpose", {"p"}, {"y"}, {1, 0, 2, 3}}},
          {"matmul"}, batch);
  }
}

TEST_CASE("onnx: attention that no primitive computes is computed as it is written") {
  const Steps both = heads("q") + heads("k", {0, 2, 3, 1}) + heads("v");
  const auto core = [&](const Steps& between) {
    return both + Steps{{"MatMul", {"q", "k"}, {"s"}}} + between +
           Steps{{"MatMul", {"p", "v"}, {"c"}}, {"Transpose", {"c"}, {"y"}, {0, 2, 1, 3}}};
  };
  const Strings copies{"transpose", "transpose"};
  const auto with = [&](Strings all) {
    all.insert(all.begin(), copies.begin(), copies.end());
    return all;
  };
  check(core({{"Softmax", {"s"}, {"p0"}}, {"Mul", {"p0", "some"}, {"p"}}}),
        with({"matmul", "softmax", "binary", "transpose", "matmul", "transpose"}));
  check(core({{"Relu", {"s"}, {"p"}}}),
        with({"matmul", "pointwise", "transpose", "matmul", "transpose"}));
  // A bias of each head would be attention's; scores that something else reads, too, are not.
  check(core({{"Add", {"s", "bias"}, {"b"}}, {"Softmax", {"b"}, {"p"}}}), {"flash_attention"});
  check(core({{"Softmax", {"s"}, {"p1"}}, {"Add", {"p1", "s"}, {"p"}}}),
        with({"matmul", "softmax", "binary", "transpose", "matmul", "transpose"}));
}

TEST_CASE("onnx: a constant matrix times an activation is rows by that matrix") {
  check({{"MatMul", {"mixes", "x"}, {"y"}}}, {"transpose", "linear", "transpose"});
  check(heads("k", {0, 2, 1, 3}) + Steps{{"MatMul", {"mixes", "k"}, {"y"}}},
        {"transpose", "linear", "transpose"});
  CHECK_THAT(refusal({{"MatMul", {"bias", "x"}, {"y"}}}),
             ContainsSubstring("(MatMul) multiplies [3, 6, 6], expected a matrix"));
}

TEST_CASE("onnx: Einsum of one input, of two, and with a constant") {
  check(einsum("bte->bet", {"x"}), {"transpose"});
  check(einsum("bte,bse->bts", {"x", "x"}), {"matmul"});
  check(einsum("bte,bse->bst", {"x", "x"}), {"matmul", "transpose"});
  check(einsum("bte,btf->bef", {"x", "x"}), {"transpose", "transpose", "matmul"});
  check(einsum("bte,bte->bt", {"x", "x"}), {"matmul"});
  check(einsum("bte,bte->b", {"x", "x"}), {"matmul"});
  check(einsum("bte,bse->btes", {"x", "x"}), {"transpose", "transpose", "matmul", "transpose"});
  check(einsum("b t e, e f -> b t f", {"x", "square"}), {"linear"});
  check(einsum("ef,bte->bft", {"square", "x"}), {"linear", "transpose"});
  check(einsum("bte,ehd->bthd", {"x", "per_head"}), {"linear"});
  check(einsum("bte,ehd->bhtd", {"x", "per_head"}), {"linear", "transpose"});
  check(einsum("bte,st->bse", {"x", "mixes"}), {"transpose", "linear", "transpose"});
  check(einsum("bte,te->b", {"x", "window"}), {"linear"});
  check(einsum("bte,ef->tbf", {"x", "square"}, "m") + Steps{{"Transpose", {"m"}, {"y"}, {1, 0, 2}}},
        {"linear"});
}

TEST_CASE("onnx: attention by Einsum is flash_attention, in any order of its axes") {
  const Steps apart{{"Reshape", {"x"}, {"h"}, {0, 0, 3, 4}}};
  const Steps softmax{{"Softmax", {"s"}, {"p"}}};
  check(apart + einsum("bqhd,bkhd->bhqk", {"h", "h"}, "s") + softmax +
            einsum("bhqk,bkhd->bqhd", {"p", "h"}),
        {"flash_attention"});
  check(apart + einsum("...qhd,...khd->...hqk", {"h", "h"}, "s") + softmax +
            einsum("...hqk,...khd->...hqd", {"p", "h"}),
        {"flash_attention", "transpose"});
  const Steps scaled{
      {"Mul", {"s", "half"}, {"s1"}}, {"Add", {"s1", "bias"}, {"s2"}}, {"Softmax", {"s2"}, {"p"}}};
  check(apart + einsum("bqhd,bkhd->bhqk", {"h", "h"}, "s") + scaled +
            einsum("bhqk,bkhd->bqhd", {"p", "h"}),
        {"flash_attention"});
  // Sums over queries, not over the keys that were normalised.
  check(apart + einsum("bqhd,bkhd->bhqk", {"h", "h"}, "s") + softmax +
            einsum("bhqk,bqhd->bkhd", {"p", "h"}),
        {"transpose", "transpose", "matmul", "softmax", "transpose", "transpose", "matmul",
         "transpose"});
  // Keys in front of queries: their softmax is over the queries of a key.
  check(apart + einsum("bqhd,bkhd->bhkq", {"h", "h"}, "s") + softmax +
            einsum("bhkq,bkhd->bqhd", {"p", "h"}),
        {"transpose", "transpose", "matmul", "transpose", "softmax", "transpose", "transpose",
         "matmul", "transpose"});
}

TEST_CASE("onnx: Einsum that is no product of matrices is refused in words") {
  const auto why = [&](const std::string& equation, const Strings& in) {
    return refusal(einsum(equation, in));
  };
  CHECK_THAT(why("bte->bt", {"x"}), ContainsSubstring("sums over an axis of one input alone"));
  CHECK_THAT(why("bte,bse->bt", {"x", "x"}), ContainsSubstring("sums over an axis of one input"));
  CHECK_THAT(
      why("bte,te->bte", {"x", "window"}),
      ContainsSubstring("has an axis of an activation and of a constant that is not summed"));
  CHECK_THAT(why("bte,cte->bc", {"x", "x"}), ContainsSubstring("has its batch"));
  CHECK_THAT(why("btt,bte->bte", {"x", "x"}), ContainsSubstring("takes a diagonal"));
  CHECK_THAT(why("bte,te,te->b", {"x", "window", "window"}),
             ContainsSubstring("has 3 inputs, expected one or two"));
  CHECK_THAT(why("bte,ef->tf", {"x", "square"}),
             ContainsSubstring("sums over an axis of one input alone"));
  const auto wrong = [&](const std::string& equation, const Strings& in) {
    return test::message_of(ErrorCode::invalid_argument,
                            [&] { (void)parse(file_of(einsum(equation, in))); });
  };
  CHECK_THAT(wrong("bt->bt", {"x"}), ContainsSubstring("names 2 axes of input 0, which has 3"));
  CHECK_THAT(wrong("bte->btf", {"x"}), ContainsSubstring("whose result has an axis that no input"));
  CHECK_THAT(wrong("bte->bte", {"x", "x"}),
             ContainsSubstring("has the equation \"bte->bte\" and 2 inputs"));
}

TEST_CASE("onnx: axes that pass more others than a graph has are copied in steps") {
  check({{"Reshape", {"x"}, {"r"}, {0, 3, 2, 2, 3, 2}},
         {"Transpose", {"r"}, {"t"}, {0, 5, 4, 3, 2, 1}},
         {"Reshape", {"t"}, {"y"}, {0, 12, 6}}},
        {"transpose", "transpose"});
  check({{"Reshape", {"x"}, {"r"}, {0, 3, 2, 2, 3, 2}},
         {"Transpose", {"r"}, {"t"}, {0, 2, 4, 1, 3, 5}},
         {"Relu", {"t"}, {"u"}},
         {"Reshape", {"u"}, {"y"}, {0, 6, 12}}},
        {"pointwise", "transpose", "transpose"});
}

TEST_CASE("onnx: attention in windows that are samples of their own, as Swin's") {
  // Two windows of three positions, next to one another in turn; heads, a bias, and a mask of each.
  const Steps windows{
      {"Reshape", {"x"}, {"r"}, {0, 3, 2, kE}}, {"Transpose", {"r"}, {"t"}, {0, 2, 1, 3}},
      {"Reshape", {"t"}, {"w"}, {-1, 3, kE}},   {"MatMul", {"w", "square"}, {"p"}},
      {"Reshape", {"p"}, {"h"}, {-1, 3, 3, 4}}, {"Transpose", {"h"}, {"q"}, {0, 2, 1, 3}},
      {"Transpose", {"q"}, {"k"}, {0, 1, 3, 2}}};
  const Steps scores{{"MatMul", {"q", "k"}, {"s"}},
                     {"Add", {"s", "heads_bias"}, {"s1"}},
                     {"Reshape", {"s1"}, {"s2"}, {-1, 2, 3, 3, 3}},
                     {"Add", {"s2", "window_mask"}, {"s3"}},
                     {"Reshape", {"s3"}, {"s4"}, {-1, 3, 3, 3}},
                     {"Softmax", {"s4"}, {"a"}},
                     {"MatMul", {"a", "q"}, {"c"}}};
  const Steps back{{"Transpose", {"c"}, {"c1"}, {0, 2, 1, 3}},
                   {"Reshape", {"c1"}, {"c2"}, {-1, 3, kE}},
                   {"MatMul", {"c2", "square"}, {"o"}},
                   {"Reshape", {"o"}, {"o1"}, {-1, 2, 3, kE}},
                   {"Transpose", {"o1"}, {"o2"}, {0, 2, 1, 3}},
                   {"Reshape", {"o2"}, {"o3"}, {-1, kT, kE}},
                   {"Add", {"o3", "x"}, {"y"}}};
  check(windows + scores + back,
        {"linear", "transpose", "transpose", "matmul", "binary", "binary", "softmax", "transpose",
         "matmul", "transpose", "linear", "transpose", "binary"});
}

TEST_CASE("onnx: every second element, from any on") {
  const auto every = [](int64_t start, int64_t end, int64_t axis = 1, int64_t step = 2) {
    return Steps{{"Slice", {"x"}, {"y"}, {axis, start, end, step}}};
  };
  check(every(0, kT), {"slice"});
  check(every(1, kT), {"slice"});
  check(every(1, 4), {"slice", "slice"});
  check(every(2, kE, 2, 5), {"slice", "slice"});
  check(every(1, 2), {"slice"});
  CHECK_THAT(refusal(every(0, kE, 2, 5)),
             ContainsSubstring("(Slice) slices 12 elements in steps of 5, expected whole steps"));
}

TEST_CASE("onnx: numbers that are computed of few may be many, like masks of windows") {
  check({{"Reshape", {"x"}, {"c"}, {0, kT * kE, 1}},
         {"Reshape", {"x"}, {"r"}, {0, 1, kT * kE}},
         {"MatMul", {"c", "r"}, {"s"}},
         {"Add", {"of_columns", "of_rows"}, {"mask"}},  // 5184
         {"Add", {"s", "mask"}, {"y"}}},
        {"matmul", "binary"});
}

TEST_CASE("onnx: ScatterND of constants") {
  const auto file = [](const Extents& places, const Strings& more = {}) {
    std::string attributes;
    for (const std::string& reduction : more) attributes += text_attribute("reduction", reduction);
    const File scatter =
        network({kT, 3},
                {node("ScatterND", {"zeros", "places", "ones"}, {"mask"}, attributes),
                 node("Add", {"x", "mask"}, {"y"})},
                {floats("zeros", {kT, 3}, std::vector<float>(kT * 3)),
                 ints("places", {2, 2}, places), floats("ones", {2}, {1, 2})});
    return scatter.bytes_of();
  };
  const std::string good = file({4, 1, -1, -3});
  const OnnxModel model = parse(good);
  const auto parameters = model.parameters(0);
  REQUIRE(parameters.size() == 1);
  std::vector<double> expected(kT * 3);
  expected[4 * 3 + 1] = 1, expected[5 * 3] = 2;
  CHECK(catalog::to_doubles(parameters.begin()->second).values == expected);
  CHECK_THAT(test::message_of(ErrorCode::unsupported,
                              [&] {
                                (void)parse(file({0, 0, 0, 0}, {"add"}));
                              }),
             ContainsSubstring("has reduction add, expected none"));
  CHECK_THAT(test::message_of(ErrorCode::invalid_argument,
                              [&] {
                                (void)parse(file({6, 0, 0, 0}));
                              }),
             ContainsSubstring("writes element 6, expected one of 6"));
}

TEST_CASE("onnx: a dropout in training that drops nothing is none") {
  const auto file = [](float ratio) {
    const File dropout = network(
        {kT, kE}, {node("Dropout", {"x", "ratio", "trains"}, {"y"})},
        {floats("ratio", {}, {ratio}), tensor_head("trains", 9, {}) + bytes(9, std::string(1, 1))});
    return dropout.bytes_of();
  };
  CHECK_NOTHROW(parse(file(0)));
  CHECK_THAT(test::message_of(ErrorCode::unsupported, [&] { (void)parse(file(0.5f)); }),
             ContainsSubstring("is in training mode and drops 0.5, expected inference, or 0"));
}

TEST_CASE("onnx: what is broadcast to one another is repeated by a copy") {
  const Steps sums{{"MatMul", {"x", "column"}, {"a"}}, {"Transpose", {"a"}, {"b"}, {0, 2, 1}}};
  check(sums + Steps{{"Add", {"a", "b"}, {"y"}}}, {"linear", "upsample", "upsample", "binary"});
  check(sums + Steps{{"Sub", {"b", "a"}, {"y"}}}, {"linear", "upsample", "upsample", "binary"});
  check(sums + Steps{{"Mul", {"x", "a"}, {"y"}}}, {"linear", "binary"});
  check(sums + Steps{{"Sub", {"a", "x"}, {"y"}}}, {"linear", "upsample", "binary"});
  const Steps turned = sums + Steps{{"Transpose", {"x"}, {"t"}, {0, 2, 1}}};  // as b, of features
  check(turned + Steps{{"Mul", {"b", "t"}, {"y"}}}, {"linear", "transpose", "binary"});
  check(turned + Steps{{"Sub", {"t", "b"}, {"y"}}}, {"linear", "transpose", "binary"});
  check(turned + Steps{{"Sub", {"b", "t"}, {"y"}}}, {"linear", "transpose", "upsample", "binary"});
  check(sums + Steps{{"Expand", {"b"}, {"y"}, {1, 4, 1}}}, {"linear", "upsample"});
  check({{"Reshape", {"x"}, {"r"}, {0, kT, 1, 4, 3}},
         {"Expand", {"r"}, {"e"}, {1, 1, 2, 1, 1}},
         {"Reshape", {"e"}, {"y"}, {0, kT, 2 * kE}}},
        {"upsample"});
  CHECK_THAT(refusal(sums + Steps{{"Squeeze", {"a"}, {"s"}, {2}}, {"Add", {"a", "s"}, {"y"}}}),
             ContainsSubstring("combines [-1, 6, 1] and [-1, 6], expected as many axes"));
}

TEST_CASE("onnx: Pad by itself, whatever it pads with") {
  const auto pad = [](const std::string& mode, const Extents& pads) {
    return Steps{{"Pad", {"x"}, {"y"}, pads, mode}};
  };
  check(pad("constant", {0, 1, 0, 0, 0, 3}), {"concat", "concat"});
  check(pad("reflect", {0, 2, 1, 0, 0, 1}),
        {"slice", "slice", "concat", "slice", "slice", "concat"});
  check(pad("edge", {0, 2, 0, 0, 1, 0}), {"slice", "slice", "slice", "concat"});
  check(pad("wrap", {0, 2, 0, 0, 1, 0}), {"slice", "slice", "concat"});
  check(pad("constant", {0, -2, 0, 0, 1, 0}), {"slice", "concat"});
  check(pad("constant", {0, 0, 0, 0, 0, 0}), {});
  const int64_t least = std::numeric_limits<int64_t>::min();
  CHECK_THAT(refusal(pad("constant", {0, least, 0, 0, 0, 0})), ContainsSubstring("at most 2^30"));
  CHECK_THAT(refusal(pad("constant", {1, 0, 0, 0, 0, 0})), ContainsSubstring("pads the batch"));
  CHECK_THAT(refusal(pad("reflect", {0, 6, 0, 0, 0, 0})),
             ContainsSubstring("pads 6 elements by 6 of themselves, expected at most 5"));
  CHECK_THAT(refusal(pad("constant", {0, -3, 0, 0, -3, 0})),
             ContainsSubstring("leaves no elements of 6"));
}
