// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Numbers by the address of a name first, since that is what an instruction carries; by the name
// itself where the address is not known.
#include "verify/simt/locations.hpp"

namespace wide::simt {

uint32_t Locations::look_up(const Location& location) {
  if (location.file == nullptr) return 0;
  const auto [known, is_new] = by_address_.try_emplace({location.file, location.line}, 0u);
  if (is_new) {
    const auto next = static_cast<uint32_t>(list_.size());
    const auto [named, is_first] = by_name_.try_emplace({location.file, location.line}, next);
    if (is_first) {
      const bool is_full = next >> kBits != 0;  // more than any module has: such lines go unnamed
      if (is_full) {
        named->second = 0;
      } else {
        list_.push_back({files_.insert(location.file).first->c_str(), location.line});
      }
    }
    known->second = named->second;
  }
  last_ = location;
  last_number_ = known->second;
  return last_number_;
}

void Locations::forget_addresses() {
  by_address_.clear();
  last_ = {};
  last_number_ = 0;
}

Locations& locations() {
  static Locations& table = *new Locations;  // findings are printed until the process ends
  return table;
}

}  // namespace wide::simt
