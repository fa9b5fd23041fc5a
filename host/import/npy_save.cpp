// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Writing NumPy's files. An archive's entries are stored, so that they can be mapped; a header's
// padding puts the elements after it at a multiple of 64 bytes of the whole file.
#include <set>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/file.hpp"
#include "host/import/messages.hpp"
#include "host/import/npy_header.hpp"
#include "host/import/zip.hpp"
#include "wide/npy.hpp"

namespace wide {

namespace {

void require_writable(const ConstTensorView& tensor, const std::string& name) {
  const auto require = [&](bool holds, const std::string& why) {
    WIDE_REQUIRE(holds, "npy: array " + in_quotes(name) + " " + why);
  };
  require(tensor.device.type == DeviceType::cpu,
          "is on " + to_string(tensor.device) + ", expected cpu");
  require(tensor.is_contiguous(), "has gaps, expected a densely packed one");
  require(tensor.data != nullptr || tensor.num_elements() == 0, "is absent");
}

std::string_view bytes_of(const ConstTensorView& tensor) {
  return {static_cast<const char*>(tensor.data),
          static_cast<size_t>(checked_bytes(tensor.shape, dtype_bytes(tensor.dtype)))};
}

/// Little endian.
class Record {
 public:
  Record& put(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) text_ += static_cast<char>(value >> 8 * i & 0xff);
    return *this;
  }
  Record& put(std::string_view text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

struct Entry {
  std::string name;
  std::string front;  ///< zip's header and NumPy's
  std::string_view data;
  uint64_t begin = 0, bytes = 0;
  uint32_t checksum = 0;
};

/// The fields that both of zip's headers of an entry share: zip64's version, the name in UTF-8,
/// stored, zip's first day, and sizes in the zip64 field.
void put_facts(Record& record, const Entry& entry) {
  constexpr uint64_t kUtf8 = 1 << 11, kFirstDay = 0x21, kSeeZip64 = 0xffffffff;
  record.put(45, 2).put(kUtf8, 2).put(0, 2).put(0, 2).put(kFirstDay, 2).put(entry.checksum, 4);
  record.put(kSeeZip64, 4).put(kSeeZip64, 4).put(entry.name.size(), 2);
}

Entry entry_of(const NamedTensor& named, uint64_t begin) {
  constexpr uint64_t kZipBytes = 30 + 20;
  Entry entry;
  entry.name = named.name + ".npy";
  entry.data = bytes_of(named.tensor);
  entry.begin = begin;
  const std::string header =
      npy_header(named.tensor.dtype, named.tensor.shape,
                 static_cast<int64_t>(begin + kZipBytes + entry.name.size()));
  entry.bytes = header.size() + entry.data.size();
  entry.checksum = zip_checksum(std::as_bytes(std::span(entry.data)),
                                zip_checksum(std::as_bytes(std::span(header))));
  Record record;
  record.put(0x04034b50, 4);
  put_facts(record, entry);
  record.put(20, 2).put(entry.name);
  record.put(1, 2).put(16, 2).put(entry.bytes, 8).put(entry.bytes, 8).put(header);
  entry.front = record.text();
  return entry;
}

/// The directory of all entries, which begins at `begin`, and its end.
std::string directory_of(std::span<const Entry> entries, uint64_t begin) {
  constexpr uint64_t kMax16 = 0xffff, kSeeZip64 = 0xffffffff;
  Record record;
  for (const Entry& entry : entries) {
    record.put(0x02014b50, 4).put(45, 2);
    put_facts(record, entry);
    record.put(28, 2).put(0, 2).put(0, 2).put(0, 2).put(0, 4).put(kSeeZip64, 4).put(entry.name);
    record.put(1, 2).put(24, 2).put(entry.bytes, 8).put(entry.bytes, 8).put(entry.begin, 8);
  }
  const uint64_t bytes = record.text().size();
  record.put(0x06064b50, 4).put(44, 8).put(45, 2).put(45, 2).put(0, 4).put(0, 4);
  record.put(entries.size(), 8).put(entries.size(), 8).put(bytes, 8).put(begin, 8);
  record.put(0x07064b50, 4).put(0, 4).put(begin + bytes, 8).put(1, 4);
  record.put(0x06054b50, 4).put(0, 2).put(0, 2).put(kMax16, 2).put(kMax16, 2);
  record.put(kSeeZip64, 4).put(kSeeZip64, 4).put(0, 2);
  return record.text();
}

}  // namespace

void save_npy(const std::string& path, const ConstTensorView& tensor) {
  require_writable(tensor, "");
  const std::string header = npy_header(tensor.dtype, tensor.shape, 0);
  const std::string_view pieces[] = {header, bytes_of(tensor)};
  write_file(path, pieces);
}

void save_npz(const std::string& path, std::span<const NamedTensor> tensors) {
  std::set<std::string_view> names;
  std::vector<Entry> entries;
  uint64_t end = 0;
  for (const NamedTensor& named : tensors) {
    require_writable(named.tensor, named.name);
    WIDE_REQUIRE(names.insert(named.name).second,
                 "npy: array " + in_quotes(named.name) + " is there twice");
    require_npz_name(named.name + ".npy", path);
    entries.push_back(entry_of(named, end));
    end += entries.back().front.size() + entries.back().data.size();
  }
  const std::string directory = directory_of(entries, end);
  std::vector<std::string_view> pieces;
  for (const Entry& entry : entries) {
    pieces.push_back(entry.front);
    pieces.push_back(entry.data);
  }
  pieces.push_back(directory);
  write_file(path, pieces);
}

}  // namespace wide
