// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a file's element types, which a graph has fewer of and some of which overflow
// soon, of ids below 0, and of constants with many axes.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <vector>

#include "verify/import/onnx_run.hpp"
#include "verify/support/model_run.hpp"
#include "verify/support/onnx_case.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide::test::onnx;
using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Strings = std::vector<std::string>;

OnnxModel parse(const std::string& file) {
  return OnnxModel::parse(std::as_bytes(std::span(file)), "a file", {});
}

}  // namespace

TEST_CASE("onnx: a table of 16 bits stays one") {
  File file = network({}, {node("Gather", {"table", "ids"}, {"e"}), node("Add", {"e", "x"}, {"y"})},
                      {tensor_head("table", 10, {3, 2}) +
                       bytes(9, raw(std::vector<uint16_t>{0, 0x3c00, 0x4000, 0, 0x3800, 0xbc00}))});
  file.inputs = {value("ids", {-1, 4}, 7), value("x", {-1, 4, 2}, 10)};
  file.outputs = {value("y", {}, 10)};
  const std::string text = file.bytes_of();
  const OnnxModel model = parse(text);
  CHECK(model.graph().type(model.graph().outputs()[0].value).dtype == Dtype::fp16);
  CHECK(model.parameters(0).begin()->second.dtype == Dtype::fp16);
}

TEST_CASE("onnx: a file's own ids below 0 count from the end, those at run time are no row") {
  const std::vector<float> rows{0, 1, 2, 3, 4, 5};
  File file = network({},
                      {node("Gather", {"positions", "places"}, {"p"}),
                       node("Gather", {"table", "ids"}, {"e"}), node("Add", {"e", "p"}, {"y"})},
                      {floats("positions", {3, 2}, rows), ints("places", {1, 4}, {-1, 0, -3, 2}),
                       floats("table", {3, 2}, {0, 10, 20, 30, 40, 50})});
  file.inputs = {value("ids", {-1, 4}, 7)};
  const std::string text = file.bytes_of();
  const OnnxModel model = parse(text);
  const Context cpu = Context::cpu();
  const std::vector<MemberParameters> members{model.parameters(0)};
  const Model compiled = compile(cpu, model.graph(), members, 1);
  const std::vector<int64_t> ids{0, 2, -1, 3};
  std::vector<float> y(8);
  const ConstTensorView input(ids.data(), Dtype::int64, compiled.plan().inputs()[0].shape,
                              Device{});
  const TensorView output(y.data(), Dtype::fp32, compiled.plan().outputs()[0].shape, Device{});
  Tensor workspace(cpu, Dtype::uint8, {compiled.plan().workspace_bytes()});
  compiled.run({.inputs = {&input, 1}, .outputs = {&output, 1}},
               {Stream::cpu(), {workspace.data(), workspace.bytes()}});
  CHECK(std::vector<float>(y.begin(), y.begin() + 4) == std::vector<float>{4, 15, 40, 51});
  for (size_t i = 4; i < 8; ++i) CHECK(std::isnan(y[i]));
}

