// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the tests of graphs share.
#pragma once

#include <functional>
#include <string>

#include "wide/error.hpp"
#include "wide/graph.hpp"

namespace wide::test {

/// What building a graph "net" throws; any code but invalid_argument is told first.
inline std::string error_of(const std::function<void(GraphBuilder&)>& build) {
  GraphBuilder g("net");
  try {
    build(g);
  } catch (const Error& error) {
    return (error.code() == ErrorCode::invalid_argument ? "" : "other code: ") +
           std::string(error.what());
  }
  return "nothing was thrown";
}

}  // namespace wide::test
