// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs an embedding: a pure function of problem, device and what has been verified.
#pragma once

#include "host/core/strategy_choice.hpp"
#include "wide/device.hpp"
#include "wide/embedding.hpp"

namespace wide {

enum class EmbeddingStrategy : uint8_t { sequential, indexed, gather, bag, wide };

std::string_view strategy_name(EmbeddingStrategy strategy);

using EmbeddingChoice = StrategyChoice<EmbeddingStrategy>;

/// The kernel that can run any problem of this kind in one launch.
EmbeddingStrategy one_launch_strategy(const EmbeddingProblem& problem);

/// "auto" on CUDA is that kernel where it is in `verified`, else `sequential`. Throws
/// invalid_argument for an unknown name, unsupported for one that belongs to the other kind of
/// device or cannot run the problem.
EmbeddingChoice choose_embedding_strategy(const EmbeddingProblem& problem, const DeviceInfo& device,
                                          std::string_view name,
                                          std::span<const VerifiedStrategy> verified,
                                          const Tuning& tuning = {});

}  // namespace wide
