// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is handed when a plan runs: this program has the one entry point that would start a
// kernel itself, and looks at what came.
#include <cuda_runtime_api.h>
#include <cudnn_graph.h>
#include <dlfcn.h>

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstring>

#include "host/conv/conv_cudnn.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/cudnn/cudnn_plan_cache.hpp"
#include "verify/support/cudnn_devices.hpp"

using namespace wide;

namespace {

struct Call {
  cudnnHandle_t handle = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<int64_t> ids;
  std::vector<void*> addresses;
  void* workspace = nullptr;

  void* at(CudnnTensorId id) const {
    const auto found = std::find(ids.begin(), ids.end(), id + 1);
    return found == ids.end() ? nullptr : addresses.at(static_cast<size_t>(found - ids.begin()));
  }
} call;
std::vector<Call> calls;
cudaStream_t stream_of_handle = nullptr;
cudnnStatus_t answer = CUDNN_STATUS_SUCCESS;

/// What the next plans' end is, instead of the library's.
struct PlansEnd {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  int times = 0;  ///< then the library again
  int asked = 0;
} plans_end;
std::vector<cudnnBackendDescriptor_t> engine_plans;

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
/// The library's own, but for a look at what a call is told.
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  auto* const addresses = static_cast<void* const*>(values);
  if (name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
    auto* const ids = static_cast<const int64_t*>(values);
    call.ids.assign(ids, ids + count);
  } else if (name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
    call.addresses.assign(addresses, addresses + count);
  } else if (name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
    call.workspace = *addresses;
  }
  static const auto library = real<decltype(cudnnBackendSetAttribute)>("cudnnBackendSetAttribute");
  return library(descriptor, name, type, count, values);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  static const auto library =
      real<decltype(cudnnBackendCreateDescriptor)>("cudnnBackendCreateDescriptor");
  const cudnnStatus_t status = library(type, descriptor);
  std::erase(engine_plans, *descriptor);
  if (type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) engine_plans.push_back(*descriptor);
  return status;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  static const auto library = real<decltype(cudnnBackendFinalize)>("cudnnBackendFinalize");
  if (std::find(engine_plans.begin(), engine_plans.end(), descriptor) != engine_plans.end() &&
      plans_end.asked++ < plans_end.times) {
    return plans_end.status;
  }
  return library(descriptor);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t stream) {
  stream_of_handle = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t, cudaStream_t* stream) {
  *stream = stream_of_handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t,
                                  cudnnBackendDescriptor_t) {
  call.handle = handle;
  call.stream = stream_of_handle;
  calls.push_back(call);
  return answer;
}
}

TEST_CASE("cudnn: a plan hands over its operands, its numbers, workspace and stream") {
  test::require_cudnn_planning();
  // y = (x + 0.5) * b: tensors 0 to 2, numbers 3, and what lies between.
  CudnnGraph graph;
  const Shape shape{2, 8, 64}, row{1, 8, 1};
  const auto x = graph.bind(CudnnType::fp32, shape, contiguous_strides(shape));
  const auto b = graph.bind(CudnnType::fp32, row, contiguous_strides(row));
  const auto y = graph.bind(CudnnType::fp32, shape, contiguous_strides(shape));
  const auto half = graph.number(0.5, 3);
  const auto sum = graph.apply(CudnnFunction::add, x, half);
  graph.append(CudnnPointwise{CudnnFunction::multiply, sum, b, kNoCudnnTensor, y});
  const auto plan = make_cudnn_plan("test", test::kCudnnH200, graph, {.allows_tensor_cores = true});
  // Addresses that nobody follows.
  alignas(16) std::byte memory[5][16];
  const CudnnBinding bindings[] = {{x, memory[0]}, {y, memory[1]}, {b, memory[2]}};
  const auto own = static_cast<cudaStream_t>(static_cast<void*>(memory[1] + 8));
  stream_of_handle = own;
  plan->run(memory[3], bindings, {memory[4], 0}, Stream(static_cast<void*>(memory[0] + 8)));
  CHECK(stream_of_handle == own);  // the handle may be the engine's
  CHECK(call.handle == static_cast<void*>(memory[3]));
  CHECK(call.stream == static_cast<void*>(memory[0] + 8));
  CHECK(call.workspace == memory[4]);
  CHECK((call.ids.size() == 4 && call.addresses.size() == 4));
  CHECK((call.at(x) == memory[0] && call.at(y) == memory[1] && call.at(b) == memory[2]));
  REQUIRE(call.at(half) != nullptr);
  float number = 0;
  std::memcpy(&number, call.at(half), sizeof(number));
  CHECK(number == 0.5f);

  for (const auto& [status, code] :
       {std::pair{CUDNN_STATUS_EXECUTION_FAILED, ErrorCode::cudnn},
        std::pair{CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED, ErrorCode::out_of_memory},
        std::pair{CUDNN_STATUS_BAD_PARAM, ErrorCode::cudnn}}) {
    answer = status;
    try {
      plan->run(memory[3], bindings, {memory[4], 0}, Stream(static_cast<void*>(memory[0])));
      FAIL("an error of cuDNN's was lost");
    } catch (const Error& error) {
      CHECK(error.code() == code);
      CHECK(std::string(error.what())
                .starts_with("cudnn: " + std::string(cudnnGetErrorString(status))));
    }
    CHECK(stream_of_handle == own);
  }
}

