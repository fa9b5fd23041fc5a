// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// NumPy's arrays: what NumPy wrote is read, what is written is what NumPy reads
// (verify/import/npy/), and files that lie are refused with a reason.
#include "wide/npy.hpp"

#include <sys/stat.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <numeric>

#include "host/core/file.hpp"
#include "verify/import/npy_case.hpp"
#include "verify/support/folder.hpp"
#include "verify/support/refusals.hpp"
#include "wide/error.hpp"

namespace {

using Catch::Matchers::ContainsSubstring;
using wide::ConstTensorView;
using wide::Dtype;
using wide::Error;
using wide::NamedTensor;
using wide::Npy;
using wide::test::npy_of;
using wide::test::npy_text;
using wide::test::numpy_file;
using wide::test::values_of;

Npy parse(const std::string& file) {
  return Npy::parse(std::as_bytes(std::span(file)), "a file");
}

std::string complaint_about(const std::string& file) {
  const std::string text = wide::test::refusal_of([&] { (void)parse(file); });
  if (text != "nothing was thrown") CHECK_THAT(text, ContainsSubstring("npy: a file: "));
  return text;
}

/// Six bytes of an array behind this dictionary.
std::string with(const std::string& dictionary) {
  return npy_of(dictionary, 6);
}

}  // namespace

TEST_CASE("npy: what NumPy wrote is read") {
  const Npy f4 = Npy::open(numpy_file("f4.npy"));
  REQUIRE(f4.entries().size() == 1);
  CHECK(f4.entries()[0].type == "<f4");
  CHECK(f4.view("").shape == wide::Shape{2, 3});
  CHECK(values_of<float>(f4.view("")) == std::vector<float>{0, 0.5f, 1, 1.5f, 2, 2.5f});
  CHECK(f4.view("").alignment() >= 64);

  const Npy i8 = Npy::open(numpy_file("i8_fortran.npy"));
  const ConstTensorView view = i8.view("");
  CHECK(i8.entries()[0].is_fortran_order);
  CHECK(view.shape == wide::Shape{2, 3});
  CHECK(view.strides == wide::Strides{1, 2});
  const auto* data = static_cast<const int64_t*>(view.data);
  CHECK(std::vector<int64_t>(data, data + 6) == std::vector<int64_t>{0, 3, 1, 4, 2, 5});

  const Npy scalar = Npy::open(numpy_file("f2_scalar.npy"));
  CHECK(scalar.view("").rank() == 0);
  CHECK(values_of<uint16_t>(scalar.view("")) == std::vector<uint16_t>{0x3e00});
  CHECK(Npy::open(numpy_file("u1_empty.npy")).view("").shape == wide::Shape{0, 4});
}

TEST_CASE("npy: headers of every version, and of other writers") {
  const std::string u1 = npy_text("|u1", "(6,)");
  for (const int version : {1, 2, 3}) {
    const std::string file = npy_of(u1, 6, version);
    CHECK(values_of<uint8_t>(parse(file).view("")) == std::vector<uint8_t>{0, 1, 2, 3, 4, 5});
  }
  const char* const same[] = {
      "{\"descr\": \"|u1\", \"shape\": (2, 3), \"fortran_order\": False}",
      "{'shape':(2,3),'fortran_order':False,'descr':'<u1'}",
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2L, 3L), }\n",
      " { 'descr' : '|u1' , 'fortran_order' : True , 'shape' : ( 2 , 3 , ) , } \t\r\n",
  };
  for (const char* text : same) {
    const std::string file = with(text);
    CHECK(parse(file).view("").shape == wide::Shape{2, 3});
  }
}

TEST_CASE("npy: dtypes that no tensor has are listed, not viewed") {
  const std::pair<const char*, int64_t> types[] = {
      {"<f8", 8},  {">f4", 4}, {"|b1", 1},     {"|i1", 1}, {"<i2", 2}, {"<u4", 4}, {"<c8", 8},
      {"<U3", 12}, {"|S5", 5}, {"<M8[ns]", 8}, {"|V2", 2}, {">i8", 8}, {"<m8", 8}};
  for (const auto& [type, bytes] : types) {
    CAPTURE(type);
    const std::string text = npy_of(npy_text(type, "(2,)"), static_cast<size_t>(2 * bytes));
    const Npy file = parse(text);
    CHECK(file.entries()[0].bytes == 2 * bytes);
    CHECK_FALSE(file.entries()[0].dtype.has_value());
    CHECK_THROWS_WITH(file.view(""),
                      ContainsSubstring("\"" + std::string(type) + "\", which no tensor"));
  }
  // A pickle runs what its writer likes: it is not even looked at.
  const std::string objects = npy_of(npy_text("|O", "(2,)"), 40);
  CHECK(parse(objects).entries()[0].bytes == 40);
  CHECK_THROWS_WITH(parse(objects).view(""), ContainsSubstring("\"|O\", which no tensor"));
}

