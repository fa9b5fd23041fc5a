// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies between strided tensors, many pairs in one launch: the basis of pack and unpack.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::kernels {

inline constexpr int kMaxCopyRank = 6;
/// Pointers are passed by value in the kernel's parameters (4 KiB at most): nothing is uploaded.
inline constexpr int kMaxCopyPairs = 64;

/// All pairs share shape and strides (in elements of element_bytes).
struct StridedCopy {
  int rank = 0;
  int element_bytes = 1;  ///< 1, 2, 4, 8 or 16
  int64_t extents[kMaxCopyRank] = {};
  int64_t source_strides[kMaxCopyRank] = {};
  int64_t destination_strides[kMaxCopyRank] = {};
  int num_pairs = 0;
  const void* sources[kMaxCopyPairs] = {};
  void* destinations[kMaxCopyPairs] = {};
};

/// Copies bit for bit. Widens elements to 16 bytes where every address and stride allows it.
cudaError_t launch_strided_copy(StridedCopy copy, cudaStream_t stream);

}  // namespace wide::kernels
