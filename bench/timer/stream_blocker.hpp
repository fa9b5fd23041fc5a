// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Holds a stream back until the host has enqueued everything that is to be timed. Otherwise the
// device waits for the host between two launches, and a short kernel's time is the host's. For
// CUDA-only files.
//
// A kernel spins on a word of host memory. What the host calls meanwhile must not wait for the
// device: a kernel's first call, which loads it, would. So a time-out ends the kernel, and the
// sample with an error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "wide/context.hpp"

namespace wide::bench {

/// Many times what enqueueing takes: a call that waits for the device costs all of it, in each
/// sampler that holds it back.
inline constexpr double kBlockTimeout_s = 2;
/// Launches that may wait behind a blocker: a launch that finds the queue full waits, and the
/// blocker for it. Queues hold about a thousand, which nobody promises.
inline constexpr int64_t kMaxBlockedLaunches = 512;

class StreamBlocker {
 public:
  StreamBlocker(const Context& context, Stream stream, double timeout_s = kBlockTimeout_s);
  ~StreamBlocker();
  StreamBlocker(const StreamBlocker&) = delete;

  void block();
  void unblock();
  /// Throws Error{cuda} where the last block ended by itself. To be called when the stream has been
  /// waited for.
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
