// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How the CPU device goes through packed rows: `wide` spreads all rows of all members over the
// threads at once, `sequential` the rows of one member after another.
#pragma once

#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"
#include "host/core/wide_strategy.hpp"
#include "host/pointwise/packed_rows.hpp"

namespace wide {

/// Makes members whose rows lie side by side fewer, with longer rows; returns how many have become
/// one. The caller has seen that their parameters lie side by side, too.
template <class Problem>
int64_t join_members(Problem& p) {
  if (p.x.member != p.features || p.y.member != p.features || p.features == 0) return 1;
  const int64_t members = members_together(p.num_members, kElementsPerTask / p.features);
  p.num_members /= members;
  p.features *= members;
  p.x.member = p.y.member = p.features;
  return members;
}

/// body(row, member), from several threads, vectorised.
template <class Body>
void for_each_row(const Context& context, const PackedRows& rows, WideStrategy strategy,
                  const Body& body) {
  if (rows.features == 0) return;
  const int64_t at_once = strategy == WideStrategy::wide ? rows.num_members : 1;
  for_each_member_row(context, rows.rows, rows.num_members, at_once, rows.features, body);
}

}  // namespace wide
