// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A graph in cuDNN's descriptors.
#pragma once

#include <initializer_list>
#include <utility>

#include "host/cudnn/cudnn_descriptor_cuda.hpp"
#include "host/cudnn/cudnn_graph.hpp"

namespace wide::cudnn {

cudnnDataType_t native(CudnnType type);

/// What cuDNN calls a tensor.
constexpr int64_t unique_id(CudnnTensorId tensor) {
  return int64_t{tensor} + 1;
}

/// All descriptors of a graph, kept: what a plan is made of refers to them.
class Operations {
 public:
  /// Throws Refused where cuDNN does.
  explicit Operations(const CudnnGraph& graph);
  /// The finished operation graph.
  const Descriptor& whole() const { return whole_; }

 private:
  void add(const CudnnTensor& tensor);
  /// Each returns the finished operation.
  cudnnBackendDescriptor_t add(const CudnnPointwise& p, const CudnnGraph& graph);
  cudnnBackendDescriptor_t add(const CudnnConvolution& c, const CudnnGraph& graph);
  cudnnBackendDescriptor_t add(const CudnnMatmul& m, const CudnnGraph& graph);
  cudnnBackendDescriptor_t add(const CudnnReduction& r, const CudnnGraph& graph);
  cudnnBackendDescriptor_t add(const CudnnBatchnorm& b, const CudnnGraph& graph);
  cudnnBackendDescriptor_t add(const CudnnInstancenorm& i, const CudnnGraph& graph);
  cudnnBackendDescriptor_t add(const CudnnRowNorm& n, const CudnnGraph& graph);
  cudnnBackendDescriptor_t add(const CudnnPooling& p, const CudnnGraph& graph);
  /// A norm by the statistics of x itself, which are not kept.
  cudnnBackendDescriptor_t norm_inference(cudnnBackendNormMode_t mode, CudnnTensorId x,
                                          CudnnTensorId scale, CudnnTensorId bias,
                                          CudnnTensorId epsilon, CudnnTensorId y);
  /// An operation that refers to `how`, itself a descriptor.
  Descriptor& operation(cudnnBackendDescriptorType_t type, cudnnBackendAttributeName_t name,
                        Descriptor how);
  /// `d` with the operands that there are.
  cudnnBackendDescriptor_t finished(
      Descriptor& d,
      std::initializer_list<std::pair<cudnnBackendAttributeName_t, CudnnTensorId>> operands);

  std::vector<Descriptor> tensors_, others_;
  Descriptor whole_;
};

}  // namespace wide::cudnn