TEST_CASE(
    "onnx: floats are computed with as the file's types are, when whole numbers come of them") {
  // T * 0.7 for T = 10 is 6.99999988 with fp32's 0.7, and 7 in fp32.
  struct Case {
    int type;
    std::string factor;
    int64_t wanted;
  };
  const auto factor = [](int type, auto bits) {
    return tensor_head("r", type, {}) + bytes(9, raw(std::vector{bits}));
  };
  for (const Case& c : {Case{1, factor(1, 0.7f), 7}, Case{11, factor(11, 0.7), 7},
                        Case{10, factor(10, uint16_t{0x2e66}), 1},     // 0.0999756
                        Case{16, factor(16, uint16_t{0x3f33}), 7}}) {  // 0.699219
    CAPTURE(c.type, c.wanted);
    const auto cast = [](const std::string& from, const std::string& to, int type) {
      return node("Cast", {from}, {to}, int_attribute("to", type));
    };
    const std::string text =
        network({10},
                {node("Shape", {"x"}, {"s"}), node("Gather", {"s", "one"}, {"t"}),
                 cast("t", "f", c.type), node("Mul", {"f", "r"}, {"m"}), cast("m", "k", 7),
                 node("Unsqueeze", {"k", "first"}, {"end"}),
                 node("Slice", {"x", "first", "end", "axis"}, {"c"}), node("Relu", {"c"}, {"y"})},
                {ints("one", {}, {1}), ints("first", {1}, {0}), ints("axis", {1}, {1}), c.factor})
            .bytes_of();
    const OnnxModel model = parse(text);
    CHECK(model.graph().type(model.graph().outputs()[0].value).shape == Shape{kBatch, c.wanted});
  }
  // 0.9 / 0.3 is 3.0000000000000002 as those are stored in double, and 3 in double.
  const auto number = [](const std::string& name, double value) {
    return tensor_head(name, 11, {}) + bytes(9, raw(std::vector{value}));
  };
  const std::string range =
      network({10},
              {node("Range", {"start", "end", "step"}, {"r"}), node("Shape", {"r"}, {"k"}),
               node("Slice", {"x", "first", "k", "axis"}, {"c"}), node("Relu", {"c"}, {"y"})},
              {number("start", 0), number("end", 0.9), number("step", 0.3), ints("first", {1}, {0}),
               ints("axis", {1}, {1})})
          .bytes_of();
  const Graph graph = parse(range).graph();
  CHECK(graph.type(graph.outputs()[0].value).shape == Shape{kBatch, 3});
}

TEST_CASE("onnx: a constant beyond the largest number of 8 bits is cast to it") {
  const auto cast = [](const std::string& from, const std::string& to, int type) {
    return node("Cast", {from}, {to}, int_attribute("to", type));
  };
  const std::string text =
      network({500},
              {cast("many", "most", 17), cast("most", "k", 7),
               node("Unsqueeze", {"k", "first"}, {"end"}),
               node("Slice", {"x", "first", "end", "axis"}, {"c"}), node("Relu", {"c"}, {"y"})},
              {floats("many", {}, {500}), ints("first", {1}, {0}), ints("axis", {1}, {1})})
          .bytes_of();
  const Graph graph = parse(text).graph();
  CHECK(graph.type(graph.outputs()[0].value).shape == Shape{kBatch, 448});
}

TEST_CASE("onnx: integers are not divided as numbers are") {
  const auto file = [](const Strings& nodes, int type) {
    File f =
        network({}, nodes, {ints("two", {1}, {2}), ints("one", {}, {1}), floats("half", {}, {2})});
    f.inputs = {value("a", {-1, 4}, type), value("b", {-1, 4}, type)};
    return f.bytes_of();
  };
  const std::string sum = node("Add", {"a", "b"}, {"s"});
  for (const Strings& nodes :
       {Strings{sum, node("Div", {"s", "b"}, {"y"})},
        {sum, node("Transpose", {"s"}, {"t"}, ints_attribute("perm", {0, 1})),
         node("Div", {"t", "two"}, {"d"}), node("Cast", {"d"}, {"y"}, int_attribute("to", 1))}}) {
    CHECK_THROWS_WITH(parse(file(nodes, 7)), ContainsSubstring("divides integers"));
  }
  // The type may arrive by a constant alone.
  const std::string turned = node("Transpose", {"a"}, {"t"}, ints_attribute("perm", {0, 2, 1}));
  for (const Strings& nodes :
       {Strings{node("Mul", {"two", "t"}, {"m"}), node("Div", {"m", "two"}, {"d"})},
        {node("Mul", {"two", "t"}, {"m"}), node("Mul", {"m", "half"}, {"n"}),
         node("Div", {"n", "half"}, {"d"})},
        {node("Equal", {"t", "two"}, {"e"}), node("Where", {"e", "two", "one"}, {"n"}),
         node("Div", {"n", "half"}, {"d"})}}) {
    Strings all{turned};
    all.insert(all.end(), nodes.begin(), nodes.end());
    all.push_back(node("Cast", {"d"}, {"y"}, int_attribute("to", 1)));
    File moved =
        network({}, all, {ints("two", {}, {2}), ints("one", {}, {1}), floats("half", {}, {2})});
    moved.inputs = {value("a", {-1, 2, 2}, 7)};
    const std::string text = moved.bytes_of();
    CHECK_THROWS_WITH(parse(text), ContainsSubstring("divides integers"));
  }
  // Floats that are as many as a list of integers says.
  const std::string filled_file = file(
      {sum, node("Cast", {"s"}, {"c"}, int_attribute("to", 1)),
       node("ConstantOfShape", {"two"}, {"f"}, tensor_attribute("value", floats("", {1}, {2}))),
       node("Gather", {"f", "one"}, {"g"}), node("Div", {"c", "g"}, {"y"})},
      7);
  CHECK_NOTHROW(parse(filled_file));
  const std::string cast = node("Cast", {"s"}, {"c"}, int_attribute("to", 1));
  const std::string good = file({sum, cast, node("Div", {"c", "half"}, {"y"})}, 7);
  test::ModelRun run(Context::cpu(), parse(good).graph(), {.num_members = 3, .batch = 2});
  CHECK(run.worst_error(run.run()) < 2e-5);
}

