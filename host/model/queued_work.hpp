// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Work on a stream that uses memory of the scope that queues it.
#pragma once

#include "wide/context.hpp"

namespace wide {

/// Declare it after that memory. The scope ends with wait() or by an exception, and then waits,
/// too: an allocator might otherwise hand the memory out again before the work uses it.
class QueuedWork {
 public:
  QueuedWork(const Context& context, Stream stream) : context_(context), stream_(stream) {}
  ~QueuedWork() {
    if (is_over_) return;
    try {
      context_.synchronize(stream_);
    } catch (...) {  // the exception in flight reports the error
    }
  }
  QueuedWork(const QueuedWork&) = delete;
  QueuedWork& operator=(const QueuedWork&) = delete;

  /// Throws what the work failed with.
  void wait() {
    is_over_ = true;
    context_.synchronize(stream_);
  }

 private:
  const Context& context_;
  Stream stream_;
  bool is_over_ = false;
};

}  // namespace wide
