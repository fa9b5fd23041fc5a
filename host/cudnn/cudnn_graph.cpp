// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/cudnn/cudnn_graph.hpp"

#include <string>

#include "host/core/check.hpp"

namespace wide {

CudnnType cudnn_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::fp32:
      return CudnnType::fp32;
    case Dtype::fp16:
      return CudnnType::fp16;
    case Dtype::bf16:
      return CudnnType::bf16;
    case Dtype::int32:
      return CudnnType::int32;
    default:
      throw_unsupported("cudnn: no graph of ours has elements of " +
                        std::string(dtype_name(dtype)));
  }
}

CudnnTensorId CudnnGraph::add(CudnnTensor tensor) {
  tensors_.push_back(std::move(tensor));
  return static_cast<CudnnTensorId>(tensors_.size()) - 1;
}

CudnnTensorId CudnnGraph::bind(CudnnType type, const Shape& shape, const Strides& strides) {
  return add({type, shape, strides, CudnnTensor::Place::memory});
}

CudnnTensorId CudnnGraph::inside(CudnnType type, const Shape& shape, const Strides& strides) {
  return add({type, shape, strides, CudnnTensor::Place::inside});
}
CudnnTensorId CudnnGraph::inside(CudnnType type, const Shape& shape) {
  return inside(type, shape, contiguous_strides(shape));
}

CudnnTensorId CudnnGraph::number(double value, int rank, CudnnType type) {
  const std::vector<int64_t> ones(static_cast<size_t>(rank), 1);
  return add({type, Shape(ones), Strides(ones), CudnnTensor::Place::number, value});
}

CudnnTensorId CudnnGraph::apply(CudnnFunction function, CudnnTensorId a, CudnnTensorId b,
                                CudnnTensorId c, int64_t axis) {
  const bool is_comparison = function == CudnnFunction::at_least || function == CudnnFunction::less;
  const bool counts =
      function == CudnnFunction::index || (!is_comparison && tensor(a).type == CudnnType::int32);
  const CudnnTensorId y = inside(is_comparison ? CudnnType::boolean
                                 : counts      ? CudnnType::int32
                                               : CudnnType::fp32,
                                 tensor(a).shape);
  append(CudnnPointwise{function, a, b, c, y, axis});
  return y;
}

}  // namespace wide
