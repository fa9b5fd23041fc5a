// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The header, read token by token: anything that nests deeper than the format, or that the format
// does not have there, ends the reading, and no document is built that could be larger than the
// text.
#include "host/import/safetensors_header.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <tuple>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

constexpr std::array kTypes{SafetensorsType{"F32", 32, Dtype::fp32},
                            SafetensorsType{"F16", 16, Dtype::fp16},
                            SafetensorsType{"BF16", 16, Dtype::bf16},
                            SafetensorsType{"F8_E4M3", 8, Dtype::fp8_e4m3},
                            SafetensorsType{"F8_E5M2", 8, Dtype::fp8_e5m2},
                            SafetensorsType{"I32", 32, Dtype::int32},
                            SafetensorsType{"I64", 64, Dtype::int64},
                            SafetensorsType{"U8", 8, Dtype::uint8},
                            SafetensorsType{"BOOL", 8, {}},
                            SafetensorsType{"I8", 8, {}},
                            SafetensorsType{"F8_E8M0", 8, {}},
                            SafetensorsType{"I16", 16, {}},
                            SafetensorsType{"U16", 16, {}},
                            SafetensorsType{"U32", 32, {}},
                            SafetensorsType{"U64", 64, {}},
                            SafetensorsType{"F64", 64, {}},
                            SafetensorsType{"C64", 64, {}},
                            SafetensorsType{"F4", 4, {}},
                            SafetensorsType{"F6_E2M3", 6, {}},
                            SafetensorsType{"F6_E3M2", 6, {}}};

/// Callbacks of nlohmann's parser; each returns whether to go on.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;
  std::string complaint;

  bool null() override { return refuse_value("null"); }
  bool boolean(bool) override { return refuse_value("a boolean"); }
  bool number_integer(int64_t value) override { return refuse_value(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return refuse_value(text); }
  bool binary(binary_t&) override { return refuse_value("binary"); }

  bool number_unsigned(uint64_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets)
      return refuse_value(std::to_string(value));
    if (value > static_cast<uint64_t>(INT64_MAX)) return refuse_value(std::to_string(value));
    if (numbers_.size() >= kMaxNumbers) {
      return place_ == Place::offsets
                 ? refuse(at_key() + " has more than two offsets")
                 : refuse(at_key() + " has more than " + std::to_string(kMaxRank) + " axes");
    }
    numbers_.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (place_ == Place::metadata) {
      if (!header.metadata.emplace(key_, std::move(value)).second) return refuse_twice(key_);
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype") return refuse_value(in_quotes(value));
    tensor().type = find_safetensors_type(value);
    if (tensor().type == nullptr)
      return refuse(at_key() + " is " + in_quotes(value) + ", which is unknown");
    return true;
  }

  bool key(std::string& value) override {
    if (place_ == Place::tensor) {
      const bool is_known = value == "dtype" || value == "shape" || value == "data_offsets";
      if (!is_known) return refuse(of_tensor() + " has a key " + in_quotes(value));
      bool& is_there = seen_[value == "dtype" ? 0 : value == "shape" ? 1 : 2];
      if (is_there) return refuse(of_tensor() + " has " + in_quotes(value) + " twice");
      is_there = true;
    }
    key_ = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == Place::start) {
      place_ = Place::header;
    } else if (place_ == Place::header && key_ == kMetadata) {
      if (has_metadata_) return refuse_twice(key_);
      has_metadata_ = true;
      place_ = Place::metadata;
    } else if (place_ == Place::header) {
      place_ = Place::tensor;
      header.tensors.emplace_back().name = key_;
      seen_ = {};
    } else {
      return refuse_value("an object");
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      constexpr std::array kKeys{"dtype", "shape", "data_offsets"};
      for (size_t i = 0; i < seen_.size(); ++i) {
        if (!seen_[i]) return refuse(of_tensor() + " has no \"" + kKeys[i] + "\"");
      }
    }
    place_ = place_ == Place::header ? Place::end : Place::header;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != Place::tensor || key_ == "dtype") return refuse_value("a list");
    place_ = key_ == "shape" ? Place::shape : Place::offsets;
    numbers_.clear();
    return true;
  }

  bool end_array() override {
    if (place_ == Place::shape) {
      tensor().shape = Shape(numbers_);
    } else {
      if (numbers_.size() != 2) return refuse(at_key() + " is no pair of offsets");
      tensor().begin = numbers_[0];
      tensor().end = numbers_[1];
    }
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse("its header is no JSON at byte " + std::to_string(position));
  }

 private:
  enum class Place : uint8_t { start, header, metadata, tensor, shape, offsets, end };
  static constexpr std::string_view kMetadata = "__metadata__";
  static constexpr size_t kMaxNumbers = kMaxRank;

  bool refuse(std::string why) {
    if (complaint.empty()) complaint = std::move(why);
    return false;
  }
  bool refuse_twice(const std::string& key) { return refuse(in_quotes(key) + " is there twice"); }
  /// A value that the format does not have here.
  bool refuse_value(const std::string& got) {
    switch (place_) {
      case Place::start:
      case Place::end:
        return refuse("its header is " + got + ", expected an object");
      case Place::header:
        return refuse(in_quotes(key_) + " is " + got + ", expected an object");
      case Place::metadata:
        return refuse("__metadata__: " + in_quotes(key_) + " is " + got + ", expected a text");
      case Place::tensor:
        return refuse(at_key() + " is " + got + ", expected " +
                      (key_ == "dtype" ? "a text" : "a list of counts"));
      case Place::shape:
      case Place::offsets:
        return refuse(at_key() + " holds " + got + ", expected counts");
    }
    return false;
  }
  SafetensorsHeader::Tensor& tensor() { return header.tensors.back(); }
  std::string of_tensor() { return "tensor " + in_quotes(tensor().name); }
  std::string at_key() { return of_tensor() + ": " + key_; }

  Place place_ = Place::start;
  std::string key_;
  bool has_metadata_ = false;
  std::array<bool, 3> seen_{};
  std::vector<int64_t> numbers_;
};

