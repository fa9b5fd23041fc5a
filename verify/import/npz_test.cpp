// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Archives of NumPy's arrays: NumPy's own are read, written ones are what NumPy reads, and archives
// that lie are refused with a reason, without the memory that they ask for.
#include <zlib.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <functional>
#include <numeric>

#include "host/core/file.hpp"
#include "verify/import/npy_case.hpp"
#include "verify/support/error_of.hpp"
#include "verify/support/folder.hpp"
#include "wide/checkpoint.hpp"
#include "wide/error.hpp"
#include "wide/npy.hpp"

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

std::string little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> 8 * i & 0xff);
  return out;
}

std::string deflated(const std::string& text) {
  std::string out(text.size() + 64, '\0');
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

/// What both headers of an entry say; a lie is told by changing one of them.
struct Facts {
  std::string name = "a.npy";
  uint64_t flags = 0, method = 0, checksum = 0, packed = 0, bytes = 0;
  std::string extra;
};

struct Zip {
  /// Entries of six bytes, a.npy, b.npy, ..
  explicit Zip(int count = 1, bool is_deflated = false) {
    for (int i = 0; i < count; ++i) {
      const std::string array = npy_of(npy_text("|u1", "(6,)"), 6);
      Facts facts;
      facts.name[0] = static_cast<char>('a' + i);
      facts.method = is_deflated ? 8 : 0;
      facts.checksum =
          ::crc32(0, reinterpret_cast<const Bytef*>(array.data()), static_cast<uInt>(array.size()));
      data.push_back(is_deflated ? deflated(array) : array);
      facts.bytes = array.size();
      facts.packed = data.back().size();
      own.push_back(facts);
      listed.push_back(facts);
    }
  }
  void both(const std::function<void(Facts&)>& change, size_t i = 0) {
    change(own[i]);
    change(listed[i]);
  }
  static std::string common(const Facts& f) {
    return little(20, 2) + little(f.flags, 2) + little(f.method, 2) + little(0, 4) +
           little(f.checksum, 4) + little(f.packed, 4) + little(f.bytes, 4) +
           little(f.name.size(), 2) + little(f.extra.size(), 2);
  }
  std::string bytes() const {
    std::string file = front, directory;
    std::vector<uint64_t> begins;
    for (size_t i = 0; i < own.size(); ++i) {
      begins.push_back(file.size());
      file += entry_signature + common(own[i]) + own[i].name + own[i].extra + data[i];
    }
    for (size_t i = 0; i < listed.size(); ++i) {
      const uint64_t begin =
          i < shift.size() ? begins[i] + static_cast<uint64_t>(shift[i]) : begins[i];
      directory += "PK\x01\x02" + little(20, 2) + common(listed[i]) + little(0, 2) +
                   little(part, 2) + little(0, 6) + little(begin, 4) + listed[i].name +
                   listed[i].extra;
    }
    directory += behind_directory;
    const uint64_t begin = file.size(), size = directory.size();
    const uint64_t num_listed = num_entries ? num_entries : listed.size();
    return file + directory + in_front_of_end + "PK\x05\x06" + little(part_of_end, 4) +
           little(num_here ? num_here : num_listed, 2) + little(num_listed, 2) +
           little(size + size_off, 4) + little(begin + begin_off, 4) + little(comment_bytes, 2) +
           comment;
  }

  std::vector<Facts> own, listed;
  std::vector<std::string> data;
  std::vector<int64_t> shift;
  std::string front, entry_signature = "PK\x03\x04", behind_directory, in_front_of_end, comment;
  uint64_t part = 0, part_of_end = 0, num_entries = 0, num_here = 0, size_off = 0, begin_off = 0,
           comment_bytes = 0;
};

std::string complaint_about(const std::string& file) {
  const std::string text = wide::test::error_of([&] {
    const Npy taken = Npy::parse(std::as_bytes(std::span(file)), "a file");
    for (const wide::NpyEntry& entry : taken.entries()) (void)taken.view(entry.name);
  });
  if (text != "nothing was thrown") CHECK_THAT(text, ContainsSubstring("a file: "));
  return text;
}

std::string changed(const std::function<void(Zip&)>& change, int num_entries = 1,
                    bool is_deflated = false) {
  Zip zip(num_entries, is_deflated);
  change(zip);
  return zip.bytes();
}

std::string named(const std::string& name) {
  return changed([&](Zip& z) { z.both([&](Facts& f) { f.name = name; }); });
}

/// zip64's directory end and what leads there, in front of the old one.
std::string zip64_end(uint64_t begin, uint64_t size, uint64_t count, uint64_t at,
                      uint64_t own_size = 44) {
  return "PK\x06\x06" + little(own_size, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
         little(count, 8) + little(count, 8) + little(size, 8) + little(begin, 8) + "PK\x06\x07" +
         little(0, 4) + little(at, 8) + little(1, 4);
}

}  // namespace

TEST_CASE("npz: what NumPy wrote is read, stored and deflated") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    CAPTURE(name);
    const Npy file = Npy::open(numpy_file(name));
    REQUIRE(file.entries().size() == 4);
    CHECK(file.entries()[0].is_deflated == (name[0] == 'd'));
    CHECK(values_of<float>(file.view("weight")) == std::vector<float>{0, 0.5f, 1, 1.5f, 2, 2.5f});
    CHECK(values_of<int64_t>(file.view("block/ids")) == std::vector<int64_t>{0, 1, 2, 3, 4, 5});
    CHECK(values_of<float>(file.view("zeros")) == std::vector<float>(2000));
    CHECK(file.view("zeros").data == file.view("zeros").data);  // unpacked once
    CHECK(parameters_of(file, "block/").at("ids").data == file.view("block/ids").data);
    CHECK(file.find("double")->type == "<f8");
    CHECK_THROWS_WITH(file.view("double"), ContainsSubstring("\"<f8\", which no tensor"));
    CHECK_THROWS_WITH(file.view("weigth"), ContainsSubstring("did you mean \"weight\""));
  }
}

