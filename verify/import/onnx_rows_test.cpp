// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Constants that a file expands to its batch: their rows are one row as long as they are broadcast,
// and what looks at the rows themselves is refused.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "host/model/graph_reference.hpp"
#include "verify/support/onnx_case.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide::test::onnx;
using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Strings = std::vector<std::string>;

std::string axis(int64_t value) {
  return int_attribute("axis", value);
}
std::string keeps(bool holds) {
  return int_attribute("keepdims", holds ? 1 : 0);
}

/// Nodes behind "rows" and "p": 1 2 3 4, and 1 1 1 1 in "ones", for each sample of x [batch, 4].
std::string file_of(const Strings& nodes, int64_t batch = -1) {
  Strings all{
      node("Shape", {"x"}, {"s"}), node("Gather", {"s", "list0"}, {"b"}),
      node("Concat", {"b", "list4"}, {"bs"}, axis(0)), node("Expand", {"p", "s"}, {"rows"}),
      node("ConstantOfShape", {"bs"}, {"ones"}, tensor_attribute("value", floats("", {1}, {1})))};
  all.insert(all.end(), nodes.begin(), nodes.end());
  File file = network({4}, all,
                      {floats("p", {1, 4}, {1, 2, 3, 4}), floats("column", {4, 1}, {1, 1, 1, 1}),
                       floats("one", {1, 1}, {1}), ints("list0", {1}, {0}), ints("list1", {1}, {1}),
                       ints("list2", {1}, {2}), ints("list4", {1}, {4}), ints("zero", {}, {0}),
                       ints("order", {4}, {3, 2, 1, 0}), ints("open", {1}, {-1})});
  file.inputs = {value("x", {batch, 4}), value("mask", {batch, 4}, 7)};
  return file.bytes_of();
}

OnnxModel parse(const std::string& file, const OnnxOptions& options = {}) {
  return OnnxModel::parse(std::as_bytes(std::span(file)), "a file", options);
}

/// y for 3 samples of 10 20 30 40.
std::vector<double> result(const std::string& file, const OnnxOptions& options = {}) {
  const OnnxModel model = parse(file, options);
  std::map<std::string, catalog::Doubles> parameters;
  for (const auto& [name, view] : model.parameters(0)) parameters[name] = catalog::to_doubles(view);
  const catalog::Doubles x{{3, 4}, {10, 20, 30, 40, 10, 20, 30, 40, 10, 20, 30, 40}};
  const auto outputs = catalog::evaluate_graph(model.graph(), {{"x", x}}, parameters);
  return outputs.at("y").values;
}
std::vector<double> thrice(const std::vector<double>& row) {
  std::vector<double> all;
  for (int i = 0; i < 3; ++i) all.insert(all.end(), row.begin(), row.end());
  return all;
}

const OnnxOptions kFixed{
    .extents = {}, .shared_inputs = {}, .fixed_inputs = {{"mask", 2}}, .outputs = {}};

