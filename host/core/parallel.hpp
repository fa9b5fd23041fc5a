// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Spreads independent tasks over the threads of a CPU context.
//
// Each thread has a share of the tasks and then takes others' one by one, because the threads of a
// shared machine are never equally fast; a caller makes tasks of some tens of microseconds. What a
// task computes may depend on its number only, so results do not depend on the number of threads.
// All tasks round as the caller does, and flush denormal numbers where it does.
#pragma once

#include <cstdint>
#include <memory>

#include "wide/context.hpp"

namespace wide {

/// A loop body without its type: no allocation, unlike std::function.
struct TaskBody {
  void (*call)(const void* body, int64_t task);
  const void* body;
};

/// `body` must outlive the result.
template <class Body>
TaskBody task_body(const Body& body) {
  return {[](const void* erased, int64_t task) { (*static_cast<const Body*>(erased))(task); },
          std::addressof(body)};
}

/// See parallel_for.
void run_tasks(const Context& context, int64_t num_tasks, const TaskBody& body);

/// Calls body(task) for every task in [0, num_tasks), from several threads, the caller's among
/// them, and returns when all are done. The first exception of a body is rethrown; tasks not begun
/// by then are dropped. Runs all tasks in the calling thread where the context has no threads
/// (CUDA), where another thread's parallel_for occupies them, and inside another body.
template <class Body>
void parallel_for(const Context& context, int64_t num_tasks, const Body& body) {
  run_tasks(context, num_tasks, task_body(body));
}

}  // namespace wide