TEST_CASE("onnx: constants of more axes than what they are combined with would move the batch") {
  const auto file = [](const char* op, const Extents& dims, bool is_moved = false) {
    Strings nodes{node(op, {"t", "c"}, {"y"})};
    nodes.insert(nodes.begin(),
                 is_moved ? node("Transpose", {"x"}, {"t"}, ints_attribute("perm", {0, 2, 1}))
                          : node("Relu", {"x"}, {"t"}));
    return network({3, 4}, nodes, {filled("c", dims, 2)}).bytes_of();
  };
  for (const bool is_moved : {false, true}) {
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "PRelu"}) {
      CAPTURE(op, is_moved);
      CHECK_NOTHROW(parse(file(op, {1, 1, 1}, is_moved)));
      CHECK_THROWS_WITH(parse(file(op, {1, 1, 1, 1}, is_moved)),
                        ContainsSubstring("combines 3 axes and the constant [1, 1, 1, 1]"));
    }
  }
}

TEST_CASE(
    "onnx: slopes for a batch of single numbers are one, or as many as the file has samples") {
  const auto file = [](int64_t batch, const Extents& slopes, std::vector<float> values) {
    File made =
        network({}, {node("PRelu", {"x", "slope"}, {"y"})}, {floats("slope", slopes, values)});
    made.inputs = {value("x", {batch})};
    made.opset = 9;
    return made.bytes_of();
  };
  CHECK(result_of(file(-1, {1}, {0.5f}), {{-1, 2}}, 2) == std::vector<double>{-0.5, 2});
  CHECK(result_of(file(2, {2}, {0.5f, 0.5f}), {{-1, 2}}, 2) == std::vector<double>{-0.5, 2});
  for (const int64_t batch : {-1, 2})
    CHECK_THROWS_WITH(parse(file(batch, {2}, {0.5f, 0.25f})),
                      ContainsSubstring("combines [-1] and the constant [2]"));
}

