// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Writing safetensors. Tensors go by falling element size behind a header of a multiple of eight
// bytes, so that each is aligned to its elements.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/file.hpp"
#include "host/import/messages.hpp"
#include "host/import/safetensors_header.hpp"
#include "wide/safetensors.hpp"

namespace wide {

namespace {

constexpr size_t kAlignment = 8;

void require_writable(const NamedTensor& named) {
  const auto require = [&](bool holds, const std::string& why) {
    WIDE_REQUIRE(holds, "safetensors: tensor " + in_quotes(named.name) + " " + why);
  };
  const ConstTensorView& tensor = named.tensor;
  require(named.name != "__metadata__", "has the name of what is no tensor");
  require(tensor.device.type == DeviceType::cpu,
          "is on " + to_string(tensor.device) + ", expected cpu: copy() brings it there");
  require(tensor.is_contiguous(), "has gaps, expected a densely packed one");
  require(tensor.data != nullptr || tensor.num_elements() == 0, "is absent");
}

int64_t bytes_of(const ConstTensorView& tensor) {
  return checked_bytes(tensor.shape, dtype_bytes(tensor.dtype));
}

/// With its length in front.
std::string header_of(std::span<const NamedTensor* const> tensors,
                      const std::map<std::string, std::string>& metadata) {
  using Json = nlohmann::ordered_json;
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t begin = 0;
  for (const NamedTensor* named : tensors) {
    const ConstTensorView& tensor = named->tensor;
    const int64_t end = begin + bytes_of(tensor);
    header.push_back({named->name,
                      {{"dtype", safetensors_type(tensor.dtype).name},
                       {"shape", std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end())},
                       {"data_offsets", {begin, end}}}});
    begin = end;
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::type_error&) {
    throw_invalid_argument("safetensors: a name or the metadata is no UTF-8");
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(text.size() >> 8 * i & 0xff);
  return length + text;
}

}  // namespace

void save_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : tensors) {
    require_writable(named);
    order.push_back(&named);
  }
  std::sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return std::tuple(-dtype_bytes(a->tensor.dtype), std::string_view(a->name)) <
           std::tuple(-dtype_bytes(b->tensor.dtype), std::string_view(b->name));
  });
  std::vector<std::string_view> names;
  for (const NamedTensor* named : order) names.push_back(named->name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  WIDE_REQUIRE(twice == names.end(),
               "safetensors: tensor " + in_quotes(*twice) + " is there twice");

  const std::string header = header_of(order, metadata);
  std::vector<std::string_view> pieces{header};
  for (const NamedTensor* named : order) {
    pieces.emplace_back(static_cast<const char*>(named->tensor.data),
                        static_cast<size_t>(bytes_of(named->tensor)));
  }
  write_file(path, pieces);
}

}  // namespace wide
