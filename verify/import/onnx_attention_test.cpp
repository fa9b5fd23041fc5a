// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention as exporters spell it out becomes flash_attention, with nothing moved around it, and
// computes what the file's nodes say; what cannot be attention is computed as it stands.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
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

constexpr int64_t kB = 2, kT = 5, kH = 3, kD = 4, kE = kH * kD;

/// What every network here may read.
Tensors constants() {
  Tensors all;
  for (const char* name : {"wq", "wk", "wv", "wo"}) add_tensor(all, name, {kE, kE});
  for (const char* name : {"bq", "bk", "bv", "bo"}) add_tensor(all, name, {kE});
  add_tensor(all, "wqkv", {kE, 3 * kE});
  add_tensor(all, "bqkv", {3 * kE});
  all["root"] = {{}, {2}};
  all["scale"] = {{1}, {0.5}};
  all["fourth"] = {{}, {0.70710677}};
  all["hidden"] = {{}, {-10000}};
  all["cap"] = {{}, {0.75}};
  all["below"] = {{}, {-1.5}};
  all["more"] = {{}, {65537}};
  all["minus"] = {{}, {-1}};
  all["tiny"] = {{}, {0.001}};
  all["lowest"] = {{}, {-3.4028234663852886e38}};
  all["many"] = all["zeros of many"] = {{1, kH, 1, kT}, std::vector<double>(kH * kT, 0)};
  all["many"].values[0] = 1;
  all["hidden of more"] = {{1, 1, 1, 1, 1}, {-1e9}};
  all["zeros"] = {{1, 1, 1, kT}, std::vector<double>(kT, 0)};
  for (const char* name : {"mask", "keep", "kept", "some", "up"}) {
    const bool is_mask = name[0] != 'k';
    all[name] = {is_mask ? Extents{1, 1, kT, kT} : Extents{kT, kT}, {}};
    for (int64_t i = 0; i < kT * kT; ++i) {
      const bool is_behind = i % kT > i / kT;
      all[name].values.push_back(is_mask ? (is_behind ? -1e9 : 0) : (is_behind ? 0 : 1));
    }
  }
  all["some"].values[0] = -1e9;
  all["kept"].values[0] = 0;  // the first query's only key
  for (double& value : all["up"].values) value *= -1;
  add_tensor(all, "bias", {1, 2, kT, kT});
  return all;
}

/// A file of the steps from x [batch, T, E], of the constants that they read.
std::string file_of(const Steps& steps, int64_t batch = -1) {
  std::set<std::string> read;
  for (const Step& step : steps) read.insert(step.in.begin(), step.in.end());
  Strings initializers;
  for (const auto& [name, tensor] : constants()) {
    if (!read.contains(name)) continue;
    if (name[0] == 'k') {
      std::string truths;
      for (const double value : tensor.values) truths += static_cast<char>(value);
      initializers.push_back(tensor_head(name, 9, tensor.shape) + bytes(9, truths));
      continue;
    }
    std::vector<float> values(tensor.values.begin(), tensor.values.end());
    initializers.push_back(floats(name, tensor.shape, values));
  }
  File file = network({kT, kE}, nodes_of(steps), initializers);
  if (batch > 0) file.inputs = {value("x", {batch, kT, kE})};
  return file.bytes_of();
}

/// Imported, they compute what the loops do. Returns their operations.
Strings computed(const Steps& steps, int64_t batch = -1) {
  return judged(file_of(steps, batch), steps, constants(), {batch > 0 ? batch : kB, kT, kE});
}
void check(const Steps& steps, const Strings& expected, int64_t batch = -1) {
  CHECK(computed(steps, batch) == expected);
}

/// As products, and nothing of it as attention.
void check_plain(const Steps& steps) {
  const Strings all = computed(steps);
  CHECK(std::ranges::count(all, "matmul") > 0);
  CHECK(std::ranges::count(all, "flash_attention") == 0);
}

std::string refusal(const Steps& steps) {
  return test::message_of(ErrorCode::unsupported, [&] { (void)parse(file_of(steps)); });
}

