// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Networks as exporters write them become the graphs that they mean: shapes that are computed,
// operators that are spelled out, one file for each member.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "host/core/file.hpp"
#include "verify/support/error_of.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/onnx_loops.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide::test::onnx;
using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Strings = std::vector<std::string>;

OnnxModel parse(const std::string& file, const OnnxOptions& options = {}) {
  return OnnxModel::parse(std::as_bytes(std::span(file)), "a file", options);
}

/// Members with parameters of their own compute what the graph says.
void require_runs(const Graph& graph) {
  test::ModelRun run(Context::cpu(), graph, {.num_members = 3, .batch = 2});
  CHECK(run.worst_error(run.run()) < 2e-5);
}

std::string scalar(const std::string& name, float number) {
  return floats(name, {}, {number});
}
std::string constant(const std::string& name, const std::vector<int64_t>& values,
                     bool is_scalar = false) {
  const Extents dims = is_scalar ? Extents{} : Extents{std::ssize(values)};
  return node("Constant", {}, {name}, tensor_attribute("value", ints("", dims, values)));
}

/// erf, its factors in each of the orders that exporters have.
Strings gelu(const std::string& x, const std::string& y, int order) {
  const std::string p = y + "_";
  Strings nodes{node("Div", {x, "root2"}, {p + "a"}), node("Erf", {p + "a"}, {p + "e"}),
                node("Add", {p + "e", "one"}, {p + "s"})};
  if (order == 0) {
    nodes.push_back(node("Mul", {x, p + "s"}, {p + "m"}));
    nodes.push_back(node("Mul", {p + "m", "half"}, {y}));
  } else if (order == 1) {
    nodes.push_back(node("Mul", {x, "half"}, {p + "h"}));
    nodes.push_back(node("Mul", {p + "h", p + "s"}, {y}));
  } else {
    nodes[0] = node("Mul", {"root_half", x}, {p + "a"});
    nodes.push_back(node("Mul", {"half", p + "s"}, {p + "m"}));
    nodes.push_back(node("Mul", {p + "m", x}, {y}));
  }
  return nodes;
}
const Strings kGeluNumbers{scalar("root2", 1.41421354f), scalar("root_half", 0.707106769f),
                           scalar("one", 1), scalar("half", 0.5f)};

Strings layernorm(const std::string& x, const std::string& y, bool has_affine) {
  const std::string p = y + "_", axes = ints_attribute("axes", {-1});
  Strings nodes{node("ReduceMean", {x}, {p + "mean"}, axes),
                node("Sub", {x, p + "mean"}, {p + "c"}),
                node("Pow", {p + "c", "two"}, {p + "sq"}),
                node("ReduceMean", {p + "sq"}, {p + "var"}, axes),
                node("Add", {p + "var", "eps"}, {p + "ve"}),
                node("Sqrt", {p + "ve"}, {p + "sd"}),
                node("Div", {p + "c", p + "sd"}, {has_affine ? p + "n" : y})};
  if (has_affine) {
    nodes.push_back(node("Mul", {p + "n", "gamma"}, {p + "g"}));
    nodes.push_back(node("Add", {p + "g", "beta"}, {y}));
  }
  return nodes;
}

Strings operator+(Strings a, const Strings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::string mlp(float first = 1, const std::string& activation = "Relu", int64_t width = 5) {
  return network({4},
                 {node("MatMul", {"x", "w1"}, {"a"}), node("Add", {"a", "b1"}, {"b"}),
                  node(activation, {"b"}, {"c"}),
                  node("Gemm", {"c", "w2", "b2"}, {"y"},
                       int_attribute("transB", 1) + float_attribute("alpha", 2))},
                 {filled("w1", {4, width}, first), filled("b1", {width}), filled("w2", {3, width}),
                  filled("b2", {1, 3})})
      .bytes_of();
}

}  // namespace

