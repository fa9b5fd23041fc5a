// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A mutex and two condition variables. Waking takes longer than a small job, and the calls of a
// model follow each other closely: a thread polls for about as long as waking takes before it
// sleeps. Polling longer, or at all where threads share cores, would take the core from the
// application.
//
// Schedulers that save power wake a thread on its waker's processor, beside an idle one, and may
// leave both there for many calls. So a thread that finds itself on its caller's processor moves
// away, and once that has happened callers let the threads that they wake begin at once.
//
// A thread begins with its share of the tasks, the same whenever a loop is as long: what is read
// again, or by the next loop over the same rows, lies in its own caches. Then it helps the others.
#include "host/core/thread_pool.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "host/core/cpu_device.hpp"
#include "host/core/float_control.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

/// Set while this thread runs a task: a parallel_for inside must not wait for the pool it is in.
thread_local bool is_inside_task = false;

constexpr std::chrono::microseconds kLookAround{50};

/// Polls until the condition holds, or for kLookAround.
template <class Condition>
void look_around_for(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + kLookAround;
  while (!condition() && std::chrono::steady_clock::now() < end) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
}

void run_serially(int64_t num_tasks, const TaskBody& body) {
  for (int64_t task = 0; task < num_tasks; ++task) body.call(body.body, task);
}

/// Moves this thread to another processor than `busy` if it may use one; it may use the same as
/// before.
void leave_processor(int busy) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return;
  cpu_set_t others = usable;
  CPU_CLR(static_cast<size_t>(busy), &others);
  if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof(others), &others) != 0) return;
  sched_setaffinity(0, sizeof(usable), &usable);
}

class InsideTask {
 public:
  InsideTask() { is_inside_task = true; }
  ~InsideTask() { is_inside_task = false; }
  InsideTask(const InsideTask&) = delete;
  InsideTask& operator=(const InsideTask&) = delete;
};

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : process_(getpid()),
      looks_around_(num_threads <= usable_cpu_threads()),
      shares_(static_cast<size_t>(std::max(num_threads, 1))) {
  threads_.reserve(static_cast<size_t>(std::max(num_threads - 1, 0)));
  try {
    for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this, i] { serve(i); });
  } catch (const std::system_error& error) {
    stop_and_join();
    throw Error(ErrorCode::out_of_memory, "thread " + std::to_string(threads_.size() + 1) + " of " +
                                              std::to_string(num_threads) +
                                              " could not be started: " + error.what() +
                                              "; expected room for all, or a smaller num_threads");
  } catch (...) {
    stop_and_join();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop_and_join();
}

void ThreadPool::stop_and_join() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::is_of_this_process() const {
  return getpid() == process_;
}

void ThreadPool::run(int64_t num_tasks, const TaskBody& body) {
  if (num_tasks <= 1 || threads_.empty() || is_inside_task || !is_of_this_process())
    return run_serially(num_tasks, body);
  const std::unique_lock job(busy_, std::try_to_lock);
  if (!job.owns_lock()) return run_serially(num_tasks, body);

  bool lets_begin = false;
  {
    const std::lock_guard lock(mutex_);
    body_ = body;
    float_control_ = float_control();
    share_out(num_tasks);
    processor_ = sched_getcpu();
    ++generation_;
    is_open_ = true;
    lets_begin = were_beside_caller_ && num_asleep_ > 0;
  }
  if (num_tasks > static_cast<int64_t>(threads_.size())) {
    wake_.notify_all();
  } else {
    for (int64_t i = 1; i < num_tasks; ++i) wake_.notify_one();
  }
  if (lets_begin && !yields_are_long_) {
    const auto begin = std::chrono::steady_clock::now();
    sched_yield();
    // Long where other programs want the processor, too: they then have it for milliseconds.
    yields_are_long_ = std::chrono::steady_clock::now() - begin > 4 * kLookAround;
  }
  take_tasks(0);

  std::exception_ptr failure;
  {
    std::unique_lock lock(mutex_);
    is_open_ = false;
    if (looks_around_) {
      lock.unlock();
      look_around_for([this] { return num_working_ == 0; });
      lock.lock();
    }
    idle_.wait(lock, [this] { return num_working_ == 0; });
    failure = std::exchange(failure_, nullptr);
  }
  if (failure) std::rethrow_exception(failure);
}

void ThreadPool::share_out(int64_t num_tasks) {
  const auto num_shares = static_cast<int64_t>(shares_.size());
  const int64_t each = num_tasks / num_shares, rest = num_tasks % num_shares;
  int64_t first = 0;
  for (int64_t i = 0; i < num_shares; ++i) {
    Share& share = shares_[static_cast<size_t>(i)];
    share.next_task.store(first, std::memory_order_relaxed);
    first += each + (i < rest ? 1 : 0);
    share.end = first;
  }
}

void ThreadPool::serve(int thread) {
  uint64_t seen = 0;
  bool polls = looks_around_;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (polls) {
      const uint64_t last = generation_;
      lock.unlock();
      look_around_for([&] { return generation_ != last; });
      lock.lock();
    }
    ++num_asleep_;
    wake_.wait(lock, [&] { return is_stopping_ || generation_ != seen; });
    --num_asleep_;
    if (is_stopping_) return;
    if (looks_around_ && sched_getcpu() == processor_) {
      were_beside_caller_ = true;
      const int busy = processor_;
      lock.unlock();
      leave_processor(busy);
      lock.lock();
    }
    seen = generation_;
    polls = looks_around_ && is_open_;  // jobs that it comes too late for are short ones
    if (!is_open_) continue;
    ++num_working_;
    lock.unlock();
    take_tasks(thread);
    lock.lock();
    if (--num_working_ == 0) idle_.notify_one();
  }
}

void ThreadPool::take_tasks(int thread) {
  const InsideTask inside;
  const FloatControl as_caller(float_control_);
  const size_t num_shares = shares_.size();
  for (size_t i = 0; i < num_shares; ++i) {
    Share& share = shares_[(static_cast<size_t>(thread) + i) % num_shares];
    // Most shares are empty when others look at them: that is read before anything is written.
    while (share.next_task.load(std::memory_order_relaxed) < share.end) {
      const int64_t task = share.next_task.fetch_add(1, std::memory_order_relaxed);
      if (task >= share.end) break;
      try {
        body_.call(body_.body, task);
      } catch (...) {
        for (Share& left : shares_) left.next_task.store(left.end, std::memory_order_relaxed);
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::current_exception();
        return;
      }
    }
  }
}

}  // namespace wide