TEST_CASE("npy: files that lie are refused, with the reason") {
  const auto shape = [](const std::string& text) { return with(npy_text("|u1", text)); };
  const auto descr = [](const std::string& type) { return with(npy_text(type, "(6,)")); };
  const std::string good = with(npy_text("|u1", "(6,)"));
  const std::string other_version = [&](int major, int minor) {
    std::string file = good;
    file[6] = static_cast<char>(major);
    file[7] = static_cast<char>(minor);
    return file;
  }(4, 0);
  std::string version_1_1 = good, version_0 = good;
  version_1_1[7] = 1;
  version_0[6] = 0;
  std::string long_header = npy_of(npy_text("|u1", "(6,)"), 6, 2);
  long_header[10] = 1;  // 65536 and more
  std::string longest = long_header;
  longest[10] = longest[11] = '\xff';
  const std::pair<std::string, const char*> cases[] = {
      {"", "does not begin as NumPy's arrays do"},
      {"\x93NUMP", "does not begin as"},
      {"\x93NUMPX\x01" + std::string(100, '\0'), "does not begin as"},
      {"\x93NUMPY\x01", "ends within the length"},
      {std::string("\x93NUMPY\x01\0\x05", 9), "ends within the length"},
      {std::string("\x93NUMPY\x02\0\x05\0\0", 11), "ends within the length"},
      {other_version, "its version is 4.0, expected 1.0, 2.0 or 3.0"},
      {version_1_1, "its version is 1.1"},
      {version_0, "its version is 0.0"},
      {long_header, "its header has 65"},
      {longest, "its header has 4294"},
      {good.substr(0, 40), "its header has 57 bytes, expected at most 30"},
      {with(""), "expected { at the end"},
      {with("{"), "expected a text at the end"},
      {with("[]"), "expected {"},
      {with("{}"), "its header has no \"descr\""},
      {with("{'descr': '|u1'}"), "has no \"fortran_order\""},
      {with("{'descr': '|u1', 'fortran_order': False}"), "has no \"shape\""},
      {with("{'descr': '|u1', 'shape': (6,)}"), "has no \"fortran_order\""},
      {with("{'fortran_order': False, 'shape': (6,)}"), "has no \"descr\""},
      {with("{'descr': '|u1', 'descr': '|u1'}"), "has \"descr\" twice"},
      {with("{'shape': (6,), 'shape': (6,)}"), "has \"shape\" twice"},
      {with("{'data': 1}"), "has a key \"data\""},
      {with("{1: 2}"), "expected a text"},
      {with("{'descr' '|u1'}"), "expected :"},
      {with("{'descr': '|u1' 'shape': (6,)}"), "expected }"},
      {with("{'descr': '|u1"), "a text has no end"},
      {with("{'descr': '|u1\"}"), "a text has no end"},
      {with("{'descr': '\\x7cu1'}"), "a text has a backslash"},
      {with("{'descr': 1}"), "expected a text"},
      {with("{'descr': None}"), "expected a text"},
      {with("{'descr': __import__('os').system('id')}"), "expected a text"},
      {with("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"),
       "a structured dtype"},
      {with("{'descr': ('<f4', (2,))}"), "expected a text"},
      {with(npy_text("|u1", "(6,)") + "x"), "expected nothing"},
      {with(npy_text("|u1", "(6,)") + "{}"), "expected nothing"},
      {with("{'descr': '|u1', 'fortran_order': 0, 'shape': (6,)}"), "expected True or False"},
      {with("{'descr': '|u1', 'fortran_order': 'False', 'shape': (6,)}"), "expected True or False"},
      {with("{'descr': '|u1', 'fortran_order': Falsehood, 'shape': (6,)}"), "expected }"},
      {descr(""), "descr is \"\", which is unknown"},
      {descr("u1"), "descr is \"u1\""},
      {descr("|u"), "descr is \"|u\""},
      {descr("|u1x"), "descr is \"|u1x\""},
      {descr("|x1"), "descr is \"|x1\""},
      {descr("<f-4"), "descr is \"<f-4\""},
      {descr("<f99999999999"), "descr is \"<f99999999999\""},
      {descr("<f4[ns]"), "descr is \"<f4[ns]\""},
      {descr("<M8[ns"), "descr is \"<M8[ns\""},
      {descr("float32"), "descr is \"float32\""},
      {descr("bfloat16"), "descr is \"bfloat16\""},
      {shape("6"), "expected ("},
      {shape("[6]"), "expected ("},
      {shape("(6)"), "expected ,"},
      {shape("(,)"), "expected a count"},
      {shape("(6,,)"), "expected a count"},
      {shape("(2 3)"), "expected ,"},
      {shape("(2, 3"), "expected a count"},
      {shape("(2, 3 3"), "expected )"},
      {shape("(-6,)"), "expected a count"},
      {shape("(-0,)"), "expected a count"},
      {shape("(+6,)"), "expected a count"},
      {shape("(6.0,)"), "expected ,"},
      {shape("(0x6,)"), "expected ,"},
      {shape("(None,)"), "expected a count"},
      {shape("((6,),)"), "expected a count"},
      {shape("(" + std::string(40000, '(')), "expected a count"},
      {shape("(99999999999999999999,)"), "expected a count"},
      {shape("(9223372036854775808,)"), "expected a count"},
      {shape("(1, 1, 1, 1, 1, 1, 6)"), "shape has more than 6 axes"},
      {shape("(4294967296, 4294967296)"), "more elements than can be counted"},
      {shape("(4611686018427387904, 4)"), "more elements than can be counted"},
      {shape("(4294967296, 0, 4294967296)"), "more elements than can be counted"},
      {shape("(5,)"), "has 6 bytes after its header, expected 5 for |u1 [5]"},
      {shape("(7,)"), "has 6 bytes after its header, expected 7"},
      {shape("(0,)"), "has 6 bytes after its header, expected 0"},
      {shape("()"), "has 6 bytes after its header, expected 1"},
      {with(npy_text("<f4", "(2305843009213693952,)")), "more elements than can be counted"},
      {with(npy_text("<f4", "(1,)")), "expected 4 for <f4 [1]"},
      {with(npy_text("<U2", "(1,)")), "expected 8 for <U2 [1]"},
  };
  for (const auto& [file, reason] : cases)
    CHECK_THAT(complaint_about(file), ContainsSubstring(reason));
  CHECK(std::size(cases) >= 75);
  CHECK(complaint_about(good) == "nothing was thrown");
}

