// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Model files that are wrong in one thing each, hundreds of them, by tables: ONNX, safetensors and
// NumPy's. Each is refused with a reason, and what is allocated meanwhile is bounded by the file's
// size. (What the reasons say is checked beside each parser.)
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <new>
#include <set>

#include "host/core/file.hpp"
#include "verify/import/npy_case.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/onnx_case.hpp"
#include "wide/error.hpp"
#include "wide/npy.hpp"
#include "wide/onnx.hpp"
#include "wide/safetensors.hpp"

namespace {

std::atomic<int64_t> live{0}, peak{0};

}  // namespace

void* operator new(size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  const int64_t now = live += static_cast<int64_t>(malloc_usable_size(memory));
  int64_t most = peak;
  while (now > most && !peak.compare_exchange_weak(most, now)) {
  }
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) live -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  operator delete(memory);
}

namespace {

using namespace wide::test::onnx;
using wide::Error;
using Strings = std::vector<std::string>;

/// Bytes a file, and for errors, tables and containers that a file of no bytes needs, too.
constexpr int64_t kTimes = 16, kSmall = 256 << 10;

class BadFiles {
 public:
  explicit BadFiles(const char* format) : format_(format) {}
  /// Counted once, however it is made.
  void add(const std::string& file, const std::function<void(const std::string&)>& parse) {
    if (!seen_.insert(file).second) return;
    CAPTURE(format_, file);
    const int64_t before = live;
    peak = before;
    bool is_refused = false;
    try {
      parse(file);
    } catch (const Error& error) {
      is_refused = std::string_view(error.what()).size() > 10;
    }
    CHECK(is_refused);
    const int64_t grown = peak - before;
    CHECK(grown <= kTimes * std::ssize(file) + kSmall);
    most_ = std::max(most_, grown);
  }
  void expect(int64_t least) const {
    std::printf("%s: %zu bad files refused, at most %lld bytes allocated for one\n", format_,
                seen_.size(), static_cast<long long>(most_));
    CHECK(std::ssize(seen_) >= least);
  }

 private:
  const char* format_;
  std::set<std::string> seen_;
  int64_t most_ = 0;
};

std::span<const std::byte> bytes_of(const std::string& file) {
  return std::as_bytes(std::span(file));
}

}  // namespace

TEST_CASE("bad files: safetensors") {
  BadFiles files("safetensors");
  const auto add = [&](const std::string& header, size_t data_bytes = 4) {
    std::string file;
    for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> 8 * i & 0xff);
    files.add(file + header + std::string(data_bytes, '\1'), [](const std::string& text) {
      (void)wide::Safetensors::parse(bytes_of(text), "a file");
    });
  };
  const auto tensor = [](const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}}";
  };
  for (const char* dtype : {"null",        "true",    "1",           "[]",      "{}",
                            "\"\"",        "\"u8\"",  "\"U8 \"",     "\"F33\"", "\"U8\\u0000\"",
                            "\"float32\"", "\"F16\"", "\"F32,F32\"", "\"I64\"", "U8",
                            "'U8'",        "\"U8",    "-1",          "1e999",   "\"\\ud800\""})
    add(tensor(dtype, "[4]", "[0,4]"));
  for (const char* shape : {"null",
                            "4",
                            "\"4\"",
                            "{}",
                            "[null]",
                            "[\"4\"]",
                            "[4.0]",
                            "[-4]",
                            "[4,]",
                            "[,4]",
                            "[5]",
                            "[3]",
                            "[2,3]",
                            "[0]",
                            "[4,0]",
                            "[1,1,1,1,1,1,4]",
                            "[4294967296,4294967296]",
                            "[9223372036854775807]",
                            "[9223372036854775808]",
                            "[18446744073709551616]",
                            "[1e1]",
                            "[4611686018427387905,4]",
                            "[[4]]",
                            "[true]",
                            "[0x4]",
                            "[+4]",
                            "[04]",
                            "[4 4]",
                            "(4)",
                            "[4",
                            "4]"})
    add(tensor("\"U8\"", shape, "[0,4]"));
  for (const char* offsets : {"null",
                              "0",
                              "\"0,4\"",
                              "{}",
                              "[]",
                              "[0]",
                              "[0,4,4]",
                              "[0,\"4\"]",
                              "[0,4.0]",
                              "[-1,3]",
                              "[0,-4]",
                              "[4,0]",
                              "[1,5]",
                              "[0,5]",
                              "[0,3]",
                              "[4,8]",
                              "[2,4]",
                              "[0,18446744073709551615]",
                              "[18446744073709551612,18446744073709551616]",
                              "[9223372036854775807,9223372036854775811]",
                              "[null,null]",
                              "[[0,4]]",
                              "[0;4]",
                              "[0,4e0]",
                              "[0,4"})
    add(tensor("\"U8\"", "[4]", offsets));
  const std::string one = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  for (const std::string& header :
       {"{" + one + "," + one + "}", "{" + one, one + "}", "{" + one + ",}", "{" + one + "}}",
        "[" + one + "]", "{{" + one + "}}", "{" + one + "} x", "{" + one + ",\"b\":1}",
        "{" + one + R"(,"__metadata__":1})", "{" + one + R"(,"__metadata__":{"a":[]}})",
        "{" + one + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})",
        "{" + one + R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
        "{" + one + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", std::string("{}"),
        std::string(), std::string("{\0}", 3), std::string("\xef\xbb\xbf{}")})
    add(header);
  for (const size_t bytes : {0, 1, 3, 5, 8, 4000}) add("{" + one + "}", bytes);
  files.expect(100);
}