/// x W + b of one projection, its heads taken apart: [B, H, T, D].
Steps heads(const std::string& name, const Extents& order = {0, 2, 1, 3}) {
  return {{"MatMul", {"x", "w" + name}, {name + "1"}},
          {"Add", {name + "1", "b" + name}, {name + "2"}},
          {"Reshape", {name + "2"}, {name + "3"}, {0, 0, kH, kD}},
          {"Transpose", {name + "3"}, {name}, order}};
}
Steps together() {
  return {{"Transpose", {"c"}, {"c1"}, {0, 2, 1, 3}},
          {"Reshape", {"c1"}, {"c2"}, {0, 0, -1}},
          {"MatMul", {"c2", "wo"}, {"y1"}},
          {"Add", {"y1", "bo"}, {"y"}}};
}
/// k is transposed with its heads; `between` stands between the products, from s to p.
Steps attention(const Steps& between) {
  return heads("q") + heads("k", {0, 2, 3, 1}) + heads("v") + Steps{{"MatMul", {"q", "k"}, {"s"}}} +
         between + Steps{{"MatMul", {"p", "v"}, {"c"}}} + together();
}

const Strings kAttention{"linear", "linear", "linear", "flash_attention", "linear"};

}  // namespace

TEST_CASE("onnx: scores that are scaled and masked in any order are one attention") {
  const Steps softmax{{"Softmax", {"s1"}, {"p"}}};
  check(attention({{"Softmax", {"s"}, {"p"}}}), kAttention);
  check(attention(Steps{{"Div", {"s", "root"}, {"s1"}}} + softmax), kAttention);
  check(attention(Steps{{"Mul", {"scale", "s"}, {"s1"}}} + softmax), kAttention);
  check(attention(Steps{{"Div", {"s", "root"}, {"s0"}}, {"Add", {"s0", "mask"}, {"s1"}}} + softmax),
        kAttention);
  check(
      attention(Steps{{"Add", {"zeros", "s"}, {"s0"}}, {"Mul", {"s0", "scale"}, {"s1"}}} + softmax),
      kAttention);
  check(attention(Steps{{"Where", {"keep", "s", "hidden"}, {"s1"}}} + softmax), kAttention);
  check(attention(Steps{{"Add", {"s", "some"}, {"s1"}}} + softmax), kAttention);
  const std::string file =
      file_of(attention(Steps{{"Where", {"keep", "s", "hidden"}, {"s1"}}} + softmax));
  const OnnxModel model = parse(file);
  for (const wide::Node& n : model.graph().nodes()) {
    if (const auto* op = std::get_if<FlashAttentionOp>(&n.operation))
      CHECK(*op == FlashAttentionOp{.heads = kH, .is_causal = true, .scale = 1});
  }
}

TEST_CASE("onnx: nodes that compute nothing may stand between attention's products") {
  const Steps softmax{{"Softmax", {"s1"}, {"s2"}}};
  for (const char* op : {"Identity", "Dropout", "Cast"}) {
    const auto step = [&](const char* from, const char* to) {
      return Steps{{op, {from}, {to}, *op == 'C' ? Extents{1} : Extents{}}};
    };
    check(attention(step("s", "s1") + softmax + step("s2", "p")), kAttention);
  }
  CHECK_THAT(refusal(attention(Steps{{"Cast", {"s"}, {"s1"}, {10}}} + softmax +
                               Steps{{"Cast", {"s2"}, {"p"}, {1}}})),
             ContainsSubstring("(Cast) casts fp32 to FLOAT16"));
}

TEST_CASE("onnx: scores that are capped by a tanh, then masked, are one attention") {
  // As Gemma 2: c tanh(s / c), of scores that are scaled before; and a cap below 0, as tanh is odd.
  const Steps capped{{"Mul", {"s", "scale"}, {"s0"}},
                     {"Div", {"s0", "cap"}, {"s1"}},
                     {"Tanh", {"s1"}, {"s2"}},
                     {"Mul", {"s2", "cap"}, {"s3"}}};
  const Steps softmax{{"Softmax", {"s4"}, {"p"}}};
  check(attention(capped + Steps{{"Softmax", {"s3"}, {"p"}}}), kAttention);
  check(attention(capped + Steps{{"Where", {"keep", "s3", "hidden"}, {"s4"}}} + softmax),
        kAttention);
  const Steps masked = capped + Steps{{"Add", {"s3", "some"}, {"s4"}}} + softmax;
  check(attention(masked), kAttention);
  check(attention(Steps{{"Tanh", {"s"}, {"s2"}}, {"Mul", {"s2", "below"}, {"s4"}}} + softmax),
        kAttention);
  const OnnxModel model = parse(file_of(attention(masked)));
  for (const wide::Node& n : model.graph().nodes()) {
    if (const auto* op = std::get_if<FlashAttentionOp>(&n.operation))
      CHECK(*op == FlashAttentionOp{.heads = kH, .scale = 0.5f, .soft_cap = 0.75f});
  }
  // Two caps, one of what is masked, and one beyond what attention takes.
  check_plain(attention(Steps{{"Tanh", {"s"}, {"s2"}}, {"Tanh", {"s2"}, {"s4"}}} + softmax));
  check_plain(attention(Steps{{"Add", {"s", "some"}, {"s2"}}, {"Tanh", {"s2"}, {"s4"}}} + softmax));
  check_plain(attention(Steps{{"Tanh", {"s"}, {"s2"}}, {"Mul", {"s2", "more"}, {"s4"}}} + softmax));
}

