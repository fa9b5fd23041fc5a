// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simcuda/tensor_map_encode.hpp"

#include <cstring>

#include "verify/simcuda/device.hpp"
#include "verify/simt/tensor_map.hpp"

namespace wide::simcuda {

namespace {

/// By CUtensorMapDataType.
constexpr uint8_t kElementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

}  // namespace

CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                      const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                      const cuuint32_t* element_strides, CUtensorMapInterleave interleave,
                      CUtensorMapSwizzle swizzle, CUtensorMapL2promotion,
                      CUtensorMapFloatOOBfill fill) {
  if (!has_context()) {
    device().misuse("cuTensorMapEncodeTiled: the calling thread has no context");
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (map == nullptr || rank < 1 || rank > 5) return CUDA_ERROR_INVALID_VALUE;
  const auto index = static_cast<size_t>(type);
  if (index >= std::size(kElementBytes)) {
    (void)device().unsupported("tensor maps of data type " + std::to_string(index));
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (interleave != CU_TENSOR_MAP_INTERLEAVE_NONE || swizzle > CU_TENSOR_MAP_SWIZZLE_128B) {
    (void)device().unsupported("interleaved tensor maps and swizzles beyond 128 bytes");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  simt::TensorMap made;
  made.magic = simt::TensorMap::kMagic;
  made.address = reinterpret_cast<uint64_t>(address);
  made.rank = static_cast<uint8_t>(rank);
  made.element_bytes = kElementBytes[index];
  made.swizzle = static_cast<simt::Swizzle>(swizzle);
  made.fills_nan = fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
  for (size_t i = 0; i < rank; ++i) {
    if (box[i] > 0xffff || element_strides[i] > 0xff) return CUDA_ERROR_INVALID_VALUE;
    made.extent[i] = extents[i];
    made.box[i] = static_cast<uint16_t>(box[i]);
    made.element_stride[i] = static_cast<uint8_t>(element_strides[i]);
    if (i > 0) made.stride_bytes[i - 1] = strides[i - 1];
  }
  const std::string why = tensor_map_error(made);
  if (!why.empty() || reinterpret_cast<uintptr_t>(map) % 64 != 0) {
    device().misuse("cuTensorMapEncodeTiled: " +
                    (why.empty() ? "the map is not aligned to 64 bytes" : why));
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(map, &made, sizeof made);
  return CUDA_SUCCESS;
}

}  // namespace wide::simcuda
