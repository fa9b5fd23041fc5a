// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/model/graph_reference.hpp"
#include "wide/context.hpp"
#include "wide/quantize.hpp"

namespace wide::catalog {

Doubles decoded_weight(const Doubles& blob, const QuantizedWeight& how) {
  const std::vector<uint8_t> bytes(blob.values.begin(), blob.values.end());
  std::vector<float> weight(static_cast<size_t>(how.out_features * how.in_features));
  const TensorView member(weight.data(), Dtype::fp32, {how.out_features, how.in_features},
                          Device{});
  const Shape shape{1, static_cast<int64_t>(bytes.size())};
  dequantize_weights(Context::cpu({.num_threads = 1, .allocator = nullptr}), how,
                     ConstTensorView(bytes.data(), Dtype::uint8, shape, Device{}),
                     std::span(&member, 1), Stream::cpu());
  return {{how.out_features, how.in_features}, {weight.begin(), weight.end()}};
}

}  // namespace wide::catalog