TEST_CASE("onnx: factors of queries and keys are the attention's scale") {
  // As torch exports scaled_dot_product_attention.
  const Steps scaled = heads("q") + heads("k") + heads("v") +
                       Steps{{"Transpose", {"k"}, {"kt"}, {0, 1, 3, 2}},
                             {"Div", {"q", "root"}, {"q_scaled"}},
                             {"Mul", {"kt", "fourth"}, {"k_scaled"}},
                             {"MatMul", {"q_scaled", "k_scaled"}, {"s"}},
                             {"Softmax", {"s"}, {"p"}},
                             {"MatMul", {"p", "v"}, {"c"}}} +
                       together();
  check(scaled, kAttention);
}

TEST_CASE("onnx: projections in one, their parts split or gathered") {
  const Steps tail = Steps{{"MatMul", {"q", "kt"}, {"s"}},
                           {"Softmax", {"s"}, {"p"}},
                           {"MatMul", {"p", "v"}, {"c"}}} +
                     together();
  const auto apart = [](const std::string& from, const std::string& to, const Extents& order) {
    return Steps{{"Reshape", {from}, {to + "4"}, {0, 0, kH, kD}},
                 {"Transpose", {to + "4"}, {to}, order}};
  };
  // As GPT-2: rows of all samples, one product, split.
  check(Steps{{"Reshape", {"x"}, {"rows"}, {-1, kE}},
              {"Gemm", {"rows", "wqkv", "bqkv"}, {"r"}},
              {"Reshape", {"r"}, {"qkv"}, {-1, kT, 3 * kE}},
              {"Split", {"qkv"}, {"q0", "k0", "v0"}, {2}}} +
            apart("q0", "q", {0, 2, 1, 3}) + apart("k0", "kt", {0, 2, 3, 1}) +
            apart("v0", "v", {0, 2, 1, 3}) + tail,
        {"linear", "slice", "slice", "slice", "flash_attention", "linear"});
  // As vision transformers: [B, T, 3, H, D] moved to [3, B, H, T, D], and gathered.
  check(Steps{{"MatMul", {"x", "wqkv"}, {"r"}},
              {"Reshape", {"r"}, {"r5"}, {0, kT, 3, kH, kD}},
              {"Transpose", {"r5"}, {"moved"}, {2, 0, 3, 1, 4}},
              {"Gather", {"moved"}, {"q"}, {0, 0}},
              {"Gather", {"moved"}, {"k"}, {0, 1}},
              {"Gather", {"moved"}, {"v"}, {0, 2}},
              {"Transpose", {"k"}, {"kt"}, {0, 1, 3, 2}}} +
            tail,
        {"linear", "slice", "slice", "slice", "flash_attention", "linear"});
}

