// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands of the runs in which calls of the runtime fail, and their results.
#pragma once

#include <cstddef>
#include <vector>

#include "wide/convert.hpp"
#include "wide/tensor.hpp"

namespace wide::test {

using Bytes = std::vector<std::byte>;

inline Bytes read(const Context& context, const Tensor& tensor, Stream stream) {
  Tensor host(Context::cpu(), tensor.dtype(), tensor.shape());
  copy(tensor.view(), host.view(), stream);
  context.synchronize(stream);
  const auto* first = static_cast<const std::byte*>(host.data());
  return {first, first + host.bytes()};
}

/// Values that differ everywhere, on the device.
inline Tensor filled(const Context& context, const Shape& shape, Stream stream, float scale = 0.25f,
                     Dtype dtype = Dtype::fp32) {
  Tensor host(Context::cpu(), dtype, shape);
  for (int64_t i = 0; i < host.bytes() / dtype_bytes(dtype); ++i) {
    store_element(host.data(), dtype, i, scale * static_cast<float>(i % 13 - 6));
  }
  Tensor tensor(context, dtype, shape);
  copy(host.view(), tensor.view(), stream);
  context.synchronize(stream);
  return tensor;
}

}  // namespace wide::test
