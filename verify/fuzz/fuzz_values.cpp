// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Values of axes as the command line has them: refused, or a list of values of the axis that is not
// longer than one may type by mistake.
#include "bench/cases/value_spec.hpp"
#include "verify/fuzz/fuzz.hpp"

void wide::fuzz::one_input(std::string_view text) {
  const bench::AxisOverride axis = bench::parse_override(text);
  for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
    for (const catalog::AxisInfo& info : spec->axes) {
      if (info.name != axis.name) continue;
      const auto values = bench::parse_values(info, axis.spec, axis.powers);
      expect(!values.empty() && values.size() <= 100'000, "a list of values of an odd length");
      return;
    }
  }
}
