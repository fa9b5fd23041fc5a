// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators of one number and of two.
#include "host/import/onnx/fold_functions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace wide::onnx {

NumberPairFunction modulo(int64_t is_c) {
  return [=](long double a, long double b) {
    const long double rest = std::fmod(a, b);
    return is_c != 0 || rest == 0 || (rest < 0) == (b < 0) ? rest : rest + b;
  };
}

const NumberPairFunctions& arithmetic() {
  using L = long double;
  static const NumberPairFunctions table{
      {"Add", [](L a, L b) { return a + b; }},
      {"Sub", [](L a, L b) { return a - b; }},
      {"Mul", [](L a, L b) { return a * b; }},
      {"Div", [](L a, L b) { return a / b; }},
      {"Pow", [](L a, L b) { return std::pow(a, b); }},
      {"Min", [](L a, L b) { return a < b || std::isnan(a) ? a : b; }},
      {"Max", [](L a, L b) { return a > b || std::isnan(a) ? a : b; }}};
  return table;
}

const NumberPairFunctions& comparisons() {
  using L = long double;
  static const NumberPairFunctions table{{"Equal", [](L a, L b) { return a == b; }},
                                         {"Less", [](L a, L b) { return a < b; }},
                                         {"LessOrEqual", [](L a, L b) { return a <= b; }},
                                         {"GreaterOrEqual", [](L a, L b) { return a >= b; }},
                                         {"Greater", [](L a, L b) { return a > b; }},
                                         {"And", [](L a, L b) { return a != 0 && b != 0; }},
                                         {"Or", [](L a, L b) { return a != 0 || b != 0; }}};
  return table;
}

const NumberFunctions& functions() {
  using L = long double;
  static const NumberFunctions table{{"Neg", [](L a) { return -a; }},
                                     {"Abs", [](L a) { return std::fabs(a); }},
                                     {"Sqrt", [](L a) { return std::sqrt(a); }},
                                     {"Floor", [](L a) { return std::floor(a); }},
                                     {"Ceil", [](L a) { return std::ceil(a); }},
                                     {"Exp", [](L a) { return std::exp(a); }},
                                     {"Log", [](L a) { return std::log(a); }},
                                     {"Reciprocal", [](L a) { return 1 / a; }},
                                     {"Not", [](L a) { return static_cast<L>(a == 0); }}};
  return table;
}

}  // namespace wide::onnx
