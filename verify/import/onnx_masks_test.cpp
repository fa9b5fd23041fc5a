// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention whose masks are inputs, heads that share keys and values, and rotary embeddings, as
// exporters spell them out: what a graph computes against the file's own nodes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <optional>
#include <set>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/onnx_loops.hpp"
#include "verify/support/refusals.hpp"
#include "wide/error.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide;
using namespace wide::test::onnx;
using Catch::Matchers::ContainsSubstring;
using Strings = std::vector<std::string>;

constexpr int64_t kB = 2, kT = 5, kH = 4, kD = 4, kE = kH * kD, kGroups = 2, kKv = kGroups * kD;
constexpr int kFloat = 1, kInt64 = 7, kBool = 9;

/// What every network here may read.
Tensors constants() {
  Tensors all;
  for (const char* name : {"wq", "wk", "wv", "wo"}) add_tensor(all, name, {kE, kE});
  for (const char* name : {"wgk", "wgv"}) add_tensor(all, name, {kE, kKv});
  for (const char* name : {"cos", "sin"}) add_tensor(all, name, {1, 1, kT, kD});
  add_tensor(all, "positions", {kH, kT, kT});
  all["root"] = {{}, {2}};
  all["one"] = {{}, {1}};
  all["most"] = {{}, {-10000}};
  all["least"] = {{}, {-3.4028234663852886e38}};
  all["zero"] = {{}, {0}};
  all["half"] = {{}, {0.5}};
  return all;
}

struct Input {
  std::string name;
  Extents shape;  ///< behind the batch
  int type = kFloat;
};
const Input kMask{"mask", {kT}, kInt64};

/// A file of the steps from x [batch, T, E] and a mask, of the constants that they read.
std::string file_of(const Steps& steps, const Input& mask, int64_t batch = -1) {
  std::set<std::string> read;
  for (const Step& step : steps) read.insert(step.in.begin(), step.in.end());
  Strings initializers;
  for (const auto& [name, tensor] : constants()) {
    if (!read.contains(name)) continue;
    std::vector<float> values(tensor.values.begin(), tensor.values.end());
    initializers.push_back(floats(name, tensor.shape, values));
  }
  initializers.push_back(ints("whole_one", {}, {1}));
  initializers.push_back(ints("whole_zero", {}, {0}));
  initializers.push_back(ints("whole_less", {1}, {-1}));
  initializers.push_back(ints("whole_most", {1, 1, 1, 1}, {-10000}));
  initializers.push_back(ints("whole_many", {kT}, std::vector<int64_t>(kT, 10000)));
  File file = network({kT, kE}, nodes_of(steps), initializers);
  Extents shape{batch};
  shape.insert(shape.end(), mask.shape.begin(), mask.shape.end());
  file.inputs = {value("x", {batch, kT, kE}), value(mask.name, shape, mask.type)};
  return file.bytes_of();
}

OnnxModel parse(const std::string& file, bool is_shared = false) {
  OnnxOptions options;
  if (is_shared) options.shared_inputs = {"mask"};
  return OnnxModel::parse(std::as_bytes(std::span(file)), "a file", options);
}

/// 0 and 1, a 1 in every row, others for another seed.
Doubles mask_of(const Input& mask, int64_t rows, size_t seed = 0) {
  Doubles out{{rows}, {}};
  out.shape.insert(out.shape.end(), mask.shape.begin(), mask.shape.end());
  int64_t size = rows;
  for (const int64_t extent : mask.shape) size *= extent;
  for (int64_t i = 0; i < size; ++i)
    out.values.push_back(i % kT == 0 || number(static_cast<size_t>(i) + seed + 5) > 0 ? 1 : 0);
  return out;
}

