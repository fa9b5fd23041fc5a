// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators of one number and of two, by their names, and of numbers at places.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>
#include <vector>

#include "host/import/onnx/numbers.hpp"

namespace wide::onnx {

using NumberPairFunction = std::function<long double(long double, long double)>;
using NumberPairFunctions = std::map<std::string_view, NumberPairFunction>;
using NumberFunctions = std::map<std::string_view, std::function<long double(long double)>>;

const NumberPairFunctions& arithmetic();
const NumberPairFunctions& comparisons();  ///< 1 where they hold, else 0
const NumberFunctions& functions();
/// With the divisor's sign; where `is_c` is not 0 with the dividend's, as in C.
NumberPairFunction modulo(int64_t is_c);
/// ScatterND: slices of the first input, at places that the second has, are the third's.
Numbers scattered(const OnnxNode& node, const std::vector<const Numbers*>& inputs);

}  // namespace wide::onnx
