// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs an embedding: a pure function of problem, device and what has been verified.
#pragma once

#include <string>

#include "wide/device.hpp"
#include "wide/embedding.hpp"

namespace wide {

enum class EmbeddingStrategy : uint8_t { sequential, indexed, wide };

std::string_view strategy_name(EmbeddingStrategy strategy);

struct EmbeddingChoice {
  EmbeddingStrategy strategy = EmbeddingStrategy::sequential;
  std::string explain;
};

/// `indexed_is_verified`: on this device's compute capability. Throws invalid_argument for an
/// unknown name, unsupported for one that belongs to the other kind of device.
EmbeddingChoice choose_embedding_strategy(const EmbeddingProblem& problem, const DeviceInfo& device,
                                          std::string_view name, bool indexed_is_verified);

}  // namespace wide