/// Imported, it has one attention with these attributes, or none, and computes what the loops do.
void check(const Steps& steps, const Input& mask,
           const std::optional<FlashAttentionOp>& expected = {},
           const Strings& operations_wanted = {}, int64_t batch = -1) {
  const std::string file = file_of(steps, mask, batch);
  const OnnxModel model = parse(file);
  const Graph& graph = model.graph();
  int num_attentions = 0;
  for (const wide::Node& node : graph.nodes()) {
    const auto* op = std::get_if<FlashAttentionOp>(&node.operation);
    if (op == nullptr) continue;
    ++num_attentions;
    CHECK(*op == expected);
  }
  CHECK(num_attentions == (expected ? 1 : 0));
  if (!operations_wanted.empty()) CHECK(operations(graph) == operations_wanted);
  const int64_t rows = batch > 0 ? batch : kB;
  Doubles x{{rows, kT, kE}, {}};
  for (int64_t i = 0; i < rows * kT * kE; ++i)
    x.values.push_back(number(static_cast<size_t>(i) + 99));
  for (size_t seed = 0; seed < 3; ++seed) {
    Tensors known = constants();
    known["x"] = x;
    known["whole_one"] = {{}, {1}};
    known["whole_zero"] = {{}, {0}};
    known["whole_less"] = {{1}, {-1}};
    known["whole_most"] = {{1, 1, 1, 1}, {-10000}};
    known["whole_many"] = {{kT}, std::vector<double>(kT, 10000)};
    known[mask.name] = mask_of(mask, rows, seed);
    const Doubles wanted = evaluate_steps(steps, known).at("y");
    std::map<std::string, Doubles> parameters;
    for (const auto& [name, view] : model.parameters(0))
      parameters[name] = catalog::to_doubles(view);
    const Doubles got =
        catalog::evaluate_graph(graph, {{"x", x}, {mask.name, known[mask.name]}}, parameters)
            .at("y");
    REQUIRE(got.shape == wanted.shape);
    for (size_t i = 0; i < got.values.size(); ++i)
      CHECK(std::fabs(got.values[i] - wanted.values[i]) < 1e-5);
  }
  // With members, whose masks are their own or one for all.
  for (const bool is_shared : {false, true}) {
    const OnnxModel shared = parse(file, is_shared);
    for (const int64_t members : {int64_t{1}, int64_t{2}}) {
      test::ModelRun run(Context::cpu(), shared.graph(), {.num_members = members, .batch = kB});
      CHECK(run.worst_error(run.run()) < 2e-5);
    }
  }
}

std::string refusal(const Steps& steps, const Input& mask = kMask) {
  return test::message_of(ErrorCode::unsupported, [&] { (void)parse(file_of(steps, mask)); });
}

/// x W of one projection, its heads taken apart: [B, heads, T, D].
Steps heads(const std::string& name, const std::string& weight, int64_t count) {
  return {{"MatMul", {"x", weight}, {name + "1"}},
          {"Reshape", {name + "1"}, {name + "2"}, {0, 0, count, kD}},
          {"Transpose", {name + "2"}, {name}, {0, 2, 1, 3}}};
}
Steps projections() {
  return heads("q", "wq", kH) + heads("k", "wk", kH) + heads("v", "wv", kH);
}
/// From q, k and v to y; `between` makes p of s.
Steps attend(const Steps& between) {
  return Steps{{"Transpose", {"k"}, {"kt"}, {0, 1, 3, 2}}, {"MatMul", {"q", "kt"}, {"s"}}} +
         between +
         Steps{{"MatMul", {"p", "v"}, {"c"}},
               {"Transpose", {"c"}, {"c1"}, {0, 2, 1, 3}},
               {"Reshape", {"c1"}, {"c2"}, {0, 0, -1}},
               {"MatMul", {"c2", "wo"}, {"y"}}};
}
const Steps kSoftmax{{"Softmax", {"s1"}, {"p"}}};
const Steps kAdded = Steps{{"Div", {"s", "root"}, {"s0"}}, {"Add", {"s0", "m"}, {"s1"}}} + kSoftmax;

