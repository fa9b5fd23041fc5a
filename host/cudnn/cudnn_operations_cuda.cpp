// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/cudnn/cudnn_operations_cuda.hpp"

#include <array>

#include "host/cudnn/cudnn_plan.hpp"

namespace wide::cudnn {

cudnnDataType_t native(CudnnType type) {
  static constexpr std::array kTypes{CUDNN_DATA_FLOAT, CUDNN_DATA_HALF, CUDNN_DATA_BFLOAT16,
                                     CUDNN_DATA_INT32, CUDNN_DATA_BOOLEAN};
  return kTypes[static_cast<size_t>(type)];
}

namespace {

cudnnPointwiseMode_t native(CudnnFunction function) {
  static constexpr std::array kModes{
      CUDNN_POINTWISE_ADD,          CUDNN_POINTWISE_SUB,
      CUDNN_POINTWISE_MUL,          CUDNN_POINTWISE_DIV,
      CUDNN_POINTWISE_EXP,          CUDNN_POINTWISE_LOG,
      CUDNN_POINTWISE_RSQRT,        CUDNN_POINTWISE_RELU_FWD,
      CUDNN_POINTWISE_GELU_FWD,     CUDNN_POINTWISE_GELU_APPROX_TANH_FWD,
      CUDNN_POINTWISE_SWISH_FWD,    CUDNN_POINTWISE_GEN_INDEX,
      CUDNN_POINTWISE_CMP_GE,       CUDNN_POINTWISE_CMP_LT,
      CUDNN_POINTWISE_BINARY_SELECT};
  return kModes[static_cast<size_t>(function)];
}

cudnnResampleMode_t native(CudnnPooling::Of of) {
  static constexpr std::array kModes{CUDNN_RESAMPLE_MAXPOOL, CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING,
                                     CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING};
  return kModes[static_cast<size_t>(of)];
}

}  // namespace

Operations::Operations(const CudnnGraph& graph) : whole_(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
  for (const CudnnTensor& tensor : graph.tensors()) add(tensor);
  std::vector<cudnnBackendDescriptor_t> all;
  for (const CudnnOperation& operation : graph.operations()) {
    all.push_back(std::visit([&](const auto& one) { return add(one, graph); }, operation));
  }
  require(cudnnBackendSetAttribute(whole_.get(), CUDNN_ATTR_OPERATIONGRAPH_OPS,
                                   CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(all.size()),
                                   all.data()));
  whole_.finalize();
}

void Operations::add(const CudnnTensor& tensor) {
  Descriptor& d = tensors_.emplace_back(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  d.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, unique_id(static_cast<CudnnTensorId>(tensors_.size()) - 1));
  d.set(CUDNN_ATTR_TENSOR_DATA_TYPE, native(tensor.type));
  d.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kCudnnAlignment);
  d.set_all(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span(tensor.shape.begin(), tensor.shape.end()));
  d.set_all(CUDNN_ATTR_TENSOR_STRIDES, std::span(tensor.strides.begin(), tensor.strides.end()));
  d.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, tensor.place == CudnnTensor::Place::inside);
  d.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, tensor.place == CudnnTensor::Place::number);
  d.finalize();
}

cudnnBackendDescriptor_t Operations::finished(
    Descriptor& d,
    std::initializer_list<std::pair<cudnnBackendAttributeName_t, CudnnTensorId>> operands) {
  for (const auto& [name, id] : operands) {
    if (id != kNoCudnnTensor) d.set(name, tensors_[static_cast<size_t>(id)]);
  }
  d.finalize();
  return d.get();
}

Descriptor& Operations::operation(cudnnBackendDescriptorType_t type,
                                  cudnnBackendAttributeName_t name, Descriptor how) {
  how.finalize();
  others_.push_back(std::move(how));
  Descriptor d(type);
  d.set(name, others_.back());
  others_.push_back(std::move(d));
  return others_.back();
}

cudnnBackendDescriptor_t Operations::add(const CudnnPointwise& p, const CudnnGraph& graph) {
  Descriptor how(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  how.set(CUDNN_ATTR_POINTWISE_MODE, native(p.function));
  const CudnnType type = graph.tensor(p.y).type;
  const bool is_counted = type == CudnnType::int32 || type == CudnnType::boolean;
  how.set(CUDNN_ATTR_POINTWISE_MATH_PREC, is_counted ? native(type) : CUDNN_DATA_FLOAT);
  if (p.function == CudnnFunction::index) how.set(CUDNN_ATTR_POINTWISE_AXIS, p.axis);
  if (p.function == CudnnFunction::relu) {
    how.set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
  }
  Descriptor& d = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, std::move(how));
  return finished(d, {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, p.a},
                      {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, p.b},
                      {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, p.c},
                      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, p.y}});
}

