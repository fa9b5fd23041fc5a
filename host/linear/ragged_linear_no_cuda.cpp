// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for ragged_linear's kernels in a build without CUDA. No CUDA context can exist there,
// so nothing but a mistake of ours gets here.
#include "host/core/check.hpp"
#include "host/linear/ragged_linear_run.hpp"

namespace wide {

void run_ragged_linear_kernel(const DeviceInfo&, RaggedLinearStrategy, const RaggedLinearProblem&,
                              kernels::RaggedLinearParams, const RaggedLinearArguments&, Stream) {
  throw_unsupported("ragged_linear: this build has no CUDA");
}

}  // namespace wide
