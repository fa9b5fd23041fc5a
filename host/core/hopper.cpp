// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/hopper.hpp"

namespace wide {

std::string wgmma_device_reason(const DeviceInfo& device) {
  if (device.compute_capability == 90) return "";
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
