// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/pointwise/binary_run.hpp"

namespace wide {

void run_binary_cuda(const Context&, const BinaryProblem&, WideStrategy, const BinaryArguments&,
                     Stream) {
  throw_unsupported("binary: this build of wide has no CUDA");
}

}  // namespace wide
