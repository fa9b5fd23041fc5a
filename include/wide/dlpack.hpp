// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Views over DLPack tensors and back, without a copy.
//
// The functions are templates over the struct, so that they fit the dlpack.h that an engine
// already has, and wide needs none: only the field names and the published codes are used
// (https://dmlc.github.io/dlpack/latest/c_api.html).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// DLDataType as numbers: code, bits.
struct DlpackType {
  uint8_t code = 0;
  uint8_t bits = 0;
};

/// kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLFloat8_e4m3fn 10, kDLFloat8_e5m2 12.
constexpr DlpackType dlpack_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return {2, 32};
    case Dtype::fp16:
      return {2, 16};
    case Dtype::bf16:
      return {4, 16};
    case Dtype::fp8_e4m3:
      return {10, 8};
    case Dtype::fp8_e5m2:
      return {12, 8};
    case Dtype::int32:
      return {0, 32};
    case Dtype::int64:
      return {0, 64};
    case Dtype::uint8:
      return {1, 8};
  }
  return {};
}

constexpr std::optional<Dtype> dtype_of_dlpack(uint8_t code, uint8_t bits, uint16_t lanes) {
  for (Dtype dtype : kAllDtypes) {
    const DlpackType type = dlpack_type(dtype);
    if (lanes == 1 && type.code == code && type.bits == bits) return dtype;
  }
  return std::nullopt;
}

inline constexpr int kDlpackCpu = 1, kDlpackCuda = 2, kDlpackCudaHost = 3;

/// A view of a DLTensor; the DLTensor's memory must outlive it. Null strides mean densely packed.
/// Throws unsupported for devices other than CPU, pinned host and CUDA, for dtypes without a wide
/// Dtype, negative strides, and more than kMaxRank dimensions; invalid_argument for malformed
/// tensors: no shape, negative extents, or more bytes than fit in 64 bits.
template <class DLTensor>
TensorView from_dlpack(const DLTensor& tensor) {
  const auto dtype = dtype_of_dlpack(tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
  if (!dtype) {
    throw Error(ErrorCode::unsupported,
                "dlpack: dtype code " + std::to_string(tensor.dtype.code) + ", " +
                    std::to_string(tensor.dtype.bits) + " bits, " +
                    std::to_string(tensor.dtype.lanes) +
                    " lanes, expected a single fp32, fp16, bf16, fp8, int32, int64 or uint8");
  }
  const int device_type = static_cast<int>(tensor.device.device_type);
  if (device_type != kDlpackCpu && device_type != kDlpackCuda && device_type != kDlpackCudaHost) {
    throw Error(ErrorCode::unsupported, "dlpack: device type " + std::to_string(device_type) +
                                            ", expected CPU (1), CUDA (2) or pinned host (3)");
  }
  if (tensor.ndim < 0 || tensor.ndim > kMaxRank) {
    throw Error(ErrorCode::unsupported, "dlpack: " + std::to_string(tensor.ndim) +
                                            " dimensions, expected 0 to " +
                                            std::to_string(kMaxRank));
  }
  if (tensor.shape == nullptr && tensor.ndim > 0) {
    throw Error(ErrorCode::invalid_argument,
                "dlpack: shape is null, expected " + std::to_string(tensor.ndim) + " extents");
  }
  const auto rank = static_cast<size_t>(tensor.ndim);
  const Shape shape(std::span<const int64_t>(tensor.shape, rank));
  const Strides strides = tensor.strides == nullptr
                              ? contiguous_strides(shape)
                              : Strides(std::span<const int64_t>(tensor.strides, rank));
  const Device device =
      device_type == kDlpackCuda ? Device{DeviceType::cuda, tensor.device.device_id} : Device{};
  for (const int64_t stride : strides) {
    if (stride >= 0) continue;
    throw Error(ErrorCode::unsupported,
                "dlpack: strides " + to_string(strides) + ", expected none below 0");
  }
  // A null base stays null: arithmetic on it would make a bogus pointer of a zero-size tensor.
  char* base = static_cast<char*>(tensor.data);
  return TensorView(base == nullptr ? nullptr : base + tensor.byte_offset, *dtype, shape, strides,
                    device);
}

/// Fills a DLTensor that points into `view`, which must outlive it. The memory stays the view's
/// owner's.
template <class DLTensor>
void to_dlpack(const TensorView& view, DLTensor& tensor) {
  const DlpackType type = dlpack_type(view.dtype);
  tensor.data = view.data;
  tensor.device.device_type = static_cast<decltype(tensor.device.device_type)>(
      view.device.type == DeviceType::cuda ? kDlpackCuda : kDlpackCpu);
  tensor.device.device_id = view.device.ordinal;
  tensor.ndim = view.rank();
  tensor.dtype.code = type.code;
  tensor.dtype.bits = type.bits;
  tensor.dtype.lanes = 1;
  // DLPack's fields are not const; they are never written.
  tensor.shape = const_cast<int64_t*>(view.shape.begin());
  tensor.strides = const_cast<int64_t*>(view.strides.begin());
  tensor.byte_offset = 0;
}

template <class DLTensor>
void to_dlpack(const TensorView&& view, DLTensor& tensor) = delete;

}  // namespace wide
