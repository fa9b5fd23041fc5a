// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/pointwise/softmax_run.hpp"

namespace wide {

void run_softmax_cuda(const Context&, const SoftmaxProblem&, WideStrategy, const SoftmaxArguments&,
                      Stream) {
  throw_unsupported("softmax: this build of wide has no CUDA");
}

}  // namespace wide
