// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX files that say the same in other words: extents by other names, pads that are uneven; and
// what they say in words that no operator of ours has, which must not be passed over.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <optional>

#include "host/core/file.hpp"
#include "verify/import/onnx_run.hpp"
#include "verify/support/error_of.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/onnx_case.hpp"
#include "verify/support/onnx_loops.hpp"
#include "wide/error.hpp"
#include "wide/model.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide::test::onnx;
using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Strings = std::vector<std::string>;

OnnxModel parse(const std::string& file) {
  return OnnxModel::parse(std::as_bytes(std::span(file)), "a file");
}

}  // namespace

TEST_CASE("onnx: members call their extents what they like, each one by one name") {
  const auto file_with = [](const char* batch, const char* of_x, const char* of_z) {
    const auto input = [&](const char* name, const char* extent) {
      const std::string shape = bytes(1, bytes(2, batch)) + bytes(1, bytes(2, extent));
      return bytes(1, name) + bytes(2, bytes(1, integer(1, 1) + bytes(2, shape)));
    };
    File file = network({}, {node("Relu", {"x"}, {"y"}), node("Tanh", {"z"}, {"w"})});
    file.inputs = {input("x", of_x), input("z", of_z)};
    file.outputs = {value("y", {}), value("w", {})};
    return file.bytes_of();
  };
  const test::TemporaryFolder folder;
  const OnnxOptions options{
      .extents = {{"s", 4}, {"t", 8}}, .shared_inputs = {}, .fixed_inputs = {}, .outputs = {}};
  const std::vector<std::string> paths{"a.onnx", "b.onnx"};
  const auto open_with = [&](const std::string& second) {
    write_file("a.onnx", file_with("batch", "s", "t"));
    write_file("b.onnx", second);
    return OnnxModel::open(paths, options);
  };
  for (const std::string& second : {file_with("N", "length", "width"), file_with("t", "t", "s")}) {
    const OnnxModel model = open_with(second);
    CHECK(model.num_members() == 2);
    CHECK(model.graph().type(model.graph().inputs()[1]).shape[1] == 8);
  }
  CHECK_THROWS_WITH(
      open_with(file_with("N", "length", "length")),
      ContainsSubstring("b.onnx is no member of a.onnx: its extent \"length\" is both "
                        "\"s\" and \"t\" there, expected one"));
  write_file("a.onnx", file_with("batch", "s", "s"));
  write_file("b.onnx", file_with("batch", "p", "q"));
  CHECK_THROWS_WITH(
      OnnxModel::open(
          paths, {.extents = {{"s", 4}}, .shared_inputs = {}, .fixed_inputs = {}, .outputs = {}}),
      ContainsSubstring("its extents \"p\" and \"q\" are both \"s\" there, expected one name"));
}

