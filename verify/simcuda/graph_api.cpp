// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stream capture and graphs. A captured graph is a list of nodes with what each follows; launching
// it submits them as operations, so everything that holds for streams holds for graphs.
#include <algorithm>
#include <set>
#include <utility>

#include "verify/simcuda/device.hpp"

namespace wide::simcuda {

namespace {

cudaError_t begin(Device& d, cudaStream_t handle, cudaStreamCaptureMode mode) {
  CUstream_st* stream = d.stream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream == &d.default_stream) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture != nullptr) return cudaErrorIllegalState;
  auto capture = std::make_shared<Capture>();
  capture->graph = new CUgraph_st;
  capture->origin = stream;
  capture->mode = mode;
  capture->id = ++d.num_captures;
  capture->streams.insert(stream);
  stream->capture = capture;
  stream->tail.clear();
  return cudaSuccess;
}

/// Every node without a successor must have come back to the stream where the capture began.
bool is_joined(const Capture& capture) {
  std::set<int> open;
  for (size_t i = 0; i < capture.graph->nodes.size(); ++i) open.insert(static_cast<int>(i));
  for (const GraphNode& node : capture.graph->nodes) {
    for (const int earlier : node.after) open.erase(earlier);
  }
  const std::vector<int>& tail = capture.origin->tail;
  return std::all_of(open.begin(), open.end(), [&](int node) {
    return std::find(tail.begin(), tail.end(), node) != tail.end();
  });
}

cudaError_t end(Device& d, cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  CUstream_st* stream = d.stream(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->origin != stream) return cudaErrorStreamCaptureUnmatched;
  const bool is_own = capture->thread == std::this_thread::get_id();
  if (!is_own && capture->mode != cudaStreamCaptureModeRelaxed)
    return cudaErrorStreamCaptureWrongThread;
  const bool was_joined = is_joined(*capture);
  for (CUstream_st* one : capture->streams) {
    one->capture.reset();
    one->tail.clear();
  }
  for (CUevent_st* event : d.events) {
    if (event->capture == capture) event->capture.reset();
  }
  if (capture->is_invalid || !was_joined) {
    delete capture->graph;
    return capture->is_invalid ? cudaErrorStreamCaptureInvalidated : cudaErrorStreamCaptureUnjoined;
  }
  d.graphs.insert(capture->graph);
  *graph = capture->graph;
  return cudaSuccess;
}

cudaError_t instantiate(Device& d, cudaGraphExec_t* exec, cudaGraph_t graph) {
  if (!d.graphs.contains(graph)) return cudaErrorInvalidValue;
  *exec = new CUgraphExec_st{graph->nodes, {}, nullptr};
  for (const GraphNode& node : graph->nodes) {
    auto& slot = (*exec)->slots[node.stream_slot];
    if (slot == 0) slot = d.operations.new_slot();
  }
  d.graph_execs.insert(*exec);
  return cudaSuccess;
}

cudaError_t launch(Device& d, cudaGraphExec_t exec, cudaStream_t handle) {
  CUstream_st* stream = d.stream(handle);
  if (stream == nullptr || !d.graph_execs.contains(exec)) return cudaErrorInvalidResourceHandle;
  if (stream->capture != nullptr) return d.unsupported("graphs launched into a capture");
  std::vector<OperationPointer> roots = d.before(*stream);
  roots.push_back(exec->last);
  std::vector<OperationPointer> submitted;
  for (const GraphNode& node : exec->nodes) {
    std::vector<OperationPointer> after;
    for (const int earlier : node.after) after.push_back(submitted[static_cast<size_t>(earlier)]);
    if (after.empty()) after = roots;
    submitted.push_back(d.operations.submit(exec->slots.at(node.stream_slot), after, node.work));
  }
  submitted.insert(submitted.end(), roots.begin(), roots.end());
  exec->last = d.operations.submit(stream->slot, submitted, nullptr);
  stream->last = exec->last;
  return d.sticky;
}

/// A handle is a node's address in its graph.
const GraphNode* node_of(Device& d, cudaGraphNode_t handle) {
  for (const cudaGraph_t graph : d.graphs) {
    for (const GraphNode& node : graph->nodes) {
      if (reinterpret_cast<cudaGraphNode_t>(const_cast<GraphNode*>(&node)) == handle) return &node;
    }
  }
  return nullptr;
}

}  // namespace

}  // namespace wide::simcuda

using namespace wide::simcuda;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call("cudaStreamBeginCapture", [&](Device& d) { return begin(d, stream, mode); });
}
/// A capture must end whatever has failed, so it is not made to fail.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return release("cudaStreamEndCapture", [&](Device& d) { return end(d, stream, graph); });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&](Device& d) {
    CUstream_st* stream = d.stream(handle);
    if (stream == nullptr) return cudaErrorInvalidResourceHandle;
    *status = stream->capture == nullptr    ? cudaStreamCaptureStatusNone
              : stream->capture->is_invalid ? cudaStreamCaptureStatusInvalidated
                                            : cudaStreamCaptureStatusActive;
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return std::swap(*mode, capture_mode()), cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return call("cudaGraphInstantiate", [&](Device& d) { return instantiate(d, exec, graph); });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) {
  return call("cudaGraphUpload", [&](Device& d) {
    return d.graph_execs.contains(exec) ? cudaSuccess : cudaErrorInvalidResourceHandle;
  });
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call("cudaGraphLaunch", [&](Device& d) { return launch(d, exec, stream); });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return release("cudaGraphDestroy", [&](Device& d) {
    if (d.graphs.erase(graph) == 0) return cudaErrorInvalidValue;
    delete graph;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return release("cudaGraphExecDestroy", [&](Device& d) {
    if (d.graph_execs.erase(exec) == 0) return cudaErrorInvalidValue;
    for (const auto& [stream, slot] : exec->slots) d.operations.retire_slot(slot);
    delete exec;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return call("cudaGraphGetNodes", [&](Device& d) {
    if (!d.graphs.contains(graph)) return cudaErrorInvalidValue;
    if (nodes == nullptr) return *count = graph->nodes.size(), cudaSuccess;
    *count = std::min(*count, graph->nodes.size());
    for (size_t i = 0; i < *count; ++i)
      nodes[i] = reinterpret_cast<cudaGraphNode_t>(&graph->nodes[i]);
    return cudaSuccess;
  });
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
  return call("cudaGraphNodeGetType", [&](Device& d) {
    const GraphNode* node = node_of(d, handle);
    if (node == nullptr) return cudaErrorInvalidValue;
    *type = node->kernel ? cudaGraphNodeTypeKernel : cudaGraphNodeTypeMemcpy;
    return cudaSuccess;
  });
}
cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t handle, cudaKernelNodeParams* parameters) {
  return call("cudaGraphKernelNodeGetParams", [&](Device& d) {
    const GraphNode* node = node_of(d, handle);
    if (node == nullptr || !node->kernel) return cudaErrorInvalidValue;
    *parameters = *node->kernel;
    return cudaSuccess;
  });
}

}  // extern "C"