TEST_CASE("npy: a file cut at any byte is refused, with any byte changed refused or as it says") {
  const std::string file = wide::read_file(numpy_file("f4.npy"));
  for (size_t length = 0; length < file.size(); ++length)
    CHECK(complaint_about(file.substr(0, length)) != "nothing was thrown");
  for (size_t place = 0; place < file.size(); ++place) {
    for (const int flipped : {1, 4, 16, 128}) {
      std::string changed = file;
      changed[place] = static_cast<char>(changed[place] ^ flipped);
      if (complaint_about(changed) == "nothing was thrown")
        CHECK(parse(changed).entries()[0].bytes == 24);
    }
  }
}

TEST_CASE("npy: what is written is what NumPy reads") {
  const wide::test::TemporaryFolder folder;
  std::vector<float> values(6);
  std::iota(values.begin(), values.end(), 0.0f);
  const ConstTensorView tensor(values.data(), Dtype::fp32, {2, 3}, wide::Device{});
  wide::save_npy("a.npy", tensor);
  CHECK(wide::read_file("a.npy") == wide::read_file(numpy_file("written_f4.npy")));
  CHECK(values_of<float>(Npy::open("a.npy").view("")) == values);
  for (const Dtype dtype : {Dtype::fp16, Dtype::int32, Dtype::int64, Dtype::uint8}) {
    const ConstTensorView one(values.data(), dtype, {1}, wide::Device{});
    wide::save_npy("a.npy", one);  // over what is open
    CHECK(Npy::open("a.npy").view("").dtype == dtype);
    const ConstTensorView scalar(values.data(), dtype, {}, wide::Device{});
    wide::save_npy("a.npy", scalar);
    CHECK(Npy::open("a.npy").view("").rank() == 0);
  }
  const auto save = [&](const ConstTensorView& view) { wide::save_npy("b.npy", view); };
  CHECK_THROWS_WITH(save({values.data(), Dtype::bf16, {1}, wide::Device{}}),
                    ContainsSubstring("NumPy has no bf16"));
  CHECK_THROWS_WITH(save({values.data(), Dtype::fp8_e4m3, {1}, wide::Device{}}),
                    ContainsSubstring("NumPy has no fp8_e4m3"));
  CHECK_THROWS_WITH(save(tensor.narrow(1, 0, 2)), ContainsSubstring("has gaps"));
  CHECK_THROWS_WITH(save(ConstTensorView()), ContainsSubstring("is absent"));
  CHECK_THROWS_WITH(save({values.data(), Dtype::fp32, {6}, {wide::DeviceType::cuda, 1}}),
                    ContainsSubstring("is on cuda:1, expected cpu"));
  CHECK_THROWS_WITH(wide::save_npy("no/a.npy", tensor), ContainsSubstring("cannot write"));
}

TEST_CASE("npy: what is no regular file is refused, not waited for") {
  const wide::test::TemporaryFolder folder;
  CHECK_THROWS_WITH(Npy::open("none"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(Npy::open("."), ContainsSubstring("no regular file"));
  REQUIRE(::mkfifo("fifo", 0600) == 0);
  CHECK_THROWS_WITH(Npy::open("fifo"), ContainsSubstring("no regular file"));
  wide::write_file("empty", "");
  CHECK_THROWS_WITH(Npy::open("empty"), ContainsSubstring("does not begin as"));
}
