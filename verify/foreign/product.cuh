// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A matrix product of whole numbers by somebody else's kernel, judged exactly: each sum is small
/// enough for every type, so that one element in a wrong place shows, and nothing else does.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace foreign {

inline void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::printf("%s: %s\n", what, cudaGetErrorString(status));
  std::exit(2);
}

/// A matrix in memory of the device and, as double, of the host.
template <class T>
class Matrix {
 public:
  Matrix(int64_t num_rows, int64_t num_columns, bool is_row_major)
      : num_rows_(num_rows),
        num_columns_(num_columns),
        is_row_major_(is_row_major),
        values_(num_rows * num_columns) {
    require(cudaMalloc(reinterpret_cast<void**>(&data_), values_.size() * sizeof(T)), "cudaMalloc");
  }
  ~Matrix() { cudaFree(data_); }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  void fill(uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<T> elements(values_.size());
    for (size_t i = 0; i < elements.size(); ++i) {
      values_[i] = static_cast<double>(static_cast<int>(random() % 7) - 3);
      elements[i] = static_cast<T>(static_cast<float>(values_[i]));
    }
    require(cudaMemcpy(data_, elements.data(), elements.size() * sizeof(T), cudaMemcpyDefault),
            "cudaMemcpy");
  }
  void read() {
    std::vector<T> elements(values_.size());
    require(cudaMemcpy(elements.data(), data_, elements.size() * sizeof(T), cudaMemcpyDefault),
            "cudaMemcpy");
    for (size_t i = 0; i < elements.size(); ++i)
      values_[i] = static_cast<double>(static_cast<float>(elements[i]));
  }
  double at(int64_t row, int64_t column) const {
    return values_[is_row_major_ ? row * num_columns_ + column : column * num_rows_ + row];
  }
  int64_t stride() const { return is_row_major_ ? num_columns_ : num_rows_; }
  T* data() const { return data_; }

 private:
  int64_t num_rows_, num_columns_;
  bool is_row_major_;
  std::vector<double> values_;
  T* data_ = nullptr;
};

/// d = alpha * a b + beta * c with a [m, k] and b [k, n]; the exit status of a program.
template <class A, class B, class C, class D>
int judge(const Matrix<A>& a, const Matrix<B>& b, const Matrix<C>* c, Matrix<D>& d, int64_t m,
          int64_t n, int64_t k, double alpha, double beta) {
  d.read();
  int64_t num_wrong = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) sum += a.at(i, l) * b.at(l, j);
      const double exact = alpha * sum + (c != nullptr ? beta * c->at(i, j) : 0.0);
      const double expected = static_cast<float>(static_cast<D>(static_cast<float>(exact)));
      if (d.at(i, j) == expected) continue;
      if (num_wrong++ < 4)
        std::printf("[%lld, %lld] is %g, expected %g\n", static_cast<long long>(i),
                    static_cast<long long>(j), d.at(i, j), expected);
    }
  }
  std::printf("%s: %lld of %lld elements wrong\n", num_wrong == 0 ? "right" : "wrong",
              static_cast<long long>(num_wrong), static_cast<long long>(m * n));
  return num_wrong == 0 ? 0 : 1;
}

}  // namespace foreign
