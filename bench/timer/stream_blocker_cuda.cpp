// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/timer/stream_blocker.hpp"

#include "bench/timer/device_timing.hpp"
#include "wide/error.hpp"

namespace wide::bench {

StreamBlocker::StreamBlocker(const Context& context, Stream stream, double timeout_s)
    : stream_(native(stream)) {
  int khz = 0;
  WIDE_CHECK_CUDA(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, context.device().ordinal));
  timeout_cycles_ = static_cast<int64_t>(timeout_s * khz * 1e3);
  WIDE_CHECK_CUDA(
      cudaHostAlloc(reinterpret_cast<void**>(&words_), 2 * sizeof(int), cudaHostAllocMapped));
  words_[0] = 1;
  words_[1] = 0;
  WIDE_CHECK_CUDA(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device_words_), words_, 0));
}

StreamBlocker::~StreamBlocker() {
  if (words_ == nullptr) return;
  unblock();
  (void)cudaStreamSynchronize(stream_);
  (void)cudaFreeHost(words_);
}

void StreamBlocker::block() {
  words_[0] = words_[1] = 0;
  WIDE_CHECK_CUDA(launch_block_stream(device_words_, device_words_ + 1, timeout_cycles_, stream_));
}

void StreamBlocker::unblock() {
  *static_cast<volatile int*>(words_) = 1;
}

void StreamBlocker::require_in_time() const {
  if (*static_cast<volatile int*>(words_ + 1) == 0) return;
  throw Error(ErrorCode::cuda,
              "timer: the blocked stream's time-out ended it: a call waits for the device");
}

}  // namespace wide::bench