TEST_CASE("npz: what is written is what NumPy reads, and aligned") {
  const wide::test::TemporaryFolder folder;
  std::vector<float> a(6);
  std::iota(a.begin(), a.end(), 0.0f);
  const std::vector<int32_t> b{7, 8, 9};
  const std::vector<int64_t> step{-1};
  const std::vector<NamedTensor> tensors{{"a", {a.data(), Dtype::fp32, {2, 3}, wide::Device{}}},
                                         {"block/b", {b.data(), Dtype::int32, {3}, wide::Device{}}},
                                         {"none", {nullptr, Dtype::uint8, {4, 0}, wide::Device{}}},
                                         {"step", {step.data(), Dtype::int64, {}, wide::Device{}}}};
  wide::save_npz("w.npz", tensors);
  CHECK(wide::read_file("w.npz") == wide::read_file(numpy_file("written.npz")));
  const Npy file = Npy::open("w.npz");
  CHECK(values_of<float>(file.view("a")) == a);
  CHECK(values_of<int32_t>(file.view("block/b")) == b);
  CHECK(file.view("none").shape == wide::Shape{4, 0});
  CHECK(values_of<int64_t>(file.view("step")) == step);
  for (const wide::NpyEntry& entry : file.entries()) CHECK(file.view(entry.name).alignment() >= 64);
  wide::save_npz("w.npz", {});
  CHECK(Npy::open("w.npz").entries().empty());

  const auto save = [&](std::vector<std::string> names) {
    std::vector<NamedTensor> all;
    for (const std::string& name : names) all.push_back({name, tensors[0].tensor});
    wide::save_npz("x.npz", all);
  };
  CHECK_THROWS_WITH(save({"a", "a"}), ContainsSubstring("array \"a\" is there twice"));
  CHECK_THROWS_WITH(save({"../a"}), ContainsSubstring("leads elsewhere"));
  CHECK_THROWS_WITH(save({std::string(70000, 'a')}), ContainsSubstring("too long"));
}