TEST_CASE("onnx: products take the bias that is added behind them, and their factors") {
  const auto file = mlp(3);  // parameters are views of it
  const OnnxModel model = parse(file);
  CHECK(operations(model.graph()) == Strings{"linear", "pointwise", "linear"});
  CHECK(model.graph().name() == "network");
  CHECK(model.graph().inputs().size() == 1);
  CHECK(model.graph().type(model.graph().inputs()[0]).shape == Shape{kBatch, 4});
  const auto outputs = catalog::evaluate_graph(model.graph(), {{"x", {{1, 4}, {1, 2, 3, 4}}}}, [&] {
    std::map<std::string, catalog::Doubles> parameters;
    for (const auto& [name, view] : model.parameters(0))
      parameters[name] = catalog::to_doubles(view);
    return parameters;
  }());
  // relu(3 * 10 + 1) = 31 five times; 2 * 155 + 1.
  CHECK(outputs.at("y").values == std::vector<double>(3, 311));
  require_runs(model.graph());
}

TEST_CASE("onnx: a convolutional network") {
  const Strings norm{filled("s", {4}), filled("t", {4}), filled("m", {4}), filled("v", {4})};
  const File file = network(
      {3, 8, 8},
      {node("Conv", {"x", "k", "kb"}, {"a"},
            ints_attribute("pads", {1, 1, 1, 1}) + ints_attribute("kernel_shape", {3, 3})),
       node("BatchNormalization", {"a", "s", "t", "m", "v"}, {"b"}), node("Relu", {"b"}, {"c"}),
       node("MaxPool", {"c"}, {"d"},
            ints_attribute("kernel_shape", {2, 2}) + ints_attribute("strides", {2, 2})),
       node("Conv", {"d", "k2"}, {"e"}, ints_attribute("pads", {1, 1, 1, 1})),
       node("Add", {"e", "d"}, {"f"}), node("Clip", {"f", "", "six"}, {"g"}),
       node("GlobalAveragePool", {"g"}, {"h"}), node("Flatten", {"h"}, {"i"}),
       node("Dropout", {"i", "p"}, {"j"}), node("Gemm", {"j", "w"}, {"l"}),
       node("Softmax", {"l"}, {"y"})},
      norm + Strings{filled("k", {4, 3, 3, 3}), filled("kb", {4}), filled("k2", {4, 4, 3, 3}),
                     scalar("six", 6), scalar("p", 0.25f), filled("w", {4, 10})});
  const std::string text = file.bytes_of();
  const OnnxModel model = parse(text);
  CHECK(operations(model.graph()) == Strings{"conv2d", "batchnorm2d", "pointwise", "pooling",
                                             "conv2d", "binary", "pointwise", "pooling", "dropout",
                                             "linear", "softmax"});
  require_runs(model.graph());
}

TEST_CASE("onnx: gelu and layernorm that are spelled out are one node each, in any order") {
  for (const int order : {0, 1, 2}) {
    CAPTURE(order);
    const std::string text = network({6}, gelu("x", "y", order), kGeluNumbers).bytes_of();
    CHECK(operations(parse(text).graph()) == Strings{"pointwise"});
    require_runs(parse(text).graph());
  }
  const Strings numbers{scalar("two", 2), scalar("eps", 1e-5f), filled("gamma", {6}),
                        filled("beta", {6})};
  for (const bool has_affine : {false, true}) {
    const std::string text = network({3, 6}, layernorm("x", "y", has_affine), numbers).bytes_of();
    const OnnxModel model = parse(text);
    CHECK(operations(model.graph()) == Strings{"layernorm"});
    CHECK(model.graph().nodes().back().operand("gamma").is_absent() != has_affine);
    require_runs(model.graph());
  }
  // What is inside is wanted elsewhere, or is another function.
  File file = network({6}, gelu("x", "y", 0), kGeluNumbers);
  file.outputs.push_back(value("y_e", {}));
  const std::string twice = file.bytes_of();
  CHECK_THROWS_WITH(parse(twice), ContainsSubstring("\"node_y_e\" (Erf) is not supported"));
  Strings other = kGeluNumbers;
  other[3] = scalar("half", 0.6f);
  const std::string scaled = network({6}, gelu("x", "y", 0), other).bytes_of();
  CHECK_THROWS_WITH(parse(scaled), ContainsSubstring("(Erf) is not supported"));
}

