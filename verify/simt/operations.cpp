// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Remembered answers about order, and interned sets of readers.
#include "verify/simt/operations.hpp"

namespace wide::simt {

void Operations::begin(uint32_t id, const std::function<bool(uint32_t)>* is_ordered_after) {
  ids_.push_back(id);
  is_ordered_after_ = is_ordered_after;
  ordered_ = {};
  answers_.clear();
}

bool Operations::ask(uint32_t operation) {
  const auto [answer, is_new] = answers_.try_emplace(operation, true);
  if (is_new) {
    const uint32_t earlier = ids_[operation];
    answer->second = operation == current() || earlier == 0 || earlier == ids_.back() ||
                     is_ordered_after_ == nullptr || !*is_ordered_after_ ||
                     (*is_ordered_after_)(earlier);
  }
  if (answer->second) ordered_[operation % kRemembered] = operation;
  return answer->second;
}

uint32_t Operations::add_reader(uint32_t set, uint32_t last) {
  if (set == 0 && is_ordered(last)) return 0;
  std::vector<uint32_t> readers;
  for (const uint32_t reader : sets_[set]) {
    if (!is_ordered(reader)) readers.push_back(reader);
  }
  if (!is_ordered(last)) readers.push_back(last);
  if (readers.empty()) return 0;
  const auto [number, is_new] =
      set_numbers_.try_emplace(readers, static_cast<uint32_t>(sets_.size()));
  if (is_new) sets_.push_back(std::move(readers));
  return number->second;
}

uint32_t Operations::unordered_reader(uint32_t set) {
  for (const uint32_t reader : sets_[set]) {
    if (!is_ordered(reader)) return reader;
  }
  return 0;
}

}  // namespace wide::simt
