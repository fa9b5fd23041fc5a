// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Sources are checked when a copy begins and read when it lands: between the two they must not
// change anyway, and what changes them is found as a race.
#include "verify/simt/cp_async.hpp"

#include <cstring>
#include <string>
#include <utility>

#include "verify/simt/global_memory.hpp"
#include "verify/simt/mbarrier.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::simt {

CopyGroups::ThreadCopies& CopyGroups::copies_of(const Thread& thread) {
  if (threads_.empty()) threads_.resize(block_.threads.size());
  return threads_[static_cast<size_t>(thread.index)];
}

void CopyGroups::copy(Thread& thread, uint32_t shared, uint64_t global, int bytes, int source_bytes,
                      Location at) {
  Launch& launch = block_.launch;
  block_.shared->require(thread, shared, bytes, bytes, "cp.async destination", at);
  if (source_bytes < 0 || source_bytes > bytes) {
    const std::string text = "cp.async of " + std::to_string(bytes) + " bytes takes " +
                             std::to_string(source_bytes) + " from its source, by " +
                             to_string(thread);
    launch.report(FindingKind::out_of_bounds, block_, text, at);
    throw Fault(Fault::Kind::illegal_instruction, text);
  }
  if (source_bytes > 0) {
    launch.memory.require(thread, global, source_bytes, bytes, "cp.async source", at);
    launch.memory.read(thread, global, source_bytes, GlobalAccess::weak, at);
  }
  block_.shared->write(thread, shared, bytes, SharedAccess::async_copy, at);
  launch.counters.async_copy_bytes += source_bytes;

  Copy copy{global, shared, static_cast<uint8_t>(bytes), static_cast<uint8_t>(source_bytes),
            false,  at};
  const Delivery delivery = launch.options.delivery;
  if (delivery == Delivery::eager || (delivery == Delivery::random && launch.random() % 2 == 0)) {
    move_data(copy);
  } else {
    std::memset(block_.shared->at(shared), 0xff, copy.bytes);
  }
  copies_of(thread).under_way.push_back(copy);
}

void CopyGroups::move_data(Copy& copy) {
  if (copy.has_data) return;
  std::byte* to = block_.shared->at(copy.shared);
  if (copy.source_bytes > 0) {
    std::memcpy(to, block_.launch.memory.data(copy.global), copy.source_bytes);
  }
  std::memset(to + copy.source_bytes, 0, static_cast<size_t>(copy.bytes - copy.source_bytes));
  copy.has_data = true;
}

void CopyGroups::commit(Thread& thread) {
  ThreadCopies& own = copies_of(thread);
  own.group_ends.push_back(own.num_begun());
}

void CopyGroups::wait_group(Thread& thread, int pending) {
  if (threads_.empty()) return;
  ThreadCopies& own = copies_of(thread);
  const auto num_done = static_cast<std::ptrdiff_t>(own.group_ends.size()) - pending;
  if (num_done <= 0) return;
  const int64_t end = own.group_ends[static_cast<size_t>(num_done - 1)];
  own.group_ends.erase(own.group_ends.begin(), own.group_ends.begin() + num_done);
  land(thread, end - own.num_landed, thread.time);
  finish_arrivals(thread);
}

void CopyGroups::wait_all(Thread& thread) {
  if (threads_.empty()) return;
  commit(thread);
  wait_group(thread, 0);
}

void CopyGroups::land(Thread& thread, int64_t count, uint32_t time) {
  ThreadCopies& own = copies_of(thread);
  if (count <= 0) return;  // an arrival had them land before
  const uint32_t now = std::exchange(thread.time, time);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    Copy& copy = own.under_way[i];
    move_data(copy);
    block_.shared->land(thread, copy.shared, copy.bytes);
  }
  thread.time = now;
  own.under_way.erase(own.under_way.begin(), own.under_way.begin() + count);
  own.num_landed += count;
}

void CopyGroups::copy_arrive(Thread& thread, uint32_t mbarrier, bool is_counted, Location at) {
  const int index = mbarriers_.find(thread, mbarrier, "cp.async.mbarrier.arrive", at);
  if (index < 0) return;
  if (is_counted) mbarriers_.add_pending(index);
  const ThreadCopies& own = copies_of(thread);
  arrivals_.push_back({thread.index, own.num_begun(), index, thread.now()});
  ++thread.time;  // what the thread does from here on is not what the arrival publishes
  Launch& launch = block_.launch;
  const Delivery delivery = launch.options.delivery;
  const bool is_due = own.under_way.empty() || delivery == Delivery::eager ||
                      (delivery == Delivery::random && launch.random() % 2 == 0);
  if (!is_due) return;
  land(thread, own.num_begun() - own.num_landed, arrivals_.back().epoch.time);
  finish_arrivals(thread);
}

void CopyGroups::finish_arrivals(const Thread& thread) {
  const int64_t num_landed = copies_of(thread).num_landed;
  const auto is_due = [&](const Arrival& arrival) {
    return arrival.thread == thread.index && arrival.after <= num_landed;
  };
  for (const Arrival& arrival : arrivals_) {
    if (is_due(arrival)) mbarriers_.arrive_for(arrival.mbarrier, arrival.epoch);
  }
  std::erase_if(arrivals_, is_due);
}

void CopyGroups::progress() {
  Launch& launch = block_.launch;
  const size_t chosen = launch.options.seed != 0 ? launch.random() % arrivals_.size() : 0;
  const Arrival arrival = arrivals_[chosen];
  Thread& thread = block_.threads[static_cast<size_t>(arrival.thread)];
  land(thread, arrival.after - copies_of(thread).num_landed, arrival.epoch.time);
  finish_arrivals(thread);
}

void CopyGroups::end_of_block() {
  for (size_t i = 0; i < threads_.size(); ++i) {
    const ThreadCopies& own = threads_[i];
    if (own.under_way.empty()) continue;
    const int64_t num_committed = own.group_ends.empty() ? 0 : own.group_ends.back();
    block_.launch.report(
        FindingKind::unfinished, block_,
        to_string(block_.threads[i]) + " ends with " + std::to_string(own.under_way.size()) +
            " cp.async that it never " +
            (num_committed <= own.num_landed ? "committed to a group" : "waited for"),
        own.under_way.front().at);
  }
}

}  // namespace wide::simt
