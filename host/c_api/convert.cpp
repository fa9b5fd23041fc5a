// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Conversion of C's numbers and plain structs to C++.
#include <algorithm>

#include "host/c_api/handles.hpp"
#include "wide/error.hpp"

namespace wide::c_api {

namespace {

bool is_dtype(wide_dtype dtype) {
  return dtype >= 0 && dtype < static_cast<wide_dtype>(kAllDtypes.size());
}

}  // namespace

Dtype dtype_of(wide_dtype dtype, const char* name) {
  WIDE_REQUIRE(is_dtype(dtype), std::string(name) + " is " + std::to_string(dtype) +
                                    ", expected one of WIDE_FP32 = 0 to " +
                                    "WIDE_UINT8 = " + std::to_string(WIDE_UINT8));
  return kAllDtypes[static_cast<size_t>(dtype)];
}

std::optional<ChannelLayout> layout_of(wide_channels channels, const char* name) {
  WIDE_REQUIRE(channels >= WIDE_CHANNELS_AUTO && channels <= WIDE_CHANNELS_LAST,
               std::string(name) + " is " + std::to_string(channels) +
                   ", expected WIDE_CHANNELS_AUTO = 0, .._FIRST = 1 or .._LAST = 2");
  if (channels == WIDE_CHANNELS_AUTO) return std::nullopt;
  return channels == WIDE_CHANNELS_LAST ? ChannelLayout::channels_last
                                        : ChannelLayout::channels_first;
}

static_assert(kAllDtypes.size() == WIDE_UINT8 + 1 && kAllDtypes[WIDE_FP16] == Dtype::fp16 &&
              kAllDtypes[WIDE_BF16] == Dtype::bf16 &&
              kAllDtypes[WIDE_FP8_E4M3] == Dtype::fp8_e4m3 &&
              kAllDtypes[WIDE_FP8_E5M2] == Dtype::fp8_e5m2 &&
              kAllDtypes[WIDE_INT32] == Dtype::int32 && kAllDtypes[WIDE_INT64] == Dtype::int64);
static_assert(WIDE_MAX_RANK == kMaxRank && WIDE_BATCH == kBatch);
static_assert(WIDE_WORKSPACE_ALIGNMENT == kWorkspaceAlignment);

Dims dims_of(const int64_t* values, int32_t rank, const char* name) {
  WIDE_REQUIRE(rank >= 0 && rank <= kMaxRank,
               "rank is " + std::to_string(rank) + ", expected 0 to " + std::to_string(kMaxRank));
  require_array(values, rank, name);
  return Dims(std::span<const int64_t>(values, static_cast<size_t>(rank)));
}

namespace {

bool is_all_zero(const Dims& strides) {
  return std::all_of(strides.begin(), strides.end(), [](int64_t stride) { return stride == 0; });
}

}  // namespace

bool is_one_repeated(const ConstTensorView& view) {
  return is_all_zero(view.strides) && view.num_elements() > 1;
}

TensorView view_of(const wide_view* view, const char* name, int64_t index) {
  try {
    const wide_view given = sized(view, "view");
    const Dtype dtype = dtype_of(given.dtype);
    const Shape shape = dims_of(given.shape, given.rank);
    const Dims strides = dims_of(given.strides, given.rank);
    const int32_t type = given.device.type;
    WIDE_REQUIRE(type == WIDE_CPU || type == WIDE_CUDA,
                 "device.type is " + std::to_string(type) + ", expected WIDE_CPU or WIDE_CUDA");
    WIDE_REQUIRE(
        type == WIDE_CUDA || given.device.ordinal == 0,
        "device is the CPU with ordinal " + std::to_string(given.device.ordinal) + ", expected 0");
    const Device device{type == WIDE_CPU ? DeviceType::cpu : DeviceType::cuda,
                        given.device.ordinal};
    num_elements(shape);  // throws where it has none
    return is_all_zero(strides) ? TensorView(given.data, dtype, shape, device)
                                : TensorView(given.data, dtype, shape, strides, device);
  } catch (const Error& error) {
    const std::string place = index < 0 ? "" : "[" + std::to_string(index) + "]";
    throw Error(error.code(), std::string(name) + place + ": " + error.what());
  }
}

void write_view(wide_view* out, const TensorView& view) {
  if (is_one_repeated(view)) {  // in C these strides are those of memory that has all elements
    throw_unsupported("the view is " + to_string(view.shape) + " with strides " +
                      to_string(view.strides) +
                      ", one element repeated along every axis, expected elements of its own");
  }
  wide_view value{};
  value.data = view.data;
  value.dtype = static_cast<wide_dtype>(view.dtype);
  value.rank = view.rank();
  std::copy(view.shape.begin(), view.shape.end(), value.shape);
  std::copy(view.strides.begin(), view.strides.end(), value.strides);
  value.device = {view.device.type == DeviceType::cpu ? WIDE_CPU : WIDE_CUDA, view.device.ordinal};
  write(out, value);
}

std::vector<MemberParameters> members_of(const wide_parameters* const* members,
                                         int64_t num_members) {
  require_array(members, num_members, "members");
  std::vector<MemberParameters> all;
  for (int64_t i = 0; i < num_members; ++i) {
    all.push_back(required(members[i], element_name("members", i).c_str()).views);
  }
  return all;
}

std::vector<int64_t> batches_of(const int64_t* batches, int64_t num_batches, const char* name) {
  require_array(batches, num_batches, name);
  WIDE_REQUIRE(batches == nullptr || num_batches > 0,
               std::string(name) + " has 0 entries, expected one per member");
  return {batches, batches + num_batches};
}

wide_parameters parameters_of(OwnedParameters owned) {
  const auto kept = std::make_shared<const OwnedParameters>(std::move(owned));
  return {views_of(*kept), {kept}};
}

Stream stream_of(Device device, void* stream) {
  if (device.type == DeviceType::cpu) return Stream::cpu();
  WIDE_REQUIRE(stream != nullptr,
               "stream is null, expected a cudaStream_t (cudaStreamLegacy: the default one)");
  return Stream(stream);
}

}  // namespace wide::c_api

int64_t wide_dtype_bytes(wide_dtype dtype) {
  return wide::c_api::is_dtype(dtype) ? wide::dtype_bytes(wide::c_api::dtype_of(dtype)) : 0;
}
const char* wide_dtype_name(wide_dtype dtype) {
  using namespace wide::c_api;
  return is_dtype(dtype) ? wide::dtype_name(dtype_of(dtype)).data() : nullptr;
}
