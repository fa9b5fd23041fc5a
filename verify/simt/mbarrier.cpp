// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A phase is complete when no arrival and no byte is missing; it then publishes what all arrivals
// released, and the slot's new time.
#include "verify/simt/mbarrier.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "verify/simt/shared_memory.hpp"
#include "verify/simt/text.hpp"

namespace wide::simt {

namespace {

constexpr int64_t kMaxCount = (1 << 20) - 1;  // of arrivals and of bytes: fields of the hardware
constexpr int64_t kBytes = 8;                 // of an mbarrier
constexpr unsigned kGivesUp = 4;              // one in so many waits does, with a seed
constexpr int kMaxIdle = 64;  // times that all may give up for nothing before it is a deadlock

}  // namespace

std::string Mbarriers::name(const Mbarrier& mbarrier) const {
  return "the mbarrier at shared+" + hexadecimal(mbarrier.address - kSharedBase);
}

void Mbarriers::report(const std::string& text, Location at, Location against) const {
  block_.launch.report(FindingKind::mbarrier, block_, text, at, against);
}

int Mbarriers::find(const Thread& thread, uint32_t address, const char* what, Location at) {
  block_.shared->require(thread, address, kBytes, kBytes, what, at);
  for (size_t i = 0; i < list_.size(); ++i) {
    const Mbarrier& mbarrier = list_[i];
    if (mbarrier.address != address || !mbarrier.is_live) continue;
    if (!thread.knows(block_, mbarrier.init) && !has_met(thread, mbarrier)) {
      const Thread& initialiser = block_.threads[static_cast<size_t>(mbarrier.init.slot)];
      block_.launch.report(FindingKind::race, block_,
                           std::string(what) + " of " + name_in(block_, thread) + " on " +
                               name(mbarrier) + ", whose init by " + to_string(initialiser) +
                               " is not ordered before it",
                           at, mbarrier.at);
    }
    return static_cast<int>(i);
  }
  report(std::string(what) + " of " + name_in(block_, thread) + " at shared+" +
             hexadecimal(address - kSharedBase) + ", where no mbarrier was initialised",
         at);
  return -1;
}

Mbarriers::Mbarrier& Mbarriers::free_slot() {
  for (Mbarrier& mbarrier : list_) {
    if (!mbarrier.is_live) return mbarrier;
  }
  if (list_.size() == kMaxMbarriers) {
    throw Unsupported("more than " + std::to_string(kMaxMbarriers) + " mbarriers in one block");
  }
  return list_.emplace_back();
}

void Mbarriers::init(Thread& thread, uint32_t address, uint32_t count, Location at) {
  block_.shared->require(thread, address, kBytes, kBytes, "mbarrier.init", at);
  block_.shared->set_mbarrier(address, false);  // that it was in use is said below
  block_.shared->write(thread, address, kBytes, SharedAccess::generic, at);
  block_.shared->set_mbarrier(address, true);
  const auto same = std::find_if(list_.begin(), list_.end(), [&](const Mbarrier& mbarrier) {
    return mbarrier.is_live && mbarrier.address == address;
  });
  if (same != list_.end()) {
    report("mbarrier.init of " + to_string(thread) + " on " + name(*same) + ", which is in use", at,
           same->at);
    same->is_live = false;
  }
  if (count == 0 || count > kMaxCount) {
    report("mbarrier.init with a count of " + std::to_string(count) + ", expected 1 to " +
               std::to_string(kMaxCount),
           at);
  }
  Mbarrier& mbarrier = free_slot();
  const uint32_t time = mbarrier.time;
  mbarrier = {};
  mbarrier.is_live = true;
  mbarrier.address = address;
  mbarrier.count = mbarrier.pending = count;
  mbarrier.time = time;
  mbarrier.init = thread.now();
  mbarrier.at = at;
}

void Mbarriers::invalidate(Thread& thread, uint32_t address, Location at) {
  const int index = find(thread, address, "mbarrier.inval", at);
  block_.shared->set_mbarrier(address, false);
  block_.shared->write(thread, address, kBytes, SharedAccess::generic, at);
  if (index < 0) return;
  Mbarrier& mbarrier = list_[static_cast<size_t>(index)];
  const bool is_waited_for =
      std::any_of(mbarrier.waiters.begin(), mbarrier.waiters.end(),
                  [&](const Waiter& waiter) { return waiter.phase == mbarrier.phase; });
  if (is_waited_for || mbarrier.bytes != 0) {
    report("mbarrier.inval of " + to_string(thread) + " on " + name(mbarrier) +
               (is_waited_for ? ", which threads wait for"
                              : ", whose phase lacks " + std::to_string(mbarrier.bytes) + " bytes"),
           at, mbarrier.at);
  }
  mbarrier.is_live = false;
}

void Mbarriers::fence_init(const Thread& thread) {
  for (Mbarrier& mbarrier : list_) {
    if (mbarrier.is_live && mbarrier.init.slot == thread.index) mbarrier.fence = thread.now();
  }
}

void Mbarriers::fence_init_for_cluster(const Thread& thread) {
  for (Mbarrier& mbarrier : list_) {
    if (mbarrier.is_live && mbarrier.init.slot == thread.index)
      mbarrier.is_fenced_for_cluster = true;
  }
}

void Mbarriers::meet_cluster(const Thread& thread, uint32_t phase) {
  for (Mbarrier& mbarrier : list_) {
    const bool is_own = mbarrier.is_live && mbarrier.init.slot == thread.index;
    if (is_own && mbarrier.is_fenced_for_cluster && !mbarrier.meeting) mbarrier.meeting = phase;
  }
}

bool Mbarriers::has_met(const Thread& thread, const Mbarrier& mbarrier) {
  return mbarrier.meeting && thread.cluster_phases_over > *mbarrier.meeting;
}

void Mbarriers::require_visible(const Thread& thread, int index, const char* what,
                                Location at) const {
  const Mbarrier& mbarrier = list_[static_cast<size_t>(index)];
  // Either side may have fenced: the initialiser, or whoever knows of its init.
  const bool is_fenced = mbarrier.fence.slot >= 0 && thread.knows(block_, mbarrier.fence);
  if (is_fenced || has_met(thread, mbarrier) || thread.knew_at_proxy_fence(block_, mbarrier.init))
    return;
  block_.launch.report(FindingKind::proxy, block_,
                       std::string(what) + " of " + name_in(block_, thread) + " uses " +
                           name(mbarrier) +
                           ", whose init no fence.mbarrier_init or fence.proxy.async made "
                           "visible to the async proxy",
                       at, mbarrier.at);
}

void Mbarriers::expect(Mbarrier& mbarrier, uint32_t bytes, Location at) {
  mbarrier.bytes += bytes;
  if (mbarrier.bytes > kMaxCount) {
    report(name(mbarrier) + " expects " + std::to_string(mbarrier.bytes) +
               " bytes in one phase, more than the " + std::to_string(kMaxCount) + " it can count",
           at, mbarrier.at);
  }
}

void Mbarriers::expect_bytes(Thread& thread, uint32_t address, uint32_t bytes, Location at) {
  const int index = find(thread, address, "mbarrier.expect_tx", at);
  if (index >= 0) expect(list_[static_cast<size_t>(index)], bytes, at);
}

uint64_t Mbarriers::arrive(Thread& thread, uint32_t address, uint32_t count,
                           uint32_t expected_bytes, Location at) {
  const int index = find(thread, address, "mbarrier.arrive", at);
  if (index < 0) return 0;
  Mbarrier& mbarrier = list_[static_cast<size_t>(index)];
  const uint64_t token = mbarrier.phase;
  expect(mbarrier, expected_bytes, at);
  if (thread.block == &block_) {
    mbarrier.gathered.join(thread.known);
    mbarrier.gathered.join(thread.now(), block_.num_slots());
    ++thread.time;
  } else {
    arrive_from_afar(mbarrier, thread, at);
  }
  count_arrivals(mbarrier, count, at);
  return token;
}

void Mbarriers::arrive_from_afar(Mbarrier& mbarrier, Thread& thread, Location at) {
  const auto known = std::find_if(visitors_.begin(), visitors_.end(), [&](const Visitor& visitor) {
    return visitor.thread == &thread;
  });
  if (known == visitors_.end()) {
    visitors_.push_back({&thread, thread.now(), at});
  } else {
    known->last = thread.now(), known->at = at;
  }
  mbarrier.gathered.import(thread.release().exported(thread.block->linear_index),
                           block_.linear_index);
}

void Mbarriers::arrive_for(int index, Epoch epoch) {
  Mbarrier& mbarrier = list_[static_cast<size_t>(index)];
  mbarrier.gathered.join(epoch, block_.num_slots());
  count_arrivals(mbarrier, 1, mbarrier.at);
}

void Mbarriers::count_arrivals(Mbarrier& mbarrier, int64_t count, Location at) {
  if (count > mbarrier.pending) {
    report(name(mbarrier) + " gets more arrivals in one phase than its count of " +
               std::to_string(mbarrier.count),
           at, mbarrier.at);
  }
  mbarrier.pending = std::max<int64_t>(0, mbarrier.pending - count);
  complete_if_due(mbarrier);
}

Epoch Mbarriers::phase_end(int index) const {
  return {block_.mbarrier_slot(index), list_[static_cast<size_t>(index)].time + 1};
}

void Mbarriers::complete_bytes(int index, int64_t bytes) {
  Mbarrier& mbarrier = list_[static_cast<size_t>(index)];
  mbarrier.bytes -= bytes;
  complete_if_due(mbarrier);
}

void Mbarriers::complete_if_due(Mbarrier& mbarrier) {
  if (mbarrier.pending != 0 || mbarrier.bytes != 0) return;
  ++mbarrier.phase;
  ++mbarrier.time;
  mbarrier.pending = mbarrier.count;
  const auto index = static_cast<int>(&mbarrier - list_.data());
  mbarrier.published = std::exchange(mbarrier.gathered, {});
  mbarrier.published.join({block_.mbarrier_slot(index), mbarrier.time}, block_.num_slots());
  for (const Waiter& waiter : mbarrier.waiters) {
    if (waiter.phase + 1 != mbarrier.phase) continue;  // woken before, and has not asked yet
    block_.warps[static_cast<size_t>(waiter.warp)].wake(waiter.lanes);
  }
}

bool Mbarriers::test_wait(Warp& warp, LaneMask lanes, uint32_t address, uint32_t parity,
                          Location at) {
  const Thread& first = warp.thread(std::countr_zero(lanes));
  const int index = find(first, address, "mbarrier.try_wait", at);
  if (index < 0) return true;
  Mbarrier& mbarrier = list_[static_cast<size_t>(index)];
  const uint32_t num_phases = forget_waiters(mbarrier, warp, lanes);
  if (num_phases > 1) {
    report(name(mbarrier) + " advanced " + std::to_string(num_phases) + " phases while " +
               to_string(first) + " waited for one: the hardware may miss it",
           at, mbarrier.at);
  } else if ((mbarrier.phase & 1) == (parity & 1)) {
    return false;
  }
  for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    warp.thread(std::countr_zero(rest)).known.join(mbarrier.published);
  }
  return true;
}