TEST_CASE("onnx: pools whose pads are uneven have the windows that ONNX says") {
  const auto pool = [](const char* op, int64_t size, int64_t kernel, int64_t stride,
                       const std::string& more) {
    return network({1, size}, {node(op, {"x"}, {"y"},
                                    ints_attribute("kernel_shape", {kernel}) +
                                        ints_attribute("strides", {stride}) + more)})
        .bytes_of();
  };
  int taken = 0;
  for (const bool is_max : {true, false}) {
    for (int64_t i = 0; i < 4 * 3 * 3 * 4 * 4; ++i) {
      const int64_t size = 4 + i % 4, kernel = 2 + i / 4 % 3, stride = 1 + i / 12 % 3,
                    front = i / 36 % 4, behind = i / 144;
      if (front == behind || front > kernel / 2 || behind >= kernel) continue;
      CAPTURE(is_max, size, kernel, stride, front, behind);
      const std::string file = pool(is_max ? "MaxPool" : "AveragePool", size, kernel, stride,
                                    ints_attribute("pads", {front, behind}));
      std::vector<float> x(static_cast<size_t>(size)), expected;
      for (size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k * 7 % 5) - 3;
      for (int64_t at = -front; at + kernel <= size + behind; at += stride) {
        float largest = -INFINITY, sum = 0, count = 0;
        for (int64_t k = std::max<int64_t>(at, 0); k < std::min(at + kernel, size); ++k) {
          largest = std::max(largest, x[static_cast<size_t>(k)]);
          sum += x[static_cast<size_t>(k)], ++count;
        }
        expected.push_back(is_max ? largest : sum / count);
      }
      std::optional<OnnxModel> model;
      try {
        model = parse(file);
      } catch (const Error& error) {  // more windows than even pads make
        CHECK_THAT(error.what(), ContainsSubstring(" after, expected as much"));
        continue;
      }
      ++taken;
      std::vector<float> y(expected.size());
      const Context cpu = Context::cpu({.num_threads = 1, .allocator = {}});
      const ModelPlan plan = make_model_plan(cpu, model->graph(), {.num_members = 1, .batch = 1});
      REQUIRE(plan.outputs()[0].shape == Shape{1, 1, std::ssize(y)});
      const Model loaded(cpu, plan, std::vector<MemberParameters>{model->parameters(0)});
      Tensor workspace(cpu, Dtype::uint8, {plan.workspace_bytes()});
      const ConstTensorView in(x.data(), Dtype::fp32, {1, 1, size}, cpu.device());
      const TensorView out(y.data(), Dtype::fp32, {1, 1, std::ssize(y)}, cpu.device());
      loaded.run({in}, {out}, {Stream::cpu(), workspace});
      for (size_t k = 0; k < y.size(); ++k) CHECK(std::fabs(y[k] - expected[k]) < 1e-6f);
    }
  }
  CHECK(taken > 100);
  const std::string counted =
      pool("AveragePool", 6, 3, 2,
           ints_attribute("pads", {0, 1}) + int_attribute("count_include_pad", 1));
  CHECK_THROWS_WITH(parse(counted), ContainsSubstring("pads 0 before and 1 after, expected as"));
}

TEST_CASE("onnx: means that count padding are over whole windows") {
  const auto file = [](const Extents& size, const std::string& more, bool counts = true) {
    const std::vector<int64_t> twos(size.size(), 2);
    Extents dims{1};
    dims.insert(dims.end(), size.begin(), size.end());
    return network(dims, {node("AveragePool", {"x"}, {"y"},
                               ints_attribute("kernel_shape", twos) + more +
                                   ints_attribute("strides", twos) + int_attribute("ceil_mode", 1) +
                                   int_attribute("count_include_pad", counts ? 1 : 0))})
        .bytes_of();
  };
  const std::string even = ints_attribute("pads", {1, 1});
  CHECK_THROWS_WITH(parse(file({3}, "")),
                    ContainsSubstring("counts padding in a window that ends at 4 of 3 positions, "
                                      "expected one that ends inside"));
  CHECK_THROWS_WITH(parse(file({4, 3}, "")), ContainsSubstring("ends at 4 of 3"));
  CHECK(result_of(file({3}, even), {{1, 2, 3}}) == std::vector<double>{0.5, 2.5});
  CHECK(result_of(file({3}, "", false), {{1, 2, 3}}) == std::vector<double>{1.5, 3});
  CHECK(result_of(file({4}, ""), {{1, 2, 3, 4}}) == std::vector<double>{1.5, 3.5});
  CHECK(result_of(file({4}, even), {{1, 2, 3, 4}}) == std::vector<double>{0.5, 2.5, 2});
}

TEST_CASE("onnx: Squeeze without axes removes a batch whose number is 1 in the file") {
  const auto file = [](int64_t batch) {
    File own = network({}, {node("Squeeze", {"x"}, {"s"}),
                            node("Softmax", {"s"}, {"y"}, int_attribute("axis", 2))});
    own.inputs = {value("x", {batch, 1, 3, 4})};
    return own.bytes_of();
  };
  CHECK_THROWS_WITH(parse(file(1)), ContainsSubstring("(Squeeze) squeezes the batch"));
  CHECK_NOTHROW(parse(file(2)));
  CHECK_NOTHROW(parse(file(-1)));
}