TEST_CASE("cudnn: what breaks down is no refusal, is not kept, and ends auto only without memory") {
  test::require_cudnn_planning();
  constexpr int kAll = 1 << 20;
  const Shape shape{2, 8, 64};
  CudnnGraph graph;
  const auto x = graph.bind(CudnnType::fp32, shape, contiguous_strides(shape));
  const auto y = graph.bind(CudnnType::fp32, shape, contiguous_strides(shape));
  graph.append(CudnnPointwise{CudnnFunction::relu, x, kNoCudnnTensor, kNoCudnnTensor, y});
  CudnnPlanCache cache;
  CudnnDevice device = test::kCudnnH200;
  device.cache = &cache;
  std::string explain;
  const auto make = [&] {
    explain = make_cudnn_plan("test", device, graph, {.allows_tensor_cores = true})->explain();
  };
  const auto fails_with = [&](ErrorCode code, const char* status) {
    try {
      make();
      FAIL("it was made");
    } catch (const Error& error) {
      INFO(error.what());
      CHECK(error.code() == code);
      CHECK(std::string(error.what()).starts_with(std::string("test: cuDNN: ") + status));
    }
  };
  for (const auto status : {CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
                            CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED}) {
    plans_end = {status, 1};  // of the first engine: others are not looked at
    fails_with(ErrorCode::out_of_memory, cudnnGetErrorString(status));
    CHECK(plans_end.asked == 1);
    plans_end = {status, 1};
    CHECK_THROWS_AS(cudnn_refusal(make), Error);
  }
  plans_end = {CUDNN_STATUS_INTERNAL_ERROR, kAll};
  fails_with(ErrorCode::cudnn, "CUDNN_STATUS_INTERNAL_ERROR");
  CHECK(cudnn_refusal(make).starts_with("test: cuDNN: CUDNN_STATUS_INTERNAL_ERROR"));
  plans_end = {CUDNN_STATUS_INTERNAL_ERROR, 1};
  make();  // not kept; the next engine
  CHECK(plans_end.asked == 2);
  CHECK(explain.find(", number ") != std::string::npos);

  CudnnPlanCache refusals;
  device.cache = &refusals;
  plans_end = {CUDNN_STATUS_NOT_SUPPORTED, kAll};
  fails_with(ErrorCode::unsupported, "no engine: CUDNN_STATUS_NOT_SUPPORTED");
  plans_end = {};
  fails_with(ErrorCode::unsupported, "no engine: CUDNN_STATUS_NOT_SUPPORTED");  // kept
}

TEST_CASE("conv: the sums of two calls lie in front of cuDNN's own workspace") {
  test::require_cudnn_planning();
  ConvProblem problem{.num_members = 2, .batch = 2, .in_channels = 16, .out_channels = 32};
  problem.input = {9, 8};
  problem.kernel = {3, 3};
  problem.padding = {1, 1};
  problem.dtype = Dtype::bf16;
  problem.epilogue = {.has_bias = true, .activation = Activation::gelu};
  const ConvCudnn plan(test::kCudnnH200, complete_conv_problem(problem));
  // Addresses that nobody follows.
  alignas(256) std::byte memory[6][256];
  ConvArguments arguments;
  arguments.x.data = memory[0];
  arguments.weight.data = memory[1];
  arguments.bias.data = memory[2];
  arguments.y.data = memory[3];
  const VendorHandles handles = VendorHandles::borrow(nullptr, memory[4]);
  calls.clear();
  answer = CUDNN_STATUS_SUCCESS;
  plan.run(arguments,
           {Stream(static_cast<void*>(memory[0])), {memory[5], plan.workspace_bytes()}, &handles});
  REQUIRE(calls.size() == 2);
  constexpr int64_t kSumsBytes = 2 * 2 * 32 * 9 * 8 * 4;
  for (const Call& one : calls) {
    const auto& all = one.addresses;
    CHECK(std::find(all.begin(), all.end(), memory[5]) != all.end());
    CHECK(static_cast<std::byte*>(one.workspace) - memory[5] >= kSumsBytes);
  }
  const auto& last = calls.back().addresses;
  CHECK(std::find(last.begin(), last.end(), memory[3]) != last.end());
  CHECK(std::find(last.begin(), last.end(), memory[0]) == last.end());
}