uint32_t Mbarriers::forget_waiters(Mbarrier& mbarrier, const Warp& warp, LaneMask lanes) {
  uint32_t num_phases = 0;
  for (Waiter& waiter : mbarrier.waiters) {
    if (waiter.warp != warp.index || (waiter.lanes & lanes) == 0) continue;
    waiter.lanes &= ~lanes;
    num_phases = std::max(num_phases, mbarrier.phase - waiter.phase);
  }
  std::erase_if(mbarrier.waiters, [](const Waiter& waiter) { return waiter.lanes == 0; });
  return num_phases;
}

void Mbarriers::wait(Warp& warp, Path& path, uint32_t address, Location at) {
  const Thread& first = warp.thread(std::countr_zero(path.lanes));
  const int index = find(first, address, "mbarrier.try_wait", at);
  if (index < 0) return;
  Mbarrier& mbarrier = list_[static_cast<size_t>(index)];
  mbarrier.waiters.push_back({warp.index, path.lanes, mbarrier.phase});
  warp.block_lanes(path, path.lanes, "mbarrier", at);
}

bool Mbarriers::is_out_of_time(Path& path) {
  Launch& launch = block_.launch;
  return std::exchange(path.is_out_of_time, false) ||
         (launch.options.seed != 0 && launch.random() % kGivesUp == 0);
}