TEST_CASE("onnx: the axis of an addition of old is not passed over where nodes become one") {
  const std::vector<float> numbers{1, 2, 3, 4};
  const auto refused = [&](const std::vector<std::string>& nodes, const char* op) {
    File file = network({4, 4}, nodes,
                        {filled("w", {4, 4}), floats("b", {4}, numbers), floats("two", {}, {2}),
                         floats("eps", {}, {1e-5f}), floats("root", {}, {1.41421356f}),
                         floats("one", {}, {1}), floats("half", {}, {0.5f})});
    file.opset = 6;
    const std::string text = file.bytes_of();
    CHECK_THROWS_WITH(parse(text), ContainsSubstring(std::string("(") + op + ")"));
  };
  const std::string along = int_attribute("axis", 1) + int_attribute("broadcast", 1);
  refused({node("MatMul", {"x", "w"}, {"m"}), node("Add", {"m", "b"}, {"y"}, along)}, "Add");
  const auto normalised = [&](const std::string& of_mul, const std::string& of_add) {
    const std::string last = ints_attribute("axes", {-1});
    return std::vector<std::string>{
        node("ReduceMean", {"x"}, {"m"}, last), node("Sub", {"x", "m"}, {"d"}),
        node("Pow", {"d", "two"}, {"p"}),       node("ReduceMean", {"p"}, {"v"}, last),
        node("Add", {"v", "eps"}, {"e"}),       node("Sqrt", {"e"}, {"r"}),
        node("Div", {"d", "r"}, {"n"}),         node("Mul", {"n", "b"}, {"g"}, of_mul),
        node("Add", {"g", "b"}, {"y"}, of_add)};
  };
  refused(normalised(along, ""), "Mul");
  refused(normalised("", along), "Add");
  refused({node("Div", {"x", "root"}, {"d"}), node("Erf", {"d"}, {"e"}),
           node("Add", {"e", "one"}, {"a"}, int_attribute("other", 1)),
           node("Mul", {"x", "a"}, {"m"}), node("Mul", {"m", "half"}, {"y"})},
          "Erf");
}

TEST_CASE("onnx: a norm's scale lies along the axes that are normalised") {
  const auto file = [](const Extents& scale) {
    return network({4, 4},
                   {node("LayerNormalization", {"x", "s"}, {"y"}, int_attribute("axis", -1))},
                   {filled("s", scale)})
        .bytes_of();
  };
  for (const Extents& scale : {Extents{4}, {1, 4}, {1, 1, 4}}) CHECK_NOTHROW(parse(file(scale)));
  CHECK_THROWS_WITH(parse(file({4, 1})),
                    ContainsSubstring("has a scale or bias [4, 1], expected [4]"));
}

TEST_CASE("onnx: constants of gelu are taken with the bits that their type has, and no others") {
  const auto file = [](const std::string& root, int type) {
    File own = network({},
                       {node("Div", {"x", "root"}, {"d"}), node("Erf", {"d"}, {"e"}),
                        node("Add", {"e", "one"}, {"a"}), node("Mul", {"x", "a"}, {"m"}),
                        node("Mul", {"m", "half"}, {"y"})},
                       {root, typed("one", type, {}, {1}), typed("half", type, {}, {0.5})});
    own.inputs = {value("x", {-1, 4}, type)};
    return own.bytes_of();
  };
  for (const int type : {1, 10, 16})
    CHECK_NOTHROW(parse(file(typed("root", type, {}, {1.41421356}), type)));
  CHECK_NOTHROW(parse(file(typed("root", 1, {}, {1.4142}), 1)));
  CHECK_THROWS_WITH(parse(file(typed("root", 1, {}, {1.4152}), 1)), ContainsSubstring("(Erf)"));
  const std::string root = typed("root", 1, {}, {1.41421356});
  File other = network({4},
                       {node("Div", {"x", "root"}, {"d"}), node("Erf", {"d"}, {"e"}),
                        node("Add", {"e", "one"}, {"a"}), node("Mul", {"x", "a"}, {"m"}),
                        node("Mul", {"m", "half"}, {"y"})},
                       {root, floats("one", {}, {1}), floats("half", {}, {0.5004f})});
  const std::string text = other.bytes_of();
  CHECK_THROWS_WITH(parse(text), ContainsSubstring("(Erf)"));
}

