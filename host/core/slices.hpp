// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Spreads independent slices of members, or the rows of these, over the threads of a CPU
// context.
#pragma once

#include <algorithm>

#include "host/core/parallel.hpp"
#include "host/core/vectorised.hpp"

namespace wide {

constexpr int64_t kElementsPerTask = 1 << 15;  ///< some tens of microseconds

/// How many members become one where they and their parameters lie side by side: all of them, or a
/// half, a quarter, .. that is at most `most`; 1 where none is. Long bodies are fast, but one
/// longer than a task would leave threads without work.
inline int64_t members_together(int64_t num_members, int64_t most) {
  int64_t together = num_members;
  while (together > most && together % 2 == 0) together /= 2;
  return together > most ? 1 : together;
}

/// Members whose channels lie side by side, in a problem with channels last, as fewer of more
/// channels.
template <class Problem>
Problem with_members_together(const Problem& p, int64_t most) {
  Problem result = p;
  if (p.x.member != p.channels || p.y.member != p.channels) return result;
  const int64_t members = members_together(p.num_members, most);
  result.num_members /= members;
  result.channels *= members;
  result.x.member = result.y.member = result.channels;
  return result;
}

/// Calls body(member, slice of the member) for `slices` slices of each member, each of `elements`
/// elements: `at_once` members' over all threads at a time.
template <class Body>
void for_each_slice(const Context& context, int64_t num_members, int64_t at_once, int64_t slices,
                    int64_t elements, const Body& body) {
  const int64_t together = at_once * slices;
  const int64_t step = std::max<int64_t>(1, kElementsPerTask / elements);
  for (int64_t first = 0; first < num_members; first += at_once) {
    parallel_for(context, (together + step - 1) / step, [&](int64_t task) {
      const int64_t end = std::min(together, (task + 1) * step);
      for (int64_t i = task * step; i < end; ++i) body(first + i / slices, i % slices);
    });
  }
}

/// Calls body(row, member), vectorised, for `rows` rows of each member, each of `elements`
/// elements: `at_once` members' over all threads at a time. A task takes whole rows of all these
/// members where rows are short, one row of some of them where rows are long.
template <class Body>
void for_each_member_row(const Context& context, int64_t rows, int64_t num_members, int64_t at_once,
                         int64_t elements, const Body& body) {
  const int64_t together = rows * at_once;
  int64_t step = std::max<int64_t>(1, kElementsPerTask / elements);
  if (step > at_once) step -= step % at_once;
  for (int64_t first = 0; first < num_members; first += at_once) {
    parallel_for(context, (together + step - 1) / step, [&](int64_t task) {
      const int64_t begin = task * step, end = std::min(together, begin + step);
      call_vectorised([&] {
        int64_t row = begin / at_once, member = begin % at_once;
        for (int64_t i = begin; i < end; ++i) {
          body(row, first + member);
          if (++member < at_once) continue;
          member = 0;
          ++row;
        }
      });
    });
  }
}

}  // namespace wide