bool Mbarriers::pass_time() {
  int64_t num_events = 0;
  for (const Thread& thread : block_.threads) num_events += thread.time;
  for (const Warp& warp : block_.warps) num_events += std::popcount(warp.exited);
  num_idle_ = num_events == num_events_ ? num_idle_ + 1 : 0;
  num_events_ = num_events;
  if (num_idle_ == kMaxIdle) return false;
  bool any = false;
  for (const Mbarrier& mbarrier : list_) {
    for (const Waiter& waiter : mbarrier.waiters) {
      for (Path& path : block_.warps[static_cast<size_t>(waiter.warp)].paths) {
        if ((path.lanes & waiter.lanes) == 0) continue;
        path.is_ready = path.is_out_of_time = any = true;
      }
    }
  }
  return any;
}

void Mbarriers::end_of_block() {
  for (const Visitor& visitor : visitors_) {
    const auto knows = [&](const Thread& thread) {
      return thread.knows(*visitor.thread->block, visitor.last);
    };
    if (std::any_of(block_.threads.begin(), block_.threads.end(), knows)) continue;
    block_.launch.report(FindingKind::unfinished, block_,
                         "ends while " + name_in(block_, *visitor.thread) +
                             " may still arrive at its mbarriers: nothing orders that before",
                         visitor.at);
  }
  for (const Mbarrier& mbarrier : list_) {
    if (!mbarrier.is_live || mbarrier.bytes == 0) continue;
    const std::string bytes = std::to_string(std::abs(mbarrier.bytes));
    report(
        "the block ends while " + name(mbarrier) +
            (mbarrier.bytes > 0 ? " expects " + bytes + " bytes that nothing brings"
                                : " has got " + bytes + " bytes more than it was told to expect"),
        mbarrier.at);
  }
}

std::string Mbarriers::describe() const {
  std::string text;
  for (const Mbarrier& mbarrier : list_) {
    if (!mbarrier.is_live) continue;
    if (!text.empty()) text += "\n    ";
    text += name(mbarrier) + " [" + to_string(mbarrier.at) + "]: phase " +
            std::to_string(mbarrier.phase) + " lacks " + std::to_string(mbarrier.pending) + " of " +
            std::to_string(mbarrier.count) + " arrivals and " + std::to_string(mbarrier.bytes) +
            " bytes";
    std::string waiting;
    for (const Waiter& waiter : mbarrier.waiters) {
      if (waiter.phase != mbarrier.phase) continue;
      waiting += (waiting.empty() ? "; waited for by warp " : ", ") + std::to_string(waiter.warp);
    }
    text += waiting;
  }
  return text;
}

}  // namespace wide::simt
