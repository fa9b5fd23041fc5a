// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Sums of products of small whole numbers, which are exact in any order: what a test expects where
// operands are such numbers. Apart from the tests, which are compiled without optimisation.
#pragma once

#include <cstdint>
#include <span>

namespace wide::test {

/// Of as many values each; the sum fits 32 bits.
int32_t whole_product(std::span<const int16_t> a, std::span<const int16_t> b);

}  // namespace wide::test
