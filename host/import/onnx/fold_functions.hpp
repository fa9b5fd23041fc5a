// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators of one number and of two, by their names.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

namespace wide::onnx {

using NumberPairFunction = std::function<long double(long double, long double)>;
using NumberPairFunctions = std::map<std::string_view, NumberPairFunction>;
using NumberFunctions = std::map<std::string_view, std::function<long double(long double)>>;

const NumberPairFunctions& arithmetic();
const NumberPairFunctions& comparisons();  ///< 1 where they hold, else 0
const NumberFunctions& functions();
/// With the divisor's sign; where `is_c` is not 0 with the dividend's, as in C.
NumberPairFunction modulo(int64_t is_c);

}  // namespace wide::onnx
