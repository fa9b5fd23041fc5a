// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What becomes of a file's element types, which a graph has fewer of.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "verify/onnx_case.hpp"
#include "verify/support/model_run.hpp"
#include "wide/error.hpp"
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

TEST_CASE("onnx: integers are not divided as numbers are") {
  const auto file = [](const Strings& nodes, int type) {
    File f = network({}, nodes, {ints("two", {1}, {2}), floats("half", {}, {2})});
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
  const std::string cast = node("Cast", {"s"}, {"c"}, int_attribute("to", 1));
  const std::string good = file({sum, cast, node("Div", {"c", "half"}, {"y"})}, 7);
  test::ModelRun run(Context::cpu(), parse(good).graph(), {.num_members = 3, .batch = 2});
  CHECK(run.worst_error(run.run()) < 2e-5);
}
