// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Parameters to try out a graph. A value depends on seed, member, parameter's name and place only.
#include <algorithm>
#include <cmath>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/pack/member_copy.hpp"
#include "kernels/common/philox.hpp"
#include "wide/convert.hpp"
#include "wide/models.hpp"

namespace wide {

namespace {

/// Uniform within [middle - reach, middle + reach].
struct Range {
  double middle = 0, reach = 0.1;
};

/// By the name that a parameter has as an operand of its readers.
Range range_of(const Graph& graph, Value parameter) {
  const Shape& shape = graph.type(parameter).shape;
  for (const Node& node : graph.nodes()) {
    for (const Operand& operand : node.operands) {
      if (operand.value != parameter) continue;
      if (operand.name == "gamma" || operand.name == "running_variance") return {1, 0.25};
      if (operand.name == "table") return {0, 1};
      if (operand.name == "probability" || operand.name == "slopes") return {0.25, 0.25};
    }
  }
  if (shape.rank() < 2 || shape[0] == 0) return {};
  const auto inputs = static_cast<double>(num_elements(shape) / shape[0]);
  return {0, std::sqrt(3.0 / std::max(inputs, 1.0))};
}

uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

void require_member(int64_t member) {
  WIDE_REQUIRE(member >= 0, "parameters: member is " + std::to_string(member) + ", expected >= 0");
}

}  // namespace

OwnedParameters random_parameters(const Graph& graph, uint64_t seed, int64_t member) {
  require_member(member);
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  OwnedParameters parameters;
  for (const Value parameter : graph.parameters()) {
    const ValueType& type = graph.type(parameter);
    const Range range = range_of(graph, parameter);
    Tensor tensor(cpu, type.dtype, type.shape);
    const uint64_t high = hash_of(graph.name(parameter)) ^ (static_cast<uint64_t>(member) << 32);
    kernels::PhiloxWords words{};
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (i % 4 == 0) words = kernels::philox4x32(seed, static_cast<uint64_t>(i / 4), high);
      const double unit = words.word[i % 4] * 0x1p-32 * 2 - 1;
      store_element(tensor.data(), type.dtype, i, range.middle + range.reach * unit);
    }
    parameters.emplace(graph.name(parameter), std::move(tensor));
  }
  return parameters;
}

OwnedParameters perturbed_parameters(const MemberParameters& parameters, double spread,
                                     uint64_t seed, int64_t member) {
  require_member(member);
  WIDE_REQUIRE(std::isfinite(spread) && spread >= 0,
               "parameters: spread is " + text(spread) + ", expected a finite number >= 0");
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  OwnedParameters own;
  for (const auto& [name, given] : parameters) {
    WIDE_REQUIRE(
        given.device.type == DeviceType::cpu,
        "parameters: " + name + " is on " + to_string(given.device) + ", expected the CPU");
    WIDE_REQUIRE(given.data != nullptr || given.num_elements() == 0,
                 "parameters: " + name + " is a null pointer, expected " + to_string(given.shape) +
                     " elements");
    Tensor tensor(cpu, given.dtype, given.shape);
    const MemberCopy copy{given, tensor};
    if (tensor.bytes() > 0) copy_members_cpu(std::span(&copy, 1));
    const uint64_t high = hash_of(name) ^ (static_cast<uint64_t>(member) << 32);
    const bool moves = member > 0 && is_floating(given.dtype);
    for (int64_t i = 0; moves && i < tensor.num_elements(); ++i) {
      const auto words = kernels::philox4x32(seed, static_cast<uint64_t>(i), high);
      const double factor = 1 + spread * (words.word[0] * 0x1p-31 - 1);
      store_element(tensor.data(), given.dtype, i,
                    factor * load_element(tensor.data(), given.dtype, i));
    }
    own.emplace(name, std::move(tensor));
  }
  return own;
}

}  // namespace wide
