// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From a sweep and what the user overrides to cases.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "bench/value_spec.hpp"
#include "wide/catalog.hpp"

namespace wide::bench {

struct Expansion {
  std::vector<catalog::Case> cases;
  std::map<std::string, int64_t> impossible;  ///< reason -> points
};

/// Product of the sweep's axes, the last running fastest; an override replaces an axis' values, or
/// adds the axis behind the sweep's. Throws invalid_argument for an axis that the primitive lacks
/// and for more than a million points.
Expansion expand(const catalog::PrimitiveSpec& spec, const catalog::Sweep& sweep,
                 std::span<const AxisOverride> overrides);

}  // namespace wide::bench
