// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A mixture of experts captured once: a replay follows other x, whose rows go to other experts.
#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>

#include "host/core/capture_cuda.hpp"
#include "verify/routing/mixture.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {

TEST_CASE("mixture on CUDA: one graph for any x", "[gpu]") {
  const Context context = require_cuda();
  const OwnedStream stream(context);
  const auto native = static_cast<cudaStream_t>(stream.get().native());
  struct Way {
    Dtype dtype;
    GateFunction gate;
    const char* strategy;  ///< of top_k, routing and ensemble
    double most;
  };
  for (const Way& way : {Way{Dtype::fp32, GateFunction::softmax, "wide", 1e-4},
                         Way{Dtype::fp32, GateFunction::softmax_all, "sequential", 1e-4},
                         Way{Dtype::bf16, GateFunction::softmax, "wide", 0.5}}) {
    INFO(dtype_name(way.dtype) << " " << gate_function_name(way.gate) << " " << way.strategy);
    Mixture m;
    m.gate = way.gate;
    const char* experts = way.dtype == Dtype::fp32 ? "layerwise" : "fused";
    MixtureCalls calls(context, m, way.dtype, {"simt", experts, way.strategy}, 0, m.experts);
    const OwnedGraph<cudaGraph_t> graph = capture_graph(native, [&] { calls.run(stream.get()); });
    const OwnedGraph<cudaGraphExec_t> executable = instantiate_graph(graph.get());
    for (const uint64_t seed : {7u, 8u, 9u}) {
      calls.set_x(m.x(seed), stream.get());
      REQUIRE(cudaGraphLaunch(executable.get(), native) == cudaSuccess);
      context.synchronize(stream.get());
      CHECK(worst_difference(calls.y(), m.expected(m.x(seed))) < way.most);
    }
  }
}

}  // namespace wide::test
