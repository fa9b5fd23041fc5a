// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tensors of an ONNX file: raw bytes, numbers in typed fields, or bytes in another file, which must
// lie in the model's folder: the model's author is not trusted with other files.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "host/import/onnx/file.hpp"
#include "host/import/onnx/wire.hpp"
#include "wide/error.hpp"

namespace wide::onnx {

namespace {

constexpr std::array kTypes{ElementType{1, "FLOAT", 32, Dtype::fp32},
                            ElementType{2, "UINT8", 8, Dtype::uint8},
                            ElementType{3, "INT8", 8, {}},
                            ElementType{4, "UINT16", 16, {}},
                            ElementType{5, "INT16", 16, {}},
                            ElementType{6, "INT32", 32, Dtype::int32},
                            ElementType{7, "INT64", 64, Dtype::int64},
                            ElementType{8, "STRING", 0, {}},
                            ElementType{9, "BOOL", 8, {}},
                            ElementType{10, "FLOAT16", 16, Dtype::fp16},
                            ElementType{11, "DOUBLE", 64, {}},
                            ElementType{12, "UINT32", 32, {}},
                            ElementType{13, "UINT64", 64, {}},
                            ElementType{14, "COMPLEX64", 64, {}},
                            ElementType{15, "COMPLEX128", 128, {}},
                            ElementType{16, "BFLOAT16", 16, Dtype::bf16},
                            ElementType{17, "FLOAT8E4M3FN", 8, Dtype::fp8_e4m3},
                            ElementType{18, "FLOAT8E4M3FNUZ", 8, {}},
                            ElementType{19, "FLOAT8E5M2", 8, Dtype::fp8_e5m2},
                            ElementType{20, "FLOAT8E5M2FNUZ", 8, {}},
                            ElementType{21, "UINT4", 4, {}},
                            ElementType{22, "INT4", 4, {}}};

/// An upper bound on the expanded size of a run of one-byte numbers.
constexpr size_t kMaxTyped = size_t{1} << 28;

/// Opens a file in the folder or below it, without following links. Each folder on the way is
/// opened by itself: resolving the path and comparing would leave time to change it.
int open_below(const std::string& folder, std::string_view path, const std::string& shown) {
  const auto fail = [&](int error) {
    throw Error(ErrorCode::io, "cannot read " + shown + ": " +
                                   (error == ELOOP || error == ENOTDIR
                                        ? "a link or a file is on the way, expected folders"
                                        : std::strerror(error)));
  };
  int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail(errno);
  while (true) {
    const size_t length = path.find('/');
    const bool is_last = length == std::string_view::npos;
    const std::string part(path.substr(0, length));
    const int flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    const int next = ::openat(fd, part.c_str(), is_last ? flags : flags | O_DIRECTORY);
    const int error = errno;
    ::close(fd);
    if (next < 0) fail(error);
    fd = next;
    if (is_last) return fd;
    path.remove_prefix(length + 1);
  }
}

/// One tensor's fields, as they are read.
class TensorReader {
 public:
  TensorReader(OnnxFile& file, const std::string& what)
      : file_(file), where_(file.where + ": " + what) {}
  Initializer read(std::string_view message);

 private:
  struct External {
    std::string_view location;
    int64_t offset = 0, length = -1;
  };
  [[noreturn]] void refuse(const std::string& why) const {
    const std::string name = tensor_.name.empty() ? "" : " " + in_quotes(tensor_.name);
    throw_invalid_argument("onnx: " + where_ + name + " " + why);
  }
  void read_fields(std::string_view message);
  void read_external(std::string_view message);
  int64_t external_number(std::string_view key, std::string_view text) const;
  void set_shape();
  void take_external();
  void take_typed();
  template <class T, class Numbers>
  void store(const Numbers& numbers);