Strings operator+(Strings a, const Strings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST_CASE("onnx: rows that are broadcast to the batch are one row") {
  const std::string add = node("Add", {"x", "r"}, {"y"});
  const std::vector<double> sum{11, 22, 33, 44};
  CHECK(result(file_of({node("Add", {"x", "rows"}, {"y"})})) == thrice(sum));
  for (const Strings& nodes :
       {Strings{node("Mul", {"rows", "ones"}, {"r"})},
        {node("Unsqueeze", {"rows", "list1"}, {"u"}), node("Neg", {"u"}, {"n"}),
         node("Transpose", {"n"}, {"t"}, ints_attribute("perm", {2, 0, 1})),
         node("Squeeze", {"t", "list2"}, {"q"}),
         node("Transpose", {"q"}, {"w"}, ints_attribute("perm", {1, 0})),
         node("Neg", {"w"}, {"r"})},
        {node("Unsqueeze", {"rows", "list0"}, {"u"}),
         node("ReduceSum", {"u", "list0"}, {"r"}, keeps(false))},
        {node("Split", {"rows"}, {"l", "h"}, axis(1)), node("Concat", {"l", "h"}, {"r"}, axis(-1))},
        {node("Slice", {"rows", "list0", "list4", "list1"}, {"r"})},
        {node("Expand", {"rows", "s"}, {"e"}), node("Where", {"yes", "e", "ones"}, {"r"})},
        {node("Gather", {"rows", "order"}, {"g"}, axis(1)),
         node("Gather", {"g", "order"}, {"r"}, axis(1))}}) {
    const Strings all = Strings{node("Equal", {"ones", "one"}, {"yes"})} + nodes + Strings{add};
    CHECK(result(file_of(all)) == thrice(sum));
    CHECK(result(file_of(all, 3)) == thrice(sum));
  }
}

TEST_CASE("onnx: such rows are joined with each sample's own, as class tokens are") {
  const std::vector<double> joined{1, 2, 3, 4, 10, 20, 30, 40};
  for (const int64_t batch : {-1, 3})
    CHECK(result(file_of({node("Concat", {"rows", "x"}, {"y"}, axis(1))}, batch)) ==
          thrice(joined));
}

TEST_CASE("onnx: the number of such rows is the batch's") {
  const Strings numbers{node("Shape", {"ones"}, {"so"}), node("Gather", {"so", "list0"}, {"n"}),
                        node("Concat", {"n", "list2", "list2"}, {"square"}, axis(0))};
  const Strings sum{node("Reshape", {"x", "square"}, {"a"}),
                    node("Reshape", {"rows", "square"}, {"c"}), node("Add", {"a", "c"}, {"y"})};
  CHECK(result(file_of(numbers + sum)) == thrice({11, 22, 33, 44}));
  const Strings fixed{node("Shape", {"mask"}, {"so"}),
                      node("Gather", {"so", "list0"}, {"n"}),
                      node("Concat", {"n", "list2", "open"}, {"square"}, axis(0)),
                      node("Cast", {"mask"}, {"rows2"}, int_attribute("to", 1)),
                      node("Reshape", {"x", "square"}, {"a"}),
                      node("Reshape", {"rows2", "square"}, {"c"}),
                      node("Add", {"a", "c"}, {"y"})};
  CHECK(result(file_of(fixed), kFixed) == thrice({12, 22, 32, 42}));
  CHECK(result(file_of(fixed, 3), kFixed) == thrice({12, 22, 32, 42}));
  CHECK_THROWS_WITH(
      parse(file_of({node("Shape", {"ones"}, {"so"}), node("Gather", {"so", "zero"}, {"n"}),
                     node("Cast", {"n"}, {"f"}, int_attribute("to", 1)),
                     node("Mul", {"x", "f"}, {"y"})})),
      ContainsSubstring("(Cast) computes with the batch, whose number is not known"));
}

TEST_CASE("onnx: what looks at rows of samples is refused") {
  const auto check = [](const std::string& op, const Strings& nodes) {
    CAPTURE(op);
    CHECK_THROWS_WITH(parse(file_of(nodes), kFixed), ContainsSubstring("(" + op + ")"));
    CHECK_THROWS_WITH(parse(file_of(nodes), kFixed), ContainsSubstring("the batch"));
  };
  const std::string mul = node("Mul", {"x", "r"}, {"y"});
  check("ReduceSum", {node("ReduceSum", {"ones", "list0"}, {"r"}, keeps(false)), mul});
  check("ReduceSum", {node("ReduceSum", {"rows", "list0"}, {"r"}), mul});
  check("ReduceSum", {node("ReduceSum", {"rows"}, {"r"}), mul});
  check("ReduceProd", {node("ReduceProd", {"rows", "list0"}, {"r"}), mul});
  check("Gather", {node("Gather", {"rows", "list0"}, {"r"}), mul});
  check("Slice", {node("Slice", {"rows", "list0", "list1", "list0"}, {"r"}), mul});
  check("Split", {node("Split", {"rows"}, {"r"}), mul});
  check("Squeeze", {node("Squeeze", {"rows", "list0"}, {"r"}), mul});
  check("Squeeze", {node("Squeeze", {"rows"}, {"r"}), mul});
  check("Concat", {node("Concat", {"rows", "ones"}, {"r"}, axis(0)), mul});
  check("Concat", {node("Concat", {"rows", "p"}, {"r"}, axis(0)), mul});
  check("Concat", {node("Concat", {"rows", "x"}, {"y"}, axis(0))});
  check("Flatten", {node("Flatten", {"rows"}, {"r"}, axis(0)), mul});
  check("Reshape", {node("Reshape", {"rows", "list4"}, {"r"}), mul});
  check("Size", {node("Size", {"rows"}, {"n"}), node("Mul", {"x", "n"}, {"y"})});
  const std::string turn = node("Transpose", {"rows"}, {"t"}, ints_attribute("perm", {1, 0}));
  check("MatMul", {turn, node("MatMul", {"x", "t"}, {"y"})});
  check("Gemm", {node("Gemm", {"x", "rows"}, {"y"}, int_attribute("transB", 1))});
  check("Add", {turn, node("Add", {"x", "t"}, {"y"})});
  check("Add", {turn, node("Add", {"rows", "t"}, {"r"}), mul});
  // One number for each sample, where x has its last axis, or a product its features.
  const Strings list{
      node("ConstantOfShape", {"b"}, {"r"}, tensor_attribute("value", floats("", {1}, {1})))};
  check("Mul", list + Strings{mul});
  check("MatMul", list + Strings{node("Add", {"column", "r"}, {"w"}), node("Relu", {"x"}, {"y0"}),
                                 node("MatMul", {"y0", "w"}, {"y"})});
  check("Add",
        list + Strings{node("MatMul", {"x", "column"}, {"c"}), node("Add", {"c", "r"}, {"y"})});
  check("ConstantOfShape",
        {node("Concat", {"b", "b"}, {"bb"}, axis(0)), node("ConstantOfShape", {"bb"}, {"c"}),
         node("Mul", {"x", "c"}, {"y"})});
  check("Expand", {node("Concat", {"b", "b"}, {"bb"}, axis(0)),
                   node("Expand", {"one", "bb"}, {"c"}), node("Mul", {"x", "c"}, {"y"})});
  // By a number that is the batch's in another file.
  check("Expand", {node("Concat", {"list2", "list4"}, {"e"}, axis(0)),
                   node("Expand", {"rows", "e"}, {"r"}), mul});
}
