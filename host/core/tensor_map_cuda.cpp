// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/tensor_map.hpp"

#include <cudaTypedefs.h>

#include <string>

#include "host/core/check.hpp"
#include "host/core/driver_function.hpp"

namespace wide {

namespace {

PFN_cuTensorMapEncodeTiled_v12000 encoder() {
  const auto encode = driver_function<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
  if (encode == nullptr) {
    throw_unsupported("this driver has no tensor maps, expected one of CUDA 12 or later");
  }
  return encode;
}

CUtensorMapDataType type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case Dtype::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case Dtype::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case Dtype::fp8_e4m3:
    case Dtype::fp8_e5m2:
    case Dtype::uint8:
      return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case Dtype::int32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case Dtype::int64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
  }
  throw_invalid_argument("tensor map: no such dtype");
}

std::string text_of(const std::array<int64_t, 5>& values, int rank) {
  std::string text = "[";
  for (int i = 0; i < rank; ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(values[static_cast<size_t>(i)]);
  }
  return text + "]";
}

}  // namespace

void encode_tile_map(const TileMap& map, CUtensorMap& encoded) {
  static const PFN_cuTensorMapEncodeTiled_v12000 encode = encoder();
  WIDE_REQUIRE(map.rank >= 1 && map.rank <= 5,
               "tensor map: rank " + std::to_string(map.rank) + ", expected 1 to 5");
  std::array<cuuint64_t, 5> extents{}, strides{};
  std::array<cuuint32_t, 5> box{}, steps{};
  const auto bytes = static_cast<cuuint64_t>(dtype_bytes(map.dtype));
  for (size_t i = 0; i < static_cast<size_t>(map.rank); ++i) {
    extents[i] = static_cast<cuuint64_t>(map.extent[i]);
    box[i] = static_cast<cuuint32_t>(map.box[i]);
    steps[i] = static_cast<cuuint32_t>(map.step[i]);
    if (i > 0) strides[i - 1] = static_cast<cuuint64_t>(map.stride[i]) * bytes;
  }
  const CUresult status =
      encode(&encoded, type_of(map.dtype), static_cast<cuuint32_t>(map.rank),
             const_cast<void*>(map.data), extents.data(), strides.data(), box.data(), steps.data(),
             CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(map.swizzle),
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  WIDE_REQUIRE(status == CUDA_SUCCESS,
               "tensor map: the driver refuses extents " + text_of(map.extent, map.rank) +
                   ", strides " + text_of(map.stride, map.rank) + ", box " +
                   text_of(map.box, map.rank) + " in steps of " + text_of(map.step, map.rank) +
                   " of " + std::string(dtype_name(map.dtype)) + ", swizzle " +
                   std::to_string(static_cast<int>(map.swizzle)) + " (driver error " +
                   std::to_string(static_cast<int>(status)) + ")");
}

}  // namespace wide
