// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Enqueues work on a stream that is blocked meanwhile, where possible: not on the simulated GPU,
// which has no times to protect and may run a kernel when it is launched. For CUDA-only files.
#pragma once

#include <optional>

#include "bench/process/simulation.hpp"
#include "bench/timer/stream_blocker.hpp"

namespace wide::bench {

class HeldStream {
 public:
  /// More `launches` than a queue may hold are not blocked.
  HeldStream(const Context& context, Stream stream, int64_t launches)
      : context_(context), stream_(stream) {
    if (!is_simulated() && launches <= kMaxBlockedLaunches) blocker_.emplace(context, stream);
  }
  /// Waits for what was enqueued.
  template <class F>
  void run(const F& enqueue) {
    if (blocker_) blocker_->block();
    try {
      enqueue();
    } catch (...) {
      if (blocker_) blocker_->unblock();
      throw;
    }
    if (blocker_) blocker_->unblock();
    context_.synchronize(stream_);
    if (blocker_) blocker_->require_in_time();
  }

 private:
  Context context_;
  Stream stream_;
  std::optional<StreamBlocker> blocker_;
};

}  // namespace wide::bench
