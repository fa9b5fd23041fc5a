// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX files that lie are refused with a reason that names the place, and tensors' files are read
// from the model's folder alone. Most of these have broken some reader in the world.
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cmath>
#include <filesystem>
#include <limits>

#include "host/core/file.hpp"
#include "verify/support/error_of.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/onnx_case.hpp"
#include "verify/support/refusals.hpp"
#include "wide/error.hpp"
#include "wide/onnx.hpp"

namespace {

using namespace wide::test::onnx;
using Catch::Matchers::ContainsSubstring;
using wide::Error;
using wide::ErrorCode;
using wide::OnnxModel;
using Strings = std::vector<std::string>;

std::string complaint_about(const std::string& file) {
  const std::string text = wide::test::error_of(
      [&] { (void)OnnxModel::parse(std::as_bytes(std::span(file)), "a file"); });
  if (text != "nothing was thrown") CHECK_THAT(text, ContainsSubstring("onnx: a file: "));
  return text;
}

/// y = relu(x W), W [3, 2], with another tensor in its place.
std::string with_weight(const std::string& tensor) {
  return network({3}, {node("MatMul", {"x", "w"}, {"z"}), node("Relu", {"z"}, {"y"})}, {tensor})
      .bytes_of();
}
const std::string kWeight = floats("w", {3, 2}, {1, 2, 3, 4, 5, 6});

std::string with_nodes(const Strings& nodes, const Strings& initializers = {}) {
  return network({3}, nodes, initializers).bytes_of();
}
std::string with_attribute(const std::string& attribute) {
  return with_nodes({node("LeakyRelu", {"x"}, {"y"}, bytes(5, attribute))});
}
std::string with_input(const std::string& info) {
  File file = network({3}, {node("Relu", {"x"}, {"y"})});
  file.inputs = {info};
  return file.bytes_of();
}

std::string entry(const std::string& key, const std::string& value) {
  return bytes(13, bytes(1, key) + bytes(2, value));
}
/// W in another file.
std::string external(const std::string& location, const std::string& more = "") {
  return tensor_head("w", 1, {3, 2}) + entry("location", location) + more + integer(14, 1);
}

}  // namespace

TEST_CASE("onnx: bytes that are no model are refused, with the reason") {
  const std::string good = with_weight(kWeight);
  const std::pair<std::string, const char*> cases[] = {
      {"", "it has no graph"},
      {"x", "it is cut within a number"},
      {std::string(100, '\xff'), "a number has more than 64 bits"},
      {std::string(9, '\xff') + "\x01", "it has a field of number"},
      {std::string("\x00\x01", 2), "it has a field of number 0"},
      {varint(uint64_t{1} << 32) + "x", "it has a field of number 536870912"},
      {integer(1, 8), "it has no graph"},
      {std::string("\x3b\x3c", 2), "is of wire type 3"},
      {std::string("\x3c"), "is of wire type 4"},
      {std::string("\x3e"), "is of wire type 6"},
      {std::string("\x3f"), "is of wire type 7"},
      {"\x3a\x05", "field 7 has 5 bytes, expected at most 0"},
      {"\x3a" + varint(UINT64_MAX), "field 7 has 18446744073709551615 bytes"},
      {"\x3a" + varint(uint64_t{1} << 63), "field 7 has 9223372036854775808 bytes"},
      {"\x3d\x01\x02", "field 7 has 4 bytes, expected at most 2"},
      {"\x39\x01\x02", "field 7 has 8 bytes, expected at most 2"},
      {integer(7, 1), "field 7 is of wire type 0, expected 2"},
      {bytes(7, "\x0a\x7f"), "field 1 has 127 bytes, expected at most 0"},
      {bytes(7, ""), "it has no opset of ONNX's own"},
      {bytes(7, "") + bytes(8, bytes(1, "com.x") + integer(2, 1)), "it has no opset of ONNX's own"},
      {bytes(7, "") + bytes(8, integer(2, 17)) + bytes(8, integer(2, 17)),
       "opset \"\" is there twice"},
      {bytes(7, "") + bytes(8, integer(2, 17)) + bytes(8, bytes(1, "ai.onnx")), "is there twice"},
      {bytes(7, "") + bytes(8, integer(2, 22)), "its opset is 22, expected 1 to 21"},
      {bytes(7, "") + bytes(8, integer(2, 0)), "its opset is 0"},
      {bytes(7, "") + bytes(8, integer(2, -1)), "its opset is -1"},
      {bytes(7, "") + bytes(8, bytes(2, "17")), "field 2 is of wire type 2, expected 0"},
      {good + "\x0a", "it is cut within a number"},
      {good + good, "opset \"\" is there twice"},
  };
  for (const auto& [file, reason] : cases)
    CHECK_THAT(complaint_about(file), ContainsSubstring(reason));
  CHECK(complaint_about(good) == "nothing was thrown");
  CHECK(complaint_about(good + bytes(99, "what later versions say") + integer(100, 5)) ==
        "nothing was thrown");
}

