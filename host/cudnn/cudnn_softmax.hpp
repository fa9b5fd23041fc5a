// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's softmax, which is a function of its own: its graphs have none outside of attention.
#pragma once

#include <memory>

#include "host/cudnn/cudnn_plan.hpp"

namespace wide {

/// Rows of neighbours, `stride` elements from row to row.
struct CudnnRows {
  CudnnType type = CudnnType::fp32;
  int32_t rows = 0, features = 0;
  int32_t x_stride = 0, y_stride = 0;
};

class CudnnSoftmax {
 public:
  virtual ~CudnnSoftmax() = default;
  /// On `cudnn`, a cudnnHandle_t, whose stream it sets. Needs no memory. Throws cudnn, or
  /// out_of_memory where cuDNN says so.
  virtual void run(void* cudnn, const void* x, void* y, Stream stream) const = 0;
};

/// The largest value of a row is subtracted first. Throws unsupported with cuDNN's own words where
/// it cannot express the rows, or is missing.
std::unique_ptr<const CudnnSoftmax> make_cudnn_softmax(const CudnnDevice& device,
                                                       const CudnnRows& rows, bool is_log);

}  // namespace wide
