// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/cudnn/cudnn_softmax.hpp"

#include <cudnn_ops.h>

#include "host/core/check.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/cudnn/cudnn_operations_cuda.hpp"
#include "host/cudnn/cudnn_stream_cuda.hpp"

namespace wide {

namespace {

using cudnn::require;

/// [rows, features, 1, 1]
class RowsDescriptor {
 public:
  RowsDescriptor(const CudnnRows& rows, int32_t stride) {
    require(cudnnCreateTensorDescriptor(&handle_));
    try {
      require(cudnnSetTensor4dDescriptorEx(handle_, cudnn::native(rows.type), rows.rows,
                                           rows.features, 1, 1, stride, 1, 1, 1));
    } catch (...) {
      (void)cudnnDestroyTensorDescriptor(handle_);
      throw;
    }
  }
  ~RowsDescriptor() { (void)cudnnDestroyTensorDescriptor(handle_); }
  RowsDescriptor(const RowsDescriptor&) = delete;
  cudnnTensorDescriptor_t get() const { return handle_; }

 private:
  cudnnTensorDescriptor_t handle_ = nullptr;
};

class Softmax final : public CudnnSoftmax {
 public:
  Softmax(int ordinal, const CudnnRows& rows, bool is_log)
      : ordinal_(ordinal),
        algorithm_(is_log ? CUDNN_SOFTMAX_LOG : CUDNN_SOFTMAX_ACCURATE),
        x_(rows, rows.x_stride),
        y_(rows, rows.y_stride) {}

  void run(void* cudnn, const void* x, void* y, Stream stream) const override {
    constexpr float kOne = 1, kZero = 0;
    const CurrentDevice current(ordinal_);
    try {
      const cudnn::OnStream handle(static_cast<cudnnHandle_t>(cudnn), native_stream(stream));
      require(cudnnSoftmaxForward(handle.get(), algorithm_, CUDNN_SOFTMAX_MODE_INSTANCE, &kOne,
                                  x_.get(), x, &kZero, y_.get(), y));
    } catch (const cudnn::Refused& refused) {
      cudnn::throw_error("cudnn: ", refused);
    }
  }

 private:
  int ordinal_;
  cudnnSoftmaxAlgorithm_t algorithm_;
  RowsDescriptor x_, y_;
};

}  // namespace

std::unique_ptr<const CudnnSoftmax> make_cudnn_softmax(const CudnnDevice& device,
                                                       const CudnnRows& rows, bool is_log) {
  const std::string reason = cudnn_unavailable_reason(device);
  if (!reason.empty()) throw_unsupported("softmax: cuDNN: " + reason);
  try {
    return std::make_unique<const Softmax>(device.ordinal, rows, is_log);
  } catch (const cudnn::Failed& failed) {
    cudnn::throw_error("softmax: cuDNN: ", failed);
  } catch (const cudnn::Refused& refused) {
    throw_unsupported(std::string("softmax: cuDNN: ") + refused.what());
  }
}

}  // namespace wide
