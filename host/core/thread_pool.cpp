// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A mutex and two condition variables. Waking takes longer than a small job, and the calls of a
// model follow each other closely: a thread polls for about as long as waking takes before it
// sleeps. Polling longer, or at all where threads share cores, would take the core from the
// application.
#include "host/core/thread_pool.hpp"

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

class InsideTask {
 public:
  InsideTask() { is_inside_task = true; }
  ~InsideTask() { is_inside_task = false; }
  InsideTask(const InsideTask&) = delete;
  InsideTask& operator=(const InsideTask&) = delete;
};

}  // namespace

ThreadPool::ThreadPool(int num_threads)
    : process_(getpid()), looks_around_(num_threads <= usable_cpu_threads()) {
  threads_.reserve(static_cast<size_t>(std::max(num_threads - 1, 0)));
  try {
    for (int i = 1; i < num_threads; ++i) threads_.emplace_back([this] { serve(); });
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

  {
    const std::lock_guard lock(mutex_);
    body_ = body;
    num_tasks_ = num_tasks;
    float_control_ = float_control();
    next_task_.store(0, std::memory_order_relaxed);
    ++generation_;
    is_open_ = true;
  }
  if (num_tasks > static_cast<int64_t>(threads_.size())) {
    wake_.notify_all();
  } else {
    for (int64_t i = 1; i < num_tasks; ++i) wake_.notify_one();
  }
  take_tasks();

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

void ThreadPool::serve() {
  uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    if (looks_around_) {
      const uint64_t last = generation_;
      lock.unlock();
      look_around_for([&] { return generation_ != last; });
      lock.lock();
    }
    wake_.wait(lock, [&] { return is_stopping_ || (is_open_ && generation_ != seen); });
    if (is_stopping_) return;
    seen = generation_;
    ++num_working_;
    lock.unlock();
    take_tasks();
    lock.lock();
    if (--num_working_ == 0) idle_.notify_one();
  }
}

void ThreadPool::take_tasks() {
  const InsideTask inside;
  const FloatControl as_caller(float_control_);
  for (;;) {
    const int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= num_tasks_) return;
    try {
      body_.call(body_.body, task);
    } catch (...) {
      next_task_.store(num_tasks_, std::memory_order_relaxed);
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      return;
    }
  }
}

}  // namespace wide