TEST_CASE("onnx: shapes that are computed from the batch are folded") {
  // [batch, 12] -> [Shape(x)[0], 3, -1] -> [batch, 3, 2, 2], as exporters write it.
  const std::string text =
      network({12}, {node("Shape", {"x"}, {"shape"}), constant("zero", {0}, true),
                     node("Gather", {"shape", "zero"}, {"n"}, int_attribute("axis", 0)),
                     constant("axes", {0}), node("Unsqueeze", {"n", "axes"}, {"n1"}),
                     constant("rest", {3, -1}),
                     node("Concat", {"n1", "rest"}, {"s"}, int_attribute("axis", 0)),
                     node("Reshape", {"x", "s"}, {"r"}), constant("again", {0, 0, 2, 2}),
                     node("Reshape", {"r", "again"}, {"i"}), node("Relu", {"i"}, {"y"})})
          .bytes_of();
  const OnnxModel model = parse(text);
  const Graph& graph = model.graph();
  CHECK(operations(graph) == Strings{"pointwise"});
  CHECK(graph.type(graph.outputs()[0].value).shape == Shape{kBatch, 3, 2, 2});
  const auto with = [&](const Strings& nodes) {
    const std::string bytes = network({12}, nodes).bytes_of();
    return operations(parse(bytes).graph());
  };
  const Strings shape{node("Shape", {"x"}, {"shape"})};
  // The batch's number is not known, and its place is in front.
  CHECK_THROWS_WITH(with(shape + Strings{constant("c", {2}), node("Mul", {"shape", "c"}, {"d"}),
                                         node("Reshape", {"x", "d"}, {"y"})}),
                    ContainsSubstring("node \"node_y\" (Reshape) mixes axes"));
  CHECK_THROWS_WITH(with(shape + Strings{constant("c", {2}), node("Add", {"shape", "c"}, {"d"}),
                                         node("Reshape", {"x", "d"}, {"y"})}),
                    ContainsSubstring("node \"node_d\" (Add) computes with the batch"));
  CHECK_THROWS_WITH(with({constant("c", {12, -1}), node("Reshape", {"x", "c"}, {"y"})}),
                    ContainsSubstring("node \"node_y\" (Reshape) mixes axes"));
  CHECK_THROWS_WITH(with({node("Transpose", {"x"}, {"y"})}),
                    ContainsSubstring("has its batch elsewhere than in front"));
  CHECK_THROWS_WITH(with({node("Flatten", {"x"}, {"y"}, int_attribute("axis", 0))}),
                    ContainsSubstring("flattens the batch"));
  CHECK_THROWS_WITH(with(shape + Strings{node("Identity", {"shape"}, {"y"})}),
                    ContainsSubstring("output \"y\" is a constant"));
  // The number that the batch has in the file is the batch, too.
  File fixed = network({12}, {constant("c", {2, 3, 4}), node("Reshape", {"x", "c"}, {"y"})});
  fixed.inputs = {value("x", {2, 12})};
  const std::string fixed_text = fixed.bytes_of();
  CHECK(parse(fixed_text).graph().type(parse(fixed_text).graph().outputs()[0].value).shape ==
        Shape{kBatch, 3, 4});
}

