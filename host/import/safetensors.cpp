// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Opening safetensors: a file, or the parts that an index lists.
#include "wide/safetensors.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/mapped_file.hpp"
#include "host/import/messages.hpp"
#include "host/import/safetensors_header.hpp"

namespace wide {

struct Safetensors::State {
  std::vector<std::unique_ptr<MappedFile>> files;
  std::vector<SafetensorsEntry> entries;
  std::vector<size_t> by_name;  ///< places of entries
  std::map<std::string, std::string> metadata;

  void add(std::span<const std::byte> file, const std::string& name);
  void sort_names();
  const SafetensorsEntry* find(std::string_view name) const;
};

namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  ///< as in the format's own library
constexpr std::string_view kIndexSuffix = ".index.json";

/// Where each tensor of an index is, by the tensor's name.
using WeightMap = std::map<std::string, std::string>;

/// Beside the index, and nowhere else: its author is not trusted with other files.
void require_file_name(const std::string& part, const std::string& index) {
  if (part.empty() || part == "." || part == ".." || part.find('/') != std::string::npos ||
      part.find('\0') != std::string::npos) {
    refuse_safetensors(index,
                       "a part is " + in_quotes(part) + ", expected the name of a file beside it");
  }
}

WeightMap read_index(const std::string& path) {
  using Json = nlohmann::json;
  constexpr int kMaxDepth = 8;
  const MappedFile file(path);
  const auto bytes = file.bytes();
  // Nesting deeper than any index's is dropped: destroying it would recurse as deep.
  const auto is_shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kMaxDepth; };
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  const Json document = Json::parse(text, text + bytes.size(), is_shallow, false);
  const auto map = document.is_object() ? document.find("weight_map") : document.end();
  if (!document.is_object() || map == document.end() || !map->is_object()) {
    refuse_safetensors(path, "it has no object \"weight_map\"");
  }
  WeightMap parts;
  for (const auto& [name, part] : map->items()) {
    if (!part.is_string())
      refuse_safetensors(path, "the part of " + in_quotes(name) + " is no text");
    require_file_name(part.get<std::string>(), path);
    parts.emplace(name, part.get<std::string>());
  }
  if (parts.empty()) refuse_safetensors(path, "its \"weight_map\" is empty");
  return parts;
}

}  // namespace

void Safetensors::State::add(std::span<const std::byte> file, const std::string& name) {
  if (file.size() < kLengthBytes) {
    refuse_safetensors(
        name, "it has " + counted(file.size(), "byte") + ", expected 8 or more: a header's length");
  }
  uint64_t length = 0;
  for (uint64_t i = kLengthBytes; i-- > 0;) {
    length = length << 8 | std::to_integer<uint64_t>(file[i]);
  }
  const uint64_t most = std::min<uint64_t>(kMaxHeaderBytes, file.size() - kLengthBytes);
  if (length > most) {
    refuse_safetensors(name, "its header has " + counted(length, "byte") + ", expected at most " +
                                 std::to_string(most));
  }
  const std::byte* const data = file.data() + kLengthBytes + length;
  SafetensorsHeader header =
      parse_safetensors_header({reinterpret_cast<const char*>(file.data() + kLengthBytes), length},
                               static_cast<int64_t>(file.size() - kLengthBytes - length), name);
  for (auto& tensor : header.tensors) {
    entries.push_back({std::move(tensor.name), tensor.type->name, tensor.type->dtype, tensor.shape,
                       data + tensor.begin, tensor.end - tensor.begin});
  }
  metadata.merge(header.metadata);
}

void Safetensors::State::sort_names() {
  by_name.resize(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) by_name[i] = i;
  std::sort(by_name.begin(), by_name.end(),
            [&](size_t a, size_t b) { return entries[a].name < entries[b].name; });
}

const SafetensorsEntry* Safetensors::State::find(std::string_view name) const {
  const auto found =
      std::lower_bound(by_name.begin(), by_name.end(), name,
                       [&](size_t place, std::string_view n) { return entries[place].name < n; });
  const bool is_there = found != by_name.end() && entries[*found].name == name;
  return is_there ? &entries[*found] : nullptr;
}

Safetensors Safetensors::parse(std::span<const std::byte> file, const std::string& name) {
  auto state = std::make_shared<State>();
  state->add(file, name);
  state->sort_names();
  return Safetensors(std::move(state));
}

Safetensors Safetensors::open(const std::string& path) {
  auto state = std::make_shared<State>();
  const auto add = [&](const std::string& file) {
    state->files.push_back(std::make_unique<MappedFile>(file));
    state->add(state->files.back()->bytes(), file);
  };
  if (!path.ends_with(kIndexSuffix)) {
    add(path);
    state->sort_names();
    return Safetensors(std::move(state));
  }
  const WeightMap parts = read_index(path);
  const std::string folder = path.substr(0, path.rfind('/') + 1);
  std::vector<std::string> files;
  for (const auto& [tensor, part] : parts) files.push_back(part);
  std::sort(files.begin(), files.end());
  files.erase(std::unique(files.begin(), files.end()), files.end());
  for (const std::string& part : files) {
    const size_t first = state->entries.size();
    add(folder + part);
    for (size_t i = first; i < state->entries.size(); ++i) {
      const auto known = parts.find(state->entries[i].name);
      if (known == parts.end() || known->second != part) {
        refuse_safetensors(
            path,
            part + " has a tensor " + in_quotes(state->entries[i].name) + ", which is " +
                (known == parts.end() ? "not in the index" : "said to be in " + known->second));
      }
    }
  }
  state->sort_names();
  for (const auto& [tensor, part] : parts) {
    if (state->find(tensor) == nullptr)
      refuse_safetensors(path, part + " has no tensor " + in_quotes(tensor));
  }
  return Safetensors(std::move(state));
}

std::span<const SafetensorsEntry> Safetensors::entries() const {
  return state_->entries;
}

const std::map<std::string, std::string>& Safetensors::metadata() const {
  return state_->metadata;
}

const SafetensorsEntry* Safetensors::find(std::string_view name) const {
  return state_->find(name);
}

ConstTensorView Safetensors::view(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string_view> names;
    for (const size_t place : state_->by_name) names.push_back(state_->entries[place].name);
    refuse_unknown_tensor("safetensors", name, names);
  }
  if (!entry->dtype) {
    throw_unsupported("safetensors: tensor " + in_quotes(entry->name) + " is " +
                      std::string(entry->type) + ", which no tensor of wide can be");
  }
  return {entry->data, *entry->dtype, entry->shape, Device{}};
}

}  // namespace wide
