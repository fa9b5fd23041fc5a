// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cuDNN's softmax on the simulated GPU, with the tensor descriptors that only it takes.
#include <cudnn_ops.h>

#include <cmath>
#include <span>
#include <vector>

#include "verify/simvendors/cudnn_reader.hpp"
#include "verify/simvendors/device_memory.hpp"
#include "verify/simvendors/faults.hpp"
#include "verify/support/strided_memory.hpp"

namespace wide::simvendors {

namespace {

/// What a tensor descriptor of cuDNN's older functions stands for here.
struct Rows {
  CudnnType type = CudnnType::fp32;
  int64_t rows = 0, features = 0, stride = 0;
  test::StridedTensor tensor_at(void* data) const {
    const Dtype dtype = type == CudnnType::fp16   ? Dtype::fp16
                        : type == CudnnType::bf16 ? Dtype::bf16
                                                  : Dtype::fp32;
    return {data, dtype, {rows, features}, {stride, 1}};
  }
};

/// In double, rounded once.
void soften(const test::StridedTensor& x, const test::StridedTensor& y, bool is_log) {
  std::vector<double> values = test::load(x, device_access("cuDNN"));
  const auto features = static_cast<size_t>(x.shape[1]);
  for (size_t first = 0; first < values.size(); first += features) {
    const std::span<double> row = std::span(values).subspan(first, features);
    double most = row.front(), sum = 0;
    for (const double value : row) most = std::isnan(value) || value > most ? value : most;
    for (const double value : row) sum += std::exp(value - most);
    for (double& value : row) {
      value = is_log ? value - most - std::log(sum) : std::exp(value - most) / sum;
    }
  }
  test::store(y, values, device_access("cuDNN"));
}

}  // namespace
}  // namespace wide::simvendors

using namespace wide::simvendors;

extern "C" {

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  *descriptor = reinterpret_cast<cudnnTensorDescriptor_t>(new Rows);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  delete reinterpret_cast<Rows*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
/// Of [rows, features, 1, 1] alone.
cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
  if (fails(__func__)) return CUDNN_STATUS_INTERNAL_ERROR;
  const bool is_legal = n > 0 && c > 0 && h == 1 && w == 1 && n_stride >= c && c_stride == 1 &&
                        h_stride == 1 && w_stride == 1;
  if (!is_legal) return CUDNN_STATUS_BAD_PARAM;
  *reinterpret_cast<Rows*>(descriptor) = {type_of(type), n, c, n_stride};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  cudnnTensorDescriptor_t x_rows, const void* x, const void* beta,
                                  cudnnTensorDescriptor_t y_rows, void* y) {
  if (fails(__func__)) return CUDNN_STATUS_EXECUTION_FAILED;
  const Rows from = *reinterpret_cast<const Rows*>(x_rows);
  const Rows to = *reinterpret_cast<const Rows*>(y_rows);
  const bool is_asked_for =
      algorithm != CUDNN_SOFTMAX_FAST && mode == CUDNN_SOFTMAX_MODE_INSTANCE &&
      *static_cast<const float*>(alpha) == 1 && *static_cast<const float*>(beta) == 0 &&
      from.type == to.type && from.rows == to.rows && from.features == to.features;
  if (!is_asked_for) return CUDNN_STATUS_NOT_SUPPORTED;
  if (!reinterpret_cast<Handle*>(handle)->kernels.load()) return CUDNN_STATUS_EXECUTION_FAILED;
  const bool is_log = algorithm == CUDNN_SOFTMAX_LOG;
  const cudaStream_t stream = reinterpret_cast<Handle*>(handle)->stream;
  const cudaError_t error = enqueue(
      stream, [=] { soften(from.tensor_at(const_cast<void*>(x)), to.tensor_at(y), is_log); });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