TEST_CASE("onnx: of two numbers that truths choose, neither is rounded away") {
  struct Case {
    int type;
    double high, low;
  };
  for (const Case& c : {Case{1, 1, -1e9},
                        {1, -1e9, 1},
                        {1, 0.1, -1e4},
                        {10, 0.1, 100},
                        {1, 2, 0},
                        {1, 0, -3e38},
                        {1, -3e38, 3e38}}) {
    CAPTURE(c.type, c.high, c.low);
    File file = network({},
                        {node("Where", {"c", "h", "l"}, {"w"}),
                         node("Cast", {"c"}, {"f"}, int_attribute("to", c.type)),
                         node("Mul", {"f", "zero"}, {"n"}), node("Add", {"w", "n"}, {"y"})},
                        {typed("h", c.type, {}, {c.high}), typed("l", c.type, {}, {c.low}),
                         typed("zero", c.type, {}, {0})});
    file.inputs = {value("c", {-1, 2}, 9)};
    const double roundoff = c.type == 1 ? 1e-6 : 1e-3;
    CHECK(is_near(result_of(file.bytes_of(), {{1, 0}}), {c.high, c.low}, roundoff));
  }
  for (const bool is_data : {true, false}) {
    File file =
        network({},
                {node("Cast", {"c"}, {"f"}, int_attribute("to", 1)), node("Not", {"c"}, {"d"}),
                 node("Where", {"d", "nan", is_data ? "f" : "nan"}, {"y"})},
                {floats("nan", {}, {std::nanf("")})});
    file.inputs = {value("c", {-1, 2}, 9)};
    const std::string text = file.bytes_of();
    CHECK_THROWS_WITH(parse(text), ContainsSubstring("(Where) chooses NaN"));
  }
}

TEST_CASE("onnx: factors of moved activations are not multiplied beyond what their type holds") {
  const auto file = [](const char* op, double a, double b, double c) {
    File own = network(
        {},
        {node("Transpose", {"x"}, {"t"}, ints_attribute("perm", {0, 2, 1})),
         node(op, {"t", "a"}, {"u"}), node(op, {"u", "b"}, {"v"}), node(op, {"v", "c"}, {"y"})},
        {typed("a", 10, {}, {a}), typed("b", 10, {}, {b}), typed("c", 10, {}, {c})});
    own.inputs = {value("x", {-1, 2, 2}, 10)};
    return own.bytes_of();
  };
  struct Case {
    const char* op;
    double a, b, c, x, y;
  };
  for (const Case& each : {Case{"Mul", 300, 300, 1, 1e-3, 90},
                           {"Mul", 1e-3, 1e-4, 1, 1e3, 1e-4},
                           {"Mul", 1e-3, 1e-4, 1e4, 6e4, 60},
                           {"Mul", 2, 3, 4, 0.5, 12},
                           {"Div", 60000, 2, 0.5, 60000, 1}}) {
    CAPTURE(each.op, each.a, each.b, each.c);
    const auto got = result_of(file(each.op, each.a, each.b, each.c), {{each.x, 0, each.x / 2, 0}});
    CHECK(is_near(got, {each.y, each.y / 2, 0, 0}, 3e-3));
  }
}

TEST_CASE("onnx: Celu divides nothing that is above 0") {
  const auto file = [](double alpha) {
    File own = network(
        {}, {node("Celu", {"x"}, {"y"}, float_attribute("alpha", static_cast<float>(alpha)))});
    own.inputs = {value("x", {-1, 3}, 10)};
    return own.bytes_of();
  };
  CHECK(is_near(result_of(file(1e-3), {{100, -100, 0}}), {100, -1e-3, 0}, 1e-3));
  CHECK(is_near(result_of(file(2), {{1.5, -1, 0}}), {1.5, 2 * std::expm1(-0.5), 0}, 2e-3));
  CHECK_THROWS_WITH(parse(file(1e-6)), ContainsSubstring("(Celu) has alpha"));
}

TEST_CASE("onnx: NaN among constants is the largest and the smallest of them") {
  for (const char* op : {"Max", "Min"}) {
    for (const bool is_first : {true, false}) {
      const double nan = std::nan("");
      const std::vector<double> a{is_first ? nan : 1, 1}, b{is_first ? 1 : nan, 2};
      File file = network({2}, {node(op, {"a", "b"}, {"m"}), node("Mul", {"x", "m"}, {"y"})},
                          {typed("a", 1, {2}, a), typed("b", 1, {2}, b)});
      CHECK(is_near(result_of(file.bytes_of(), {{1, 1}}), {nan, op[1] == 'a' ? 2.0 : 1.0}, 0));
    }
  }
}

