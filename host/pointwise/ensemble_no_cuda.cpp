// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/pointwise/ensemble_run.hpp"

namespace wide {

void run_ensemble_cuda(const Context&, const EnsembleProblem&, WideStrategy,
                       const EnsembleArguments&, void*, Stream) {
  throw_unsupported("ensemble: this build of wide has no CUDA");
}

}  // namespace wide