/// [B, 1, 1, T] of a mask [B, T].
Steps unsqueezed(const std::string& to) {
  return {{"Unsqueeze", {"mask"}, {"u"}, {1}}, {"Unsqueeze", {"u"}, {to}, {2}}};
}
/// (1 - mask) times a number, as Hugging Face's models have it.
Steps hugging_face(const std::string& hidden) {
  return unsqueezed("u2") + Steps{{"Cast", {"u2"}, {"f"}, {kFloat}},
                                  {"Sub", {"one", "f"}, {"f1"}},
                                  {"Mul", {"f1", hidden}, {"m"}}};
}

const FlashAttentionOp kPlain{.heads = kH, .scale = 0.5f};

}  // namespace

TEST_CASE("onnx: masks that are inputs are added to attention's scores where they lie") {
  check(hugging_face("most") + projections() + attend(kAdded), kMask, kPlain,
        {"binary", "binary", "binary", "linear", "linear", "linear", "flash_attention", "linear"});
  check(hugging_face("least") + projections() + attend(kAdded), kMask, kPlain);
  check(hugging_face("most") + projections() + attend(kAdded), {"mask", {kT}, kFloat}, kPlain);
  // Repeated for every query: nothing is copied.
  const Steps rows{{"Expand", {"u2"}, {"u3"}, {1, 1, kT, kT}}};
  const Steps inverted{{"Cast", {"u3"}, {"f"}, {kFloat}}, {"Sub", {"one", "f"}, {"f1"}}};
  check(unsqueezed("u2") + rows + inverted +
            Steps{{"Cast", {"f1"}, {"b"}, {kBool}}, {"Where", {"b", "least", "f1"}, {"m"}}} +
            projections() + attend(kAdded),
        kMask, kPlain);
  // Scaled behind what is added.
  check(hugging_face("most") + projections() +
            attend(Steps{{"Add", {"s", "m"}, {"s0"}}, {"Div", {"s0", "root"}, {"s1"}}} + kSoftmax),
        kMask, kPlain);
  // A row for each query, and for each head.
  for (const Extents& shape : {Extents{1, kT, kT}, Extents{kH, 1, kT}, Extents{kH, kT, kT}})
    check(projections() +
              attend(Steps{{"Div", {"s", "root"}, {"s0"}}, {"Add", {"mask", "s0"}, {"s1"}}} +
                     kSoftmax),
          {"mask", shape, kFloat}, kPlain);
}

TEST_CASE("onnx: whole numbers of masks are combined with whole constants") {
  // (1 - mask) * -10000 before the cast, and (mask - 1) * 10000.
  for (const Steps& steps :
       {Steps{{"Sub", {"whole_one", "u2"}, {"i"}}, {"Mul", {"i", "whole_most"}, {"j"}}},
        Steps{{"Sub", {"u2", "whole_one"}, {"i"}}, {"Mul", {"whole_many", "i"}, {"j"}}},
        Steps{{"Add", {"u2", "whole_less"}, {"i"}}, {"Mul", {"i", "whole_many"}, {"j"}}}})
    check(unsqueezed("u2") + steps + Steps{{"Cast", {"j"}, {"m"}, {kFloat}}} + projections() +
              attend(kAdded),
          kMask, kPlain);
  const auto file = [](const char* op, int64_t number, int type, int of_mask = kInt64) {
    File own = network(
        {},
        {node(op, {"mask", "n"}, {"m"}), node("Cast", {"m"}, {"f"}, int_attribute("to", type)),
         node("Mul", {"x", "f"}, {"y"})},
        {of_mask == 2 ? tensor_head("n", 2, {}) + bytes(9, std::string(1, '\1'))
                      : ints("n", {}, {number})});
    own.inputs = {value("x", {-1, 3}, type), value("mask", {-1, 3}, of_mask)};
    return own.bytes_of();
  };
  for (const auto& [type, most] :
       {std::pair<int, int64_t>{1, int64_t{1} << 24}, {10, 2048}, {16, 256}}) {
    for (const char* op : {"Add", "Sub", "Mul"}) {
      CAPTURE(type, op);
      CHECK_NOTHROW(parse(file(op, -most, type)));
      CHECK_THROWS_WITH(parse(file(op, most + 1, type)),
                        ContainsSubstring("reads \"n\", which has " + std::to_string(most + 1) +
                                          ", expected whole numbers up to "));
    }
  }
  // Of another type, and where 0 - 1 is not -1.
  CHECK_THROWS_WITH(parse(file("Add", 1, 1, 6)), ContainsSubstring("which is INT64"));
  CHECK_THROWS_WITH(parse(file("Sub", 1, 1, 2)), ContainsSubstring("which is UINT8"));
  CHECK_NOTHROW(parse(file("Add", 1, 1, 2)));
}