const std::vector<std::pair<std::string, float>> kJoinedNumbers{
    {"root2", 1.41421354f}, {"one", 1}, {"half", 0.5f}, {"three", 3}, {"small", 0.044715f},
    {"root", 0.797884583f}, {"two", 2}, {"eps", 1e-5f}};

/// gelu, gelu by tanh, and a norm of x, one of whose numbers has these axes.
File joined_file(size_t function, const std::string& number, const Extents& dims) {
  const std::vector<Strings> nodes{
      {node("Div", {"x", "root2"}, {"a"}), node("Erf", {"a"}, {"e"}),
       node("Add", {"one", "e"}, {"s"}), node("Mul", {"x", "s"}, {"m"}),
       node("Mul", {"half", "m"}, {"y"})},
      {node("Pow", {"x", "three"}, {"x3"}), node("Mul", {"x3", "small"}, {"a"}),
       node("Add", {"x", "a"}, {"b"}), node("Mul", {"b", "root"}, {"c"}),
       node("Tanh", {"c"}, {"d"}), node("Add", {"d", "one"}, {"e"}),
       node("Mul", {"x", "half"}, {"h"}), node("Mul", {"h", "e"}, {"y"})},
      {node("ReduceMean", {"x"}, {"m"}, ints_attribute("axes", {-1})),
       node("Sub", {"x", "m"}, {"c"}), node("Pow", {"c", "two"}, {"p"}),
       node("ReduceMean", {"p"}, {"v"}, ints_attribute("axes", {-1})),
       node("Add", {"v", "eps"}, {"e"}), node("Sqrt", {"e"}, {"r"}),
       node("Div", {"c", "r"}, {"y"})}};
  Strings numbers;
  for (const auto& [name, own] : kJoinedNumbers)
    numbers.push_back(floats(name, name == number ? dims : Extents{}, {own}));
  return network({4}, nodes.at(function), numbers);
}

TEST_CASE("onnx: numbers of nodes that become one have no more axes than x") {
  const std::vector<Strings> numbers{
      {"root2", "one", "half"}, {"three", "small", "root", "one", "half"}, {"two", "eps"}};
  for (size_t function = 0; function < numbers.size(); ++function) {
    for (const std::string& number : numbers[function]) {
      CAPTURE(function, number);
      CHECK_NOTHROW(parse(joined_file(function, number, {1, 1}).bytes_of()));
      CHECK_THROWS_WITH(parse(joined_file(function, number, {1, 1, 1}).bytes_of()),
                        ContainsSubstring("combines 2 axes and a constant of 3, which has more"));
    }
  }
}

TEST_CASE("onnx: numbers of nodes that become one are constants in any form") {
  const auto short_form = [](const std::string& name, float number, bool is_list) {
    const std::string attribute =
        is_list ? bytes(5, bytes(1, "value_floats") + single(7, number) + integer(20, 6))
                : float_attribute("value_float", number);
    return node("Constant", {}, {name}, attribute);
  };
  for (const bool is_list : {false, true}) {
    for (size_t function = 0; function < 3; ++function) {
      CAPTURE(is_list, function);
      const File whole = joined_file(function, "", {});
      File file = whole;
      file.initializers.clear();
      for (const auto& [name, number] : kJoinedNumbers)
        file.nodes.insert(file.nodes.begin(), short_form(name, number, is_list));
      const Graph graph = parse(file.bytes_of()).graph();
      CHECK(operations(graph) == operations(parse(whole.bytes_of()).graph()));
      CHECK(operations(graph).size() == 1);
    }
  }
  // The axis as a whole number.
  const auto axis = [](bool is_list) {
    return node("Constant", {}, {"last"},
                is_list ? ints_attribute("value_ints", {-1}) : int_attribute("value_int", -1));
  };
  for (const bool is_list : {false, true}) {
    File file = joined_file(2, "", {});
    file.opset = 18;
    file.nodes[0] = node("ReduceMean", {"x", "last"}, {"m"});
    file.nodes[3] = node("ReduceMean", {"p", "last"}, {"v"});
    file.nodes.insert(file.nodes.begin(), axis(is_list));
    CHECK(operations(parse(file.bytes_of()).graph()) == Strings{"layernorm"});
  }
}

