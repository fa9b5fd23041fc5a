// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A context's allocator that counts the bytes in use: what a strategy takes from the device is what
// it requested, not what a driver's pools happen to hold.
#pragma once

#include <algorithm>

#include "host/core/cpu_device.hpp"
#include "wide/context.hpp"

namespace wide::bench {

class CountingAllocator final : public Allocator {
 public:
  /// Allocates from `source`, which it keeps alive.
  explicit CountingAllocator(const Context& source) : source_(source) {}

  /// On the CPU, too, a case for which there is no room is refused, and the sweep goes on.
  void* allocate(int64_t bytes) override {
    if (source_.device().type == DeviceType::cpu)
      require_available_memory(static_cast<double>(bytes),
                               "cpu: a case's operands or weights take");
    void* data = source_.allocator().allocate(bytes);
    present_ += bytes;
    peak_ = std::max(peak_, present_);
    return data;
  }
  void deallocate(void* data, int64_t bytes) noexcept override {
    source_.allocator().deallocate(data, bytes);
    present_ -= bytes;
  }
  int64_t present_bytes() const { return present_; }
  int64_t peak_bytes() const { return peak_; }
  void restart_peak() { peak_ = present_; }

 private:
  Context source_;
  int64_t present_ = 0, peak_ = 0;
};

}  // namespace wide::bench