void require_names_once(const std::vector<SafetensorsHeader::Tensor>& tensors,
                        const std::string& file) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    refuse_safetensors(file, "tensor " + in_quotes(*twice) + " is there twice");
}

/// Requires that shape and dtype need exactly the bytes between the offsets.
void require_size(const SafetensorsHeader::Tensor& tensor, const std::string& file) {
  const auto refuse = [&](const std::string& why) {
    refuse_safetensors(file, "tensor " + in_quotes(tensor.name) + why);
  };
  int64_t bits;
  try {
    bits = checked_bytes(tensor.shape, tensor.type->bits);
  } catch (const Error&) {
    refuse(": its shape " + to_string(tensor.shape) + " has more elements than can be counted");
  }
  if (bits % 8 != 0) refuse(" does not end with a byte");
  const int64_t bytes = bits / 8;
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != bytes) {
    refuse(" lies from " + std::to_string(tensor.begin) + " to " + std::to_string(tensor.end) +
           ", expected " + counted(bytes, "byte") + " for " + std::string(tensor.type->name) + " " +
           to_string(tensor.shape));
  }
}

}  // namespace

const SafetensorsType* find_safetensors_type(std::string_view name) {
  const auto found = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const SafetensorsType& type) { return type.name == name; });
  return found == kTypes.end() ? nullptr : &*found;
}

const SafetensorsType& safetensors_type(Dtype dtype) {
  return *std::find_if(kTypes.begin(), kTypes.end(),
                       [&](const SafetensorsType& type) { return type.dtype == dtype; });
}

void refuse_safetensors(const std::string& file, const std::string& why) {
  throw_invalid_argument("safetensors: " + file + ": " + why);
}

SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_bytes,
                                           const std::string& file) {
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) {
    refuse_safetensors(file, reader.complaint);
  }
  SafetensorsHeader header = std::move(reader.header);
  require_names_once(header.tensors, file);
  std::sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  int64_t end = 0;
  for (const auto& tensor : header.tensors) {
    require_size(tensor, file);
    if (tensor.begin != end) {
      refuse_safetensors(file, "tensor " + in_quotes(tensor.name) + " begins at " +
                                   std::to_string(tensor.begin) + ", expected " +
                                   std::to_string(end) + ", where the one before it ends");
    }
    end = tensor.end;
  }
  if (end != data_bytes) {
    refuse_safetensors(file, "tensors end at " + std::to_string(end) + ", expected " +
                                 std::to_string(data_bytes) + ", where the file does");
  }
  return header;
}

}  // namespace wide