TEST_CASE("bad files: NumPy's") {
  BadFiles files("npy");
  const auto add = [&](const std::string& file) {
    files.add(file,
              [](const std::string& text) { (void)wide::Npy::parse(bytes_of(text), "a file"); });
  };
  const auto with = [](const std::string& type, const std::string& order,
                       const std::string& shape) {
    return wide::test::npy_of(
        "{'descr': " + type + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }", 6);
  };
  const char *type = "'|u1'", *order = "False", *shape = "(6,)";
  for (const char* bad : {"None",        "1",     "u1",        "''",
                          "'|u1",        "|u1'",  "'u1 '",     "'?x'",
                          "'|u'",        "'<u3'", "'<f5'",     "'<u99999999999999999999'",
                          "'|u-1'",      "'|u0'", "'<q'",      "[('a', '|u1')]",
                          "[]",          "{}",    "('|u1',)",  "'|u1', 'descr': '|u1'",
                          "'|u1' '|u1'", "True",  "'\\x7cu1'", "'<f8'",
                          "'<i4'",       "b'|u1'"})
    add(with(bad, order, shape));
  for (const char* bad : {"None", "0", "1", "'False'", "false", "False False", "[]", "False,,", "",
                          "Falsee", "not True", "True or False", "()", "FALSE"})
    add(with(type, bad, shape));
  for (const char* bad : {"None",
                          "6",
                          "'6'",
                          "[6]",
                          "(6)",
                          "(-6,)",
                          "(6.0,)",
                          "(6,,)",
                          "(,6)",
                          "(5,)",
                          "(7,)",
                          "(2,2)",
                          "()",
                          "(0,)",
                          "(1,1,1,1,1,1,6)",
                          "(4294967296,4294967296)",
                          "(9223372036854775807,)",
                          "(9223372036854775808,)",
                          "(18446744073709551615,)",
                          "(99999999999999999999999,)",
                          "(4611686018427387904,4)",
                          "(6",
                          "6,)",
                          "((6,),)",
                          "(6,);",
                          "(0x6,)",
                          "(+6,)",
                          "(2 3)",
                          "(None,)",
                          "(True,)",
                          "(6,) + ()",
                          "(1e1,)",
                          "(6L6,)",
                          "(-1,-6)"})
    add(with(type, order, bad));
  const std::string good = with(type, order, shape);
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("{}"), std::string("{'descr': '|u1'}"),
        std::string("{'descr': '|u1', 'fortran_order': False}"),
        std::string("{'shape': (6,), 'fortran_order': False}"),
        wide::test::npy_text("|u1", "(6,)") + "x", wide::test::npy_text("|u1", "(6,)") + "{}",
        "x" + wide::test::npy_text("|u1", "(6,)"),
        std::string("{'descr': '|u1', 'fortran_order': False, 'shape': (6,), 'more': 1}"),
        std::string("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (6,)}"),
        std::string("['|u1', False, (6,)]"), std::string(1000, '{'), std::string(1000, '(')})
    add(wide::test::npy_of(text, 6));
  for (const size_t place : {0, 1, 5, 6, 7, 8, 9}) {
    std::string changed = good;
    changed[place] = static_cast<char>(changed[place] ^ 0x55);
    add(changed);
  }
  for (const size_t bytes : {0, 1, 5, 7, 600})
    add(wide::test::npy_of(wide::test::npy_text("|u1", "(6,)"), bytes));
  for (const size_t length : {1, 6, 7, 8, 9, 10, 20, 40}) add(good.substr(0, length));
  files.expect(105);
}