TEST_CASE("onnx: masks of truths and whole numbers choose among scores") {
  const Steps scores{{"Div", {"s", "root"}, {"s0"}}};
  const Steps kept = scores + Steps{{"Where", {"m", "s0", "least"}, {"s1"}}} + kSoftmax;
  const Steps hidden = scores + Steps{{"Where", {"m", "least", "s0"}, {"s1"}}} + kSoftmax;
  const Input truths{"mask", {kT}, kBool};
  check(unsqueezed("m") + projections() + attend(kept), truths, kPlain);
  check(unsqueezed("u2") + Steps{{"Not", {"u2"}, {"m"}}} + projections() + attend(hidden), truths,
        kPlain);
  check(unsqueezed("u2") + Steps{{"Equal", {"u2", "whole_zero"}, {"m"}}} + projections() +
            attend(hidden),
        kMask, kPlain);
  check(unsqueezed("u2") + Steps{{"Greater", {"u2", "whole_zero"}, {"m"}}} + projections() +
            attend(kept),
        kMask, kPlain);
  check(unsqueezed("u2") + Steps{{"LessOrEqual", {"whole_one", "u2"}, {"m"}}} + projections() +
            attend(kept),
        kMask, kPlain);
  check(unsqueezed("u2") +
            Steps{{"Cast", {"u2"}, {"m1"}, {kBool}},
                  {"Or", {"m1", "m1"}, {"m2"}},
                  {"And", {"m2", "m1"}, {"m"}}} +
            projections() + attend(kept),
        kMask, kPlain);
  // Chosen first, added then.
  check(unsqueezed("b") + Steps{{"Where", {"b", "zero", "least"}, {"m"}}} + projections() +
            attend(kAdded),
        truths, kPlain);
}

TEST_CASE("onnx: constants of heads and queries are added to attention's scores") {
  const Input unused{"mask", {kT}, kInt64};
  check(projections() +
            attend(Steps{{"Div", {"s", "root"}, {"s0"}}, {"Add", {"s0", "positions"}, {"s1"}}} +
                   kSoftmax) +
            Steps{},
        unused, kPlain, {"linear", "linear", "linear", "flash_attention", "linear"});
}

