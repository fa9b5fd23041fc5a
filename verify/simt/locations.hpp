// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Source lines as small numbers: the shadow of a memory keeps a line for every access, and findings
// outlive the module whose text a Location points into. Lines and file names are kept for as long
// as the process lives; there are only as many as the kernels have.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "verify/simt/types.hpp"

namespace wide::simt {

class Locations {
 public:
  static constexpr int kBits = 21;  ///< of a number; the shadows pack it

  /// 0: no line.
  uint32_t number(const Location& location) {
    return location == last_ ? last_number_ : look_up(location);
  }
  /// The file's name in it stays valid.
  const Location& operator[](uint32_t number) const { return list_[number]; }
  /// A module may have been unloaded and another one's text lie at the same address.
  void forget_addresses();

 private:
  struct Hash {
    size_t operator()(const std::pair<const char*, int>& key) const {
      return std::hash<const char*>()(key.first) * 31 + static_cast<size_t>(key.second);
    }
  };

  uint32_t look_up(const Location& location);

  Location last_{};
  uint32_t last_number_ = 0;
  std::unordered_map<std::pair<const char*, int>, uint32_t, Hash> by_address_;
  std::map<std::pair<std::string, int>, uint32_t> by_name_;
  std::set<std::string> files_;
  std::deque<Location> list_{Location{}};
};

/// The process's one table.
Locations& locations();

}  // namespace wide::simt
