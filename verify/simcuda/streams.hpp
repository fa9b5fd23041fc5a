// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What stands behind CUDA's opaque handles: streams, events, captures, graphs. A node of a graph is
// the same work that a stream would have been given, with what it follows.
#pragma once

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "verify/simcuda/operations.hpp"

struct CUgraphNode_st {
  wide::simcuda::Work work;
  std::vector<int> after;  ///< nodes of the same graph
  int stream_slot = 0;     ///< of the stream that captured it
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  bool is_programmatic = false;
  cudaEvent_t event = nullptr;  ///< of nodes that record an event, or wait for one
};

namespace wide::simcuda {

using Nodes = std::vector<std::shared_ptr<CUgraphNode_st>>;

struct Capture {
  std::unique_ptr<CUgraph_st> graph;
  cudaStream_t origin = nullptr;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool is_invalid = false;
  std::set<cudaStream_t> streams;
  unsigned long long id = 0;

  Capture();
  ~Capture();  // where a graph is known
};

class Device;

/// Calls that a capture forbids, in the modes of captures and threads: where one is under way that
/// minds, it becomes invalid.
cudaError_t forbid_while_capturing(Device& d);
/// Waiting for a stream that captures, or (null) for all streams, is never possible.
cudaError_t forbid_waiting(Device& d, const CUstream_st* stream);
/// Ends a capture without a graph.
void drop_capture(Device& d, const std::shared_ptr<Capture>& capture);

}  // namespace wide::simcuda

struct CUstream_st {
  int slot = 0, priority = 0;
  unsigned flags = 0;
  bool is_blocking = true;  ///< ordered with the default stream
  wide::simcuda::OperationPointer last;
  std::shared_ptr<wide::simcuda::Capture> capture;
  std::vector<int> tail;  ///< nodes of the capture that the next one follows
};
struct CUevent_st {
  wide::simcuda::OperationPointer operation;
  bool has_timing = true;
  std::shared_ptr<wide::simcuda::Capture> capture;
  std::vector<int> tail;
};
struct CUgraph_st {
  wide::simcuda::Nodes nodes;
};
struct CUgraphExec_st {
  wide::simcuda::Nodes nodes;
  std::map<int, int> slots;              ///< by the captured stream's
  wide::simcuda::OperationPointer last;  ///< two launches of one graph never overlap
};