TEST_CASE("onnx: heads that share keys and values are repeated nowhere") {
  const auto repeated = [](const std::string& name, int64_t groups, int64_t times) {
    return Steps{{"Unsqueeze", {name}, {name + "u"}, {2}},
                 {"Expand", {name + "u"}, {name + "e"}, {1, groups, times, kT, kD}},
                 {"Reshape", {name + "e"}, {name + "r"}, {0, kH, kT, kD}}};
  };
  const Steps q = heads("q", "wq", kH),
              shared = heads("g", "wgk", kGroups) + heads("h", "wgv", kGroups) +
                       repeated("g", kGroups, 2) + repeated("h", kGroups, 2) +
                       Steps{{"Reshape", {"gr"}, {"k"}, {0, 0, 0, 0}},
                             {"Reshape", {"hr"}, {"v"}, {0, 0, 0, 0}}};
  const FlashAttentionOp grouped{.heads = kH, .kv_heads = kGroups, .scale = 0.5f};
  const Strings plain{"linear", "linear", "linear", "flash_attention", "linear"};
  const Steps scaled = Steps{{"Div", {"s", "root"}, {"s1"}}} + kSoftmax;
  check(q + shared + attend(scaled), kMask, grouped, plain);
  check(hugging_face("most") + q + shared + attend(kAdded), kMask, grouped);
  // A batch with a number, by which exporters expand.
  check(q + heads("g", "wgk", kGroups) + heads("h", "wgv", kGroups) +
            Steps{{"Unsqueeze", {"g"}, {"gu"}, {2}},
                  {"Expand", {"gu"}, {"ge"}, {3, kGroups, 2, kT, kD}},
                  {"Reshape", {"ge"}, {"k"}, {3, kH, kT, kD}},
                  {"Unsqueeze", {"h"}, {"hu"}, {2}},
                  {"Expand", {"hu"}, {"he"}, {3, kGroups, 2, kT, kD}},
                  {"Reshape", {"he"}, {"v"}, {-1, kH, kT, kD}}} +
            attend(scaled),
        kMask, grouped, plain, 3);
  // One for all of them: repeated in front or behind is the same.
  check(q +
            Steps{{"MatMul", {"x", "wgk"}, {"gg"}},
                  {"Split", {"gg"}, {"g1", "h1"}, {2}},
                  {"Unsqueeze", {"g1"}, {"g2"}, {1}},
                  {"Unsqueeze", {"h1"}, {"h2"}, {1}},
                  {"Expand", {"g2"}, {"k"}, {1, kH, kT, kD}},
                  {"Expand", {"h2"}, {"v"}, {1, kH, kT, kD}}} +
            attend(scaled),
        kMask, FlashAttentionOp{.heads = kH, .kv_heads = 1, .scale = 0.5f},
        {"linear", "linear", "slice", "slice", "flash_attention", "linear"});
  // All of the groups, again and again: the first head reads the first, the second the second.
  const Steps tiled = Steps{{"Unsqueeze", {"g"}, {"gu"}, {1}},
                            {"Expand", {"gu"}, {"ge"}, {1, 2, kGroups, kT, kD}},
                            {"Reshape", {"ge"}, {"k"}, {0, kH, kT, kD}}};
  check(q + heads("g", "wgk", kGroups) + heads("v", "wv", kH) + tiled + attend(scaled), kMask);
  // Keys of all heads, values of half as many.
  check(q + heads("k", "wk", kH) + heads("g", "wgk", kGroups) + repeated("g", kGroups, 2) +
            Steps{{"Reshape", {"gr"}, {"v"}, {0, 0, 0, 0}}} + attend(scaled),
        kMask);
}

TEST_CASE("onnx: masked and grouped attention on every device, for two members") {
  const Steps keys = heads("g", "wgk", kGroups) + heads("h", "wgv", kGroups) +
                     Steps{{"Unsqueeze", {"g"}, {"gu"}, {2}},
                           {"Expand", {"gu"}, {"ge"}, {1, kGroups, 2, kT, kD}},
                           {"Reshape", {"ge"}, {"k"}, {0, kH, kT, kD}},
                           {"Unsqueeze", {"h"}, {"hu"}, {2}},
                           {"Expand", {"hu"}, {"he"}, {1, kGroups, 2, kT, kD}},
                           {"Reshape", {"he"}, {"v"}, {0, kH, kT, kD}}};
  const std::string file =
      file_of(hugging_face("most") + heads("q", "wq", kH) + keys + attend(kAdded), kMask);
  for (const Context& context : test::devices_at_hand()) {
    for (const bool is_shared : {false, true}) {
      const OnnxModel model = parse(file, is_shared);
      test::ModelRun run(context, model.graph(), {.num_members = 2, .batch = kB});
      CHECK(run.worst_error(run.run()) < 2e-5);
    }
  }
}

