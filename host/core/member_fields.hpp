// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One tensor of every member's parameters, as pack() and unpack() take them.
#pragma once

#include <span>
#include <vector>

namespace wide {

template <class Member, class View>
std::vector<View> fields_of(std::span<const Member> members, View Member::*field) {
  std::vector<View> views;
  for (const Member& member : members) views.push_back(member.*field);
  return views;
}

}  // namespace wide
