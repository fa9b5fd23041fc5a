// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where a plan's call comes first. In a thread, which has no context yet, without which neither the
// driver nor cuDNN does anything: every strategy brings it its own, when it is planned and when it
// runs. And in a capture, although a vendor's first call loads its kernels.
#include <cuda_runtime_api.h>

#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/simulation.hpp"
#include "wide/error.hpp"

namespace wide::test {
namespace {

using catalog::PrimitiveSpec;

std::string failure_in_new_thread(const std::function<void()>& body) {
  std::string failure;
  std::thread([&] {
    try {
      body();
    } catch (const Error& error) {
      failure = error.what();
    }
  }).join();
  return failure;
}

/// The first small case that the strategy runs: of whole vectors for those that take no others.
std::unique_ptr<catalog::Workload> workload_of(const Context& context, const PrimitiveSpec& spec,
                                               const std::string& strategy) {
  for (const Values& words : word_combinations(spec)) {
    for (const auto make : {vector_case, odd_case}) {
      const catalog::Case point = make(spec, 2, 3, words);
      if (!spec.impossible_reason(point).empty()) continue;
      auto workload = spec.make_workload(context, point, {});
      if (workload->unsupported_reason(strategy).empty()) return workload;
    }
  }
  return nullptr;
}

/// What `body` throws where it is captured, in the mode that refuses most.
std::string failure_in_capture(const OwnedStream& stream, const std::function<void()>& body) {
  const auto native = static_cast<cudaStream_t>(stream.get().native());
  REQUIRE(cudaStreamBeginCapture(native, cudaStreamCaptureModeGlobal) == cudaSuccess);
  std::string failure;
  try {
    body();
  } catch (const Error& error) {
    failure = error.what();
  }
  cudaGraph_t graph{};
  CHECK(cudaStreamEndCapture(native, &graph) == cudaSuccess);
  if (graph != nullptr) CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  (void)cudaGetLastError();
  return failure;
}

void check_strategy(const Context& context, const OwnedStream& stream, const PrimitiveSpec& spec,
                    const std::string& strategy, const VendorHandles& handles) {
  INFO(spec.name << " " << strategy);
  const auto workload = workload_of(context, spec, strategy);
  if (workload == nullptr) return;
  catalog::Prepared prepared;
  CHECK(failure_in_new_thread([&] { prepared = workload->prepare(strategy); }) == "");
  if (!prepared.run) return;
  const Tensor scratch(context, Dtype::uint8, {prepared.workspace_bytes});
  const Workspace workspace{const_cast<void*>(scratch.data()), scratch.bytes()};
  const auto run = [&] { prepared.run({stream.get(), workspace, &handles}); };
  workload->poison_outputs(catalog::OutputOf::strategy, stream.get());
  context.synchronize(stream.get());
  CHECK(failure_in_capture(stream, run) == "");
  CHECK(failure_in_new_thread(run) == "");
  context.synchronize(stream.get());
  CHECK(workload->damage(stream.get()) == "");
}

}  // namespace

TEST_CASE("every strategy's first call may be a thread's first one, and captured", "[gpu]") {
  const Context context = require_cuda();
  const OwnedStream stream(context);
  const VendorHandles all(context);
  for (const PrimitiveSpec* spec : primitives_to_test()) {
    for (const std::string& strategy : strategies_of(*spec, DeviceType::cuda)) {
      // Simulated libraries load at a handle's first call, real ones at a kernel's.
      std::optional<VendorHandles> own;
      if (Simulation::is_present()) own.emplace(context);
      check_strategy(context, stream, *spec, strategy, own ? *own : all);
    }
  }
}

}  // namespace wide::test