TEST_CASE("onnx: rotary embeddings turn heads where they lie") {
  const auto turned = [](const std::string& name, const std::string& to) {
    return Steps{{"Split", {name}, {name + "a", name + "b"}, {3}},
                 {"Neg", {name + "b"}, {name + "n"}},
                 {"Concat", {name + "n", name + "a"}, {name + "t"}, {3}},
                 {"Mul", {name, "cos"}, {name + "c"}},
                 {"Mul", {name + "t", "sin"}, {name + "s"}},
                 {"Add", {name + "c", name + "s"}, {to}}};
  };
  check(heads("o", "wq", kH) + heads("g", "wk", kH) + heads("v", "wv", kH) + turned("o", "q") +
            turned("g", "k") + attend(Steps{{"Div", {"s", "root"}, {"s1"}}} + kSoftmax),
        kMask, kPlain,
        {"linear", "linear", "linear", "slice", "slice", "binary", "concat", "binary", "binary",
         "binary", "slice", "slice", "binary", "concat", "binary", "binary", "binary",
         "flash_attention", "linear"});
}

TEST_CASE("onnx: masks that no attention can have are refused by name") {
  const auto with = [](const Steps& mask) { return mask + projections() + attend(kAdded); };
  CHECK_THAT(refusal(with({{"Unsqueeze", {"mask"}, {"m"}, {1}}}), {"mask", {kT}, kFloat}),
             ContainsSubstring("(Add) combines [-1, 4, 5, 5] and [-1, 1, 5], expected as many"));
  CHECK_THAT(refusal(with({{"Relu", {"mask"}, {"m"}}}), {"mask", {2, kT, kT}, kFloat}),
             ContainsSubstring("(Add) combines [-1, 4, 5, 5] and [-1, 2, 5, 5], expected as many"));
  // [batch, heads, 1, queries, keys] and [batch, 1, heads, queries, keys]
  const Steps moved{{"Reshape", {"x"}, {"q"}, {0, kH, 1, kT, kD}},
                    {"Transpose", {"q"}, {"k"}, {0, 1, 2, 4, 3}},
                    {"MatMul", {"q", "k"}, {"s"}}};
  const Steps behind{{"Softmax", {"s1"}, {"p"}},
                     {"MatMul", {"p", "q"}, {"c"}},
                     {"Reshape", {"c"}, {"y"}, {0, -1}}};
  check(moved + Steps{{"Add", {"s", "mask"}, {"s1"}}} + behind,
        {"mask", {1, kH, kT, kT}, kFloat});  // all of one's heads with all of the other's
  CHECK_THAT(refusal(moved + Steps{{"Where", {"mask", "s", "least"}, {"s1"}}} + behind,
                     {"mask", {1, kH, 1, kT}, kBool}),
             ContainsSubstring("(Where) chooses among numbers that are not known to be finite"));
  CHECK_THAT(refusal(with({{"Not", {"mask"}, {"m"}}}), {"mask", {1, 1, kT}, kFloat}),
             ContainsSubstring("(Not) reads input 0, which is not known to be truths"));
  CHECK_THAT(refusal(with({{"Equal", {"mask", "zero"}, {"m"}}}), {"mask", {1, 1, kT}, kFloat}),
             ContainsSubstring("(Equal) compares what are not known to be whole numbers"));
  // A cast mask is whole, and never equal to what is not.
  CHECK_THAT(refusal(with({{"Cast", {"mask"}, {"f"}, {kFloat}}, {"Equal", {"f", "half"}, {"m"}}}),
                     {"mask", {1, 1, kT}, kInt64}),
             ContainsSubstring("(Equal) compares what are not known to be whole numbers"));
}

TEST_CASE("onnx: a whole number that a table is read by stays one") {
  const std::string file =
      file_of({{"Cast", {"mask"}, {"f"}, {kFloat}}, {"Relu", {"f"}, {"y"}}}, kMask);
  CHECK(parse(file).graph().type(parse(file).graph().inputs()[0]).dtype == Dtype::fp32);
}

