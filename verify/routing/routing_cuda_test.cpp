// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A routing in a CUDA graph: what is launched depends on the problem only, so that a replay follows
// other ids.
#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "host/core/capture_cuda.hpp"
#include "verify/support/devices.hpp"
#include "wide/routing.hpp"

namespace wide::test {
namespace {

void write(Tensor& to, const std::vector<int64_t>& values, Stream stream) {
  copy(ConstTensorView(values.data(), Dtype::int64, to.shape(), Device{}), to.view(), stream);
}

std::vector<int32_t> read(const Context& context, const Tensor& from, Stream stream) {
  std::vector<int32_t> values(static_cast<size_t>(from.num_elements()));
  copy(from, TensorView(values.data(), Dtype::int32, from.shape(), Device{}), stream);
  context.synchronize(stream);
  return values;
}

struct Captured {
  const char* strategy;
  int64_t rows;
  size_t launches;
};

}  // namespace

TEST_CASE("routing: a replay follows the ids", "[gpu]") {
  const Context context = require_cuda();
  const OwnedStream stream(context);
  const auto native = static_cast<cudaStream_t>(stream.get().native());
  // One launch where there is one chunk, else two; of a member each, and of nobody's rows.
  for (const Captured& one : {Captured{"wide", 1000, 1}, Captured{"wide", 1100, 2},
                              Captured{"sequential", 1000, 4}, Captured{"sequential", 1100, 8}}) {
    INFO(one.strategy << ", " << one.rows << " rows");
    const RoutingProblem problem{.num_members = 3, .num_rows = one.rows};
    const RoutingPlan plan = make_routing_plan(context, problem, {.strategy = one.strategy});
    Tensor ids(context, Dtype::int64, {one.rows}), first_rows(context, Dtype::int32, {4});
    Tensor order(context, Dtype::int32, {one.rows});
    Tensor workspace(context, Dtype::uint8, {plan.workspace_bytes()});
    const OwnedGraph<cudaGraph_t> graph = capture_graph(native, [&] {
      plan.run({ids, first_rows, order}, {stream.get(), {workspace.data(), workspace.bytes()}});
    });
    size_t nodes = 0;
    REQUIRE(cudaGraphGetNodes(graph.get(), nullptr, &nodes) == cudaSuccess);
    CHECK(nodes == one.launches);
    const OwnedGraph<cudaGraphExec_t> executable = instantiate_graph(graph.get());
    for (int64_t last = 0; last < 4; ++last) {  // all rows but the last are member 1's
      std::vector<int64_t> chosen(static_cast<size_t>(one.rows), 1);
      chosen.back() = last;
      write(ids, chosen, stream.get());
      REQUIRE(cudaGraphLaunch(executable.get(), native) == cudaSuccess);
      const auto r = static_cast<int32_t>(one.rows);
      const int32_t ends[] = {last < 1 ? 1 : 0, last < 1 ? r : r - (last > 1 ? 1 : 0),
                              last < 3 ? r : r - 1};
      CHECK(read(context, first_rows, stream.get()) ==
            std::vector<int32_t>{0, ends[0], ends[1], ends[2]});
      const std::vector<int32_t> rows = read(context, order, stream.get());
      CHECK(rows.front() == (last == 0 ? r - 1 : 0));
      CHECK(rows.back() == (last == 0 ? r - 2 : r - 1));
    }
  }
}

}  // namespace wide::test
