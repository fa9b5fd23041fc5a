// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Streams for CUDA's calls. For *_cuda.cpp files.
#pragma once

#include <cuda_runtime_api.h>

#include "host/core/check.hpp"
#include "wide/context.hpp"

namespace wide {

/// Throws invalid_argument for a null one, as Stream::cpu() is: CUDA would take it as the default
/// stream, which waits for every other one.
inline cudaStream_t native_stream(Stream stream) {
  WIDE_REQUIRE(stream.native() != nullptr,
               "stream is null, as Stream::cpu() is, expected one of the CUDA device "
               "(cudaStreamLegacy: the default one)");
  return static_cast<cudaStream_t>(stream.native());
}

}  // namespace wide
