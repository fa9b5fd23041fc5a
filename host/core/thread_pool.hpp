// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The threads of a CPU context.
//
// A job is open while its caller works on it: threads that wake up later find it closed, so a
// short job never waits for a slow wake-up. One job at a time.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "host/core/parallel.hpp"

namespace wide {

class ThreadPool {
 public:
  /// `num_threads` counts the caller: one less is started. Throws out_of_memory where the system
  /// starts no more.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return static_cast<int>(threads_.size()) + 1; }
  /// False in the child of a fork, which has none of the threads.
  bool is_of_this_process() const;
  /// In the child of a fork, runs all tasks in the calling thread.
  void run(int64_t num_tasks, const TaskBody& body);

 private:
  void stop_and_join() noexcept;
  /// Of the tasks, for one thread and then for all.
  struct alignas(64) Share {  // a line of the cache each
    std::atomic<int64_t> next_task{0};
    int64_t end = 0;
  };

  void share_out(int64_t num_tasks);
  /// The caller is thread 0.
  void serve(int thread);
  void take_tasks(int thread);

  const pid_t process_;      ///< the one that has the threads
  const bool looks_around_;  ///< polls before a thread sleeps
  std::mutex busy_;          ///< held by the caller of the current job
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  // Written under mutex_; polled without it by threads that do not sleep yet.
  std::atomic<uint64_t> generation_{0};
  std::atomic<int> num_working_{0};
  // Guarded by mutex_.
  bool is_open_ = false, is_stopping_ = false;
  int processor_ = -1;               ///< of the last job's caller as it began
  int num_asleep_ = 0;               ///< threads
  bool were_beside_caller_ = false;  ///< a thread was found on its caller's processor
  std::exception_ptr failure_;
  // Written by the caller while no thread works on a job.
  bool yields_are_long_ = false;  ///< for the caller alone
  TaskBody body_{};
  uint64_t float_control_ = 0;  ///< the caller's, for all threads that take tasks
  std::vector<Share> shares_;

  std::vector<std::thread> threads_;
};

/// In the child of a fork the pool is leaked: its threads can neither be joined there, nor woken to
/// release the condition variables.
struct EndThreads {
  void operator()(ThreadPool* pool) const {
    if (pool->is_of_this_process()) delete pool;
  }
};
using OwnedThreadPool = std::unique_ptr<ThreadPool, EndThreads>;

}  // namespace wide
