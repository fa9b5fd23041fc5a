// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/pointwise/dropout_run.hpp"

namespace wide {

void run_dropout_cuda(const Context&, const DropoutProblem&, WideStrategy, const DropoutArguments&,
                      Stream) {
  throw_unsupported("dropout: this build of wide has no CUDA");
}

}  // namespace wide