namespace {

void parse_onnx(const std::string& text) {
  (void)wide::OnnxModel::parse(bytes_of(text), "a file");
}

/// y from x [batch, 4, 6, 6] by one operator with these attributes and constants as other inputs.
std::string one_node(const std::string& op, const std::string& attributes,
                     const Strings& constants = {}, const Extents& dims = {4, 6, 6}) {
  Strings inputs{"x"}, tensors;
  for (size_t i = 0; i < constants.size(); ++i) {
    inputs.push_back("c" + std::to_string(i));
    tensors.push_back(constants[i] + bytes(8, inputs.back()));
  }
  return network(dims, {node(op, inputs, {"y"}, attributes)}, tensors).bytes_of();
}

}  // namespace

TEST_CASE("bad files: ONNX") {
  BadFiles files("onnx");
  const auto add = [&](const std::string& file) { files.add(file, parse_onnx); };
  const int64_t most = INT64_MAX, least = INT64_MIN;
  const std::string kernel = filled("", {4, 4, 3, 3});
  // Windows.
  for (const char* name : {"strides", "dilations", "pads", "kernel_shape"}) {
    for (const Extents& bad : {Extents{1}, Extents{1, 1, 1}, Extents{0, 0}, Extents{-1, 1},
                               Extents{most, 1}, Extents{least, least}, Extents{-1, -1, -1, -1},
                               Extents{1, 2, 3, 4}, Extents{most, most, most, most}}) {
      if (std::string(name) == "pads" && bad == Extents{0, 0}) continue;
      add(one_node("Conv", ints_attribute(name, bad), {kernel}));
      const bool is_uneven = std::string(name) == "pads" && bad == Extents{1, 2, 3, 4};
      if (!is_uneven) add(one_node("ConvTranspose", ints_attribute(name, bad), {kernel}));
      const std::string shape =
          std::string(name) == "kernel_shape" ? "" : ints_attribute("kernel_shape", {2, 2});
      add(one_node("MaxPool", shape + ints_attribute(name, bad)));
    }
    add(one_node("Conv", int_attribute(name, 1), {kernel}));
    add(one_node("Conv", text_attribute(name, "1"), {kernel}));
    add(one_node("Conv", float_attribute(name, 1), {kernel}));
  }
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{3}, int64_t{5}, most, least}) {
    add(one_node("Conv", int_attribute("group", bad), {kernel}));
    add(one_node("ConvTranspose", int_attribute("group", bad), {kernel}));
    for (const char* op : {"DepthToSpace", "SpaceToDepth"})
      if (bad != 3) add(one_node(op, int_attribute("blocksize", bad)));
  }
  const int64_t large = int64_t{1} << 30;
  for (const char* name : {"output_padding", "output_shape"}) {
    for (const Extents& bad : {Extents{1}, Extents{-1, 1}, Extents{most, most}, Extents{least, 1}})
      add(one_node("ConvTranspose", ints_attribute(name, bad), {kernel}));
  }
  add(one_node("ConvTranspose", ints_attribute("strides", {large, large}), {kernel}));
  add(one_node("ConvTranspose", ints_attribute("dilations", {large, large}), {kernel}));
  add(one_node("ConvTranspose", ints_attribute("output_padding", {large, large}), {kernel}));
  for (const char* bad : {"", "SAME", "valid", "NOTSET "})
    add(one_node("Conv", text_attribute("auto_pad", bad), {kernel}));
  for (const Extents& bad :
       {Extents{}, Extents{4}, Extents{4, 4}, Extents{4, 3, 3, 3}, Extents{4, 4, 9, 9},
        Extents{4, 4, 3}, Extents{0, 4, 3, 3}, Extents{4, 4, 3, 3, 3}, Extents{4, 0, 3, 3}})
    add(one_node("Conv", "", {filled("", bad)}));
  // Axes.
  for (const char* op : {"Softmax", "Concat", "Split", "LayerNormalization", "Flatten", "Gather"}) {
    for (const int64_t bad : {int64_t{-99}, int64_t{4}, int64_t{-5}, most, least})
      add(one_node(op, int_attribute("axis", bad),
                   std::string(op) == "Gather"               ? Strings{ints("", {}, {0})}
                   : std::string(op) == "LayerNormalization" ? Strings{filled("", {6})}
                                                             : Strings{}));
    add(one_node(op, text_attribute("axis", "1")));
  }
  for (const Extents& bad :
       {Extents{0}, Extents{0, 1, 2}, Extents{0, 1, 2, 2}, Extents{0, 1, 2, 4}, Extents{3, 2, 1, 0},
        Extents{0, 1, 2, 3, 4}, Extents{most, 1, 2, 3}, Extents{least, 1, 2, 3}})
    add(one_node("Transpose", ints_attribute("perm", bad)));
  for (const char* op : {"Squeeze", "Unsqueeze"}) {
    for (const Extents& bad : {Extents{0}, Extents{1, 1}, Extents{-99}, Extents{99}, Extents{most},
                               Extents{least}, Extents(20, 1)})
      if (!(std::string(op) == "Unsqueeze" && bad == Extents{0}))
        add(one_node(op, "", {ints("", {std::ssize(bad)}, bad)}));
  }
  // Extents.
  for (const Extents& bad :
       {Extents{0, 0}, Extents{-1, -1}, Extents{0, 143}, Extents{0, 145}, Extents{-2, 144},
        Extents{0, most}, Extents{0, least}, Extents{0, 12, 13}, Extents{1, 2, 3, 4, 5, 6, 7},
        Extents{0, 4294967296, 4294967296}, Extents{0, 0, 0, 0, 0}, Extents{0, 1, 1, 1, 1, 1, 144},
        Extents{}})
    add(one_node("Reshape", "", {ints("", {std::ssize(bad)}, bad)}));
  for (const Extents& bad : {Extents{1, 4, 6, 7}, Extents{1, 3, 6, 6}, Extents{1, 0, 6, 6},
                             Extents{1, -1, 6, 6}, Extents{1, most, 6, 6}, Extents(30, 2)})
    add(one_node("Expand", "", {ints("", {std::ssize(bad)}, bad)}));
  for (const Extents& bad : {Extents{1, 2}, Extents{0, 4}, Extents{-1, 5}, Extents{5, -1},
                             Extents{most, most}, Extents{2, 2, 2}})
    add(one_node("Split", int_attribute("axis", 1), {ints("", {std::ssize(bad)}, bad)}));
  for (const int64_t bad : {int64_t{4}, int64_t{-5}, most, least})
    add(one_node("Gather", int_attribute("axis", 1), {ints("", {}, {bad})}));
  for (const Extents& bad : {Extents{9, 9}, Extents{2, 2}, Extents{3, 1}, Extents{most, least}})
    add(one_node("Slice", "",
                 {ints("", {1}, {bad[0]}), ints("", {1}, {bad[1]}), ints("", {1}, {1})}));
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, int64_t{3}, least})
    add(one_node(
        "Slice", "",
        {ints("", {1}, {0}), ints("", {1}, {4}), ints("", {1}, {1}), ints("", {1}, {bad})}));
  // Tensors whose elements are not as many as they say.
  for (const Extents& dims :
       {Extents{1}, Extents{4, 5}, Extents{0}, Extents{-4, 4}, Extents{most}, Extents{most, most},
        Extents{4294967296, 4294967296}, Extents{1, 1, 1, 1, 1, 1, 16}}) {
    for (const int type : {1, 7, 10, 11, 16, 0, 8, 99}) {
      if (dims == Extents{1} && type == 1) continue;
      const std::string elements = bytes(9, std::string(16, '\1'));
      add(network({3}, {node("MatMul", {"x", "w"}, {"y"})},
                  {tensor_head("w", type, dims) + elements})
              .bytes_of());
    }
  }
  // Constants that grow.
  for (const Extents& dims : {Extents{most}, Extents{-1}, Extents{1 << 20, 1 << 20, 1 << 20},
                              Extents{1, 1, 1, 1, 1, 1, 1}}) {
    add(network({3}, {node("ConstantOfShape", {"s"}, {"c"}), node("Add", {"x", "c"}, {"y"})},
                {ints("s", {std::ssize(dims)}, dims)})
            .bytes_of());
  }
  add(network({3},
              {node("ConstantOfShape", {"s"}, {"c"}),
               node("Cast", {"c"}, {"d"}, int_attribute("to", 10)), node("Add", {"x", "d"}, {"y"})},
              {ints("s", {2}, {1 << 20, 1 << 20})})
          .bytes_of());
  files.expect(260);
}

