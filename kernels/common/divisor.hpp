// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Division by a uniform number: a multiplication by its reciprocal and a correction, where the
// compiler's 64-bit division is a subroutine of a hundred instructions.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

namespace wide::kernels {

/// Divides numbers that fit an unsigned type.
template <class Unsigned>
class BasicDivisor {
 public:
  using Signed = std::make_signed_t<Unsigned>;

  BasicDivisor() = default;
  /// `value` >= 1.
  explicit BasicDivisor(Signed value)
      : value_(static_cast<Unsigned>(value)),
        reciprocal_(std::numeric_limits<Unsigned>::max() / value_) {}

#ifdef __CUDACC__
  /// Returns n / value, with the remainder in `left`; n >= 0.
  __device__ Signed divide(Signed n, Signed& left) const {
    // (2^b - 1) / value, rounded down, is less than 1 below 2^b / value, so the quotient is at
    // most 1 too small for any n below 2^b, b the bits of the type.
    const auto dividend = static_cast<Unsigned>(n);
    Unsigned quotient;
    if constexpr (sizeof(Unsigned) == 8) {
      quotient = __umul64hi(dividend, reciprocal_);
    } else {
      quotient = __umulhi(dividend, reciprocal_);
    }
    Unsigned rest = dividend - quotient * value_;
    if (rest >= value_) {
      ++quotient;
      rest -= value_;
    }
    left = static_cast<Signed>(rest);
    return static_cast<Signed>(quotient);
  }
#endif

 private:
  Unsigned value_ = 1, reciprocal_ = std::numeric_limits<Unsigned>::max();
};

using Divisor = BasicDivisor<uint64_t>;
using Divisor32 = BasicDivisor<uint32_t>;  ///< a third of the instructions

}  // namespace wide::kernels