TEST_CASE("onnx: a norm that is spelled out is over its last axis, by either number of it") {
  const auto file = [](int64_t of_mean, int64_t of_square, bool is_moved = false) {
    File made = joined_file(2, "", {});
    made.inputs = {value("x", {-1, 3, 4})};
    made.nodes[0] = node("ReduceMean", {"x"}, {"m"}, ints_attribute("axes", {of_mean}));
    made.nodes[3] = node("ReduceMean", {"p"}, {"v"}, ints_attribute("axes", {of_square}));
    if (is_moved) {
      made.inputs = {value("z", {-1, 4, 3})};
      made.nodes.insert(made.nodes.begin(),
                        node("Transpose", {"z"}, {"x"}, ints_attribute("perm", {0, 2, 1})));
    }
    return made.bytes_of();
  };
  CHECK(operations(parse(file(2, 2)).graph()) == Strings{"layernorm"});
  CHECK(operations(parse(file(2, 2, true)).graph()) == Strings{"transpose", "layernorm"});
  const std::vector<double> x{0, 1, 2, 5, 3, 3, 1, 1, -2, 0, 0, 2};
  CHECK(result_of(file(2, 2), {x}) == result_of(file(-1, -1), {x}));
  CHECK_THROWS_WITH(parse(file(1, 1)),
                    ContainsSubstring("normalises over axis 1 alone, expected the last one"));
  CHECK_THROWS_WITH(parse(file(3, 3)), ContainsSubstring("axis 3"));
  for (const auto& [a, b] : {std::pair<int64_t, int64_t>{2, 1}, {-1, 2}})
    CHECK_THROWS_WITH(parse(file(a, b)), ContainsSubstring("(Sqrt) is not supported"));
}

TEST_CASE("onnx: attributes are not passed over where constants are folded") {
  const auto complaint = [](const std::string& folded, int64_t size = 3, int64_t opset = 17) {
    File file = network({size}, {folded, node("Mul", {"x", "r"}, {"y"})},
                        {filled("a", {size, size}), filled("b", {size})});
    file.opset = opset;
    const std::string text = file.bytes_of();
    return test::error_of([&] { (void)parse(text); });
  };
  const std::string along = int_attribute("axis", 0) + int_attribute("broadcast", 1);
  CHECK_THAT(complaint(node("Add", {"a", "b"}, {"r"}, along), 3, 6),
             ContainsSubstring("(Add) has attribute \"axis\", which is not supported"));
  for (const char* op : {"Abs", "Max", "Less", "Mod", "Identity"}) {
    const bool is_pair = op[0] == 'M' || op[0] == 'L';
    CHECK_THAT(complaint(node(op, is_pair ? Strings{"b", "b"} : Strings{"b"}, {"r"},
                              int_attribute("other", 3))),
               ContainsSubstring("has attribute \"other\", which is not supported"));
  }
  const std::string perm = ints_attribute("perm", {1, 0});
  for (const int64_t size : {3, 100})  // as numbers, and as a tensor
    CHECK_THAT(complaint(node("Transpose", {"a"}, {"r"}, perm + int_attribute("other", 3)), size),
               ContainsSubstring("(Transpose) has attribute \"other\""));
  CHECK_THAT(complaint(node("Transpose", {"a"}, {"r"}, int_attribute("perm", 1))),
             ContainsSubstring("has attribute \"perm\", expected integers"));
  CHECK_THAT(complaint(node("Flatten", {"b"}, {"r"}, float_attribute("axis", 0))),
             ContainsSubstring("has attribute \"axis\", expected an integer"));
  for (const int64_t size : {3, 100})
    CHECK_THAT(complaint(node("Concat", {"a", "a"}, {"r"}), size),
               ContainsSubstring("(Concat) has no axis"));
}

