// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of graphs share.
#pragma once

#include <functional>
#include <string>

#include "verify/support/refusals.hpp"
#include "wide/graph.hpp"

namespace wide::test {

/// What building a graph "net" throws, which is of this code.
inline std::string error_of(const std::function<void(GraphBuilder&)>& build,
                            ErrorCode code = ErrorCode::invalid_argument) {
  return message_of(code, [&] {
    GraphBuilder g("net");
    build(g);
  });
}

}  // namespace wide::test
