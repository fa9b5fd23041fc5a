// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simvendors/matrix.hpp"

#include <numeric>

namespace wide::simvendors {

bool Product::is_legal() const {
  return a.is_legal() && b.is_legal() && d.is_legal() && a.rows == b.rows && a.columns == d.rows &&
         b.columns == d.columns && (beta == 0 || c.is_legal());
}

void Product::compute() const {
  const test::Access access = device_access("a matrix product");
  const std::vector<double> of_a = test::load(a.tensor(), access),
                            of_b = test::load(b.tensor(), access);
  std::vector<double> values(static_cast<size_t>(d.rows * d.columns)), biases;
  if (beta != 0) values = test::load(c.tensor(), access);
  if (bias != nullptr) biases = test::load({bias, d.dtype, {d.rows}, {1}}, access);
  const auto depth = static_cast<size_t>(a.rows);
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t row = i % static_cast<size_t>(d.rows), column = i / static_cast<size_t>(d.rows);
    const double* const from_a = of_a.data() + row * depth;
    const double sum =
        std::inner_product(from_a, from_a + depth, of_b.data() + column * depth, 0.0);
    double value = alpha * sum + (beta != 0 ? beta * values[i] : 0);
    if (bias != nullptr) value += biases[row];
    values[i] = is_relu && value < 0 ? 0 : value;
  }
  test::store(d.tensor(), values, access);
}

}  // namespace wide::simvendors
