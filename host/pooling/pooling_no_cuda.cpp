// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/pooling/interpolate_run.hpp"
#include "host/pooling/pooling_run.hpp"

namespace wide {

void run_pooling_cuda(const Context&, const PoolingProblem&, WideStrategy, const PoolingArguments&,
                      Stream) {
  no_cuda("pooling");
}
void run_interpolate_cuda(const Context&, const InterpolateProblem&, WideStrategy,
                          const InterpolateArguments&, Stream) {
  no_cuda("interpolate");
}

}  // namespace wide