TEST_CASE("npz: an archive by other writers: sizes behind the bytes, comments, zip64, nothing") {
  CHECK(complaint_about(Zip().bytes()) == "nothing was thrown");
  CHECK(complaint_about(Zip(3, true).bytes()) == "nothing was thrown");
  CHECK(complaint_about(Zip(0).bytes()) == "nothing was thrown");
  CHECK(complaint_about(changed([](Zip& z) {
          z.comment = "PK\x05\x06 is no directory here";
          z.comment_bytes = z.comment.size();
        })) == "nothing was thrown");
  CHECK(complaint_about(changed([](Zip& z) {
          z.both([](Facts& f) { f.flags = 1 << 3; });
          z.own[0].packed = z.own[0].bytes = z.own[0].checksum = 0;
        })) == "nothing was thrown");
  const std::string plain = Zip().bytes();
  const uint64_t at = plain.find("PK\x05\x06"), begin = plain.find("PK\x01\x02");
  CHECK(complaint_about(changed([&](Zip& z) {
          z.in_front_of_end = zip64_end(begin, at - begin, 1, at);
        })) == "nothing was thrown");
}

TEST_CASE("npz: archives that lie are refused, with the reason") {
  const std::string plain = Zip().bytes();
  const uint64_t end = plain.find("PK\x05\x06"), begin = plain.find("PK\x01\x02");
  const auto zip64 = [&](const std::string& text) {
    return changed([&](Zip& z) { z.in_front_of_end = text; });
  };
  const auto both = [&](const std::function<void(Facts&)>& change, bool is_deflated = false) {
    return changed([&](Zip& z) { z.both(change); }, 1, is_deflated);
  };
  const auto own = [&](const std::function<void(Facts&)>& change) {
    return changed([&](Zip& z) { change(z.own[0]); });
  };
  const auto data = [&](const std::function<void(std::string&)>& change, bool is_deflated = true) {
    return changed(
        [&](Zip& z) {
          change(z.data[0]);
          z.both([&](Facts& f) { f.packed = z.data[0].size(); });
          if (!is_deflated) z.both([&](Facts& f) { f.bytes = z.data[0].size(); });
        },
        1, is_deflated);
  };
  const std::string other = npy_of(npy_text("<f4", "(6,)"), 6);
  const std::pair<std::string, const char*> cases[] = {
      {"PK", "too short for an archive"},
      {plain.substr(0, plain.size() - 1), "has no directory"},
      {plain + "x", "has no directory"},
      {"PK" + std::string(100000, '\0'), "has no directory"},
      {changed([](Zip& z) { z.comment_bytes = 1; }), "has no directory"},
      {changed([](Zip& z) { z.front = "PK, or so"; }), "lies in front of its first entry"},
      {"PK12" + plain, "bytes from"},
      {changed([](Zip& z) { z.part_of_end = 1; }), "one part of several"},
      {changed([](Zip& z) { z.part = 1; }), "is in another part"},
      {changed([](Zip& z) { z.num_entries = 2; }), "has no room for 2 entries"},
      {changed([](Zip& z) { z.num_entries = 65535; }), "has no room for 65535 entries"},
      {changed([](Zip& z) { z.num_here = 7; }), "one part of several"},
      {changed([](Zip& z) { z.num_entries = 1; }, 2), "continues after its last entry"},
      {changed([](Zip& z) { z.size_off = 1; }), "expected to end at"},
      {changed([](Zip& z) { z.begin_off = 1; }), "expected to end at"},
      {changed([](Zip& z) { z.size_off = 1ULL << 31; }), "expected to end at"},
      {changed([](Zip& z) { z.behind_directory = "x"; }), "continues after its last entry"},
      {changed([](Zip& z) { z.entry_signature = "PK\x03\x05"; }),
       "is not where the directory says"},
      {changed([](Zip& z) { z.shift = {1}; }), "is not where the directory says"},
      {changed([](Zip& z) { z.shift = {1 << 30}; }), "reaches beyond the file"},
      {changed([](Zip& z) { z.shift = {-2}; }), "reaches beyond the file"},
      {changed(
           [](Zip& z) {  // both entries are the first
             z.listed[1] = z.listed[0];
             z.shift = {0, -static_cast<int64_t>(30 + 5 + z.data[0].size())};
           },
           2),
       "overlaps \"a.npy\""},
      {changed(
           [](Zip& z) {  // the second one lies in the first
             z.data[0] = z.data[0] + "PK\x03\x04" + Zip::common(z.own[1]) + "b.npy" + z.data[1];
             z.both([&](Facts& f) { f.packed = f.bytes = z.data[0].size(); });
             z.shift = {0, -static_cast<int64_t>(30 + 5 + z.data[1].size())};
           },
           2),
       "overlaps \"a.npy\""},
      {own([](Facts& f) { f.name = "b.npy"; }), "calls itself \"b.npy\""},
      {own([](Facts& f) { f.name = std::string(60000, 'b'); }), "calls itself"},
      {own([](Facts& f) { f.checksum ^= 1; }), "differs from what the directory says"},
      {own([](Facts& f) { f.bytes += 1; }), "differs from what the directory says"},
      {own([](Facts& f) { f.packed -= 1; }), "differs from what the directory says"},
      {own([](Facts& f) { f.method = 8; }), "differs from what the directory says"},
      {own([](Facts& f) { f.flags = 8; }), "differs from what the directory says"},
      {both([](Facts& f) { f.flags = 1; }), "is encrypted"},
      {both([](Facts& f) { f.flags = 1 << 6; }), "is encrypted"},
      {both([](Facts& f) { f.flags = 1 << 13; }), "is encrypted"},
      {both([](Facts& f) { f.flags = 1 << 5; }), "is a patch"},
      {both([](Facts& f) { f.method = 12; }), "is packed by method 12, expected 0"},
      {both([](Facts& f) { f.method = 99; }), "is packed by method 99"},
      {both([](Facts& f) { f.packed += 1; }), "reaches into the directory"},
      {both([](Facts& f) { f.packed = 0xfffffffe; }), "reaches into the directory"},
      {both([](Facts& f) { f.bytes += 1; }), "which cannot be the"},
      {both([](Facts& f) { f.bytes = f.packed = 0; }), "does not begin as"},
      {both([](Facts& f) { f.bytes = 1033 * f.packed; }, true), "which cannot be the"},
      {both([](Facts& f) { f.bytes = 0xfffffffe; }, true), "which cannot be the"},
      {both([](Facts& f) { f.bytes = 0xffffffff; }), "has no zip64 field"},
      {both([](Facts& f) {
         f.packed = 0xffffffff;
         f.extra = "\x01" + std::string(3, '\0');
       }),
       "zip64 field that is too short"},
      {both([](Facts& f) {
         f.packed = 0xffffffff;
         f.extra = little(1, 2) + little(8, 2) + little(UINT64_MAX, 8);
       }),
       "reaches into the directory"},
      {both([](Facts& f) {
         f.bytes = 0xffffffff;
         f.method = 8;
         f.extra = little(1, 2) + little(8, 2) + little(UINT64_MAX / 2, 8);
       }),
       "which cannot be the"},
      {both([](Facts& f) { f.extra = "\x01"; }), "an extra field that is cut"},
      {both([](Facts& f) { f.extra = little(7, 2) + little(9, 2); }), "an extra field that is cut"},
      {both([](Facts& f) { f.extra = little(1, 2) + little(0, 2) + little(1, 2) + little(0, 2); }),
       "has two zip64 fields"},
      {zip64(zip64_end(begin, end - begin, 1, end + 1)), "is not where it should be"},
      {zip64(zip64_end(begin, end - begin, 1, 1 << 30)), "reaches beyond the file"},
      {zip64(zip64_end(begin, end - begin, 1, UINT64_MAX)), "reaches beyond the file"},
      {zip64(zip64_end(begin, end - begin, 1, end, 45)), "follows its zip64 directory's end"},
      {zip64(zip64_end(begin, end - begin, UINT64_MAX, end)), "has no room for"},
      {zip64(zip64_end(begin, UINT64_MAX, 1, end)), "expected to end at"},
      {zip64(zip64_end(UINT64_MAX, 1, 1, end)), "expected to end at"},
      {zip64(zip64_end(begin, end - begin, 2, end)), "has no room for 2"},
      {zip64([&] {
         std::string text = zip64_end(begin, end - begin, 1, end);
         text[16] = 1;
         return text;
       }()),
       "one part of several"},
      {[&] {
         std::string text = plain;
         text[begin + 3] = 'x';
         return text;
       }(),
       "its directory is broken"},
      {named("a.txt"), "is no array, expected a name that ends in .npy"},
      {named(""), "is no array"},
      {named("folder/"), "is no array"},
      {named("../a.npy"), "leads elsewhere"},
      {named("b/../../a.npy"), "leads elsewhere"},
      {named("/etc/a.npy"), "leads elsewhere"},
      {named("..\\a.npy"), "leads elsewhere"},
      {named(std::string("a\0.npy", 6)), "leads elsewhere"},
      {changed([](Zip& z) { z.both([](Facts& f) { f.name = "a.npy"; }, 1); }, 2),
       "array \"a\" is there twice"},
      {both([](Facts& f) { f.checksum ^= 1; }), "its checksum is not that of its bytes"},
      {both([](Facts& f) { f.checksum ^= 1; }, true), "its checksum is not that of its bytes"},
      {data([](std::string& s) { s.back() ^= 1; }, false), "its checksum"},
      {data([](std::string& s) { s.resize(s.size() - 1); }), "is broken"},
      {data([](std::string& s) { s.resize(20); }), "cannot be unpacked"},
      {data([](std::string& s) { s += "x"; }), "do not unpack to"},
      {data([](std::string& s) { s[0] = '\x07'; }), "cannot be unpacked"},
      {data([](std::string& s) { s = deflated(npy_of(npy_text("|u1", "(6,)"), 7)); }),
       "do not unpack to"},
      {data([](std::string& s) { s = deflated(npy_of(npy_text("|u1", "(6,)"), 5)); }),
       "cannot be unpacked"},
      {data([&](std::string& s) { s = other; }, false), "expected 24 for <f4 [6]"},
      {data([](std::string& s) { s = "nothing"; }, false), "does not begin as"},
  };
  for (const auto& [file, reason] : cases)
    CHECK_THAT(complaint_about(file), ContainsSubstring(reason));
  CHECK(std::size(cases) >= 70);
}