cudnnBackendDescriptor_t Operations::add(const CudnnConvolution& c, const CudnnGraph&) {
  Descriptor how(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  how.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, static_cast<int64_t>(c.padding.size()));
  how.set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c.padding);
  how.set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c.padding);
  how.set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c.stride);
  how.set_all<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS, c.dilation);
  Descriptor& d = operation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, std::move(how));
  d.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0);
  d.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0);
  return finished(d, {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, c.x},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, c.weight},
                      {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, c.y}});
}

cudnnBackendDescriptor_t Operations::add(const CudnnMatmul& m, const CudnnGraph&) {
  Descriptor how(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
  Descriptor& d = operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_MATMUL_DESC, std::move(how));
  return finished(d, {{CUDNN_ATTR_OPERATION_MATMUL_ADESC, m.a},
                      {CUDNN_ATTR_OPERATION_MATMUL_BDESC, m.b},
                      {CUDNN_ATTR_OPERATION_MATMUL_CDESC, m.y},
                      {CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, m.rows},
                      {CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, m.columns},
                      {CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, m.depth}});
}

cudnnBackendDescriptor_t Operations::add(const CudnnReduction& r, const CudnnGraph&) {
  Descriptor how(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  how.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.set(CUDNN_ATTR_REDUCTION_OPERATOR,
          r.of == CudnnReduction::Of::sum ? CUDNN_REDUCE_TENSOR_ADD : CUDNN_REDUCE_TENSOR_MAX);
  Descriptor& d = operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_REDUCTION_DESC, std::move(how));
  return finished(d, {{CUDNN_ATTR_OPERATION_REDUCTION_XDESC, r.x},
                      {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, r.y}});
}

cudnnBackendDescriptor_t Operations::add(const CudnnBatchnorm& b, const CudnnGraph&) {
  Descriptor& d = others_.emplace_back(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_BATCH_NORM);
  d.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_TRAINING);
  return finished(d, {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, b.x},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, b.scale},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, b.bias},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, b.epsilon},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC, b.momentum},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC, b.running_mean},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC, b.running_variance},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC, b.next_mean},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC, b.next_variance},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, b.saved_mean},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, b.saved_inv_std},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, b.y}});
}

cudnnBackendDescriptor_t Operations::norm_inference(cudnnBackendNormMode_t mode, CudnnTensorId x,
                                                    CudnnTensorId scale, CudnnTensorId bias,
                                                    CudnnTensorId epsilon, CudnnTensorId y) {
  Descriptor& d = others_.emplace_back(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR);
  d.set(CUDNN_ATTR_OPERATION_NORM_FWD_MODE, mode);
  d.set(CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_NORM_FWD_INFERENCE);
  return finished(d, {{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, x},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, scale},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, bias},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, epsilon},
                      {CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, y}});
}

cudnnBackendDescriptor_t Operations::add(const CudnnInstancenorm& i, const CudnnGraph&) {
  return norm_inference(CUDNN_INSTANCE_NORM, i.x, i.scale, i.bias, i.epsilon, i.y);
}

cudnnBackendDescriptor_t Operations::add(const CudnnRowNorm& n, const CudnnGraph&) {
  return norm_inference(n.has_mean ? CUDNN_LAYER_NORM : CUDNN_RMS_NORM, n.x, n.scale, n.bias,
                        n.epsilon, n.y);
}

cudnnBackendDescriptor_t Operations::add(const CudnnPooling& p, const CudnnGraph&) {
  const bool is_max = p.of == CudnnPooling::Of::maximum;
  Descriptor how(CUDNN_BACKEND_RESAMPLE_DESCRIPTOR);
  how.set(CUDNN_ATTR_RESAMPLE_MODE, native(p.of));
  how.set(CUDNN_ATTR_RESAMPLE_COMP_TYPE, CUDNN_DATA_FLOAT);
  how.set(CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION, CUDNN_PROPAGATE_NAN);
  how.set(CUDNN_ATTR_RESAMPLE_PADDING_MODE, is_max ? CUDNN_NEG_INF_PAD : CUDNN_ZERO_PAD);
  how.set(CUDNN_ATTR_RESAMPLE_SPATIAL_DIMS, static_cast<int64_t>(p.window.size()));
  how.set_all<int64_t>(CUDNN_ATTR_RESAMPLE_PRE_PADDINGS, p.padding_before);
  how.set_all<int64_t>(CUDNN_ATTR_RESAMPLE_POST_PADDINGS, p.padding_after);
  how.set_all<int64_t>(CUDNN_ATTR_RESAMPLE_STRIDES, p.stride);
  how.set_all<int64_t>(CUDNN_ATTR_RESAMPLE_WINDOW_DIMS, p.window);
  Descriptor& d = operation(CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR,
                            CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, std::move(how));
  return finished(d, {{CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC, p.x},
                      {CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC, p.y}});
}

}  // namespace wide::cudnn
