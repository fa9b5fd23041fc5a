// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a call of a plan costs the host: no allocation, whichever primitive, strategy and words. The
// catalogue is gone through, so that a new one is counted the day it is in there.
#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>

#include "host/attention/flash_attention_cudnn.hpp"
#include "host/conv/conv_cudnn.hpp"
#include "host/core/plan_checks.hpp"
#include "host/norm/batchnorm_cudnn.hpp"
#include "host/norm/instancenorm_cudnn.hpp"
#include "host/norm/row_norm_cudnn.hpp"
#include "verify/support/allocations.hpp"
#include "verify/support/cases.hpp"
#include "verify/support/devices.hpp"

namespace wide::test {

namespace {

constexpr int64_t kMembers = 3, kSize = 5;

/// Of the call behind the first one, in which a thread or a library gets what it needs once.
template <class Call>
int64_t allocations_of(const Context& context, Stream stream, const Call& call) {
  call();
  context.synchronize(stream);
  int64_t count = 0;
  {
    const AllocationCount counted;
    call();
    count = counted.get();
  }
  context.synchronize(stream);
  return count;
}

/// An engine's: a stream and a workspace of its own.
class Caller {
 public:
  explicit Caller(const Context& context)
      : context_(context), stream_(context), handles_(context) {}

  int64_t count(const catalog::Prepared& prepared) {
    const Execution execution = with_workspace(prepared.workspace_bytes);
    return allocations_of(context_, stream_.get(), [&] { prepared.run(execution); });
  }
  int64_t count(const catalog::PreparedMembers& prepared) {
    const Execution execution = with_workspace(prepared.workspace_bytes);
    return allocations_of(context_, stream_.get(), [&] { prepared.run(kMembers - 1, execution); });
  }

 private:
  Execution with_workspace(int64_t bytes) {
    workspace_ = Tensor(context_, Dtype::uint8, {bytes});
    return {stream_.get(), {workspace_.data(), workspace_.bytes()}, &handles_};
  }
  Context context_;
  OwnedStream stream_;
  VendorHandles handles_;
  Tensor workspace_;
};

/// How many calls were counted.
int64_t check_case(const Context& context, const catalog::PrimitiveSpec& spec,
                   const catalog::Case& point, Caller& caller) {
  if (!spec.impossible_reason(point).empty()) return 0;
  const auto workload = spec.make_workload(context, point, {});
  int64_t calls = 0;
  for (const catalog::StrategyInfo& strategy : spec.strategies) {
    const std::string name(strategy.name);
    if (!workload->unsupported_reason(name).empty()) continue;
    CAPTURE(describe(spec, point), to_string(context.device()), name);
    CHECK(caller.count(workload->prepare(name)) == 0);
    ++calls;
  }
  if (!workload->baseline_unsupported_reason().empty()) return calls;
  CAPTURE(describe(spec, point), to_string(context.device()));
  CHECK(caller.count(workload->prepare_members()) == 0);
  return calls;
}

}  // namespace

TEST_CASE("host cost: no call of any strategy allocates") {
  for (const Context& context : devices_at_hand()) {
    Caller caller(context);
    for (const catalog::PrimitiveSpec* spec : catalog::primitives()) {
      int64_t calls = 0;
      for (const Values& words : word_combinations(*spec)) {
        calls += check_case(context, *spec, odd_case(*spec, kMembers, kSize, words), caller);
      }
      CAPTURE(spec->name, to_string(context.device()));
      CHECK(calls > 0);
    }
  }
}

TEST_CASE("host cost: operands are handed to cuDNN without an allocation") {
  const ConvCudnnGraph conv{.graph = {}, .x = 0, .weight = 1, .y = 2};
  const BatchnormCudnnGraph batchnorm{.graph = {}, .x = 0, .y = 1, .gamma = 2, .beta = 3};
  const BatchnormProblem problem;
  const InstancenormCudnnGraph instancenorm{};
  const RowNormCudnnGraph row_norm{};
  const FlashAttentionCudnnGraph attention{.graph = {}, .q = 0, .k = 1, .v = 2, .y = 3};
  const AllocationCount counted;
  const CudnnBindings none = bind_instancenorm_cudnn(instancenorm, {}),
                      no_rows = bind_row_norm_cudnn(row_norm, {}),
                      three = bind_conv_cudnn(conv, {}, nullptr),
                      four = bind_batchnorm_cudnn(batchnorm, problem, {}, nullptr),
                      all = bind_flash_attention_cudnn(attention, {});
  const int64_t count = counted.get();
  CHECK(count == 0);
  const auto size = [](const CudnnBindings& bindings) {
    return std::span<const CudnnBinding>(bindings).size();
  };
  CHECK(size(none) == 0);
  CHECK(size(no_rows) == 0);
  CHECK(size(three) == 3);
  CHECK(size(four) == 4);
  CHECK(size(all) == 4);
}

TEST_CASE("host cost: handles are found without an allocation, whatever the primitive's name") {
  int library = 0;
  const VendorHandles handles = VendorHandles::borrow(&library, &library);
  const Execution execution{Stream::cpu(), {}, &handles};
  constexpr std::string_view kLongName = "flash_attention";  // with ": " longer than a short string
  const AllocationCount counted;
  const bool are_found = require_cublas(kLongName, execution, Device{}) == &library &&
                         require_cudnn(kLongName, execution, Device{}) == &library;
  const int64_t count = counted.get();
  CHECK(are_found);
  CHECK(count == 0);
}

}  // namespace wide::test
