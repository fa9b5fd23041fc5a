// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Expands a sweep and the user's overrides to cases.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/cases/value_spec.hpp"
#include "wide/catalog.hpp"

namespace wide::bench {

struct Expansion {
  std::vector<catalog::Case> cases;
  std::map<std::string, int64_t> impossible;  ///< reason -> points
};

/// The product of the sweep's axes, the last varying fastest; an override replaces an axis' values,
/// or appends an axis to the sweep's. Throws invalid_argument for an axis that the primitive lacks
/// and for more than a million points.
Expansion expand(const catalog::PrimitiveSpec& spec, const catalog::Sweep& sweep,
                 std::span<const AxisOverride> overrides);

}  // namespace wide::bench
