// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a plan calls after the operands were validated.
#pragma once

#include "host/embedding/embedding_strategy.hpp"

namespace wide {

void run_embedding_cpu(const Context& context, const EmbeddingProblem& problem,
                       EmbeddingStrategy strategy, const EmbeddingArguments& arguments,
                       const Execution& execution);
void run_embedding_cuda(const Context& context, const EmbeddingProblem& problem,
                        EmbeddingStrategy strategy, const EmbeddingArguments& arguments,
                        const Execution& execution);

}  // namespace wide
