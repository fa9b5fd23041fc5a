// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/pointwise/pointwise_run.hpp"

namespace wide {

void run_pointwise_cuda(const Context&, const PointwiseProblem&, WideStrategy,
                        const PointwiseArguments&, Stream) {
  throw_unsupported("pointwise: this build of wide has no CUDA");
}

}  // namespace wide