TEST_CASE("npz: an archive cut at any byte is refused, with any byte changed refused or harmless") {
  for (const bool is_deflated : {false, true}) {
    const std::string file = Zip(2, is_deflated).bytes();
    for (size_t length = 0; length < file.size(); ++length)
      CHECK(complaint_about(file.substr(0, length)) != "nothing was thrown");
    size_t num_taken = 0;
    for (size_t place = 0; place < file.size(); ++place) {
      std::string with_change = file;
      with_change[place] = static_cast<char>(with_change[place] ^ 1 << place % 8);
      num_taken += complaint_about(with_change) == "nothing was thrown";
    }
    CHECK(num_taken < 64);  // versions, times and attributes; two names
  }
}

TEST_CASE("npz: a bomb is not unpacked to look at it, and to no more than it says") {
  const std::string zeros = npy_of(npy_text("|u1", "(1000000,)"), 0) + std::string(1000000, '\0');
  const std::string packed = deflated(zeros);
  REQUIRE(packed.size() < 1200);
  Zip zip(1, true);
  zip.data[0] = packed;
  zip.both([&](Facts& f) {
    f.packed = packed.size();
    f.bytes = zeros.size();
    f.checksum =
        ::crc32(0, reinterpret_cast<const Bytef*>(zeros.data()), static_cast<uInt>(zeros.size()));
  });
  CHECK(complaint_about(zip.bytes()) == "nothing was thrown");
  // It says less than it unpacks to.
  const std::string less = npy_of(npy_text("|u1", "(1000,)"), 0);
  zip.data[0] = deflated(less + std::string(1000000, '\0'));
  zip.both([&](Facts& f) {
    f.packed = zip.data[0].size();
    f.bytes = less.size() + 1000;
  });
  CHECK_THAT(complaint_about(zip.bytes()), ContainsSubstring("do not unpack to"));
}
