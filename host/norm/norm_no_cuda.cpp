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
  no_cuda("layernorm, rmsnorm and chain");
}
void run_batchnorm_cuda(const Context&, const BatchnormProblem&, WideStrategy,
                        const BatchnormArguments&, Stream) {
  no_cuda("batchnorm");
}
void run_groupnorm_cuda(const Context&, const GroupnormProblem&, WideStrategy,
                        const GroupnormArguments&, const Execution&) {
  no_cuda("groupnorm");
}

}  // namespace wide
