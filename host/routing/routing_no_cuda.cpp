// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for this folder's *_cuda.cpp where there is no CUDA.
#include "host/core/check.hpp"
#include "host/routing/routing_run.hpp"
#include "host/routing/top_k_run.hpp"

namespace wide {

void run_routing_cuda(const Context&, const RoutingProblem&, WideStrategy, const RoutingArguments&,
                      void*, Stream) {
  no_cuda("routing");
}
void run_top_k_cuda(const Context&, const TopKProblem&, WideStrategy, const TopKArguments&,
                    Stream) {
  no_cuda("top_k");
}

}  // namespace wide
