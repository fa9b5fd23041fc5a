// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/model/lowering.hpp"

namespace wide {

void lower(Lowering&, const Node& node, const EnsembleOp&) {
  throw_unsupported("model: " + node.name + " (ensemble)");
}

}  // namespace wide
