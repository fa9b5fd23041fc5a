// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Work on streams. Streams, events and graphs are one thing: operations that name what they come
// after. Each has a clock over all streams, so that whether one is ordered after another is known
// in every order of execution.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "verify/simcuda/control.hpp"

namespace wide::simcuda {

struct Operation;
using OperationPointer = std::shared_ptr<Operation>;
using Work = std::function<cudaError_t(const Operation&)>;
/// How many operations of each slot are known to have ended. A slot is a stream, or a stream's part
/// of a graph; they are numbered from 1, and few, so that a copy is a run of bytes.
class SlotTimes {
 public:
  uint32_t of(int slot) const;
  void raise(int slot, uint32_t number);
  void join(const SlotTimes& others);

 private:
  std::vector<uint32_t> times_;  ///< by slot; 0 beyond the last
};

struct Operation {
  uint32_t id = 0;  ///< what the checkers call it
  int slot = 0;
  uint32_t number = 0;  ///< within its slot
  Work work;
  std::vector<OperationPointer> after;
  SlotTimes known;  ///< everything that is ordered before it
  bool is_done = false;
  double end_us = 0;  ///< logical time: the same in every run

  SlotTimes known_after() const;
};

class Operations {
 public:
  /// Made, put behind `after` and what the host has waited for, and carried out as the order says.
  OperationPointer submit(int slot, const std::vector<OperationPointer>& after, Work work);
  /// Carries out what is needed; the host knows of it afterwards.
  void wait(const OperationPointer& operation);
  void wait_for_all();
  int new_slot();
  /// Of a stream that is gone. Given out again when the host knows that all of it has ended: what
  /// comes later is ordered behind it anyway, and nobody's knowledge grows with every stream.
  void retire_slot(int slot) { retired_.push_back(slot); }
  /// Whether operation `earlier` is ordered before `present`.
  bool is_ordered(uint32_t earlier, const Operation& present) const;
  void set_order(Order order, uint32_t seed);
  void forget_pending() { pending_.clear(); }

  std::function<cudaError_t()> sticky_error;  ///< work is dropped once there is one
  std::function<void(cudaError_t)> set_sticky_error;

 private:
  void carry_out(const OperationPointer& operation);
  void progress(const OperationPointer& target, bool only_needed, int limit);

  Order order_ = Order::eager;
  std::mt19937 random_;
  SlotTimes host_;
  SlotTimes numbers_;
  std::vector<std::pair<int, uint32_t>> by_id_{{0, 1}};  ///< 0 is nobody: known to none
  std::vector<OperationPointer> pending_;
  int next_slot_ = 1;
  std::vector<int> retired_;
};

}  // namespace wide::simcuda