TEST_CASE("onnx: factors of products are not multiplied beyond what their type holds") {
  const auto file = [](double weight, double alpha, double beta, bool is_transposed) {
    File own = network({},
                       {node("Gemm", {"x", "w", "b"}, {"y"},
                             float_attribute("alpha", static_cast<float>(alpha)) +
                                 float_attribute("beta", static_cast<float>(beta)) +
                                 int_attribute("transB", is_transposed))},
                       {typed("w", 10, {2, 2}, {weight, 0, 0, 1}), typed("b", 10, {2}, {1, 2})});
    own.inputs = {value("x", {-1, 2}, 10)};
    return own.bytes_of();
  };
  for (const bool is_transposed : {false, true}) {
    const auto check = [&](double weight, double alpha, double beta, std::vector<double> x) {
      const std::vector<double> expected{alpha * weight * x[0] + beta, alpha * x[1] + 2 * beta};
      CHECK(is_near(result_of(file(weight, alpha, beta, is_transposed), {x}), expected, 2e-3));
    };
    check(2, 3, 0.5, {1, -1});
    check(10, 1e4, 0, {1e-3, 1e-3});
    check(0.01, 1e-3, 0, {1000, 1000});  // 1e-5 would have few bits
    check(0.01, 1e-3, 3, {1000, 1000});
    CHECK_THROWS_WITH(parse(file(1, 1e6, 1, is_transposed)),
                      ContainsSubstring("(Gemm) multiplies by 1e+06, which fp16"));
    CHECK_THROWS_WITH(parse(file(1, 1, 4e4, is_transposed)),
                      ContainsSubstring("(Gemm) adds 80000, which fp16 does not have"));
  }
}

TEST_CASE("onnx: sums of fp16 are no means, whose bits may be lost") {
  std::vector<double> x(4096, 0.0);
  x[0] = 1e-4;
  for (const Extents& dims : {Extents{4096, 1}, {1, 4096}, {1, 64, 64}, {2, 1024, 2}}) {
    for (const char* op : {"ReduceSum", "ReduceSumSquare"}) {
      CAPTURE(dims, op);
      const bool is_square = op[9] == 'S', is_middle = dims.back() == 2;
      std::vector<int64_t> axes;
      for (int64_t i = is_middle ? 2 : 1; i < std::ssize(dims) + (is_middle ? 0 : 1); ++i)
        axes.push_back(i);
      const std::string attribute = is_square ? ints_attribute("axes", axes) : "";
      File file =
          network({}, {node(op, is_square ? Strings{"x"} : Strings{"x", "axes"}, {"y"}, attribute)},
                  {ints("axes", {std::ssize(axes)}, axes)});
      Extents shape{-1};
      shape.insert(shape.end(), dims.begin(), dims.end());
      file.inputs = {value("x", shape, 10)};
      x[0] = is_square ? 0.01 : 1e-4;
      std::vector<double> expected(is_middle ? 4 : 1, 0.0);
      expected[0] = 1e-4;
      CHECK(is_near(result_of(file.bytes_of(), {x}), expected, 3e-3));
    }
  }
}

TEST_CASE("onnx: a table that is computed from constants keeps their type") {
  File file =
      network({}, {node("Add", {"a", "a"}, {"table"}), node("Gather", {"table", "ids"}, {"y"})},
              {typed("a", 10, {2, 2}, {1, 2, 3, 4})});
  file.inputs = {value("ids", {-1, 1}, 7)};
  file.outputs = {value("y", {}, 10)};
  const std::string text = file.bytes_of();
  const OnnxModel model = parse(text);
  CHECK(model.graph().type(model.graph().outputs()[0].value).dtype == Dtype::fp16);
  CHECK(result_of(text, {{1}}) == std::vector<double>{6, 8});
}

