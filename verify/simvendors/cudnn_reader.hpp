// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From cuDNN's descriptors back to what was asked for.
#pragma once

#include "host/cudnn/cudnn_plan.hpp"
#include "verify/simvendors/cudnn_descriptor.hpp"

namespace wide::simvendors {

/// A graph with the addresses of its tensors in memory.
struct CudnnCall {
  CudnnGraph graph;
  std::vector<CudnnBinding> bindings;
};

/// Throws Refused.
CudnnType type_of(cudnnDataType_t type);

/// Of an operation graph and a variant pack; numbers are read now. Throws Refused.
CudnnCall read_call(const CudnnDescriptor& graph, const CudnnDescriptor& pack);

}  // namespace wide::simvendors