TEST_CASE("onnx: torch's MultiheadAttention, whose batch is behind the positions") {
  // Positions in front, the batch among the heads, and all of it undone: in files whose batch has a
  // number, as exporters leave it.
  for (const int64_t batch : {int64_t{1}, int64_t{2}, int64_t{3}}) {
    CAPTURE(batch);
    const auto apart = [&](const std::string& from, const std::string& to) {
      return Steps{{"Reshape", {from}, {to + "4"}, {kT, batch * kH, kD}},
                   {"Transpose", {to + "4"}, {to}, {1, 0, 2}}};
    };
    check(Steps{{"Transpose", {"x"}, {"xt"}, {1, 0, 2}},
                {"MatMul", {"xt", "wqkv"}, {"r"}},
                {"Add", {"r", "bqkv"}, {"rb"}},
                {"Reshape", {"rb"}, {"r4"}, {kT, batch, 3, kE}},
                {"Unsqueeze", {"r4"}, {"r5"}, {0}},
                {"Transpose", {"r5"}, {"r6"}, {3, 1, 2, 0, 4}},
                {"Squeeze", {"r6"}, {"r7"}, {3}},
                {"Gather", {"r7"}, {"q0"}, {0, 0}},
                {"Gather", {"r7"}, {"k0"}, {0, 1}},
                {"Gather", {"r7"}, {"v0"}, {0, 2}}} +
              apart("q0", "q") + apart("k0", "k") + apart("v0", "v") +
              Steps{{"Mul", {"q", "scale"}, {"qs"}},
                    {"Transpose", {"k"}, {"kt"}, {0, 2, 1}},
                    {"MatMul", {"qs", "kt"}, {"s"}},
                    {"Softmax", {"s"}, {"p"}},
                    {"MatMul", {"p", "v"}, {"c"}},
                    {"Transpose", {"c"}, {"c1"}, {1, 0, 2}},
                    {"Reshape", {"c1"}, {"c2"}, {kT * batch, kE}},
                    {"Gemm", {"c2", "wo"}, {"o"}},
                    {"Relu", {"o"}, {"o1"}},
                    {"Reshape", {"o1"}, {"o2"}, {kT, batch, kE}},
                    {"Add", {"o2", "xt"}, {"o3"}},
                    {"Transpose", {"o3"}, {"y"}, {1, 0, 2}}},
          {"linear", "slice", "slice", "slice", "flash_attention", "linear", "pointwise", "binary"},
          batch);
  }
}

TEST_CASE("onnx: what is done to each element does not mind where the axes are") {
  check({{"Transpose", {"x"}, {"t"}, {0, 2, 1}},
         {"Mul", {"t", "scale"}, {"m"}},
         {"Relu", {"m"}, {"r"}},
         {"Add", {"r", "t"}, {"a"}},
         {"Mul", {"a", "root"}, {"b"}},
         {"Transpose", {"b"}, {"y"}, {0, 2, 1}}},
        {"binary", "pointwise", "binary", "binary"});
}

TEST_CASE("onnx: axes are copied into place where a primitive must have them there") {
  check({{"Transpose", {"x"}, {"y"}, {0, 2, 1}}}, {"transpose"});
  check({{"Transpose", {"x"}, {"t"}, {0, 2, 1}},
         {"Add", {"t", "t"}, {"u"}},
         {"Softmax", {"u"}, {"s"}},
         {"Transpose", {"s"}, {"b"}, {0, 2, 1}},
         {"Add", {"b", "x"}, {"y"}}},
        {"binary", "transpose", "softmax", "transpose", "binary"});
  check({{"Reshape", {"x"}, {"r"}, {0, kT, kH, kD}},
         {"Transpose", {"r"}, {"t"}, {0, 1, 3, 2}},
         {"Reshape", {"t"}, {"u"}, {0, kT, kE}},
         {"MatMul", {"u", "wo"}, {"y"}}},
        {"transpose", "linear"});
  check({{"Transpose", {"x"}, {"t"}, {0, 2, 1}},
         {"Reshape", {"t"}, {"r"}, {0, kH, kD * kT}},
         {"Gather", {"r"}, {"y"}, {1, 2}}},
        {"slice", "transpose"});
  // Heads in front of positions, as they come.
  check({{"Reshape", {"x"}, {"q"}, {0, kH, kT, kD}},
         {"Transpose", {"q"}, {"k"}, {0, 1, 3, 2}},
         {"MatMul", {"q", "k"}, {"s"}},
         {"Softmax", {"s"}, {"p"}},
         {"MatMul", {"p", "q"}, {"c"}},
         {"Relu", {"c"}, {"y"}}},
        {"transpose", "transpose", "transpose", "flash_attention", "pointwise", "transpose"});
}

