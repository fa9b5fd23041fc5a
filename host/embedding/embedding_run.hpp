// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a plan calls after the operands were validated.
#pragma once

#include "host/embedding/embedding_strategy.hpp"

namespace wide {

/// In the workspace of a checked call; all bits set where every id was in range.
struct EmbeddingFinding {
  uint64_t place = ~uint64_t{0};  ///< position * num_members + member
  int64_t id = 0;
};

void run_embedding_cpu(const Context& context, const EmbeddingProblem& problem,
                       EmbeddingStrategy strategy, const EmbeddingArguments& arguments,
                       const Execution& execution);
void run_embedding_cuda(const Context& context, const EmbeddingProblem& problem,
                        EmbeddingStrategy strategy, const EmbeddingArguments& arguments,
                        const Execution& execution);

}  // namespace wide
