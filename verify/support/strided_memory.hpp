// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Strided tensors as dense rows of doubles, from and to memory that is not the program's own.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "wide/dtype.hpp"
#include "wide/shape.hpp"

namespace wide::test {

/// Where `bytes` at `address` lie for this program.
using Access = std::function<std::byte*(const void* address, int64_t bytes, bool is_write)>;
/// They are the program's own.
inline std::byte* host_access(const void* address, int64_t, bool) {
  return static_cast<std::byte*>(const_cast<void*>(address));
}

struct StridedTensor {
  const void* data = nullptr;
  Dtype dtype = Dtype::fp32;
  Shape shape;
  Strides strides;
};

/// Row-major. Touches the tensor's elements only, not what lies between them.
std::vector<double> load(const StridedTensor& tensor, const Access& access);
void store(const StridedTensor& tensor, const std::vector<double>& values, const Access& access);

}  // namespace wide::test