TEST_CASE("onnx: products of activations that are no attention are computed as they stand") {
  const Steps softmax{{"Softmax", {"s1"}, {"p"}}};
  CHECK_THAT(refusal(attention(Steps{{"Add", {"s", "bias"}, {"s1"}}} + softmax)),
             ContainsSubstring("node \"node_s1\" (Add) combines [-1, 3, 5, 5] and the constant "
                               "[1, 2, 5, 5], which does not fit or is larger"));
  check_plain(attention({{"Softmax", {"s"}, {"p0"}}, {"Add", {"p0", "mask"}, {"p"}}}));
  check_plain(attention(Steps{{"Relu", {"s"}, {"s1"}}} + softmax));
  check_plain(attention(Steps{{"Mul", {"s", "scale"}, {"p"}}}));
  check_plain(attention(Steps{{"Softmax", {"s"}, {"s1"}}, {"Mul", {"s1", "scale"}, {"p"}}}));
  check_plain(attention(Steps{{"Softmax", {"s"}, {"s1"}}} + softmax));
  check_plain({{"Transpose", {"x"}, {"k"}, {0, 2, 1}}, {"MatMul", {"x", "k"}, {"y"}}});
  CHECK_THAT(refusal({{"Transpose", {"x"}, {"y"}, {1, 0, 2}}}),
             ContainsSubstring("output \"y\" has its batch elsewhere than in front"));
  CHECK_THAT(refusal({{"Transpose", {"x"}, {"t"}, {1, 2, 0}},
                      {"Reshape", {"t"}, {"r"}, {kT, kE, 1, -1}},
                      {"Add", {"r", "x"}, {"y"}}}),
             ContainsSubstring("(Add)"));
}

/// softmax(q k) v, where the axes of x [B, T, E] are taken apart and moved to make them.
Steps product(const Steps& made) {
  return made + Steps{{"MatMul", {"q", "k"}, {"s"}},
                      {"Softmax", {"s"}, {"p"}},
                      {"MatMul", {"p", "v"}, {"c"}},
                      {"Reshape", {"c"}, {"y"}, {0, -1}}};
}

TEST_CASE("onnx: products whose batch would be broadcast to one another are refused") {
  const Steps q{{"Reshape", {"x"}, {"q"}, {0, 1, kT, kE}}};
  const Steps k{{"Transpose", {"q"}, {"k"}, {0, 1, 3, 2}}};
  const auto values = [](const Extents& order) {
    return Steps{{"Reshape", {"x"}, {"v1"}, {0, kT, 1, kE}}, {"Transpose", {"v1"}, {"v"}, order}};
  };
  check(product(q + k + values({0, 2, 1, 3})), {"flash_attention"});
  struct Case {
    Steps made;
    const char* why;
  };
  const Steps heads_in_front{{"Reshape", {"x"}, {"q"}, {0, 1, kH, kT, kD}}};
  const Steps heads_behind{{"Reshape", {"x"}, {"v"}, {0, kH, 1, kT, kD}},
                           {"Transpose", {"v"}, {"k"}, {0, 1, 2, 4, 3}}};
  const char* broadcasts = "(MatMul) broadcasts samples of the batch to one another";
  for (const Case& c :
       {Case{q + Steps{{"Transpose", {"x"}, {"k"}, {0, 2, 1}}} + values({0, 2, 1, 3}), broadcasts},
        Case{q + Steps{{"Transpose", {"q"}, {"k"}, {1, 0, 3, 2}}} + values({0, 2, 1, 3}),
             broadcasts},
        Case{q + k + Steps{{"Reshape", {"x"}, {"v"}, {0, 0, 0}}}, broadcasts},
        Case{q + k + values({2, 0, 1, 3}), broadcasts}}) {
    CAPTURE(c.why);
    CHECK_THAT(refusal(product(c.made)), ContainsSubstring(c.why));
  }
  // Heads of each factor alone are no attention's: all of one with all of the other.
  check_plain(product(heads_in_front + heads_behind));
  const std::string other = test::message_of(ErrorCode::invalid_argument, [&] {
    const Steps one{{"Reshape", {"x"}, {"q"}, {0, 1, 1, kT, kE}}};
    (void)parse(file_of(product(one + heads_behind)));
  });
  CHECK_THAT(other, ContainsSubstring("node_s\" (MatMul) sums over 12 elements of one activation "
                                      "and 4 of the other, expected as many"));
}

