// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How much of the caller's stack a call on the CPU takes: engines give their threads little.
#include <pthread.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <functional>
#include <vector>

#include "verify/support/model_run.hpp"
#include "wide/flash_attention.hpp"
#include "wide/linear.hpp"

namespace wide::test {
namespace {

constexpr size_t kStackBytes = size_t{4} << 20;
constexpr size_t kMostBytes = size_t{128} << 10;  // as context.hpp says

/// The bytes of its stack that a thread has written when `work` is over: at the upper end.
size_t stack_bytes(const std::function<void()>& work) {
  constexpr uint8_t kUnused = 0xa5;
  std::vector<uint8_t> memory(kStackBytes + 4096, kUnused);
  uint8_t* const stack =
      memory.data() + (4096 - reinterpret_cast<uintptr_t>(memory.data()) % 4096) % 4096;
  pthread_attr_t attributes;
  pthread_t thread;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstack(&attributes, stack, kStackBytes) == 0);
  const auto start = [](void* own) -> void* {
    (*static_cast<const std::function<void()>*>(own))();
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, &attributes, start, const_cast<std::function<void()>*>(&work)) ==
          0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
  const uint8_t* const lowest =
      std::find_if(stack, stack + kStackBytes, [](uint8_t byte) { return byte != kUnused; });
  return static_cast<size_t>(stack + kStackBytes - lowest);
}

/// `work` takes no more than kMostBytes beside what a thread takes by itself.
void check_stack(const char* what, const std::function<void()>& work) {
  const size_t empty = stack_bytes([] {}), bytes = stack_bytes(work);
  INFO(what << " takes " << (bytes - empty) / 1024 << " KiB of its caller's stack");
  REQUIRE(bytes > empty);
#ifdef __SANITIZE_ADDRESS__
  CHECK(bytes - empty <= 8 * kMostBytes);  // which surrounds each variable
#else
  CHECK(bytes - empty <= kMostBytes);
#endif
}

Tensor zeros(const Context& context, Dtype dtype, const Shape& shape) {
  Tensor tensor(context, dtype, shape);
  fill_bytes(tensor, 0, Stream::cpu());
  return tensor;
}

// One thread: the caller computes all blocks itself.
const Context kCpu = Context::cpu({.num_threads = 1, .allocator = nullptr});

TEST_CASE("stack: linear, packed or quantised, is content with 128 KiB of the caller's") {
  const Dtype dtype = Dtype::fp32;
  for (const WeightFormat format :
       {WeightFormat::packed, WeightFormat::int4, WeightFormat::fp8_e4m3}) {
    const LinearProblem problem{.batch = 64,
                                .in_features = 512,
                                .out_features = 512,
                                .dtype = dtype,
                                .weight_format = format};
    const LinearPlan plan = make_linear_plan(kCpu, problem);
    const Tensor x = zeros(kCpu, dtype, {64, 512});
    Tensor y(kCpu, dtype, {64, 512});
    const Tensor weight = format == WeightFormat::packed
                              ? zeros(kCpu, dtype, {1, 512, 512})
                              : zeros(kCpu, Dtype::uint8, {1, linear_member_bytes(problem)});
    check_stack("linear", [&] { plan.run({.x = x, .weight = weight, .y = y}, {Stream::cpu()}); });
  }
}

TEST_CASE("stack: attention of the largest heads is content with 128 KiB of the caller's") {
  const FlashAttentionProblem problem{.batch = 1, .seq = 64, .heads = 2, .head_dim = 256};
  const FlashAttentionPlan plan = make_flash_attention_plan(kCpu, problem);
  const Tensor x = zeros(kCpu, Dtype::fp32, {1, 64, 512});
  Tensor y(kCpu, Dtype::fp32, {1, 64, 512});
  const Tensor workspace(kCpu, Dtype::uint8, {plan.workspace_bytes()});
  check_stack("attention", [&] {
    plan.run({.q = x, .k = x, .v = x, .y = y},
             {Stream::cpu(), {const_cast<void*>(workspace.view().data), workspace.bytes()}});
  });
}

TEST_CASE("stack: whole models are content with 128 KiB of the caller's") {
  for (const char* name : {"bert", "convnet", "mlp"}) {
    ModelRun run(kCpu, small_model(name), {.num_members = 2, .batch = 2});
    check_stack(name, [&] { run.model().run(run.arguments(), run.execution()); });
  }
}

}  // namespace
}  // namespace wide::test