TEST_CASE("onnx: graphs that contradict themselves are refused, with the node") {
  const std::string relu = node("Relu", {"x"}, {"y"});
  const auto file = [&](const Strings& inputs, const Strings& outputs) {
    File f = network({3}, {relu});
    f.inputs = inputs;
    f.outputs = outputs;
    return f.bytes_of();
  };
  const std::string x = value("x", {-1, 3}), y = value("y", {-1, 3});
  const std::pair<std::string, const char*> cases[] = {
      {with_nodes({}), "nothing computes output \"y\""},
      {with_nodes({node("Relu", {"z"}, {"y"})}), "node \"node_y\" (Relu) reads \"z\", expected"},
      {with_nodes({node("Relu", {"y"}, {"y"})}), "reads \"y\", expected"},
      {with_nodes({node("Relu", {"z"}, {"y"}), node("Relu", {"x"}, {"z"})}),
       "a node in front of it"},
      {with_nodes({relu, relu}), "computes \"y\", expected a name that is not taken"},
      {with_nodes({node("Relu", {"x"}, {"x"})}),
       "computes \"x\", expected a name that is not taken"},
      {with_nodes({node("Relu", {"x"}, {"w"}), relu}, {kWeight}), "computes \"w\""},
      {with_nodes({bytes(1, "x") + bytes(2, "y")}), "node 0 \"\" has no operator"},
      {with_nodes({bytes(1, "x") + bytes(4, "Relu")}), "node 0 \"\" (Relu) has no output"},
      {with_nodes({bytes(1, "x") + bytes(2, "") + bytes(4, "Relu")}), "has no output"},
      {with_nodes({relu}, {kWeight, kWeight}), "initializer \"w\" is there twice"},
      {with_nodes({relu}, {floats("", {1}, {1})}), "an initializer has no name"},
      {with_nodes({relu + bytes(5, "")}), "node 0 has an attribute without a name"},
      {with_attribute(bytes(1, "alpha") + single(2, 1)), "attribute \"alpha\" has no type"},
      {with_attribute(bytes(1, "alpha") + integer(20, 99)), "is of type 99, which is unknown"},
      {with_attribute(bytes(1, "alpha") + integer(20, -1)), "is of type -1"},
      {with_attribute(bytes(1, "alpha") + bytes(7, std::string(40'004, '\0')) + integer(20, 6)),
       "field 7 has more than 10000 values"},
      {with_attribute(bytes(1, "alpha") + integer(3, 1) + integer(20, 2)),
       "expected a finite number"},
      {with_attribute(bytes(1, "alpha") + single(2, NAN) + integer(20, 1)),
       "expected a finite number"},
      {with_attribute(bytes(1, "alpha") + bytes(21, "outer") + integer(20, 1)),
       "refers to a function's"},
      {with_attribute(bytes(1, "beta") + single(2, 1) + integer(20, 1)),
       "attribute \"beta\", which is not supported"},
      {with_attribute(bytes(1, "alpha") + bytes(6, "") + integer(20, 5)),
       "expected a finite number"},
      {with_nodes(
           {node("Elu", {"x"}, {"y"}, float_attribute("alpha", 1) + float_attribute("alpha", 2))}),
       "has attribute \"alpha\" twice"},
      {with_nodes({bytes(7, "com.microsoft") + node("Gelu", {"x"}, {"y"})}),
       "(com.microsoft.Gelu) is not supported"},
      {with_nodes({node("If", {"x"}, {"y"},
                        bytes(5, bytes(1, "then_branch") + bytes(6, "") + integer(20, 5)))}),
       "(If) is not supported"},
      {with_nodes({node("Relu", {""}, {"y"})}), "(Relu) has no input 0"},
      {with_nodes({node("Relu", {}, {"y"})}), "(Relu) has no input 0"},
      {file({x, x}, {y}), "input \"x\" is there twice"},
      {file({x}, {y, y}), "output \"y\" is there twice"},
      {file({x}, {value("q", {})}), "nothing computes output \"q\""},
      {file({x}, {}), "has no output"},
      {file({""}, {y}), "an input or output has no name"},
      {file({value("x", {-1, 3}, 11)}, {y}), "input \"x\" is DOUBLE, which no tensor"},
      {file({value("x", {-1, 3}, 8)}, {y}), "input \"x\" is STRING"},
      {file({value("x", {-1, 3}, 99)}, {y}), "input \"x\" is no tensor"},
      {file({value("x", {})}, {y}), "has no shape or 0 axes"},
      {file({value("x", {-1, 1, 1, 1, 1, 1})}, {y}), "6 axes, expected 1 to 5"},
      {file({value("x", {-1, -2})}, {y}), "has extent \"s\" on axis 1"},
      {file({value("x", {-1, 0})}, {y}), "has extent 0 on axis 1"},
      {with_input(bytes(1, "x")), "is no tensor, or of a type that it does not say"},
      {with_input(bytes(1, "x") + bytes(2, bytes(4, ""))), "is no tensor"},
      {with_input(bytes(1, "x") +
                  bytes(2, bytes(1, integer(1, 1) + bytes(2, bytes(1, integer(1, -5)))))),
       "has an extent -5, expected at least 0"},
      {with_nodes({relu}, {}) + bytes(7, bytes(15, "")), "it has sparse initializers"},
      {network({3}, Strings(100'001, node("Relu", {"x"}, {"y"}))).bytes_of(),
       "more nodes than any model"},
      {with_nodes({node("Sum", Strings(1001, "x"), {"y"})}),
       "more inputs of a node than any model"},
      {with_nodes({node("Reshape", {"x", "s"}, {"y"})},
                  {ints("s", {3}, {-1, 3037000500, 3037000500})}),
       "makes more elements than can be counted"},
  };
  for (const auto& [bad, reason] : cases)
    CHECK_THAT(complaint_about(bad), ContainsSubstring(reason));
}

TEST_CASE("onnx: what no primitive does is unsupported, with what is expected") {
  struct Case {
    Strings nodes;
    const char* message;
    ErrorCode code = ErrorCode::unsupported;
  };
  const Strings constants{ints("one", {1}, {1}),
                          ints("zero", {1}, {0}),
                          ints("axes", {5}, {1, 2, 3, 4, 5}),
                          ints("few", {4}, {0, 2, 3, 4}),
                          filled("many", {1, 1, 1, 1, 1, 1}),
                          floats("high", {}, {2}),
                          floats("low", {}, {1})};
  const std::string unsqueeze = node("Unsqueeze", {"x", "axes"}, {"t"});
  for (const Case& c : {
           Case{{unsqueeze, node("Transpose", {"t"}, {"y"})},
                "(Transpose) has an input of 7 axes, expected at most 6"},
           Case{{unsqueeze, node("Slice", {"t", "zero", "one"}, {"y"})},
                "(Slice) has an input of 7 axes, expected at most 6"},
           Case{{node("Unsqueeze", {"x", "few"}, {"t"}), node("Sub", {"t", "many"}, {"y"})},
                "(Sub) reads \"many\" of 6 axes, expected at most 5"},
           Case{{node("Slice", {"x", "one", "one", "one"}, {"y"})},
                "(Slice) slices no elements of axis 1, expected at least one"},
           Case{{node("Clip", {"x", "high", "low"}, {"y"})},
                "(Clip) clips to 2 and more, and to 1 and less, expected bounds in order"},
           Case{{node("Softmax", {"x"}, {"y"}, int_attribute("axis", 0))},
                "(Softmax) is over axis 0, the batch, expected another"},
           Case{{node("ReduceSum", {"x", "zero"}, {"y"})},
                "(ReduceSum) reduces the batch, expected axes behind it"},
           Case{{node("Cast", {"x"}, {"y"}, int_attribute("to", 99))},
                "(Cast) casts to type 99, expected one of TensorProto's",
                ErrorCode::invalid_argument},
           Case{{node("Flatten", {"x"}, {"y"}, int_attribute("axis", 3))},
                "(Flatten) has axis 3, expected at most 2 from either end",
                ErrorCode::invalid_argument},
       }) {
    CAPTURE(c.message);
    const std::string file = network({2}, c.nodes, constants).bytes_of();
    const auto read = [&] { (void)OnnxModel::parse(std::as_bytes(std::span(file)), "a file"); };
    CHECK_THAT(wide::test::message_of(c.code, read), ContainsSubstring(c.message));
  }
}

TEST_CASE("onnx: tensors that lie are refused by name") {
  const std::string numbers = raw(std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto head = [](const Extents& dims, int type = 1) { return tensor_head("w", type, dims); };
  std::string many_axes;
  for (int i = 0; i < 65; ++i) many_axes += integer(1, 1);
  const std::pair<std::string, const char*> cases[] = {
      {head({3, 2}), "\"w\" has 0 numbers, expected 6 for FLOAT [3, 2]"},
      {head({3, 2}) + bytes(9, numbers.substr(1)), "has 23 bytes, expected 24 for FLOAT [3, 2]"},
      {head({3, 2}) + bytes(9, numbers + "x"), "has 25 bytes, expected 24"},
      {head({3, 2}) + bytes(9, ""), "has 0 bytes, expected 24"},
      {head({3, 2}) + bytes(9, numbers) + bytes(4, numbers), "has its elements twice"},
      {head({3, 2}) + bytes(4, numbers.substr(4)), "has 5 numbers, expected 6"},
      {head({3, 2}) + bytes(4, numbers.substr(1)), "field 4 ends within a number"},
      {head({3, 2}) + integer(4, 1), "field 4 is of wire type 0, expected 2"},
      {head({3, 2}, 0) + bytes(9, numbers), "is of element type 0, which is unknown"},
      {head({3, 2}, 23) + bytes(9, numbers), "is of element type 23"},
      {head({3, 2}, -1) + bytes(9, numbers), "is of element type -1"},
      {head({-3, 2}) + bytes(9, numbers), "expected extents of at least 0"},
      {head({int64_t{1} << 32, int64_t{1} << 32}) + bytes(9, ""), "elements that can be counted"},
      {head({int64_t{1} << 62, 4}) + bytes(9, ""), "elements that can be counted"},
      {head({int64_t{1} << 61}) + bytes(9, ""), "elements that can be counted"},
      {head({int64_t{1} << 32, 0, int64_t{1} << 32}) + bytes(9, ""),
       "elements that can be counted"},
      {head({1, 1, 1, 1, 1, 3, 2}) + bytes(9, numbers), "\"w\" has 7 axes, expected at most 6"},
      {many_axes + integer(2, 1) + bytes(8, "w"), "field 1 has more than 64 values"},
      {head({3, 2}) + bytes(9, numbers) + bytes(3, ""), "is a segment of a tensor"},
      {head({3, 2}, 7) + bytes(7, varint(1) + varint(2) + "\x80"), "it is cut within a number"},
      {head({3, 2}, 21) + bytes(5, "\x01\x01\x01"), "is UINT4 without raw bytes"},
      {head({3, 2}, 8), "which is STRING [3, 2], expected fp32"},
      {head({3, 2}, 11) + bytes(9, numbers + numbers), "which is DOUBLE [3, 2], expected fp32"},
      {head({3, 2}, 7) + bytes(9, numbers + numbers), "which is INT64 [3, 2], expected fp32"},
      {head({6}) + bytes(9, numbers), "multiplies by [6], expected a matrix"},
      {head({2, 3}) + bytes(9, numbers), "weight is [3, 2], expected [*, 3]"},
      {head({0, 2}) + bytes(9, ""), "which has no elements"},
      {external("w.bin"), "lies in another file, but the model is in no folder"},
  };
  for (const auto& [tensor, reason] : cases)
    CHECK_THAT(complaint_about(with_weight(tensor)), ContainsSubstring(reason));
  const std::string taken[] = {
      head({3, 2}) + bytes(4, numbers),                                          // packed
      head({3, 2}) + single(4, 1) + single(4, 2) + bytes(4, numbers.substr(8)),  // and not
      head({3, 2}, 10) + bytes(5, varint(1) + varint(2) + varint(3) + varint(4)) + integer(5, 5) +
          integer(5, 6),
      head({3, 2}, 16) + bytes(9, numbers.substr(0, 12)),
  };
  for (const std::string& tensor : taken)
    CHECK(complaint_about(with_weight(tensor)) == "nothing was thrown");
}

TEST_CASE("onnx: a file cut at any byte is refused, with any byte changed refused or sound") {
  const std::string file = with_weight(kWeight);
  size_t num_taken = 0;
  for (size_t length = 0; length < file.size(); ++length)
    num_taken += complaint_about(file.substr(0, length)) == "nothing was thrown";
  CHECK(num_taken == 0);
  for (size_t place = 0; place < file.size(); ++place) {
    for (const int flipped : {1, 4, 16, 128}) {
      std::string changed = file;
      changed[place] = static_cast<char>(changed[place] ^ flipped);
      try {
        const OnnxModel model = OnnxModel::parse(std::as_bytes(std::span(changed)), "a file");
        for (const auto& [name, view] : model.parameters(0)) CHECK(view.span_bytes() <= 24);
      } catch (const Error&) {
      }
    }
  }
}

TEST_CASE("onnx: tensors' files lie in the model's folder, and nowhere else") {
  const wide::test::TemporaryFolder folder;
  namespace fs = std::filesystem;
  fs::create_directories("model/parts");
  const std::string numbers = raw(std::vector<float>{1, 2, 3, 4, 5, 6});
  wide::write_file("secret", numbers);
  wide::write_file("model/w.bin", "12345678" + numbers);
  wide::write_file("model/parts/w.bin", numbers);
  fs::create_symlink("w.bin", "model/link");
  fs::create_symlink("../secret", "model/out");
  fs::create_directory_symlink("parts", "model/folder");
  REQUIRE(::mkfifo("model/fifo", 0600) == 0);
  const auto open = [&](const std::string& tensor) {
    wide::write_file("model/m.onnx", with_weight(tensor));
    return OnnxModel::open("model/m.onnx");
  };
  const auto first = [](const OnnxModel& model) {
    return static_cast<const float*>(model.parameters(0).at("w").data)[5];
  };
  CHECK(first(open(external("w.bin", entry("offset", "8")))) == 6);
  CHECK(first(open(external("w.bin", entry("offset", "8") + entry("length", "24")))) == 6);
  CHECK(first(open(external("parts/w.bin", entry("checksum", "?")))) == 6);
  const std::pair<std::string, const char*> cases[] = {
      {external("../secret"), "expected a file in the model's folder"},
      {external("parts/../../secret"), "expected a file in the model's folder"},
      {external(fs::absolute("secret").string()), "expected a file in the model's folder"},
      {external(""), "expected a file in the model's folder"},
      {external("."), "expected a file in the model's folder"},
      {external("./w.bin"), "expected a file in the model's folder"},
      {external("parts//w.bin"), "expected a file in the model's folder"},
      {external("parts/"), "expected a file in the model's folder"},
      {external("..\\secret"), "expected a file in the model's folder"},
      {external(std::string("w.bin\0", 6)), "expected a file in the model's folder"},
      {external("link"), "a link or a file is on the way"},
      {external("out"), "a link or a file is on the way"},
      {external("folder/w.bin"), "a link or a file is on the way"},
      {external("w.bin/w.bin"), "a link or a file is on the way"},
      {external("none"), "cannot read model/none: No such file"},
      {external("parts"), "it is no regular file"},
      {external("fifo"), "it is no regular file"},
      {external("/dev/zero"), "expected a file in the model's folder"},
      {external("w.bin", entry("offset", "9")), "expected 24 bytes there; the file has 32"},
      {external("w.bin", entry("offset", "33")), "from 33 on"},
      {external("w.bin", entry("offset", "9223372036854775807")), "from 9223372036854775807 on"},
      {external("w.bin", entry("offset", "9223372036854775808")), "expected a count"},
      {external("w.bin", entry("offset", "-1")), "has offset \"-1\", expected a count"},
      {external("w.bin", entry("offset", "")), "has offset \"\", expected a count"},
      {external("w.bin", entry("offset", "8x")), "has offset \"8x\", expected a count"},
      {external("w.bin", entry("length", "23")), "has length 23, expected 24"},
      {external("w.bin", entry("length", "99999999999999999999")), "expected a count"},
      {external("w.bin") + bytes(9, numbers), "has its elements twice"},
      {tensor_head("w", 1, {3, 2}) + integer(14, 1), "expected a file in the model's folder"},
  };
  for (const auto& [tensor, reason] : cases)
    CHECK_THROWS_WITH(open(tensor), ContainsSubstring(reason));
  CHECK_THROWS_WITH(OnnxModel::open("model"), ContainsSubstring("no regular file"));
  CHECK_THROWS_WITH(OnnxModel::open("none.onnx"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(OnnxModel::open(std::span<const std::string>()),
                    ContainsSubstring("there is no file"));
}

TEST_CASE("onnx: absurd models end soon, and sizes do not overflow") {
  Strings doubled;
  for (int i = 0; i < 80; ++i) {
    const std::string from = i == 0 ? "x" : "c" + std::to_string(i);
    doubled.push_back(node("Concat", {from, from}, {i == 79 ? "y" : "c" + std::to_string(i + 1)},
                           int_attribute("axis", 1)));
  }
  CHECK_THAT(complaint_about(with_nodes(doubled)), ContainsSubstring("which no device holds"));
  CHECK_THAT(complaint_about(with_input(value("x", {-1, int64_t{1} << 62, 4}))),
             ContainsSubstring("more elements than any device holds"));
  CHECK_THAT(
      complaint_about(with_nodes({node("Gather", {"x", "i"}, {"y"}, int_attribute("axis", 1))},
                                 {ints("i", {2}, {INT64_MAX, INT64_MIN})})),
      ContainsSubstring("gathers element 9223372036854775807, expected one of 3"));
  const float infinity = std::numeric_limits<float>::infinity();
  const Strings ends{floats("a", {}, {0}), floats("b", {}, {-infinity}), floats("d", {}, {1})};
  CHECK_THAT(complaint_about(with_nodes(
                 {node("Range", {"a", "b", "d"}, {"r"}), node("Add", {"x", "r"}, {"y"})}, ends)),
             ContainsSubstring("node \"node_y\" (Add)"));
  // One large constant, copied by each of many nodes.
  Strings copies;
  std::string last_copy = "x";
  for (int i = 0; i < 200; ++i) {
    const std::string next = i == 199 ? "y" : "k" + std::to_string(i);
    copies.push_back(node("Add", {last_copy, "column"}, {next}));
    last_copy = next;
  }
  File wide_file = network({1024, 1000}, copies, {filled("column", {1024, 1})});
  const std::string wide_bytes = wide_file.bytes_of();
  CHECK(complaint_about(wide_bytes) == "nothing was thrown");  // as channels: nothing is copied
  wide_file = network({2, 1024, 512}, copies, {filled("column", {1024, 1})});
  CHECK_THAT(complaint_about(wide_file.bytes_of()), ContainsSubstring("too large in all"));
  // Names that are all the same, constants that grow, a chain of joins.
  Strings same;
  std::string last = "x";
  for (int i = 0; i < 20'000; ++i) {
    const std::string next = i == 19'999 ? "y" : "v" + std::to_string(i);
    same.push_back(bytes(1, last) + bytes(2, next) + bytes(3, "same") + bytes(4, "Relu"));
    last = next;
  }
  CHECK(complaint_about(with_nodes(same)) == "nothing was thrown");
  Strings grow{node("Constant", {}, {"c0"}, tensor_attribute("value", ints("", {1}, {1})))};
  for (int i = 0; i < 40; ++i) {
    const std::string c = "c" + std::to_string(i);
    grow.push_back(node("Concat", {c, c}, {"c" + std::to_string(i + 1)}, int_attribute("axis", 0)));
  }
  grow.push_back(node("Reshape", {"x", "c40"}, {"y"}));
  CHECK_THAT(complaint_about(with_nodes(grow)),
             ContainsSubstring("expected at most 262144 numbers"));
  Strings often{node("Constant", {}, {"c"},
                     tensor_attribute("value", ints("", {4096}, std::vector<int64_t>(4096))))};
  for (int i = 0; i < 5000; ++i)
    often.push_back(node("Add", {"c", "c"}, {"d" + std::to_string(i)}));
  Strings all;
  for (int i = 0; i < 900; ++i) all.push_back("d" + std::to_string(i));
  often.push_back(node("Concat", all, {"e"}, int_attribute("axis", 0)));
  often.push_back(node("Reshape", {"x", "e"}, {"y"}));
  CHECK_THAT(complaint_about(with_nodes(often)),
             ContainsSubstring("more constants than any model computes"));
}