TEST_CASE("onnx: what is combined with scores makes no heads of its own") {
  const Steps made{{"Reshape", {"x"}, {"q"}, {0, 1, kT, kE}},
                   {"Transpose", {"q"}, {"k"}, {0, 1, 3, 2}},
                   {"Reshape", {"x"}, {"v"}, {0, 1, kT, kE}},
                   {"MatMul", {"q", "k"}, {"s"}}};
  const Steps behind{{"Softmax", {"s1"}, {"p"}}, {"MatMul", {"p", "v"}, {"y"}}};
  for (const char* constant : {"many", "zeros of many"})
    CHECK_THAT(refusal(made + Steps{{"Add", {"s", constant}, {"s1"}}} + behind),
               ContainsSubstring("combines [-1, 1, 5, 5] and the constant [1, 3, 1, 5], which does "
                                 "not fit or is larger"));
  CHECK_THAT(refusal(made + Steps{{"Where", {"keep", "s", "hidden of more"}, {"s1"}}} + behind),
             ContainsSubstring("(Where) chooses by a constant"));
}

TEST_CASE("onnx: one head of keys and values is broadcast to all heads of queries") {
  const auto shared = [](const char* part, const Extents& order) {
    const std::string name(part);
    return Steps{{"MatMul", {"x", "w" + name}, {name + "1"}},
                 {"Split", {name + "1"}, {name + "2", name + "3", name + "4"}, {2}},
                 {"Unsqueeze", {name + "3"}, {name + "5"}, {1}},
                 {"Transpose", {name + "5"}, {name}, order}};
  };
  const Steps between{
      {"MatMul", {"q", "k"}, {"s"}}, {"Softmax", {"s"}, {"p"}}, {"MatMul", {"p", "v"}, {"c"}}};
  const Steps keys = shared("k", {0, 1, 3, 2}), values = shared("v", {0, 1, 2, 3});
  for (const int64_t batch : {-1, 1, 2})
    check(heads("q") + keys + values + between + together(),
          {"linear", "linear", "slice", "linear", "slice", "flash_attention", "linear"}, batch);
  // Keys of one head and values of all, or queries of one head.
  check_plain(heads("q") + keys + heads("v") + between + together());
  check_plain(heads("k", {0, 2, 3, 1}) + shared("q", {0, 1, 2, 3}) + heads("v") + between +
              together());
}

TEST_CASE("onnx: a causal mask that is weakened afterwards is no attention's") {
  const Steps softmax{{"Softmax", {"p0"}, {"p"}}};
  const Steps masked{{"Where", {"keep", "s", "hidden"}, {"s1"}}};
  const Steps added{{"Add", {"s", "mask"}, {"s1"}}};
  for (const Steps& mask : {masked, added}) {
    check(attention(mask + Steps{{"Div", {"s1", "root"}, {"p0"}}} + softmax), kAttention);
    check(attention(mask + Steps{{"Add", {"s1", "zeros"}, {"p0"}}} + softmax), kAttention);
  }
  check_plain(attention(added + Steps{{"Mul", {"s1", "minus"}, {"p0"}}} + softmax));
  check_plain(attention(added + Steps{{"Add", {"s1", "up"}, {"p0"}}} + softmax));
  check_plain(
      attention(Steps{{"Add", {"s", "up"}, {"s0"}}, {"Add", {"s0", "mask"}, {"p0"}}} + softmax));
  check(attention(added + Steps{{"Mul", {"s1", "tiny"}, {"p0"}}} + softmax), kAttention);
  for (const Step& weaker :
       {Step{"Mul", {"s1", "minus"}, {"p0"}}, Step{"Add", {"s1", "up"}, {"p0"}},
        Step{"Mul", {"s1", "tiny"}, {"p0"}}})
    CHECK_THAT(refusal(attention(masked + Steps{weaker} + softmax)),
               ContainsSubstring("(Where) chooses by a constant"));
}

TEST_CASE("onnx: a query without a key is hidden by minus infinity, or refused") {
  const auto file = [](const char* hidden) {
    return attention({{"Where", {"kept", "s", hidden}, {"s1"}}, {"Softmax", {"s1"}, {"p"}}});
  };
  CHECK_THAT(refusal(file("hidden")), ContainsSubstring("(Where) chooses by a constant"));
  CHECK_NOTHROW(parse(file_of(file("lowest"))));
}
