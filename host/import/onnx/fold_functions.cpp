// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators of one number and of two, ScatterND, and the attributes of operators that are folded.
#include "host/import/onnx/fold_functions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "host/import/onnx/numbers.hpp"

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

namespace {

/// The attributes of operators that are folded.
std::map<std::string_view, std::set<std::string_view>> known_attributes() {
  std::map<std::string_view, std::set<std::string_view>> known{
      {"Cast", {"to", "saturate"}},
      {"Concat", {"axis"}},
      {"Expand", {}},
      {"Flatten", {"axis"}},
      {"Gather", {"axis"}},
      {"Identity", {}},
      {"Mod", {"fmod"}},
      {"Range", {}},
      {"ReduceProd", {"axes", "keepdims", "noop_with_empty_axes"}},
      {"ReduceSum", {"axes", "keepdims", "noop_with_empty_axes"}},
      {"Reshape", {"allowzero"}},
      {"ScatterND", {"reduction"}},
      {"Slice", {"axes", "ends", "starts"}},
      {"Split", {"axis", "num_outputs", "split"}},
      {"Squeeze", {"axes"}},
      {"Transpose", {"perm"}},
      {"Unsqueeze", {"axes"}},
      {"Where", {}}};
  for (const NumberPairFunctions* all : {&arithmetic(), &comparisons()}) {
    for (const auto& [op, function] : *all) known[op] = {};
  }
  for (const auto& [op, function] : functions()) known[op] = {};
  return known;
}

}  // namespace

void check_attributes(const OnnxNode& node) {
  static const auto known = known_attributes();
  const auto own = known.find(node.op);
  if (own == known.end()) return;
  for (const Attribute& a : node.attributes) {
    if (!own->second.contains(a.name))
      throw_unsupported("has attribute " + in_quotes(a.name) + ", which is not supported");
  }
}

Numbers scattered(const OnnxNode& node, const std::vector<const Numbers*>& inputs) {
  const bool has_all = inputs.size() == 3 && std::ranges::none_of(inputs, [](const Numbers* in) {
                         return in == nullptr;
                       });
  WIDE_REQUIRE(has_all, "has " + counted(inputs.size(), "input") + ", expected 3");
  if (const Attribute* a = node.find("reduction"); a != nullptr && a->s != "none")
    throw_unsupported("has reduction " + std::string(a->s) + ", expected none");
  Numbers out = *inputs[0];
  const Numbers &places = *inputs[1], &updates = *inputs[2];
  const int64_t depth = places.shape.rank() == 0 ? -1 : places.shape.back();
  WIDE_REQUIRE(depth >= 1 && depth <= out.shape.rank(), "has indices " + to_string(places.shape));
  const Shape slice(std::span(out.shape.begin() + depth, out.shape.end()));
  const int64_t count = std::ssize(places.values) / depth, size = num_elements(slice);
  WIDE_REQUIRE(std::ssize(updates.values) == count * size && updates.type == out.type,
               "writes " + to_string(updates.shape) + ", expected as many as there are indices");
  for (int64_t i = 0; i < count; ++i) {
    int64_t place = 0;
    for (int axis = 0; axis < depth; ++axis) {
      const int64_t extent = out.shape[axis];
      const int64_t index = to_integer(places, static_cast<size_t>(i * depth + axis));
      WIDE_REQUIRE(index >= -extent && index < extent, "writes element " + std::to_string(index) +
                                                           ", expected one of " +
                                                           std::to_string(extent));
      place = place * extent + (index < 0 ? index + extent : index);
    }
    std::copy_n(updates.values.begin() + i * size, size, out.values.begin() + place * size);
  }
  return out;
}

}  // namespace wide::onnx
