// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/embedding/embedding_run.hpp"

namespace wide {

void run_embedding_cuda(const Context&, const EmbeddingProblem&, EmbeddingStrategy,
                        const EmbeddingArguments&, const Execution&) {
  no_cuda("embedding");
}

}  // namespace wide
