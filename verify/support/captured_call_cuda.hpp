// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A call as a CUDA graph. The capture fails where a call does what no capture allows, whichever
// thread it affects.
#pragma once

#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "wide/context.hpp"

namespace wide::test {

class CapturedCall {
 public:
  CapturedCall(Stream stream, const std::function<void()>& call)
      : stream_(static_cast<cudaStream_t>(stream.native())) {
    REQUIRE(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal) == cudaSuccess);
    call();
    REQUIRE(cudaStreamEndCapture(stream_, &graph_) == cudaSuccess);
    REQUIRE(cudaGraphGetNodes(graph_, nullptr, &num_nodes_) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&executable_, graph_, 0) == cudaSuccess);
  }
  ~CapturedCall() {
    CHECK(cudaGraphExecDestroy(executable_) == cudaSuccess);
    CHECK(cudaGraphDestroy(graph_) == cudaSuccess);
  }
  CapturedCall(const CapturedCall&) = delete;
  CapturedCall& operator=(const CapturedCall&) = delete;

  size_t num_nodes() const { return num_nodes_; }
  void launch() { REQUIRE(cudaGraphLaunch(executable_, stream_) == cudaSuccess); }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  size_t num_nodes_ = 0;
};

}  // namespace wide::test
