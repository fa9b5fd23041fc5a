// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/hopper.hpp"

namespace wide {

const bool kHasWgmmaCode = WIDE_LACKS_SM90A == 0;

std::string wgmma_device_reason(const DeviceInfo& device, bool has_code) {
  if (device.compute_capability == 90) {
    return has_code ? ""
                    : "this build has no code for wgmma: CMAKE_CUDA_ARCHITECTURES lacks 90a, which "
                      "90 does not include";
  }
  return "wgmma is an instruction of compute capability 9.0 alone, " + device.name + " has " +
         std::to_string(device.compute_capability / 10) + "." +
         std::to_string(device.compute_capability % 10);
}

std::string tensor_map_reason(const char* what, const RowStrides& strides, int64_t rows,
                              int64_t members, int64_t features, int64_t vector) {
  const bool is_row_wrong = rows > 1 && (strides.row % vector != 0 || strides.row < features);
  const bool is_member_wrong = members > 1 && strides.member % vector != 0;
  if (!is_row_wrong && !is_member_wrong) return "";
  return std::string(what) + " has strides " + std::to_string(strides.row) + " (row) and " +
         std::to_string(strides.member) + " (member), tensor maps need multiples of " +
         std::to_string(vector) + " elements and rows apart; tensor_core takes any";
}

}  // namespace wide