TEST_CASE("onnx: constants are cast to fewer bits, and computed with in them, as ONNX does") {
  // x + r for r of whole numbers, a and b, of a type.
  const auto result = [](const Strings& nodes, int type, const std::vector<double>& a,
                         const std::vector<double>& b) {
    Strings all = nodes;
    all.push_back(node("Cast", {"r"}, {"f"}, int_attribute("to", 1)));
    all.push_back(node("Add", {"x", "f"}, {"y"}));
    const Extents dims{std::ssize(a)};
    const File file = network(dims, all, {typed("a", type, dims, a), typed("b", type, dims, b)});
    return result_of(file.bytes_of(), {std::vector<double>(a.size(), 0.0)});
  };
  using Doubles = std::vector<double>;
  const auto cast = [](int type) { return node("Cast", {"a"}, {"r"}, int_attribute("to", type)); };
  const Doubles numbers{200, 300, -129, 5};
  CHECK(result({cast(3)}, 7, numbers, numbers) == Doubles{-56, 44, 127, 5});
  CHECK(result({cast(2)}, 6, numbers, numbers) == Doubles{200, 44, 127, 5});
  CHECK(result({cast(6)}, 7, {0x1p32 + 3, 0x1p31}, {0, 0}) == Doubles{3, -0x1p31});
  CHECK(result({cast(9)}, 7, {256, 0}, {0, 0}) == Doubles{1, 0});
  CHECK(result({node("Sub", {"a", "b"}, {"r"})}, 2, {3, 200}, {5, 1}) == Doubles{254, 199});
  CHECK(result({node("Add", {"a", "b"}, {"r"})}, 6, {0x1p31 - 1}, {1}) == Doubles{-0x1p31});
  CHECK(result({node("Abs", {"a"}, {"r"})}, 3, {-128, -1}, {0, 0}) == Doubles{-128, 1});
  CHECK_THROWS_WITH(result({cast(3)}, 1, {300}, {0}),
                    ContainsSubstring("(Cast) casts 300, which INT8 does not have"));
  // Extents of 32 bits may be the batch's, shorter ones not.
  const auto shape = [](int type) {
    return network({4}, {node("Shape", {"x"}, {"s"}),
                         node("Cast", {"s"}, {"t"}, int_attribute("to", type)),
                         node("Cast", {"t"}, {"u"}, int_attribute("to", 7)),
                         node("Reshape", {"x", "u"}, {"y"})})
        .bytes_of();
  };
  CHECK_NOTHROW(parse(shape(6)));
  CHECK_THROWS_WITH(parse(shape(5)), ContainsSubstring("(Cast) computes with the batch"));
}

TEST_CASE("onnx: casts of activations that would discard bits are refused") {
  struct Case {
    int from, to;
    bool is_taken;
  };
  for (const Case& c : {Case{6, 3, false},
                        {7, 2, false},
                        {7, 12, false},
                        {3, 2, false},
                        {2, 3, false},
                        {5, 3, false},
                        {7, 6, true},
                        {2, 5, true},
                        {2, 12, true},
                        {3, 5, true},
                        {12, 7, true},
                        {9, 3, true},
                        {9, 2, true}}) {
    CAPTURE(c.from, c.to);
    const auto cast = [](const char* from, const char* to, int type) {
      return node("Cast", {from}, {to}, int_attribute("to", type));
    };
    File file =
        network({}, {cast("c", "r", c.to), cast("r", "f", 1), node("Mul", {"x", "f"}, {"y"})});
    file.inputs = {value("x", {-1, 2}), value("c", {-1, 2}, c.from)};
    const std::string text = file.bytes_of();
    if (c.is_taken)
      CHECK_NOTHROW(parse(text));
    else
      CHECK_THROWS_WITH(parse(text), ContainsSubstring("(Cast) casts ") &&
                                         ContainsSubstring("which discards bits"));
  }
}

