// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A captured call knows its kernels, so that no list of each strategy's launches is needed.
// Kernels that a vendor's library launches by the driver API have no function known to the
// runtime; they are counted, and their resources are left out.
#include <algorithm>
#include <vector>

#include "bench/timer/device_timing.hpp"
#include "bench/timer/sampler.hpp"

namespace wide::bench {

namespace {

std::vector<int64_t> extents(dim3 d) {
  return {d.x, d.y, d.z};
}

/// False if the runtime does not know the kernel.
bool describe(cudaGraphNode_t node, const Context& context, KernelUse& use) {
  cudaKernelNodeParams p{};
  cudaFuncAttributes attributes{};
  const char* name = nullptr;
  int blocks = 0, most_threads = 0;
  const auto threads = [&] { return static_cast<int>(p.blockDim.x * p.blockDim.y * p.blockDim.z); };
  const bool is_known =
      cudaGraphKernelNodeGetParams(node, &p) == cudaSuccess &&
      cudaFuncGetAttributes(&attributes, p.func) == cudaSuccess &&
      cudaFuncGetName(&name, p.func) == cudaSuccess && name != nullptr &&
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, p.func, threads(), p.sharedMemBytes) ==
          cudaSuccess &&
      cudaDeviceGetAttribute(&most_threads, cudaDevAttrMaxThreadsPerMultiProcessor,
                             context.device().ordinal) == cudaSuccess;
  if (!is_known) {
    (void)cudaGetLastError();
    return false;
  }
  use = {name,
         extents(p.gridDim),
         extents(p.blockDim),
         std::nullopt,
         static_cast<int64_t>(attributes.sharedSizeBytes),
         int64_t{p.sharedMemBytes},
         static_cast<int64_t>(attributes.localSizeBytes),
         blocks,
         100.0 * blocks * threads() / std::max(most_threads, 1)};
  if (attributes.numRegs > 0) use.registers = attributes.numRegs;
  return true;
}

}  // namespace

CallLaunches launches_of(const Context& context, Stream stream, const Call& call) {
  const Owned<cudaGraph_t> graph = capture(stream, call, 1);
  size_t count = 0;
  WIDE_CHECK_CUDA(cudaGraphGetNodes(graph.get(), nullptr, &count));
  std::vector<cudaGraphNode_t> nodes(count);
  if (count > 0) WIDE_CHECK_CUDA(cudaGraphGetNodes(graph.get(), nodes.data(), &count));
  CallLaunches launches;
  bool are_known = true;
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type{};
    WIDE_CHECK_CUDA(cudaGraphNodeGetType(node, &type));
    if (type != cudaGraphNodeTypeKernel) continue;
    ++launches.count;
    KernelUse use;
    are_known = are_known && launches.count <= kMaxKernelsListed && describe(node, context, use);
    if (are_known) launches.kernels.push_back(std::move(use));
  }
  if (!are_known) launches.kernels.clear();
  return launches;
}

}  // namespace wide::bench
