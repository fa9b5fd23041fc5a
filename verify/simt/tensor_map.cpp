// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The rules of cuTensorMapEncodeTiled without interleaving, as the CUDA driver API's page on tensor
// maps states them. The first element stride is not among them: the driver ignores it.
#include "verify/simt/tensor_map.hpp"

#include "verify/simt/text.hpp"

namespace wide::simt {

namespace {

constexpr uint64_t kMaxExtent = uint64_t{1} << 32, kMaxStride = uint64_t{1} << 40;
constexpr int kMaxBox = 256, kMaxElementStride = 8;

std::string dimension_error(const TensorMap& map, size_t i) {
  std::string index = "[";
  index += std::to_string(i) + "] is ";
  if (map.extent[i] == 0 || map.extent[i] > kMaxExtent) {
    return "globalDim" + index + std::to_string(map.extent[i]) + ", expected 1 to 2^32";
  }
  if (map.box[i] == 0 || map.box[i] > kMaxBox) {
    return "boxDim" + index + std::to_string(map.box[i]) + ", expected 1 to 256";
  }
  if (i == 0) return "";
  if (map.element_stride[i] == 0 || map.element_stride[i] > kMaxElementStride) {
    return "elementStrides" + index + std::to_string(map.element_stride[i]) + ", expected 1 to 8";
  }
  const uint64_t stride = map.stride_bytes[i - 1];
  if (stride % kPiece != 0 || stride >= kMaxStride) {
    return "globalStrides[" + std::to_string(i - 1) + "] is " + std::to_string(stride) +
           " bytes, expected a multiple of 16 below 2^40";
  }
  // The documentation's strides hold what they step over; whether the driver insists, it says not.
  if (stride == 0 && map.extent[i] > 1) {
    return "globalStrides[" + std::to_string(i - 1) + "] is 0 for a globalDim of " +
           std::to_string(map.extent[i]) + ", expected 1: what is shared is there once";
  }
  return "";
}

}  // namespace

std::string tensor_map_error(const TensorMap& map) {
  if (map.rank < 1 || map.rank > 5) {
    return "tensorRank is " + std::to_string(map.rank) + ", expected 1 to 5";
  }
  const int bytes = map.element_bytes;
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8) {
    return "an element has " + std::to_string(bytes) + " bytes, expected 1, 2, 4 or 8";
  }
  if (map.address % kPiece != 0) {
    return "globalAddress is " + hexadecimal(map.address) + ", expected a multiple of 16";
  }
  for (size_t i = 0; i < map.rank; ++i) {
    std::string error = dimension_error(map, i);
    if (!error.empty()) return error;
  }
  const int inner = map.box[0] * bytes;
  if (inner % kPiece != 0) {
    return "boxDim[0] is " + std::to_string(inner) + " bytes, expected a multiple of 16";
  }
  const int span = kPiece << static_cast<int>(map.swizzle);
  if (map.swizzle != Swizzle::none && inner > span) {
    return "boxDim[0] is " + std::to_string(inner) + " bytes, expected at most the swizzle's " +
           std::to_string(span);
  }
  if (map.fills_nan != 0 && bytes == 1) {
    return "oobFill is NaN, expected zeros for a type that is not floating-point";
  }
  return "";
}

}  // namespace wide::simt