TEST_CASE("onnx: an input is fixed to what its type has") {
  const auto result = [](int type, double number) {
    File file = network(
        {}, {node("Cast", {"c"}, {"f"}, int_attribute("to", 1)), node("Mul", {"x", "f"}, {"y"})});
    file.inputs = {value("x", {-1, 2}), value("c", {-1, 2}, type)};
    OnnxOptions options;
    options.fixed_inputs = {{"c", number}};
    return result_of(file.bytes_of(), {{1, 2}}, 1, options);
  };
  CHECK(result(9, 1) == std::vector<double>{1, 2});
  CHECK(result(2, 255) == std::vector<double>{255, 510});
  CHECK(result(1, 0.5) == std::vector<double>{0.5, 1});
  CHECK_THROWS_WITH(result(9, 2), ContainsSubstring("is fixed to 2, which BOOL does not have"));
  CHECK_THROWS_WITH(result(2, 300),
                    ContainsSubstring("is fixed to 300, which UINT8 does not have"));
}

TEST_CASE("onnx: truths that are not cast have the type of what they choose among") {
  const auto file = [](int type, int of_bias, bool counts) {
    Strings nodes{node("Transpose", {"x"}, {"k"}, ints_attribute("perm", {0, 2, 1})),
                  node("MatMul", {"x", "k"}, {"s"}), node("Not", {"mask"}, {"c"})};
    if (counts) {
      nodes.push_back(node("Cast", {"c"}, {"i"}, int_attribute("to", 7)));
      nodes.push_back(node("Equal", {"i", "zero"}, {"d"}));
    }
    nodes.push_back(node("Where", {counts ? "d" : "c", "s", "hidden"}, {"t"}));
    nodes.push_back(node("Softmax", {"t"}, {"p"}));
    nodes.push_back(node("MatMul", {"p", "x"}, {"y"}));
    File own = network({}, nodes, {typed("hidden", type, {}, {-10000}), ints("zero", {}, {0})});
    own.inputs = {value("x", {-1, 2, 2}, type), value("mask", {-1, 1, 2}, 9)};
    if (of_bias != 0) own.initializers.push_back(typed("bias", of_bias, {}, {0}));
    return own.bytes_of();
  };
  for (const int type : {1, 10, 16}) {
    CAPTURE(type);
    const std::vector<double> x{1, 2, 0.5, -1};
    CHECK(result_of(file(type, 0, false), {x, {0, 1}}) == std::vector<double>{1, 2, 1, 2});
    CHECK(result_of(file(type, type, false), {x, {1, 0}}) == std::vector<double>{0.5, -1, 0.5, -1});
    if (type == 1) continue;
    for (const std::string& other : {file(type, 1, false), file(type, 0, true)})
      CHECK_THROWS_WITH(parse(other), ContainsSubstring("or another type than what it chooses by"));
  }
}

TEST_CASE("onnx: Clip before opset 11 has bounds that are finite") {
  const double infinity = INFINITY, most = 3.4028234663852886e38;
  for (const int64_t opset : {6, 9, 11}) {
    CAPTURE(opset);
    const auto clipped = [&](const char* bound, float number) {
      File file = network({3}, {node("Clip", {"x"}, {"y"}, float_attribute(bound, number))});
      if (opset >= 11) {
        file.nodes[0] = *bound == 'm' && bound[1] == 'i' ? node("Clip", {"x", "c"}, {"y"})
                                                         : node("Clip", {"x", "", "c"}, {"y"});
        file.initializers.push_back(floats("c", {}, {number}));
      }
      file.opset = opset;
      return result_of(file.bytes_of(), {{-infinity, 1, infinity}});
    };
    const double largest = opset < 11 ? most : infinity;
    CHECK(clipped("max", 6) == std::vector<double>{-largest, 1, 6});
    CHECK(clipped("min", -6) == std::vector<double>{-6, 1, largest});
  }
}
