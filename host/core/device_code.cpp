// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/device_code.hpp"

#include <charconv>

namespace wide {

#if WIDE_HAS_CUDA
const std::string_view kBuiltArchitectures = WIDE_CUDA_ARCHITECTURES;
#else
const std::string_view kBuiltArchitectures;
#endif

namespace {

/// Whether a device of this compute capability runs what `architecture` names.
bool runs(int capability, std::string_view architecture) {
  int built = 0;
  const char* const end = architecture.data() + architecture.size();
  const auto [rest, error] = std::from_chars(architecture.data(), end, built);
  if (error != std::errc()) return true;  // native, all
  const std::string_view kind(rest, static_cast<size_t>(end - rest));
  if (kind.starts_with('a')) return capability == built;
  const bool is_one_family = kind.starts_with('f') || kind == "-real";
  return capability >= built && (!is_one_family || capability / 10 == built / 10);
}

}  // namespace

std::string device_code_reason(const DeviceInfo& device, std::string_view architectures) {
  for (std::string_view rest = architectures; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find(','));
    if (runs(device.compute_capability, one)) return "";
    rest.remove_prefix(one.size() == rest.size() ? one.size() : one.size() + 1);
  }
  if (architectures.empty()) return "";
  const int major = device.compute_capability / 10, minor = device.compute_capability % 10;
  return device.name + " has compute capability " + std::to_string(major) + "." +
         std::to_string(minor) + ", this build has code for CMAKE_CUDA_ARCHITECTURES " +
         std::string(architectures) + ", expected " +
         (major < 8 ? std::string("a device of 8.0 or later")
                    : "them to include " + std::to_string(10 * major + minor) +
                          (device.compute_capability == 90 ? "a" : ""));
}

}  // namespace wide
