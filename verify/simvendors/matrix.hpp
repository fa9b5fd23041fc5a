// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Column-major matrices, as cuBLAS has them.
#pragma once

#include "verify/simvendors/device_memory.hpp"
#include "wide/dtype.hpp"

namespace wide::simvendors {

struct Matrix {
  const void* data = nullptr;
  Dtype dtype = Dtype::fp32;
  int64_t rows = 0, columns = 0, leading = 0;

  /// The one that lies `stride` elements further for each i.
  Matrix at(int64_t i, int64_t stride) const {
    Matrix other = *this;
    other.data = static_cast<const std::byte*>(data) + i * stride * dtype_bytes(dtype);
    return other;
  }
  int64_t bytes() const { return ((columns - 1) * leading + rows) * dtype_bytes(dtype); }
  bool is_legal() const { return data != nullptr && leading >= rows && rows > 0 && columns > 0; }
  /// Column by column.
  test::StridedTensor tensor() const { return {data, dtype, {columns, rows}, {leading, 1}}; }
};

/// d = relu(alpha a^T b + beta c + bias), rounded once; c where beta is not 0.
struct Product {
  Matrix a, b, c, d;
  double alpha = 1, beta = 0;
  const void* bias = nullptr;  ///< a number for each row of d, of its dtype; null: none
  bool is_relu = false;

  bool is_legal() const;
  /// Inside enqueued work.
  void compute() const;
};

}  // namespace wide::simvendors
