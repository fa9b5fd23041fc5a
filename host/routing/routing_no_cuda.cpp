// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/routing/routing_run.hpp"

namespace wide {

void run_routing_cuda(const Context&, const RoutingProblem&, WideStrategy, const RoutingArguments&,
                      void*, Stream) {
  no_cuda("routing");
}

}  // namespace wide
