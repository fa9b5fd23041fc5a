// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Work on a stream that uses memory of the scope that queues it.
#pragma once

#include "wide/context.hpp"

namespace wide {

/// Stands behind that memory. The scope is left by wait() or by an exception, and then waits, too:
/// an allocator may have given the memory to somebody else by the time the work comes to it.
class QueuedWork {
 public:
  QueuedWork(const Context& context, Stream stream) : context_(context), stream_(stream) {}
  ~QueuedWork() {
    if (is_over_) return;
    try {
      context_.synchronize(stream_);
    } catch (...) {  // what unwinds says what was wrong
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
