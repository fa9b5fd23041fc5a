// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/whole_numbers.hpp"

#include <numeric>

namespace wide::test {

int32_t whole_product(std::span<const int16_t> a, std::span<const int16_t> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), int32_t{0});
}

}  // namespace wide::test
