// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Division by a number that all threads share: a multiplication by its reciprocal and a
// correction, where a 64-bit division of the compiler's is a subroutine of a hundred instructions.
#pragma once

#include <cstdint>
#include <limits>

namespace wide::kernels {

class Divisor {
 public:
  Divisor() = default;
  /// `value` >= 1.
  explicit Divisor(int64_t value)
      : value_(static_cast<uint64_t>(value)),
        reciprocal_(std::numeric_limits<uint64_t>::max() / value_) {}

#ifdef __CUDACC__
  /// n / value, and what is left over; n >= 0.
  __device__ int64_t divide(int64_t n, int64_t& left) const {
    // (2^64 - 1) / value, rounded down, is less than 1 below 2^64 / value, so the quotient is at
    // most 1 too small for any n below 2^64.
    const auto dividend = static_cast<uint64_t>(n);
    uint64_t quotient = __umul64hi(dividend, reciprocal_);
    uint64_t rest = dividend - quotient * value_;
    if (rest >= value_) {
      ++quotient;
      rest -= value_;
    }
    left = static_cast<int64_t>(rest);
    return static_cast<int64_t>(quotient);
  }
#endif

 private:
  uint64_t value_ = 1, reciprocal_ = std::numeric_limits<uint64_t>::max();
};

}  // namespace wide::kernels
