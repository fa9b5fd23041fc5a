// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// CUDA graphs of captured work, and their owners.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <type_traits>

#include "host/core/beside_captures.hpp"
#include "host/core/cuda_check.hpp"

namespace wide {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const {
    const BesideCaptures beside;
    forget_error(cudaGraphDestroy(graph));
  }
  void operator()(cudaGraphExec_t exec) const {
    const BesideCaptures beside;
    forget_error(cudaGraphExecDestroy(exec));
  }
};
template <class Handle>
using OwnedGraph = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyGraph>;

/// Captures what `enqueue` puts on `stream`. Throws what the capture throws, and leaves the stream
/// as it was.
inline OwnedGraph<cudaGraph_t> capture_graph(cudaStream_t stream,
                                             const std::function<void()>& enqueue) {
  WIDE_CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  cudaGraph_t graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    // A stream left capturing would fail everything after.
    (void)cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
    throw;
  }
  WIDE_CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  return OwnedGraph<cudaGraph_t>(graph);
}

inline OwnedGraph<cudaGraphExec_t> instantiate_graph(cudaGraph_t graph) {
  const BesideCaptures beside;
  cudaGraphExec_t exec = nullptr;
  WIDE_CHECK_CUDA(cudaGraphInstantiate(&exec, graph, 0));
  return OwnedGraph<cudaGraphExec_t>(exec);
}

}  // namespace wide
