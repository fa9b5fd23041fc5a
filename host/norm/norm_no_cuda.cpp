// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for all norms' *_cuda.cpp where there is no CUDA.
#include "host/core/check.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/groupnorm_run.hpp"
#include "host/norm/row_norm.hpp"

namespace wide {

void run_row_norm_cuda(const Context&, const ChainProblem&, WideStrategy, const ChainArguments&,
                       Stream) {
  throw_unsupported("layernorm, rmsnorm and chain: this build of wide has no CUDA");
}

void run_batchnorm_cuda(const Context&, const BatchnormProblem&, WideStrategy,
                        const BatchnormArguments&, Stream) {
  throw_unsupported("batchnorm: this build of wide has no CUDA");
}

void run_groupnorm_cuda(const Context&, const GroupnormProblem&, WideStrategy,
                        const GroupnormArguments&, Stream) {
  throw_unsupported("groupnorm: this build of wide has no CUDA");
}

}  // namespace wide
