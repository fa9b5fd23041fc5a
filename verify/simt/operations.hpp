// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launches, copies and fills in the order in which they ran, each with a number of its own: the
// shadow of global memory holds these. Whether one is ordered after another is the streams' affair;
// their answers are remembered, since every byte of a copy asks the same.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

namespace wide::simt {

class Operations {
 public:
  /// `id` as the streams know it; several may have the same. `is_ordered_after` is used until the
  /// next one begins; null or empty: all earlier ones are.
  void begin(uint32_t id, const std::function<bool(uint32_t)>* is_ordered_after);

  uint32_t current() const { return static_cast<uint32_t>(ids_.size() - 1); }
  uint32_t id(uint32_t operation) const { return ids_[operation]; }

  /// Whether the current one is ordered after that one; 0: there is none.
  bool is_ordered(uint32_t operation) {
    return ordered_[operation % kRemembered] == operation || ask(operation);
  }

  // Readers of a byte that are not ordered with each other, as a numbered set; 0: none.

  /// The set after the current operation has read what `set`, then `last`, had read.
  uint32_t add_reader(uint32_t set, uint32_t last);
  /// One that the current operation is not ordered after, or 0.
  uint32_t unordered_reader(uint32_t set);

 private:
  bool ask(uint32_t operation);

  std::vector<uint32_t> ids_{0};
  const std::function<bool(uint32_t)>* is_ordered_after_ = nullptr;
  static constexpr uint32_t kRemembered = 16;
  std::array<uint32_t, kRemembered> ordered_{};  ///< by number; 0, which is nobody, always is
  std::unordered_map<uint32_t, bool> answers_;   ///< of the current one
  std::vector<std::vector<uint32_t>> sets_{{}};
  std::map<std::vector<uint32_t>, uint32_t> set_numbers_;
};

}  // namespace wide::simt
