// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// By way of host memory, on a stream of its own each time.
#include "verify/support/tensors.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "wide/convert.hpp"

namespace wide::test {

Tensor upload(const Context& context, Dtype dtype, const Shape& shape,
              const std::vector<double>& values) {
  std::vector<uint8_t> bytes(static_cast<size_t>(checked_bytes(shape, dtype_bytes(dtype))));
  for (size_t i = 0; i < values.size(); ++i)
    store_element(bytes.data(), dtype, static_cast<int64_t>(i), values[i]);
  Tensor tensor(context, dtype, shape);
  const OwnedStream stream(context);
  copy(ConstTensorView(bytes.data(), dtype, shape, Device{}), tensor, stream.get());
  context.synchronize(stream.get());
  return tensor;
}

std::vector<double> download(const Context& context, const Tensor& tensor) {
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.bytes()));
  const OwnedStream stream(context);
  copy(tensor, TensorView(bytes.data(), tensor.dtype(), tensor.shape(), Device{}), stream.get());
  context.synchronize(stream.get());
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i)
    values.push_back(load_element(bytes.data(), tensor.dtype(), i));
  return values;
}

std::vector<double> uniform(int64_t count, double low, double high, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = draw(random);
  return values;
}

double worse_ratio(double worst, double got, double expected, double tolerance) {
  if (tolerance == 0 && got == expected) return worst;
  const double ratio = std::fabs(got - expected) / tolerance;
  return std::isnan(ratio) ? std::numeric_limits<double>::infinity() : std::max(ratio, worst);
}

double worst_difference(const std::vector<double>& got, const std::vector<double>& expected) {
  if (got.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = worse_ratio(worst, got[i], expected[i], 1);
  return worst;
}

}  // namespace wide::test
