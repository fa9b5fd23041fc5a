// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simcuda/operations.hpp"

#include <algorithm>

namespace wide::simcuda {

namespace {

bool is_ready(const OperationPointer& operation) {
  return std::all_of(operation->after.begin(), operation->after.end(),
                     [](const OperationPointer& earlier) { return earlier->is_done; });
}

void gather(const OperationPointer& operation, std::set<const Operation*>& needed) {
  if (operation->is_done || !needed.insert(operation.get()).second) return;
  for (const OperationPointer& earlier : operation->after) gather(earlier, needed);
}

}  // namespace

uint32_t SlotTimes::of(int slot) const {
  const auto place = static_cast<size_t>(slot);
  return place < times_.size() ? times_[place] : 0;
}

void SlotTimes::raise(int slot, uint32_t number) {
  const auto place = static_cast<size_t>(slot);
  if (place >= times_.size()) times_.resize(place + 1);
  times_[place] = std::max(times_[place], number);
}

void SlotTimes::join(const SlotTimes& others) {
  if (others.times_.size() > times_.size()) times_.resize(others.times_.size());
  for (size_t i = 0; i < others.times_.size(); ++i)
    times_[i] = std::max(times_[i], others.times_[i]);
}

SlotTimes Operation::known_after() const {
  SlotTimes times = known;
  times.raise(slot, number);
  return times;
}

OperationPointer Operations::submit(int slot, const std::vector<OperationPointer>& after,
                                    Work work) {
  auto operation = std::make_shared<Operation>();
  operation->id = static_cast<uint32_t>(by_id_.size());
  operation->slot = slot;
  operation->number = numbers_.of(slot) + 1;
  numbers_.raise(slot, operation->number);
  by_id_.emplace_back(slot, operation->number);
  operation->work = std::move(work);
  operation->known = host_;
  for (const OperationPointer& earlier : after) {
    if (earlier == nullptr) continue;
    operation->known.join(earlier->known);
    operation->known.raise(earlier->slot, earlier->number);
    operation->after.push_back(earlier);
  }
  pending_.push_back(operation);
  if (order_ == Order::eager) progress(operation, true, -1);
  if (order_ == Order::random && random_() % 2 == 0)
    progress(nullptr, false, static_cast<int>(random_() % 3));
  return operation;
}

void Operations::carry_out(const OperationPointer& operation) {
  for (const OperationPointer& earlier : operation->after)
    operation->end_us = std::max(operation->end_us, earlier->end_us);
  operation->end_us += 1;  // the least that an operation takes
  if (operation->work && sticky_error() == cudaSuccess) {
    const cudaError_t error = operation->work(*operation);
    if (error != cudaSuccess) set_sticky_error(error);
  }
  operation->is_done = true;
  operation->work = nullptr;
  operation->after.clear();
}

/// Carries out pending operations, in any order that their dependencies allow, until the target has
/// ended, or the limit is reached (negative: none).
void Operations::progress(const OperationPointer& target, bool only_needed, int limit) {
  std::set<const Operation*> needed;
  if (target != nullptr && only_needed) gather(target, needed);
  while (limit-- != 0 && !(target != nullptr && target->is_done)) {
    std::vector<size_t> choices;
    for (size_t i = 0; i < pending_.size(); ++i) {
      if (is_ready(pending_[i]) && (needed.empty() || needed.contains(pending_[i].get())))
        choices.push_back(i);
    }
    if (choices.empty()) return;
    const size_t chosen = choices[random_() % choices.size()];
    const OperationPointer operation = pending_[chosen];
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(chosen));
    carry_out(operation);
  }
}

void Operations::wait(const OperationPointer& operation) {
  if (operation == nullptr) return;
  progress(operation, order_ == Order::lazy, -1);
  host_.join(operation->known_after());
}

void Operations::wait_for_all() {
  progress(nullptr, false, -1);
  host_ = numbers_;
}

int Operations::new_slot() {
  const auto known = std::find_if(retired_.begin(), retired_.end(),
                                  [&](int slot) { return host_.of(slot) == numbers_.of(slot); });
  if (known == retired_.end()) return next_slot_++;
  const int slot = *known;
  retired_.erase(known);
  return slot;
}

bool Operations::is_ordered(uint32_t earlier, const Operation& present) const {
  if (earlier >= by_id_.size()) return true;
  const auto [slot, number] = by_id_[earlier];
  return present.known.of(slot) >= number;
}

void Operations::set_order(Order order, uint32_t seed) {
  wait_for_all();
  order_ = order;
  random_.seed(seed);
}

}  // namespace wide::simcuda
