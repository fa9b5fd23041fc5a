// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Values to and from tensors of any device, for tests that judge numbers one by one.
#pragma once

#include <vector>

#include "wide/tensor.hpp"

namespace wide::test {

/// Rounded to `dtype`; waits for the copy.
Tensor upload(const Context& context, Dtype dtype, const Shape& shape,
              const std::vector<double>& values);
std::vector<double> download(const Context& context, const Tensor& tensor);

/// Seeded, in [low, high).
std::vector<double> uniform(int64_t count, double low, double high, uint64_t seed);

/// The larger of `worst` and |got - expected| / tolerance; infinite for a NaN.
double worse_ratio(double worst, double got, double expected, double tolerance);

/// The largest |got - expected|; infinite for a NaN, or where there are more of one.
double worst_difference(const std::vector<double>& got, const std::vector<double>& expected);

}  // namespace wide::test
