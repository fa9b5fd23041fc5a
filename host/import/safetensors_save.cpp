// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Writing safetensors. Tensors follow by descending element size after a header of a multiple of
// eight bytes, so that each is aligned to its elements.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/file.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "host/import/safetensors_header.hpp"
#include "wide/safetensors.hpp"

namespace wide {

namespace {

constexpr size_t kAlignment = 8;

SafetensorsEntry entry_of(const NamedTensor& named) {
  const auto require = [&](bool holds, const std::string& why) {
    WIDE_REQUIRE(holds, "safetensors: tensor " + in_quotes(named.name) + " " + why);
  };
  const ConstTensorView& tensor = named.tensor;
  require(tensor.device.type == DeviceType::cpu,
          "is on " + to_string(tensor.device) + ", expected cpu");
  require(tensor.is_contiguous(), "has gaps, expected a densely packed one");
  return {named.name,   safetensors_type(tensor.dtype).name,
          tensor.dtype, tensor.shape,
          tensor.data,  checked_bytes(tensor.shape, dtype_bytes(tensor.dtype))};
}

/// Bits of an element.
int bits_of(const SafetensorsEntry& entry) {
  return find_safetensors_type(entry.type)->bits;
}

void require_writable(const SafetensorsEntry& entry) {
  const auto require = [&](bool holds, const std::string& why) {
    WIDE_REQUIRE(holds, "safetensors: tensor " + in_quotes(entry.name) + " " + why);
  };
  require(entry.name != "__metadata__", "has the name of what is no tensor");
  require(find_safetensors_type(entry.type) != nullptr,
          "is of " + in_quotes(entry.type) + ", which is unknown");
  const int64_t bits = checked_bytes(entry.shape, bits_of(entry));
  require(bits == 8 * entry.bytes,
          "has " + counted(entry.bytes, "byte") + ", its shape " + std::to_string(bits) + " bits");
  require(entry.data != nullptr || entry.bytes == 0, "is absent");
}

/// The header, preceded by its length.
std::string header_of(std::span<const SafetensorsEntry* const> entries,
                      const std::map<std::string, std::string>& metadata) {
  using Json = nlohmann::ordered_json;
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t begin = 0;
  for (const SafetensorsEntry* entry : entries) {
    const int64_t end = begin + entry->bytes;
    header.push_back({entry->name,
                      {{"dtype", entry->type},
                       {"shape", std::vector<int64_t>(entry->shape.begin(), entry->shape.end())},
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

void save_safetensors(const std::string& path, std::span<const SafetensorsEntry> entries,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : entries) {
    require_writable(entry);
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::tuple(-bits_of(*a), std::string_view(a->name)) <
           std::tuple(-bits_of(*b), std::string_view(b->name));
  });
  std::vector<std::string_view> names;
  for (const SafetensorsEntry* entry : order) names.push_back(entry->name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  WIDE_REQUIRE(twice == names.end(),
               "safetensors: tensor " + in_quotes(*twice) + " is there twice");

  const std::string header = header_of(order, metadata);
  std::vector<std::string_view> pieces{header};
  for (const SafetensorsEntry* entry : order)
    pieces.emplace_back(static_cast<const char*>(entry->data), static_cast<size_t>(entry->bytes));
  write_file(path, pieces);
}

void save_safetensors(const std::string& path, std::span<const NamedTensor> tensors,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<SafetensorsEntry> entries;
  for (const NamedTensor& named : tensors) entries.push_back(entry_of(named));
  save_safetensors(path, entries, metadata);
}

}  // namespace wide
