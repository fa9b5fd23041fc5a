// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Programs for the simulated GPU: the PTX that nvcc -ptx -lineinfo writes. Text is split into
// kernels when it is loaded; a kernel is decoded when it is first launched, so that what is unknown
// in one says so by name without hindering the others.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "verify/simt/global_memory.hpp"
#include "verify/simt/machine.hpp"

namespace wide::ptx {

struct Parameter {
  std::string name;
  int offset = 0, bytes = 0;
};

/// A decoded kernel.
class Kernel : public simt::Program {
 public:
  virtual std::span<const Parameter> parameters() const = 0;
  /// Blocks of a cluster, where the kernel was compiled for certain ones.
  virtual std::optional<simt::Dim3> required_cluster() const = 0;
  virtual int64_t local_bytes() const = 0;
  /// Synchronising instructions (barriers, fences, waits, arrives, commits, expect_tx), for
  /// mutation.
  struct Synchroniser {
    std::string text;
    simt::Location at;
  };
  virtual std::vector<Synchroniser> synchronisers() const = 0;
  /// This kernel without its n-th synchroniser: a wait becomes true, an arrival or fence nothing.
  virtual std::unique_ptr<Kernel> without(int n) const = 0;
  /// A number of its instructions, whatever lines of source they are from.
  virtual uint64_t code_hash() const = 0;
};

struct Variable {
  uint64_t address = 0;
  int64_t bytes = 0;
};

class Module {
 public:
  /// Variables of module scope go to `memory`. Throws simt::Unsupported for text that is not PTX.
  Module(std::string_view text, simt::GlobalMemory& memory);
  ~Module();
  std::vector<std::string> kernel_names() const;
  /// Decoded on first use. Throws std::out_of_range (no such kernel), simt::Unsupported.
  const Kernel& kernel(const std::string& name) const;
  std::optional<Variable> variable(const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Parameters at their natural alignment, as <<<>>> lays them out.
template <class... Values>
std::vector<std::byte> pack(const Values&... values) {
  size_t end = 0;
  const auto place = [&](size_t bytes, size_t alignment) {
    const size_t at = (end + alignment - 1) / alignment * alignment;
    end = at + bytes;
    return at;
  };
  const std::array<size_t, sizeof...(Values)> at{place(sizeof(Values), alignof(Values))...};
  std::vector<std::byte> bytes(end);
  size_t index = 0;
  (std::memcpy(bytes.data() + at[index++], &values, sizeof(Values)), ...);
  return bytes;
}

}  // namespace wide::ptx