TEST_CASE("onnx: parts are equal where no number of them is said") {
  for (const std::string from : {"x", "c"}) {
    const auto file = [&](const std::string& attributes) {
      return network({5},
                     {node("Split", {from}, {"a", "b"}, int_attribute("axis", 1) + attributes),
                      node("Concat", {"b", "a"}, {"d"}, int_attribute("axis", 1)),
                      node("Add", {"d", "x"}, {"y"})},
                     {filled("c", {1, 5})})
          .bytes_of();
    };
    CHECK_NOTHROW(parse(file(int_attribute("num_outputs", 2))));
    CHECK_THROWS_WITH(parse(file("")), ContainsSubstring("(Split) splits 5 into 2 parts without "
                                                         "num_outputs, expected equal ones"));
  }
}

TEST_CASE("onnx: an input that the file has itself is neither fixed nor shared") {
  File file = network({}, {node("Mul", {"x", "s"}, {"y"})}, {filled("s", {1, 4})});
  file.inputs = {value("x", {-1, 4}), value("s", {-1, 4})};
  const std::string text = file.bytes_of();
  OnnxOptions fixed, shared;
  fixed.fixed_inputs = {{"s", 2}};
  shared.shared_inputs = {"s"};
  for (const OnnxOptions& options : {fixed, shared})
    CHECK_THROWS_WITH(OnnxModel::parse(std::as_bytes(std::span(text)), "a file", options),
                      ContainsSubstring("input \"s\" is a weight, which the file has itself"));
}

TEST_CASE("onnx: pools that choose their pads by themselves round no number of windows up") {
  const auto file = [](const char* op, const char* mode) {
    return network({1, 6},
                   {node(op, {"x"}, {"y"},
                         ints_attribute("kernel_shape", {3}) + ints_attribute("strides", {2}) +
                             int_attribute("ceil_mode", 1) + text_attribute("auto_pad", mode))})
        .bytes_of();
  };
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  CHECK(result_of(file("MaxPool", "VALID"), {x}) == std::vector<double>{3, 5});
  CHECK(result_of(file("AveragePool", "VALID"), {x}) == std::vector<double>{2, 4});
  CHECK(result_of(file("MaxPool", "SAME_UPPER"), {x}) == std::vector<double>{3, 5, 6});
  CHECK(result_of(file("MaxPool", "NOTSET"), {x}) == std::vector<double>{3, 5, 6});
}

TEST_CASE("onnx: pools that would choose pads below 0 are refused") {
  const auto file = [](const char* op, int64_t stride) {
    return network({1, 6},
                   {node(op, {"x"}, {"y"},
                         ints_attribute("kernel_shape", {1}) + ints_attribute("strides", {stride}) +
                             text_attribute("auto_pad", "SAME_UPPER"))})
        .bytes_of();
  };
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  for (const char* op : {"MaxPool", "AveragePool"}) {
    CHECK(result_of(file(op, 2), {x}) == std::vector<double>{1, 3, 5});
    CHECK_THROWS_WITH(parse(file(op, 3)),
                      ContainsSubstring("leaves out 2 positions, expected at most 1"));
  }
}

