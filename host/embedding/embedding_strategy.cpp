// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/embedding/embedding_strategy.hpp"

#include <array>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"

namespace wide {

std::string_view strategy_name(EmbeddingStrategy strategy) {
  switch (strategy) {
    case EmbeddingStrategy::sequential:
      return "sequential";
    case EmbeddingStrategy::indexed:
      return "indexed";
    case EmbeddingStrategy::wide:
      return "wide";
  }
  return "?";
}

EmbeddingChoice choose_embedding_strategy(const EmbeddingProblem&, const DeviceInfo& device,
                                          std::string_view name, bool indexed_is_verified) {
  static constexpr std::array<std::string_view, 4> kNames{"auto", "sequential", "indexed", "wide"};
  require_known_strategy("embedding", name, kNames);
  const bool on_cuda = device.device.type == DeviceType::cuda;
  using enum EmbeddingStrategy;
  if (name == "auto") {
    if (!on_cuda) return {wide, "wide: one pass over all members keeps every thread busy"};
    if (indexed_is_verified) return {indexed, "indexed: one launch for all members"};
    return {sequential, "sequential: indexed is unverified on compute capability " +
                            std::to_string(device.compute_capability)};
  }
  const std::string asked = std::string(name) + ": asked for by name";
  if (name == "sequential") return {sequential, asked};
  if (name == "indexed") {
    if (!on_cuda) throw_unsupported("embedding: indexed is a CUDA kernel, the device is the CPU");
    return {indexed, asked};
  }
  if (on_cuda)
    throw_unsupported("embedding: wide is the CPU device's strategy, the device is " +
                      to_string(device.device));
  return {wide, asked};
}

}  // namespace wide
