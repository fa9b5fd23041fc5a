// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Opening NumPy's files: one array, or a zip archive of them.
#include "wide/npy.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "host/core/check.hpp"
#include "host/import/mapped_file.hpp"
#include "host/import/messages.hpp"
#include "host/import/npy_header.hpp"
#include "host/import/zip.hpp"

namespace wide {

struct Npy::State {
  /// Where an array's bytes are, its header in front.
  struct Place {
    ZipEntry zipped;                  ///< in an .npz
    std::span<const std::byte> file;  ///< after they were validated
    std::unique_ptr<std::byte[]> unpacked;
    int64_t header_bytes = 0;
  };

  std::unique_ptr<MappedFile> mapped;
  std::string file_name;
  std::vector<NpyEntry> entries;
  std::vector<Place> places;  ///< of entries
  std::map<std::string, size_t, std::less<>> by_name;
  std::mutex mutex;  ///< of places

  void open(std::span<const std::byte> file);
  void add(std::string name, const NpyHeader& header, Place place);
  void add_zipped(ZipEntry zipped);
  std::span<const std::byte> bytes_of(size_t index);
};

void Npy::State::add(std::string name, const NpyHeader& header, Place place) {
  if (!by_name.emplace(name, entries.size()).second)
    refuse_npy(file_name, "array " + in_quotes(name) + " is there twice");
  place.header_bytes = header.header_bytes;
  entries.push_back({std::move(name), header.type, header.dtype, header.shape,
                     header.is_fortran_order, place.zipped.is_deflated, header.data_bytes});
  places.push_back(std::move(place));
}

void Npy::State::add_zipped(ZipEntry zipped) {
  require_npz_name(zipped.name, file_name);
  std::vector<std::byte> start(static_cast<size_t>(std::min(zipped.bytes, kMaxNpyHeaderBytes)));
  unpack_start(zipped, start, file_name);
  const NpyHeader header =
      parse_npy_header(start, zipped.bytes, file_name + ": entry " + in_quotes(zipped.name));
  std::string name = zipped.name.substr(0, zipped.name.size() - kNpySuffix.size());
  add(std::move(name), header, {std::move(zipped), {}, {}, 0});
}

void Npy::State::open(std::span<const std::byte> file) {
  const bool is_zip = file.size() > 1 && file[0] == std::byte{'P'} && file[1] == std::byte{'K'};
  if (is_zip) {
    for (ZipEntry& entry : read_zip(file, file_name)) add_zipped(std::move(entry));
    return;
  }
  const auto most = static_cast<size_t>(kMaxNpyHeaderBytes);
  add("", parse_npy_header(file.first(std::min(file.size(), most)), std::ssize(file), file_name),
      {{}, file, {}, 0});
}

/// Checked, and unpacked where they have to be: once.
std::span<const std::byte> Npy::State::bytes_of(size_t index) {
  const std::lock_guard lock(mutex);
  Place& place = places[index];
  if (place.file.data() == nullptr && place.zipped.is_deflated) {
    const auto bytes = static_cast<size_t>(place.zipped.bytes);
    auto unpacked = std::make_unique_for_overwrite<std::byte[]>(bytes);
    unpack(place.zipped, {unpacked.get(), bytes}, file_name);
    place.unpacked = std::move(unpacked);
    place.file = {place.unpacked.get(), bytes};
  } else if (place.file.data() == nullptr) {
    require_checksum(place.zipped, place.zipped.packed, file_name);
    place.file = place.zipped.packed;
  }
  return place.file;
}

Npy Npy::parse(std::span<const std::byte> file, const std::string& name) {
  auto state = std::make_shared<State>();
  state->file_name = name;
  state->open(file);
  return Npy(std::move(state));
}

Npy Npy::open(const std::string& path) {
  auto state = std::make_shared<State>();
  state->file_name = path;
  state->mapped = std::make_unique<MappedFile>(path);
  state->open(state->mapped->bytes());
  return Npy(std::move(state));
}

std::span<const NpyEntry> Npy::entries() const {
  return state_->entries;
}

const NpyEntry* Npy::find(std::string_view name) const {
  const auto found = state_->by_name.find(name);
  return found == state_->by_name.end() ? nullptr : &state_->entries[found->second];
}

ConstTensorView Npy::view(std::string_view name) const {
  const NpyEntry* entry = find(name);
  if (entry == nullptr) {
    std::vector<std::string_view> names;
    for (const auto& [known, index] : state_->by_name) names.push_back(known);
    refuse_unknown_tensor("npy", name, names);
  }
  if (!entry->dtype) {
    throw_unsupported("npy: array " + in_quotes(name) + " is " + in_quotes(entry->type) +
                      ", which no tensor of wide can be");
  }
  const auto index = static_cast<size_t>(entry - state_->entries.data());
  const std::byte* data = state_->bytes_of(index).data() + state_->places[index].header_bytes;
  if (!entry->is_fortran_order) return {data, *entry->dtype, entry->shape, Device{}};
  Strides strides = entry->shape;
  int64_t stride = 1;
  for (int axis = 0; axis < entry->shape.rank(); ++axis) {
    strides[axis] = stride;
    stride *= entry->shape[axis];
  }
  return {data, *entry->dtype, entry->shape, strides, Device{}};
}

}  // namespace wide