TEST_CASE("onnx: whole numbers are compared with what their type can hold") {
  struct Case {
    int type;  ///< of x
    double most;
    std::string text;
  };
  for (const Case& c :
       {Case{1, 0x1p24 - 1, "16777215"}, Case{10, 2047, "2047"}, Case{16, 255, "255"}}) {
    for (const char* op : {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"}) {
      CAPTURE(c.type, op);
      const auto file = [&](double number) {
        File own = network({},
                           {node(op, {"mask", "n"}, {"m"}),
                            node("Cast", {"m"}, {"f"}, int_attribute("to", c.type)),
                            node("Mul", {"x", "f"}, {"y"})},
                           {ints("n", {}, {static_cast<int64_t>(number)})});
        own.inputs = {value("x", {-1, 3}, c.type), value("mask", {-1, 3}, kInt64)};
        return own.bytes_of();
      };
      CHECK_THROWS_WITH(parse(file(c.most + 1)), ContainsSubstring("expected at most " + c.text));
      CHECK_THROWS_WITH(parse(file(-c.most - 1)), ContainsSubstring("expected at most " + c.text));
      for (const double number : {c.most, -c.most}) {
        const std::string text = file(number);
        const OnnxModel model = parse(text);
        std::map<std::string, Doubles> parameters;
        for (const auto& [name, view] : model.parameters(0))
          parameters[name] = catalog::to_doubles(view);
        const Doubles mask{{1, 3}, {number - 1, number, number + 1}};
        const Doubles got =
            catalog::evaluate_graph(model.graph(), {{"x", {{1, 3}, {1, 1, 1}}}, {"mask", mask}},
                                    parameters)
                .at("y");
        const std::string name = op;
        const bool has_less = name.starts_with("Less"), has_greater = name.starts_with("Greater"),
                   has_equal = name.ends_with("Equal");
        CHECK(got.values ==
              std::vector<double>{has_less ? 1.0 : 0, has_equal ? 1.0 : 0, has_greater ? 1.0 : 0});
      }
    }
  }
}

TEST_CASE("onnx: what is compared with or chosen by more axes than it has is refused") {
  const auto file = [](const Extents& compared, const Extents& chosen) {
    File own = network(
        {},
        {node("Cast", {"mask"}, {"c"}, int_attribute("to", 1)), node("Equal", {"c", "n"}, {"m"}),
         node("Where", {"m", "t", "zero"}, {"f"}), node("Mul", {"x", "f"}, {"y"})},
        {filled("n", compared, 2), filled("t", chosen, 2), floats("zero", {}, {0})});
    own.inputs = {value("x", {-1, 3}, 1), value("mask", {-1, 3}, kInt64)};
    return own.bytes_of();
  };
  CHECK_NOTHROW(parse(file({1, 3}, {3})));
  CHECK_NOTHROW(parse(file({1}, {1, 1})));
  for (const Extents& more : {Extents{2, 3}, {1, 1, 3}, {4, 1, 1}}) {
    CHECK_THROWS_WITH(parse(file(more, {})), ContainsSubstring("repeats elements, by a constant"));
    CHECK_THROWS_WITH(parse(file({}, more)), ContainsSubstring("repeats elements, by a constant"));
  }
}

TEST_CASE("onnx: a number that its type rounds makes no whole numbers") {
  const auto file = [](int64_t number) {
    File own = network(
        {},
        {node("Add", {"mask", "n"}, {"a"}), node("Equal", {"a", "n"}, {"m"}),
         node("Cast", {"m"}, {"f"}, int_attribute("to", 10)), node("Mul", {"x", "f"}, {"y"})},
        {floats("n", {}, {static_cast<float>(number)})});
    own.inputs = {value("x", {-1, 3}, 10), value("mask", {-1, 3}, kInt64)};
    return own.bytes_of();
  };
  CHECK_NOTHROW(parse(file(2047)));
  CHECK_THROWS_WITH(parse(file(2049)), ContainsSubstring("not known to be whole numbers"));
}
