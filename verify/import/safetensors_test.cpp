// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// safetensors: what is written is read, a file worked out by hand is read, and files that lie are
// refused with a reason. Most of these have broken some reader in the world.
#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "host/core/file.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/refusals.hpp"
#include "wide/checkpoint.hpp"
#include "wide/error.hpp"
#include "wide/safetensors.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using wide::ConstTensorView;
using wide::Dtype;
using wide::Error;
using wide::NamedTensor;
using wide::Safetensors;

/// A file of this header and so many bytes behind it: 0, 1, 2, ...
std::string file_of(const std::string& header, size_t data_bytes) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> 8 * i & 0xff);
  file += header;
  for (size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

Safetensors parse(const std::string& file) {
  return Safetensors::parse(std::as_bytes(std::span(file)), "a file");
}

std::string complaint_about(const std::string& file) {
  const std::string text = wide::test::refusal_of([&] { (void)parse(file); });
  if (text != "nothing was thrown") CHECK_THAT(text, ContainsSubstring("safetensors: a file: "));
  return text;
}

/// A tensor's entry, with "name" in front.
std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets,
                  const std::string& name = "a") {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
         offsets + "}";
}

/// What a reader made of the view's bytes.
template <class T>
std::vector<T> values_of(const ConstTensorView& view) {
  std::vector<T> values(static_cast<size_t>(view.num_elements()));
  if (!values.empty()) std::memcpy(values.data(), view.data, values.size() * sizeof(T));
  return values;
}

template <class T>
ConstTensorView dense(const std::vector<T>& values, Dtype dtype, const wide::Shape& shape) {
  return {values.data(), dtype, shape, wide::Device{}};
}

}  // namespace

TEST_CASE("safetensors: a file worked out by hand") {
  const std::string bytes = file_of(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"I32","shape":[2],"data_offsets":[4,12]},)"
      R"("a":{"data_offsets":[0,4],"dtype":"U8","shape":[2,2]},"e":{"dtype":"F32","shape":[0,3],)"
      R"("data_offsets":[12,12]},"s":{"dtype":"BF16","shape":[],"data_offsets":[12,14]}}  )",
      14);
  const Safetensors file = parse(bytes);
  REQUIRE(file.entries().size() == 4);
  CHECK(file.entries()[0].name == "a");
  CHECK(values_of<uint8_t>(file.view("a")) == std::vector<uint8_t>{0, 1, 2, 3});
  CHECK(file.view("a").shape == wide::Shape{2, 2});
  CHECK(values_of<int32_t>(file.view("b")) == std::vector<int32_t>{0x07060504, 0x0b0a0908});
  CHECK(file.view("e").num_elements() == 0);
  CHECK(file.view("s").rank() == 0);
  CHECK(values_of<uint16_t>(file.view("s")) == std::vector<uint16_t>{0x0d0c});
  CHECK(file.metadata().at("format") == "pt");
  CHECK(file.find("c") == nullptr);
  CHECK_THROWS_WITH(file.view("A"),
                    ContainsSubstring("there is no tensor \"A\", did you mean \"a\"?"));
}

TEST_CASE("safetensors: dtypes that no tensor has are listed, not viewed") {
  const std::string bytes = file_of(
      "{" + entry("F64", "[1]", "[0,8]") + "," + entry("F4", "[3,2]", "[8,11]", "four") + "}", 11);
  const Safetensors file = parse(bytes);
  REQUIRE(file.find("a") != nullptr);
  CHECK(file.find("a")->type == "F64");
  CHECK_FALSE(file.find("a")->dtype.has_value());
  CHECK_THROWS_WITH(file.view("a"), ContainsSubstring("tensor \"a\" is F64"));
  CHECK(file.find("four")->bytes == 3);
}