  OnnxFile& file_;
  std::string where_;
  Initializer tensor_;
  std::vector<int64_t> dims_, int32_data_, int64_data_, uint64_data_;
  std::vector<float> float_data_;
  std::vector<double> double_data_;
  std::string_view raw_;
  External external_;
  bool has_raw_ = false, is_external_ = false, is_segment_ = false;
  int64_t type_ = 0;
};

int64_t TensorReader::external_number(std::string_view key, std::string_view text) const {
  int64_t value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    refuse("has " + std::string(key) + " " + in_quotes(text) + ", expected a count");
  return value;
}

void TensorReader::read_external(std::string_view message) {
  std::string_view key, value;
  for (Wire wire(message, where_); wire.next();) {
    if (wire.field() == 1) key = wire.text();
    if (wire.field() == 2) value = wire.text();
  }
  if (key == "location") external_.location = value;
  if (key == "offset") external_.offset = external_number(key, value);
  if (key == "length") external_.length = external_number(key, value);
}

void TensorReader::read_fields(std::string_view message) {
  for (Wire wire(message, where_); wire.next();) {
    switch (wire.field()) {
      case 1:
        wire.integers(dims_, 64);
        break;
      case 2:
        type_ = wire.integer();
        break;
      case 3:
        is_segment_ = true;
        break;
      case 4:
        wire.singles(float_data_, kMaxTyped);
        break;
      case 5:
        wire.integers(int32_data_, kMaxTyped);
        break;
      case 7:
        wire.integers(int64_data_, kMaxTyped);
        break;
      case 8:
        tensor_.name = std::string(wire.text());
        break;
      case 9:
        raw_ = wire.text();
        has_raw_ = true;
        break;
      case 10:
        wire.doubles(double_data_, kMaxTyped);
        break;
      case 11:
        wire.integers(uint64_data_, kMaxTyped);
        break;
      case 13:
        read_external(wire.text());
        break;
      case 14:
        is_external_ = wire.integer() == 1;
        break;
    }
  }
}

void TensorReader::set_shape() {
  tensor_.type = find_element_type(type_);
  if (tensor_.type == nullptr)
    refuse("is of element type " + std::to_string(type_) + ", which is unknown");
  if (dims_.size() > kMaxRank) {
    throw_unsupported("onnx: " + where_ + " " + in_quotes(tensor_.name) + " has " +
                      counted(dims_.size(), "axis", "axes") + ", expected at most " +
                      std::to_string(kMaxRank));
  }
  tensor_.shape = Shape(dims_);
  try {
    const int64_t bits = checked_bytes(tensor_.shape, tensor_.type->bits);
    tensor_.bytes = bits / 8 + (bits % 8 != 0);
  } catch (const Error&) {
    refuse("is " + to_string(tensor_.shape) +
           ", expected extents of at least 0 and elements that can be counted");
  }
}

void TensorReader::take_external() {
  const std::string_view path = external_.location;
  if (file_.folder.empty()) refuse("lies in another file, but the model is in no folder");
  bool leads_out = path.empty() || path.find('\0') != std::string_view::npos ||
                   path.find('\\') != std::string_view::npos;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    leads_out = leads_out || part.empty() || part == "." || part == "..";
    begin = end + 1;
  }
  if (leads_out) refuse("lies in " + in_quotes(path) + ", expected a file in the model's folder");
  auto known = file_.mapped_by_name.find(path);
  if (known == file_.mapped_by_name.end()) {
    const std::string shown = file_.folder + std::string(path);
    const int fd = open_below(file_.folder, path, shown);
    file_.mapped.push_back(std::make_unique<MappedFile>(fd, shown));
    known = file_.mapped_by_name.emplace(path, file_.mapped.size() - 1).first;
  }
  const auto bytes = file_.mapped[known->second]->bytes();
  const int64_t size = std::ssize(bytes);
  if (external_.offset > size || size - external_.offset < tensor_.bytes) {
    refuse("lies in " + in_quotes(path) + " from " + std::to_string(external_.offset) +
           " on, expected " + counted(tensor_.bytes, "byte") + " there; the file has " +
           std::to_string(size));
  }
  if (external_.length >= 0 && external_.length != tensor_.bytes) {
    refuse("has length " + std::to_string(external_.length) + ", expected " +
           std::to_string(tensor_.bytes) + " for " + std::string(tensor_.type->name) + " " +
           to_string(tensor_.shape));
  }
  tensor_.data = bytes.data() + external_.offset;
}

template <class T, class Numbers>
void TensorReader::store(const Numbers& numbers) {
  const auto expected = static_cast<size_t>(num_elements(tensor_.shape));
  if (numbers.size() != expected) {
    refuse("has " + counted(numbers.size(), "number") + ", expected " + std::to_string(expected) +
           " for " + std::string(tensor_.type->name) + " " + to_string(tensor_.shape));
  }
  auto storage = std::make_shared<std::vector<std::byte>>(expected * sizeof(T));
  for (size_t i = 0; i < expected; ++i) {
    const auto value = static_cast<T>(numbers[i]);
    std::memcpy(storage->data() + i * sizeof(T), &value, sizeof(T));
  }
  tensor_.data = storage->data();
  tensor_.storage = std::move(storage);
}

void TensorReader::take_typed() {
  switch (type_) {
    case 1:
      return store<float>(float_data_);
    case 11:
      return store<double>(double_data_);
    case 7:
      return store<int64_t>(int64_data_);
    case 12:
      return store<uint32_t>(uint64_data_);
    case 13:
      return store<uint64_t>(uint64_data_);
    case 6:
      return store<int32_t>(int32_data_);
    default:
      break;
  }
  if (tensor_.type->bits == 8) return store<uint8_t>(int32_data_);
  if (tensor_.type->bits == 16) return store<uint16_t>(int32_data_);
  refuse("is " + std::string(tensor_.type->name) + " without raw bytes, which is not read");
}

Initializer TensorReader::read(std::string_view message) {
  read_fields(message);
  set_shape();
  if (is_segment_) refuse("is a segment of a tensor, expected all of it");
  const bool has_numbers = !float_data_.empty() || !int32_data_.empty() || !int64_data_.empty() ||
                           !double_data_.empty() || !uint64_data_.empty();
  if (has_numbers + has_raw_ + is_external_ > 1)
    refuse("has its elements twice, expected raw bytes, numbers or another file");
  if (type_ == 8) return tensor_;  // readers of strings refuse them
  if (is_external_) {
    take_external();
  } else if (has_raw_) {
    if (std::ssize(raw_) != tensor_.bytes) {
      refuse("has " + counted(raw_.size(), "byte") + ", expected " + std::to_string(tensor_.bytes) +
             " for " + std::string(tensor_.type->name) + " " + to_string(tensor_.shape));
    }
    tensor_.data = reinterpret_cast<const std::byte*>(raw_.data());
  } else {
    take_typed();
  }
  return std::move(tensor_);
}

}  // namespace

const ElementType* find_element_type(int64_t number) {
  return number >= 1 && number <= std::ssize(kTypes) ? &kTypes[static_cast<size_t>(number - 1)]
                                                     : nullptr;
}

Initializer read_tensor(OnnxFile& file, std::string_view message, const std::string& what) {
  return TensorReader(file, what).read(message);
}

}  // namespace wide::onnx
