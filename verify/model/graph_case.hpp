// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of graphs share.
#pragma once

#include <functional>
#include <string>

#include "verify/support/error_of.hpp"
#include "wide/graph.hpp"

namespace wide::test {

/// What building a graph "net" throws; any code but invalid_argument is told first.
inline std::string error_of(const std::function<void(GraphBuilder&)>& build) {
  return error_of(
      [&] {
        GraphBuilder g("net");
        build(g);
      },
      ErrorCode::invalid_argument);
}

}  // namespace wide::test