TEST_CASE("onnx: operators of each element do not mind that the batch is second") {
  const std::vector<double> x{-2, -0.5, 0, 0.25, 1, 4, -1, 3, 0.5, -0.25, 2, -4};
  const Strings constants{floats("one", {1, 1}, {1}), floats("third", {}, {3}), filled("row", {3})};
  struct Case {
    const char* op;
    Strings more;
    bool is_first_constant = false;
  };
  for (const Case& c :
       {Case{"Dropout", {}}, Case{"Pad", {"pads"}}, Case{"Max", {"one"}}, Case{"Min", {"one"}},
        Case{"Max", {}}, Case{"Abs", {}}, Case{"Neg", {}}, Case{"Pow", {"third"}}, Case{"Selu", {}},
        Case{"Mish", {}}, Case{"Celu", {}}, Case{"HardSigmoid", {}}, Case{"Softsign", {}},
        Case{"PRelu", {"one"}}, Case{"Sum", {"x"}}, Case{"Mean", {"one", "x", "third"}},
        Case{"Sum", {"one"}, true}}) {
    CAPTURE(c.op, c.more);
    const auto file = [&](bool is_moved) {
      const std::string own = is_moved ? "t" : "x";
      Strings inputs{own}, nodes;
      for (const std::string& name : c.more) inputs.push_back(name == "x" ? own : name);
      if (c.is_first_constant) std::swap(inputs[0], inputs[1]);
      const std::string swap = ints_attribute("perm", {1, 0, 2});
      if (is_moved) nodes.push_back(node("Transpose", {"x"}, {"t"}, swap));
      nodes.push_back(node(c.op, inputs, {is_moved ? "u" : "y"}));
      if (is_moved) nodes.push_back(node("Transpose", {"u"}, {"y"}, swap));
      File made = network({2, 3}, nodes, constants);
      made.initializers.push_back(ints("pads", {6}, {0, 0, 0, 0, 0, 0}));
      made.opset = 18;
      return made.bytes_of();
    };
    CHECK(result_of(file(true), {x}, 2) == result_of(file(false), {x}, 2));
    for (const std::string& operation : operations(parse(file(true)).graph()))
      CHECK(operation != "transpose");
  }
  // What has a number for each column is added where it lies, or refused.
  File row = network({2, 3}, {node("Sum", {"row", "x"}, {"y"})}, constants);
  std::vector<double> more;
  for (const double each : x) more.push_back(each + 1);
  CHECK(result_of(row.bytes_of(), {x}, 2) == more);
}

TEST_CASE("onnx: reductions leave one number per sample, or everything") {
  const auto file = [](const char* op, const Strings& axes, bool is_noop, const Extents& dims) {
    Strings inputs{"x"};
    inputs.insert(inputs.end(), axes.begin(), axes.end());
    File made = network(dims,
                        {node(op, inputs, {"y"},
                              int_attribute("keepdims", 0) +
                                  int_attribute("noop_with_empty_axes", is_noop ? 1 : 0))},
                        {ints("all", {2}, {1, 2}), ints("none", {0}, {})});
    made.opset = 18;
    return made.bytes_of();
  };
  const std::vector<double> x{-2, 3, 1, 0.5, 4, -1, -3, 2};
  struct Case {
    const char* op;
    std::vector<double> expected;  ///< of two samples
  };
  for (const Case& c :
       {Case{"ReduceSum", {2.5, 2}}, Case{"ReduceMean", {0.625, 0.5}}, Case{"ReduceMax", {3, 4}},
        Case{"ReduceMin", {-2, -3}}, Case{"ReduceSumSquare", {14.25, 30}}}) {
    CAPTURE(c.op);
    CHECK(is_near(result_of(file(c.op, {"all"}, false, {2, 2}), {x}, 2), c.expected, 1e-6));
    std::vector<double> all = x;
    for (double& each : all) each *= std::string(c.op) == "ReduceSumSquare" ? each : 1;
    for (const Strings& axes : {Strings{}, {"none"}}) {
      CHECK(result_of(file(c.op, axes, true, {2, 2}), {x}, 2) == all);
      CHECK(result_of(file(c.op, axes, true, {}), {x}, 8) == all);
      CHECK_THROWS_WITH(parse(file(c.op, axes, false, {2, 2})),
                        ContainsSubstring("reduces the batch"));
    }
  }
}
