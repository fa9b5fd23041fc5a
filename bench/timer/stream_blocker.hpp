// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Blocks a stream until the host has enqueued everything that is to be timed. Otherwise the
// device waits for the host between two launches, and a short kernel's time is the host's. For
// CUDA-only files.
//
// A kernel spins on a word of host memory. Meanwhile the host must not call anything that waits for
// the device, as a kernel's first call does, which loads it. Therefore the kernel has a time-out,
// which fails the sample.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wide/context.hpp"

namespace wide::bench {

/// Many times what enqueueing takes: a call that waits for the device costs all of it, in each
/// sampler that blocks its stream.
inline constexpr double kBlockTimeout_s = 2;
/// Launches that may wait behind a blocker: a launch that finds the queue full waits for the
/// blocker, and the blocker for it. Queues hold about a thousand, which is undocumented.
inline constexpr int64_t kMaxBlockedLaunches = 512;

class StreamBlocker {
 public:
  StreamBlocker(const Context& context, Stream stream, double timeout_s = kBlockTimeout_s);
  ~StreamBlocker();
  StreamBlocker(const StreamBlocker&) = delete;

  void block();
  void unblock();
  /// Throws Error{cuda} if the last block was ended by its time-out. To be called after waiting for
  /// the stream.
  void require_in_time() const;

 private:
  cudaStream_t stream_;
  int64_t timeout_cycles_ = 0;
  int* words_ = nullptr;  ///< in host memory: released, timed out
  int* device_words_ = nullptr;
};

cudaError_t launch_block_stream(const int* released, int* timed_out, int64_t timeout_cycles,
                                cudaStream_t stream);

}  // namespace wide::bench