TEST_CASE("onnx: an encoder reads ids, a table of positions and a mask that hides nothing") {
  // 512 positions of 12 features: more numbers than are folded one by one.
  std::vector<float> positions(512 * 12);
  for (size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<float>(i);
  const auto encoder = [&](bool has_mask) {
    const auto heads = [](const std::string& name, const std::vector<int64_t>& order) {
      return Strings{node("MatMul", {"h", "w" + name}, {name + "1"}),
                     node("Reshape", {name + "1", "apart"}, {name + "2"}),
                     node("Transpose", {name + "2"}, {name}, ints_attribute("perm", order))};
    };
    const Strings mask{node("Unsqueeze", {"mask", "first"}, {"m1"}),
                       node("Unsqueeze", {"m1", "second"}, {"m2"}),
                       node("Cast", {"m2"}, {"m3"}, int_attribute("to", 1)),
                       node("Sub", {"one", "m3"}, {"m4"}),
                       node("Mul", {"m4", "low"}, {"m5"}),
                       node("Add", {"s", "m5"}, {"t"})};
    File file =
        network({},
                Strings{node("Gather", {"table", "ids"}, {"e"}), constant("first", {1}),
                        constant("second", {2}), constant("apart", {0, 0, 3, 4}),
                        constant("from", {0}), constant("to", {5}),
                        node("Slice", {"all_ids", "from", "to", "first"}, {"position_ids"}),
                        node("Gather", {"positions", "position_ids"}, {"p"}),
                        node("Add", {"e", "p"}, {"h"})} +
                    heads("q", {0, 2, 1, 3}) + heads("k", {0, 2, 3, 1}) + heads("v", {0, 2, 1, 3}) +
                    Strings{node("MatMul", {"q", "k"}, {"s"})} + (has_mask ? mask : Strings{}) +
                    Strings{
                        node("Softmax", {has_mask ? "t" : "s"}, {"u"}),
                        node("MatMul", {"u", "v"}, {"c"}),
                        node("Transpose", {"c"}, {"c1"}, ints_attribute("perm", {0, 2, 1, 3})),
                        node("Reshape", {"c1", "joined"}, {"y"}),
                    },
                {filled("table", {11, 12}), scalar("one", 1), scalar("low", -10000),
                 floats("positions", {512, 12}, positions), filled("wq", {12, 12}),
                 filled("wk", {12, 12}), filled("wv", {12, 12}), ints("joined", {3}, {0, 0, 12}),
                 ints("all_ids", {1, 8}, {0, 1, -510, 3, 4, 5, 6, 511})});
    file.inputs = {value("ids", {-1, 5}, 7)};
    if (has_mask) file.inputs.push_back(value("mask", {-1, 5}, 7));
    return file.bytes_of();
  };
  const std::string masked = encoder(true), plain = encoder(false);
  const OnnxModel with_mask = parse(masked);
  const Graph& as_input = with_mask.graph();
  CHECK(as_input.inputs().size() == 2);
  CHECK(as_input.type(as_input.inputs()[0]).dtype == Dtype::int64);
  CHECK(as_input.type(as_input.inputs()[1]).dtype == Dtype::fp32);
  const OnnxOptions options{
      .extents = {}, .shared_inputs = {}, .fixed_inputs = {{"mask", 1}}, .outputs = {}};
  const OnnxModel model = parse(masked, options);
  CHECK(operations(model.graph()) == operations(parse(plain).graph()));
  CHECK(operations(model.graph()) ==
        Strings{"embedding", "binary", "linear", "linear", "linear", "flash_attention"});
  CHECK(model.graph().inputs().size() == 1);
  const ConstTensorView position = model.parameters(0).at("p");
  CHECK(position.num_elements() == 60);
  for (int64_t i = 0; i < 60; ++i)
    CHECK(static_cast<const float*>(position.data)[i] == static_cast<float>(i));
  require_runs(model.graph());
  OnnxOptions hidden = options;
  hidden.fixed_inputs["mask"] = 0;
  CHECK(parse(masked, hidden).parameters(0).at("node_t.constant").num_elements() == 5);
  hidden.fixed_inputs = {{"musk", 1}};
  CHECK_THROWS_WITH(parse(masked, hidden), ContainsSubstring("it has no input \"musk\""));
  hidden.fixed_inputs = {{"mask", 1e300}};
  CHECK_THROWS_WITH(parse(masked, hidden),
                    ContainsSubstring("is fixed to 1e+300, expected a number below 2^53"));
}

TEST_CASE("onnx: gelu by tanh is one node") {
  for (const bool has_power : {true, false}) {
    const Strings cube =
        has_power ? Strings{node("Pow", {"x", "three"}, {"x3"})}
                  : Strings{node("Mul", {"x", "x"}, {"x2"}), node("Mul", {"x", "x2"}, {"x3"})};
    const std::string text =
        network({6},
                cube + Strings{node("Mul", {"x3", "small"}, {"a"}), node("Add", {"x", "a"}, {"b"}),
                               node("Mul", {"b", "root"}, {"c"}), node("Tanh", {"c"}, {"d"}),
                               node("Add", {"d", "one"}, {"e"}), node("Mul", {"x", "half"}, {"h"}),
                               node("Mul", {"h", "e"}, {"y"})},
                {scalar("three", 3), scalar("small", 0.044715f), scalar("root", 0.797884583f),
                 scalar("one", 1), scalar("half", 0.5f)})
            .bytes_of();
    const Graph graph = parse(text).graph();
    CHECK(operations(graph) == Strings{"pointwise"});
    const auto* op = std::get_if<PointwiseOp>(&graph.nodes().back().operation);
    CHECK((op != nullptr && op->function == PointwiseFunction::gelu_tanh));
  }
}

TEST_CASE("onnx: ids, parts of activations, and constants in every form") {
  File file = network({},
                      {node("Gather", {"table", "ids"}, {"e"}), constant("first", {0}, true),
                       node("Gather", {"e", "first"}, {"cls"}, int_attribute("axis", 1)),
                       node("Split", {"cls"}, {"l", "r"}, int_attribute("axis", 1)),
                       node("Sigmoid", {"r"}, {"gate"}), node("Mul", {"l", "gate"}, {"g"}),
                       node("Sub", {"three", "g"}, {"h"}),
                       node("Concat", {"h", "g"}, {"y"}, int_attribute("axis", 1))},
                      {filled("table", {11, 8}), scalar("three", 3)});
  file.inputs = {value("ids", {-1, 5}, 7)};
  const std::string text = file.bytes_of();
  const OnnxModel model = parse(text);
  CHECK(operations(model.graph()) == Strings{"embedding", "slice", "slice", "slice", "pointwise",
                                             "binary", "binary", "binary", "concat"});
  require_runs(model.graph());
  // Large weights that are turned before they are used.
  const std::string turned =
      network({70}, {node("Transpose", {"w"}, {"t"}), node("MatMul", {"x", "t"}, {"y"})},
              {filled("w", {80, 70})})
          .bytes_of();
  CHECK(parse(turned).parameters(0).at("t").shape == Shape{70, 80});
}

TEST_CASE("onnx: options name extents, shared inputs and outputs") {
  File file = network(
      {}, {node("Relu", {"x"}, {"y"}), node("Add", {"y", "z"}, {"w"}), node("Erf", {"x"}, {"v"})});
  file.inputs = {value("x", {-1, -2}), value("z", {-1, -2})};
  file.outputs = {value("y", {}), value("w", {}), value("v", {})};
  const std::string text = file.bytes_of();
  CHECK_THROWS_WITH(parse(text), ContainsSubstring("input \"x\" has extent \"s\" on axis 1"));
  CHECK_THROWS_WITH(
      parse(text, {.extents = {{"s", 7}}, .shared_inputs = {}, .fixed_inputs = {}, .outputs = {}}),
      ContainsSubstring("(Erf) is not supported"));
  const OnnxModel both = parse(
      text, {.extents = {{"s", 7}}, .shared_inputs = {"z"}, .fixed_inputs = {}, .outputs = {"w"}});
  REQUIRE(both.graph().inputs().size() == 2);
  CHECK(both.graph().kind(both.graph().inputs()[0]) == ValueKind::input);
  CHECK(both.graph().kind(both.graph().inputs()[1]) == ValueKind::shared_input);
  CHECK_THROWS_WITH(
      parse(text, {.extents = {{"s", 7}, {"t", 8}},
                   .shared_inputs = {},
                   .fixed_inputs = {},
                   .outputs = {}}),
      ContainsSubstring("no input has an extent \"t\" after the batch, expected one of \"s\""));
  CHECK_THROWS_WITH(parse(text, {.extents = {{"s", int64_t{9'000'000'000'000'000'000}}},
                                 .shared_inputs = {},
                                 .fixed_inputs = {},
                                 .outputs = {}}),
                    ContainsSubstring("extent \"s\" is 9000000000000000000, expected 1 to 10995"));
  const OnnxModel one = parse(
      text, {.extents = {{"s", 7}}, .shared_inputs = {}, .fixed_inputs = {}, .outputs = {"y"}});
  CHECK(one.graph().inputs().size() == 1);
  CHECK_THROWS_WITH(
      parse(text, {.extents = {}, .shared_inputs = {}, .fixed_inputs = {}, .outputs = {"q"}}),
      ContainsSubstring("it has no output \"q\""));
  File apart = network({3}, {node("Add", {"x", "z"}, {"y"})});
  apart.inputs = {value("x", {4, 3}), value("z", {5, 3})};
  const std::string apart_text = apart.bytes_of();
  CHECK_THROWS_WITH(parse(apart_text), ContainsSubstring("expected one batch of all"));
}

TEST_CASE("onnx: a file for each member, of one architecture") {
  const test::TemporaryFolder folder;
  write_file("a.onnx", mlp(1));
  write_file("b.onnx", mlp(2));
  const Strings paths{"a.onnx", "b.onnx"};
  const OnnxModel model = OnnxModel::open(paths);
  REQUIRE(model.num_members() == 2);
  const auto weight = [&](int64_t member) {
    return *static_cast<const float*>(model.parameters(member).at("w1").data);
  };
  CHECK(weight(0) == 1);
  CHECK(weight(1) == 2);
  CHECK_THROWS_WITH(model.parameters(2), ContainsSubstring("member is 2, expected one of 2"));
  const std::vector<MemberParameters> members = model.members();
  REQUIRE(members.size() == 2);
  const ModelPlan plan =
      make_model_plan(Context::cpu(), model.graph(), {.num_members = 2, .batch = 3});
  const Model loaded(Context::cpu(), plan, members);
  CHECK(plan.memory().weights_bytes > 0);

  // Other names, the same network.
  File renamed = network({4}, {node("Tanh", {"x"}, {"q"}), node("Tanh", {"q"}, {"y"})});
  write_file("a.onnx", renamed.bytes_of());
  renamed.nodes = {node("Tanh", {"x"}, {"other"}), node("Tanh", {"other"}, {"y"})};
  write_file("b.onnx", renamed.bytes_of());
  CHECK(OnnxModel::open(paths).num_members() == 2);

  const auto complaint = [&](const std::string& second) {
    write_file("a.onnx", mlp());
    write_file("b.onnx", second);
    return test::error_of([&] { (void)OnnxModel::open(paths); });
  };
  CHECK_THAT(complaint(mlp(1, "Tanh")),
             ContainsSubstring("b.onnx is no member of a.onnx: node \"node_c\" is pointwise "
                               "(function tanh, of fp32 [B, 5]), "
                               "expected pointwise (function relu"));
  CHECK_THAT(
      complaint(mlp(1, "Relu", 6)),
      ContainsSubstring(
          "node \"node_a\" is transpose (order [1, 0], of fp32 [4, 6]), expected transpose"));
  CHECK_THAT(
      complaint(
          network({4}, {node("MatMul", {"x", "w1"}, {"y"})}, {filled("w1", {4, 5})}).bytes_of()),
      ContainsSubstring("is no member of a.onnx"));
  CHECK_THAT(
      complaint(mlp() + bytes(7, bytes(1, node("Relu", {"y"}, {"z"})) + bytes(12, value("z", {})))),
      ContainsSubstring("it has 5 nodes, expected 4"));
}

TEST_CASE("onnx: weights that a file fills with one number take one element") {
  const auto file = [](const Strings& more) {
    return network({80},
                   Strings{node("ConstantOfShape", {"s"}, {"w"},
                                tensor_attribute("value", floats("", {1}, {0.5f})))} +
                       more,
                   {ints("s", {2}, {80, 70}), ints("other", {2}, {70, 80})})
        .bytes_of();
  };
  const std::string plain = file({node("MatMul", {"x", "w"}, {"y"})});
  const std::string moved = file({node("Reshape", {"w", "other"}, {"r"}),
                                  node("Transpose", {"r"}, {"t"}, ints_attribute("perm", {1, 0})),
                                  node("MatMul", {"x", "t"}, {"y"})});
  CHECK(parse(moved).parameters(0).at("t").span_bytes() == 4);
  const OnnxModel model = parse(plain);
  const ConstTensorView weight = model.parameters(0).at("w");
  CHECK(weight.span_bytes() == 4);
  CHECK(weight.strides == Strides{0, 0});
  CHECK(*static_cast<const float*>(weight.data) == 0.5f);
  const OwnedParameters own = perturbed_parameters(model.parameters(0), 0.1, 1, 0);
  CHECK(static_cast<const float*>(own.at("w").data())[5599] == 0.5f);
  require_runs(model.graph());
}

TEST_CASE("onnx: large constants are joined along any axis") {
  std::vector<float> columns(80 * 10);
  for (size_t i = 0; i < columns.size(); ++i) columns[i] = static_cast<float>(i);
  const auto file = [&](const Extents& dims) {
    return network({80},
                   {node("ConstantOfShape", {"s"}, {"w"},
                         tensor_attribute("value", floats("", {1}, {0.5f}))),
                    node("Concat", {"v", "w"}, {"j"}, int_attribute("axis", 1)),
                    node("MatMul", {"x", "j"}, {"y"})},
                   {ints("s", {2}, {80, 70}), floats("v", dims, columns)})
        .bytes_of();
  };
  const std::string joined = file({80, 10});
  const OnnxModel model = parse(joined);
  const ConstTensorView weight = model.parameters(0).at("j");
  REQUIRE(weight.shape == Shape{80, 80});
  for (size_t i = 0; i < 80 * 80; ++i) {
    const float number = i % 80 < 10 ? columns[i / 80 * 10 + i % 80] : 0.5f;
    CHECK(static_cast<const float*>(weight.data)[i] == number);
  }
  require_runs(model.graph());
  CHECK_THROWS_WITH(parse(file({10, 80})),
                    ContainsSubstring("joins [10, 80] and [80, 70], expected one type"));
}

TEST_CASE("onnx: constants with a row for each sample, all alike, are one row") {
  const auto file = [](float last) {
    File f = network({},
                     {node("Concat", {"rows", "x"}, {"z"}, int_attribute("axis", 1)),
                      node("Add", {"z", "more"}, {"y"})},
                     {floats("rows", {2, 1, 2}, {1, 2, 1, last}), filled("more", {2, 4, 2})});
    f.inputs = {value("x", {2, 3, 2})};
    return f.bytes_of();
  };
  const std::string good = file(2);
  CHECK(operations(parse(good).graph()) == Strings{"concat", "binary"});
  require_runs(parse(good).graph());
  CHECK_THROWS_WITH(parse(file(3)), ContainsSubstring("joins the constant [2, 1, 2]"));
}

TEST_CASE("onnx: gates of channels multiply from either side") {
  const auto file = [](const Strings& inputs, const char* op = "Mul") {
    return network({3, 4, 4}, {node("GlobalAveragePool", {"x"}, {"g"}), node(op, inputs, {"y"})})
        .bytes_of();
  };
  for (const Strings& inputs : {Strings{"x", "g"}, Strings{"g", "x"}}) {
    const std::string gated = file(inputs);
    CHECK(operations(parse(gated).graph()) == Strings{"pooling", "binary"});
    require_runs(parse(gated).graph());
  }
  const std::string divided = file({"g", "x"}, "Div");  // does not commute: repeated by a copy
  CHECK(operations(parse(divided).graph()) == Strings{"pooling", "upsample", "binary"});
  require_runs(parse(divided).graph());
}