TEST_CASE("bad files: what cannot be read is an error of input and output") {
  const wide::test::TemporaryFolder folder;
  std::filesystem::create_symlink("b", "a");
  std::filesystem::create_symlink("a", "b");
  for (const std::string& path : {std::string(5000, 'x'), std::string("a"), std::string("."),
                                  std::string("none"), std::string("/proc/self/mem")}) {
    INFO(path.substr(0, 20));
    try {
      (void)wide::read_file(path);
      FAIL("it was read");
    } catch (const wide::Error& error) {
      CHECK(error.code() == wide::ErrorCode::io);
    }
  }
  wide::write_file("w", std::string(200'000, 'y'));
  CHECK(wide::read_file("w") == std::string(200'000, 'y'));
  CHECK(std::distance(std::filesystem::directory_iterator("."), {}) == 3);  // nothing is left over
}

TEST_CASE("bad files: tensors of ONNX in other files") {
  const wide::test::TemporaryFolder folder;
  BadFiles files("onnx, external data");
  wide::write_file("w.bin", std::string(24, '\1'));
  const std::string path = "m.onnx";
  const auto add = [&](const Strings& entries) {
    std::string tensor = tensor_head("w", 1, {3, 2});
    for (size_t i = 0; i + 1 < entries.size(); i += 2)
      tensor += bytes(13, bytes(1, entries[i]) + bytes(2, entries[i + 1]));
    files.add(
        network({3}, {node("MatMul", {"x", "w"}, {"y"})}, {tensor + integer(14, 1)}).bytes_of(),
        [&](const std::string& text) {
          wide::write_file(path, text);
          (void)wide::OnnxModel::open(path);
        });
  };
  for (const std::string& location : {std::string(),
                                      std::string("."),
                                      std::string(".."),
                                      std::string("../w.bin"),
                                      std::string("/etc/passwd"),
                                      std::string("/w.bin"),
                                      std::string("w.bin/"),
                                      std::string("./../w.bin"),
                                      std::string("a/../w.bin"),
                                      std::string("w.bin\0", 6),
                                      std::string("w.bin\0x", 7),
                                      std::string("W.BIN"),
                                      std::string("w"),
                                      std::string("//w.bin"),
                                      std::string("a/b/c"),
                                      std::string(5000, 'a'),
                                      std::string("~/w.bin"),
                                      std::string("file:w.bin"),
                                      std::string("\\w.bin"),
                                      std::string("/dev/zero"),
                                      std::string("/proc/self/mem")})
    add({"location", location});
  for (const char* bad :
       {"-1", "1", "25", "1e1", "0x0", " 0", "9223372036854775807", "9223372036854775808",
        "18446744073709551616", "zero", "0.0", "+0", "24"}) {
    add({"location", "w.bin", "offset", bad});
    if (std::string(bad) != "24") add({"location", "w.bin", "length", bad});
  }
  add({});
  add({"offset", "0"});
  files.expect(40);
}
