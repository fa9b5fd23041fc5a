// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One kernel of a PTX file on the simulated GPU, without a runtime in between: a test says what is
// in memory, launches, and gets what the checks found, how the launch ended and what it wrote.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verify/ptx/module.hpp"
#include "verify/simt/global_memory.hpp"

namespace wide::test {

struct SimtShape {
  simt::Dim3 grid, block;
  int64_t dynamic_shared_bytes = 0;
  bool is_programmatic = false;
  simt::Dim3 cluster{};
};

struct SimtOutcome {
  std::vector<simt::Finding> findings;
  std::optional<simt::Fault::Kind> fault;
  std::string refused;  ///< what simt::Unsupported said
  simt::Counters counters;

  bool is_silent() const { return findings.empty() && !fault && refused.empty(); }
  /// Whether a finding of that kind says `text`.
  bool reports(simt::FindingKind kind, const std::string& text) const;
  std::string text() const;  ///< all of it, one finding a line
};

/// The text of simt_kernels/<name>.cu as PTX.
std::string kernel_ptx(const std::string& name);

/// A device's memory with one module on it, given as PTX.
class SimtDevice {
 public:
  explicit SimtDevice(const std::string& ptx);

  /// Not initialised: NaN, and a finding when read.
  template <typename T>
  uint64_t allocate(const std::string& name, int64_t count) {
    return allocate_bytes(name, count * static_cast<int64_t>(sizeof(T)), false, false);
  }
  template <typename T>
  uint64_t upload(const std::string& name, std::span<const T> values, bool is_read_only) {
    const auto bytes = static_cast<int64_t>(values.size_bytes());
    const uint64_t address = allocate_bytes(name, bytes, true, is_read_only);
    std::memcpy(memory_.data(address), values.data(), values.size_bytes());
    return address;
  }
  template <typename T>
  uint64_t input(const std::string& name, const std::vector<T>& values) {
    return upload<T>(name, values, true);
  }
  template <typename T>
  std::vector<T> download(uint64_t address, int64_t count) const {
    std::vector<T> values(static_cast<size_t>(count));
    std::memcpy(values.data(), memory_.data(address), values.size() * sizeof(T));
    return values;
  }

  /// `kernel` as C names it, or the one whose mangled name contains it.
  template <typename... Arguments>
  SimtOutcome launch(const std::string& kernel, const SimtShape& shape,
                     const simt::Options& options, const Arguments&... arguments) {
    simt::LaunchConfig config;
    config.grid = shape.grid;
    config.block = shape.block;
    config.cluster = shape.cluster;
    config.dynamic_shared_bytes = shape.dynamic_shared_bytes;
    config.is_programmatic = shape.is_programmatic;
    return launch(kernel, config, options, ptx::pack(arguments...));
  }
  SimtOutcome launch(const std::string& kernel, const simt::LaunchConfig& config,
                     const simt::Options& options, std::vector<std::byte> parameters);

  simt::GlobalMemory& memory() { return memory_; }
  const ptx::Kernel& kernel(const std::string& name) const;

 private:
  uint64_t allocate_bytes(const std::string& name, int64_t bytes, bool is_initialised,
                          bool is_read_only);

  simt::GlobalMemory memory_{int64_t{1} << 30};
  std::unique_ptr<ptx::Module> module_;
};

/// Part of the mangled name of `name<value>`, for kernels that are templates of one int.
std::string instance(const std::string& name, int value);

/// Seeds 0, 1, 2, each with every delivery.
std::vector<simt::Options> all_options();
std::string to_string(const simt::Options& options);

}  // namespace wide::test