TEST_CASE("safetensors: white space around the header, and no tensors, are legal") {
  CHECK(parse(file_of("{}", 0)).entries().empty());
  CHECK(parse(file_of(" \n\t{}   ", 0)).entries().empty());
  CHECK(parse(file_of(R"({"__metadata__":{}})", 0)).metadata().empty());
  CHECK(parse(file_of("{" + entry("U8", "[1]", "[0,1]", "") + "}", 1)).find("") != nullptr);
  CHECK(parse(file_of("{" + entry("U8", "[1]", "[0,1]", R"(a\u0000b)") + "}", 1))
            .find(std::string_view("a\0b", 3)) != nullptr);
}

TEST_CASE("safetensors: files that lie are refused, with the reason") {
  const std::string one = entry("U8", "[4]", "[0,4]");
  const auto two = [](const std::string& first, const std::string& second) {
    return file_of("{" + entry("U8", "[4]", first) + "," + entry("U8", "[4]", second, "b") + "}",
                   8);
  };
  const auto alone = [](const std::string& tensor, size_t bytes = 4) {
    return file_of("{" + tensor + "}", bytes);
  };
  const std::string many(1001, '1');
  std::string axes = "[1";
  for (int i = 1; i < 1000; ++i) axes += ",1";
  axes += "]";
  const std::pair<std::string, const char*> cases[] = {
      {"", "it has 0 bytes, expected 8 or more"},
      {std::string(7, '\0'), "it has 7 bytes"},
      {std::string(8, '\0'), "no JSON at byte"},
      {std::string(8, '\xff'), "its header has 18446744073709551615 bytes, expected at most 0"},
      {std::string("\x03\0\0\0\0\0\0\0{}", 10), "its header has 3 bytes, expected at most 2"},
      {std::string("\x01\xe1\xf5\x05\0\0\0\0{}", 10), "its header has 100000001 bytes"},
      {file_of("", 0), "no JSON at byte"},
      {file_of("[]", 0), "its header is a list, expected an object"},
      {file_of("3", 0), "its header is 3"},
      {file_of("null", 0), "its header is null"},
      {file_of("{", 0), "no JSON at byte"},
      {file_of("{} x", 0), "no JSON at byte"},
      {file_of("{}{}", 0), "no JSON at byte"},
      {file_of("{\"\xff\":{}}", 0), "no JSON at byte"},
      {file_of("{\"a\":NaN}", 0), "no JSON at byte"},
      {file_of(std::string(100000, '['), 0), "its header is a list"},
      {file_of("{\"a\":" + std::string(100000, '{'), 0), "no JSON at byte"},
      {file_of("{\"a\":" + std::string(100000, '['), 0), "\"a\" is a list, expected an object"},
      {file_of("{\"a\":4}", 0), "\"a\" is 4, expected an object"},
      {file_of("{\"a\":true}", 0), "\"a\" is a boolean"},
      {file_of("{\"a\":{}}", 0), "tensor \"a\" has no \"dtype\""},
      {file_of(R"({"a":{"dtype":"U8"}})", 0), "tensor \"a\" has no \"shape\""},
      {file_of(R"({"a":{"dtype":"U8","shape":[]}})", 1), "has no \"data_offsets\""},
      {file_of(R"({"a":{"dtype":"U8","dtype":"U8"}})", 1), "has \"dtype\" twice"},
      {file_of(R"({"a":{"strides":[1]}})", 1), "has a key \"strides\""},
      {file_of(R"({"a":{"dtype":{}}})", 1), "dtype is an object, expected a text"},
      {file_of(R"({"a":{"dtype":["U8"]}})", 1), "dtype is a list, expected a text"},
      {file_of(R"({"a":{"dtype":8}})", 1), "dtype is 8, expected a text"},
      {file_of(R"({"a":{"shape":"[4]"}})", 1), "shape is \"[4]\", expected a list of counts"},
      {file_of(R"({"a":{"shape":4}})", 1), "shape is 4, expected a list"},
      {file_of(R"({"a":{"shape":null}})", 1), "shape is null, expected a list"},
      {file_of(R"({"__metadata__":[]})", 0), "\"__metadata__\" is a list"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "__metadata__: \"a\" is 1, expected a text"},
      {file_of(R"({"__metadata__":{"a":null}})", 0), "__metadata__: \"a\" is null"},
      {file_of(R"({"__metadata__":{"a":{}}})", 0), "__metadata__: \"a\" is an object"},
      {file_of(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "\"a\" is there twice"},
      {file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "\"__metadata__\" is there twice"},
      {alone(entry("X8", "[4]", "[0,4]")), "dtype is \"X8\", which is unknown"},
      {alone(entry("", "[4]", "[0,4]")), "dtype is \"\", which is unknown"},
      {alone(entry("bf16", "[2]", "[0,4]")), "dtype is \"bf16\", which is unknown"},
      {alone(entry(many, "[4]", "[0,4]")), "..\", which is unknown"},
      {alone(entry("U8", "[-4]", "[0,4]")), "shape holds -4, expected counts"},
      {alone(entry("U8", "[4.0]", "[0,4]")), "shape holds 4.0, expected counts"},
      {alone(entry("U8", "[\"4\"]", "[0,4]")), "shape holds \"4\""},
      {alone(entry("U8", "[[4]]", "[0,4]")), "shape holds a list"},
      {alone(entry("U8", "[true]", "[0,4]")), "shape holds a boolean"},
      {alone(entry("U8", "[{}]", "[0,4]")), "shape holds an object"},
      {alone(entry("U8", axes, "[0,1]"), 1), "shape has more than 6 axes"},
      {alone(entry("U8", "[18446744073709551615]", "[0,4]")), "shape holds 18446744073709551615"},
      {alone(entry("U8", "[99999999999999999999]", "[0,4]")), "shape holds"},
      {alone(entry("U8", "[4]", "[0,-4]")), "data_offsets holds -4"},
      {alone(entry("U8", "[4]", "[-4,0]")), "data_offsets holds -4"},
      {alone(entry("U8", "[4]", "[0,4.5]")), "data_offsets holds 4.5"},
      {alone(entry("U8", "[4]", "[0,1e1]")), "data_offsets holds 1e1"},
      {alone(entry("U8", "[4]", "[\"0\",4]")), "data_offsets holds \"0\""},
      {alone(entry("U8", "[4]", "[0]")), "data_offsets is no pair"},
      {alone(entry("U8", "[4]", "[]")), "data_offsets is no pair"},
      {alone(entry("U8", "[4]", "[0,4,8]")), "data_offsets is no pair"},
      {alone(entry("U8", "[4]", "[0,1,2,3,4,5,6]")), "more than two offsets"},
      {alone(entry("U8", "[4]", "[4,0]")), "lies from 4 to 0, expected 4 bytes for U8 [4]"},
      {alone(entry("U8", "[5]", "[0,4]")), "lies from 0 to 4, expected 5 bytes"},
      {alone(entry("F32", "[4]", "[0,4]")), "expected 16 bytes for F32 [4]"},
      {alone(entry("U8", "[0]", "[0,4]")), "expected 0 bytes"},
      {alone(entry("F4", "[3]", "[0,2]"), 2), "does not end with a byte"},
      {alone(entry("U8", "[4294967296,4294967296]", "[0,4]")), "more elements than can be counted"},
      {alone(entry("U8", "[4611686018427387904,4]", "[0,0]"), 0), "more elements than can be"},
      {alone(entry("F32", "[2305843009213693952,0,2305843009213693952]", "[0,0]"), 0), "more elem"},
      {alone(entry("I64", "[1152921504606846976]", "[0,0]"), 0),
       "more elements than can be counted"},
      {alone(one, 3), "tensors end at 4, expected 3, where the file does"},
      {alone(one, 5), "tensors end at 4, expected 5"},
      {alone(one, 0), "tensors end at 4, expected 0"},
      {file_of("{}", 1), "tensors end at 0, expected 1"},
      {alone(entry("U8", "[4]", "[1,5]"), 5), "begins at 1, expected 0"},
      {alone(entry("U8", "[4]", "[9223372036854775803,9223372036854775807]")), "begins at 9223"},
      {alone(one + "," + one), "tensor \"a\" is there twice"},
      {two("[0,4]", "[0,4]"), "tensor \"b\" begins at 0, expected 4"},
      {two("[0,4]", "[3,7]"), "begins at 3, expected 4"},
      {two("[0,4]", "[5,9]"), "begins at 5, expected 4"},
      {two("[4,8]", "[4,8]"), "begins at 4, expected 0"},
      {two("[1,5]", "[4,8]"), "begins at 1, expected 0"},
      {two("[2,6]", "[0,4]"), "begins at 2, expected 4"},
      {two("[4,8]", "[8,12]"), "begins at 4, expected 0"},
  };
  for (const auto& [file, reason] : cases)
    CHECK_THAT(complaint_about(file), ContainsSubstring(reason));
  CHECK(complaint_about(two("[4,8]", "[0,4]")) == "nothing was thrown");  // in any order
}

TEST_CASE(
    "safetensors: a file cut at any byte, and with any byte changed, is refused or as it says") {
  const std::string file = file_of(
      "{" + entry("F16", "[2,3]", "[0,12]") + "," + entry("I64", "[1]", "[12,20]", "b") + "}", 20);
  for (size_t length = 0; length < file.size(); ++length) {
    CHECK(complaint_about(file.substr(0, length)) != "nothing was thrown");
  }
  for (size_t place = 0; place < file.size(); ++place) {
    for (const int flipped : {1, 4, 16, 128}) {
      std::string changed = file;
      changed[place] = static_cast<char>(changed[place] ^ flipped);
      try {
        const Safetensors taken = parse(changed);
        int64_t bytes = 0;
        for (const wide::SafetensorsEntry& e : taken.entries()) bytes += e.bytes;
        CHECK(bytes == 20);
      } catch (const Error&) {
      }
    }
  }
}

TEST_CASE("safetensors: what is written is read, aligned, whatever the order") {
  const wide::test::TemporaryFolder folder;
  const std::vector<float> weight{1, -2, 3.5f, 1e-40f, 5, 6};
  const std::vector<uint16_t> half{0x3c00, 0x7e01, 0xffff};
  const std::vector<int64_t> steps{-1};
  const std::vector<uint8_t> none;
  const std::vector<uint8_t> codes{7};
  const std::string path = "w.safetensors";
  wide::save_safetensors(path,
                         std::vector<NamedTensor>{{"codes", dense(codes, Dtype::fp8_e5m2, {1})},
                                                  {"half \"x\"\n", dense(half, Dtype::bf16, {3})},
                                                  {"none", dense(none, Dtype::uint8, {4, 0})},
                                                  {"weight", dense(weight, Dtype::fp32, {2, 3})},
                                                  {"steps", dense(steps, Dtype::int64, {})}},
                         {{"epoch", "7"}});
  const Safetensors file = Safetensors::open(path);
  REQUIRE(file.entries().size() == 5);
  CHECK(file.entries()[0].name == "steps");
  CHECK(values_of<float>(file.view("weight")) == weight);
  CHECK(file.view("weight").alignment() >= 4);
  CHECK(file.view("steps").alignment() >= 8);
  CHECK(values_of<uint16_t>(file.view("half \"x\"\n")) == half);
  CHECK(file.view("none").shape == wide::Shape{4, 0});
  CHECK(file.view("codes").dtype == Dtype::fp8_e5m2);
  CHECK(file.metadata() == std::map<std::string, std::string>{{"epoch", "7"}});

  // Over itself: what is open stays as it was.
  wide::save_safetensors(path, std::vector<NamedTensor>{{"twice", file.view("weight")}});
  CHECK(values_of<float>(file.view("weight")) == weight);
  CHECK(values_of<float>(Safetensors::open(path).view("twice")) == weight);
}

TEST_CASE("safetensors: types that tensors do not have are written as they were read") {
  const wide::test::TemporaryFolder folder;
  const std::vector<double> values{1, -0.5};
  const std::vector<uint8_t> nibbles{0x21, 0x43};
  const std::vector<wide::SafetensorsEntry> entries{
      {"nibbles", "F4", {}, {4}, nibbles.data(), 2},
      {"values", "F64", {}, {2, 1}, values.data(), 16}};
  wide::save_safetensors("1.safetensors", entries, {{"k", "v"}});
  const Safetensors file = Safetensors::open("1.safetensors");
  REQUIRE(file.entries().size() == 2);
  const wide::SafetensorsEntry& first = file.entries()[0];
  CHECK(first.name == "values");  // the larger elements
  CHECK(first.type == "F64");
  CHECK(std::memcmp(first.data, values.data(), 16) == 0);
  wide::save_safetensors("2.safetensors", file.entries(), file.metadata());
  CHECK(wide::read_file("1.safetensors") == wide::read_file("2.safetensors"));

  const auto save = [&](const wide::SafetensorsEntry& entry) {
    wide::save_safetensors("x.safetensors", std::vector{entry});
  };
  CHECK_THROWS_WITH(save({"a", "F80", {}, {2}, values.data(), 20}),
                    ContainsSubstring("is of \"F80\", which is unknown"));
  CHECK_THROWS_WITH(save({"a", "F64", {}, {2}, values.data(), 8}),
                    ContainsSubstring("has 8 bytes, its shape 128 bits"));
  CHECK_THROWS_WITH(save({"a", "F4", {}, {3}, nibbles.data(), 1}),
                    ContainsSubstring("has 1 byte, its shape 12 bits"));
  CHECK_THROWS_WITH(save({"a", "F64", {}, {1}, nullptr, 8}), ContainsSubstring("is absent"));
}

TEST_CASE("safetensors: what cannot be written is refused") {
  const wide::test::TemporaryFolder folder;
  const std::vector<float> values(6);
  const ConstTensorView dense23 = dense(values, Dtype::fp32, {2, 3});
  const auto save = [&](const std::vector<NamedTensor>& tensors,
                        const std::map<std::string, std::string>& metadata = {}) {
    wide::save_safetensors("x.safetensors", tensors, metadata);
  };
  CHECK_THROWS_WITH(save({{"a", dense23}, {"a", dense23}}),
                    ContainsSubstring("tensor \"a\" is there twice"));
  CHECK_THROWS_WITH(save({{"a", dense23.narrow(1, 0, 2)}}), ContainsSubstring("has gaps"));
  CHECK_THROWS_WITH(save({{"__metadata__", dense23}}), ContainsSubstring("what is no tensor"));
  CHECK_THROWS_WITH(save({{"a", ConstTensorView()}}), ContainsSubstring("is absent"));
  CHECK_THROWS_WITH(save({{"a", {values.data(), Dtype::fp32, {6}, {wide::DeviceType::cuda, 1}}}}),
                    ContainsSubstring("is on cuda:1, expected cpu"));
  CHECK_THROWS_WITH(save({{"\xff", dense23}}), ContainsSubstring("no UTF-8"));
  CHECK_THROWS_WITH(save({{"a", dense23}}, {{"k", "\xc3"}}), ContainsSubstring("no UTF-8"));
  CHECK_THROWS_WITH(wide::save_safetensors("no/x", std::vector<NamedTensor>{{"a", dense23}}),
                    ContainsSubstring("cannot write"));
}

TEST_CASE("safetensors: one member's tensors are told by the beginning of their names") {
  const std::string bytes = file_of("{" + entry("F32", "[2]", "[0,8]", "member1.fc.weight") + "," +
                                        entry("I32", "[1]", "[8,12]", "member10.fc.weight") + "," +
                                        entry("U8", "[4]", "[12,16]", "member1.fc.bias") + "," +
                                        entry("F64", "[1]", "[16,24]", "optimizer.step") + "}",
                                    24);
  const Safetensors file = parse(bytes);
  const wide::MemberParameters member = parameters_of(file, "member1.");
  REQUIRE(member.size() == 2);
  CHECK(member.at("fc.weight").data == file.view("member1.fc.weight").data);
  CHECK(member.at("fc.bias").shape == wide::Shape{4});
  CHECK(parameters_of(file, "member1").contains("0.fc.weight"));
  CHECK(parameters_of(file, "member10.fc.weight").contains(""));
  CHECK_THROWS_WITH(parameters_of(file), ContainsSubstring("F64"));
  CHECK_THROWS_WITH(parameters_of(file, "member2."),
                    "parameters: prefix is \"member2.\", expected the beginning of one of 4 "
                    "names, such as \"member1.fc.weight\"");
  const std::string empty = file_of("{}", 0);
  const Safetensors none = parse(empty);
  CHECK(parameters_of(none).empty());
  CHECK_THROWS_WITH(parameters_of(none, "a"), ContainsSubstring("of 0 names"));
}

TEST_CASE("safetensors: what is no regular file is refused, not waited for") {
  const wide::test::TemporaryFolder folder;
  CHECK_THROWS_WITH(Safetensors::open("none"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(Safetensors::open("."), ContainsSubstring("no regular file"));
  REQUIRE(::mkfifo("fifo", 0600) == 0);
  CHECK_THROWS_WITH(Safetensors::open("fifo"), ContainsSubstring("no regular file"));
  wide::write_file("empty", "");
  CHECK_THROWS_WITH(Safetensors::open("empty"), ContainsSubstring("it has 0 bytes"));
}

TEST_CASE("safetensors: an index opens the files beside it, and no other") {
  const wide::test::TemporaryFolder folder;
  const std::vector<float> one{1}, two{2};
  wide::save_safetensors("1.safetensors",
                         std::vector<NamedTensor>{{"a", dense(one, Dtype::fp32, {1})}},
                         {{"format", "pt"}});
  wide::save_safetensors("2.safetensors",
                         std::vector<NamedTensor>{{"b", dense(two, Dtype::fp32, {1})}});
  const std::string path = "w.index.json";
  const auto open = [&](const std::string& map) {
    wide::write_file(path, R"({"metadata":{"total_size":8},"weight_map":)" + map + "}");
    return Safetensors::open(path);
  };
  const Safetensors file = open(R"({"b":"2.safetensors","a":"1.safetensors"})");
  CHECK(values_of<float>(file.view("a")) == one);
  CHECK(values_of<float>(file.view("b")) == two);
  CHECK(file.metadata().at("format") == "pt");

  const std::pair<const char*, const char*> cases[] = {
      {"{}", "its \"weight_map\" is empty"},
      {"[]", "no object \"weight_map\""},
      {R"({"a":1})", "the part of \"a\" is no text"},
      {R"({"a":"../1.safetensors"})", "expected the name of a file beside it"},
      {R"({"a":"/etc/passwd"})", "expected the name of a file beside it"},
      {R"({"a":".."})", "expected the name of a file beside it"},
      {R"({"a":""})", "expected the name of a file beside it"},
      {R"({"a":"1.safetensors\u0000"})", "expected the name of a file beside it"},
      {R"({"a":"3.safetensors"})", "No such file"},
      {R"({"a":"w.index.json"})", "its header has"},
      {R"({"a":"1.safetensors","c":"1.safetensors"})", "1.safetensors has no tensor \"c\""},
      {R"({"a":"1.safetensors","c":"2.safetensors"})", "a tensor \"b\", which is not in the index"},
      {R"({"a":"2.safetensors","b":"1.safetensors"})", "a tensor \"a\", which is said to be in 2"},
  };
  for (const auto& [map, reason] : cases) CHECK_THROWS_WITH(open(map), ContainsSubstring(reason));
  wide::write_file(path, std::string(200000, '['));
  CHECK_THROWS_WITH(Safetensors::open(path), ContainsSubstring("no object"));
  wide::write_file(path, "");
  CHECK_THROWS_WITH(Safetensors::open(path), ContainsSubstring("no object"));
}
