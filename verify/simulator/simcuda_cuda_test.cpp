// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The simulated CUDA runtime itself: what it makes of streams that no event orders, of captures, of
// freed and foreign pointers, and that right programs run silently. Copies and fills are enough to
// see it; kernels have the other tests.
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include "bench/timer/sampler.hpp"
#include "verify/support/simulation.hpp"
#include "wide/context.hpp"

namespace wide::test {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr size_t kBytes = 4096;

/// Two streams, an event and two buffers; the device is as new after.
struct Bench {
  cudaStream_t first{}, second{};
  cudaEvent_t event{};
  char *a = nullptr, *b = nullptr;

  explicit Bench(unsigned flags = cudaStreamNonBlocking) {
    require_simulation();
    Simulation::reset_device();
    Simulation::clear_findings();
    REQUIRE(cudaStreamCreateWithFlags(&first, flags) == cudaSuccess);
    REQUIRE(cudaStreamCreateWithFlags(&second, flags) == cudaSuccess);
    REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&a), kBytes) == cudaSuccess);
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&b), kBytes) == cudaSuccess);
  }
  Bench(const Bench&) = delete;
  ~Bench() {
    Simulation::clear_findings();
    Simulation::reset_device();
  }

  void fill_a(cudaStream_t stream, int value = 1) const {
    CHECK(cudaMemsetAsync(a, value, kBytes, stream) == cudaSuccess);
  }
  void copy_a_to_b(cudaStream_t stream) const {
    CHECK(cudaMemcpyAsync(b, a, kBytes, cudaMemcpyDeviceToDevice, stream) == cudaSuccess);
  }
  int first_of_b() const {
    char value = 0;
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaMemcpy(&value, b, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
    return value;
  }
};

}  // namespace

TEST_CASE("simulated streams: one after another on one stream") {
  const Bench bench;
  bench.fill_a(bench.first);
  bench.copy_a_to_b(bench.first);
  CHECK(bench.first_of_b() == 1);
  CHECK(Simulation::findings().empty());
}

TEST_CASE("simulated streams: a wait that was forgotten is found") {
  const Bench bench;
  bench.fill_a(bench.first);
  bench.copy_a_to_b(bench.second);
  CHECK_THAT(Simulation::findings(), ContainsSubstring("stream race"));
}

TEST_CASE("simulated streams: a forgotten wait before overwriting is found") {
  const Bench bench;
  bench.fill_a(bench.first);
  CHECK(cudaStreamSynchronize(bench.first) == cudaSuccess);
  bench.copy_a_to_b(bench.first);
  bench.fill_a(bench.second, 2);
  CHECK_THAT(Simulation::findings(), ContainsSubstring("stream race"));
}

TEST_CASE("simulated streams: an event orders") {
  const Bench bench;
  bench.fill_a(bench.first);
  CHECK(cudaEventRecord(bench.event, bench.first) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(bench.second, bench.event, 0) == cudaSuccess);
  bench.copy_a_to_b(bench.second);
  CHECK(bench.first_of_b() == 1);
  CHECK(Simulation::findings().empty());
}

TEST_CASE("simulated streams: an event recorded too early does not order what follows it") {
  const Bench bench;
  CHECK(cudaEventRecord(bench.event, bench.first) == cudaSuccess);
  bench.fill_a(bench.first);
  CHECK(cudaStreamWaitEvent(bench.second, bench.event, 0) == cudaSuccess);
  bench.copy_a_to_b(bench.second);
  CHECK_THAT(Simulation::findings(), ContainsSubstring("stream race"));
}

TEST_CASE("simulated streams: the host orders by waiting") {
  const Bench bench;
  bench.fill_a(bench.first);
  SECTION("for the stream") {
    CHECK(cudaStreamSynchronize(bench.first) == cudaSuccess);
  }
  SECTION("for an event") {
    CHECK(cudaEventRecord(bench.event, bench.first) == cudaSuccess);
    CHECK(cudaEventSynchronize(bench.event) == cudaSuccess);
  }
  SECTION("for the device") {
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
  }
  bench.copy_a_to_b(bench.second);
  CHECK(bench.first_of_b() == 1);
  CHECK(Simulation::findings().empty());
}

TEST_CASE("simulated streams: the legacy default stream orders blocking streams only") {
  SECTION("blocking") {
    const Bench bench(cudaStreamDefault);
    bench.fill_a(bench.first);
    bench.copy_a_to_b(nullptr);
    CHECK(bench.first_of_b() == 1);
    CHECK(Simulation::findings().empty());
  }
  SECTION("not blocking") {
    const Bench bench(cudaStreamNonBlocking);
    bench.fill_a(bench.first);
    bench.copy_a_to_b(nullptr);
    CHECK_THAT(Simulation::findings(), ContainsSubstring("stream race"));
  }
}

TEST_CASE("simulated capture: a fork that joins becomes a graph that keeps its order") {
  const Bench bench;
  cudaGraph_t graph{};
  cudaGraphExec_t executable{};
  cudaEvent_t joined{};
  CHECK(cudaEventCreateWithFlags(&joined, cudaEventDisableTiming) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(bench.first, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  bench.fill_a(bench.first, 3);
  CHECK(cudaEventRecord(bench.event, bench.first) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(bench.second, bench.event, 0) == cudaSuccess);
  bench.copy_a_to_b(bench.second);
  CHECK(cudaEventRecord(joined, bench.second) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(bench.first, joined, 0) == cudaSuccess);
  CHECK(cudaStreamEndCapture(bench.first, &graph) == cudaSuccess);
  CHECK(cudaMemset(bench.b, 0, kBytes) == cudaSuccess);
  CHECK(bench.first_of_b() == 0);  // captured, not executed
  CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch(executable, bench.first) == cudaSuccess);
  CHECK(bench.first_of_b() == 3);
  CHECK(Simulation::findings().empty());
  CHECK(cudaGraphExecDestroy(executable) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
}

TEST_CASE("simulated capture: what may not be captured is refused") {
  const Bench bench;
  cudaGraph_t graph{};
  CHECK(cudaStreamBeginCapture(bench.first, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  SECTION("a fork that does not join") {
    CHECK(cudaEventRecord(bench.event, bench.first) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(bench.second, bench.event, 0) == cudaSuccess);
    bench.copy_a_to_b(bench.second);
    CHECK(cudaStreamEndCapture(bench.first, &graph) == cudaErrorStreamCaptureUnjoined);
  }
  SECTION("waiting for the stream") {
    CHECK(cudaStreamSynchronize(bench.first) == cudaErrorStreamCaptureUnsupported);
    CHECK(cudaStreamEndCapture(bench.first, &graph) == cudaErrorStreamCaptureInvalidated);
  }
  (void)cudaGetLastError();
}

TEST_CASE("simulated capture: each mode forbids the calls that no stream orders, by thread") {
  struct Call {
    const char* name;
    std::function<cudaError_t(const Bench&)> run;
    bool ends_captures = false;  ///< of any mode and thread, as it waits for their streams, too
  };
  void* pointer = nullptr;
  void* pinned = nullptr;
  const Call calls[]{
      {"cudaMalloc", [&](const Bench&) { return cudaMalloc(&pointer, 64); }},
      {"cudaFree", [](const Bench& bench) { return cudaFree(bench.b); }},
      {"cudaMallocHost", [&](const Bench&) { return cudaMallocHost(&pointer, 64); }},
      {"cudaHostAlloc", [&](const Bench&) { return cudaHostAlloc(&pointer, 64, 0); }},
      {"cudaFreeHost", [&](const Bench&) { return cudaFreeHost(pinned); }},
      {"cudaMemset", [](const Bench& bench) { return cudaMemset(bench.a, 0, kBytes); }},
      {"cudaStreamQuery", [](const Bench& bench) { return cudaStreamQuery(bench.second); }},
      {"cudaStreamSynchronize",
       [](const Bench& bench) { return cudaStreamSynchronize(bench.second); }},
      {"cudaEventQuery", [](const Bench& bench) { return cudaEventQuery(bench.event); }},
      {"cudaEventSynchronize",
       [](const Bench& bench) { return cudaEventSynchronize(bench.event); }},
      {"cudaDeviceSynchronize", [](const Bench&) { return cudaDeviceSynchronize(); }, true}};
  for (const cudaStreamCaptureMode mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal,
        cudaStreamCaptureModeRelaxed}) {
    for (const Call& one : calls) {
      for (const bool is_own_thread : {true, false}) {
        INFO(one.name << " in mode " << mode << (is_own_thread ? "" : " of another thread"));
        const Bench bench;
        cudaGraph_t graph{};
        CHECK(cudaMallocHost(&pinned, 64) == cudaSuccess);
        CHECK(cudaEventRecord(bench.event, bench.second) == cudaSuccess);
        CHECK(cudaStreamBeginCapture(bench.first, mode) == cudaSuccess);
        cudaError_t got = cudaErrorUnknown;
        if (is_own_thread) {
          got = one.run(bench);
        } else {
          std::thread([&] { got = one.run(bench); }).join();
        }
        const bool is_forbidden =
            one.ends_captures || (is_own_thread ? mode != cudaStreamCaptureModeRelaxed
                                                : mode == cudaStreamCaptureModeGlobal);
        CHECK(got == (is_forbidden ? cudaErrorStreamCaptureUnsupported : cudaSuccess));
        CHECK(cudaStreamEndCapture(bench.first, &graph) ==
              (is_forbidden ? cudaErrorStreamCaptureInvalidated : cudaSuccess));
        (void)cudaGetLastError();
      }
    }
  }
}

TEST_CASE("simulated capture: a thread says itself which captures it heeds") {
  const Bench bench;
  cudaGraph_t graph{};
  auto mode = cudaStreamCaptureModeRelaxed;
  CHECK(cudaStreamBeginCapture(bench.first, cudaStreamCaptureModeGlobal) == cudaSuccess);
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeGlobal);
  CHECK(cudaStreamSynchronize(bench.second) == cudaSuccess);
  CHECK(cudaThreadExchangeStreamCaptureMode(&mode) == cudaSuccess);
  CHECK(mode == cudaStreamCaptureModeRelaxed);
  CHECK(cudaStreamEndCapture(bench.first, &graph) == cudaSuccess);
}

TEST_CASE("simulated capture: what is captured cannot be waited for, in no mode") {
  const Bench bench;
  cudaGraph_t graph{};
  CHECK(cudaStreamBeginCapture(bench.first, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaEventRecord(bench.event, bench.first) == cudaSuccess);
  cudaError_t wanted = cudaErrorStreamCaptureInvalidated;
  SECTION("the stream") {
    CHECK(cudaStreamQuery(bench.first) == cudaErrorStreamCaptureUnsupported);
  }
  SECTION("the event") {
    CHECK(cudaEventQuery(bench.event) == cudaErrorCapturedEvent);
  }
  SECTION("the event, by waiting") {
    CHECK(cudaEventSynchronize(bench.event) == cudaErrorCapturedEvent);
  }
  SECTION("the event, after the capture") {
    wanted = cudaSuccess;
  }
  CHECK(cudaStreamEndCapture(bench.first, &graph) == wanted);
  CHECK(cudaEventSynchronize(bench.event) == cudaErrorCapturedEvent);
  CHECK(cudaStreamWaitEvent(bench.second, bench.event, 0) == cudaErrorCapturedEvent);
  CHECK(cudaEventRecord(bench.event, bench.second) == cudaSuccess);
  CHECK(cudaEventSynchronize(bench.event) == cudaSuccess);
  (void)cudaGetLastError();
}

TEST_CASE("simulated capture: it ends in the thread that began it, but in mode relaxed") {
  for (const bool is_relaxed : {false, true}) {
    const Bench bench;
    cudaGraph_t graph{};
    CHECK(cudaStreamBeginCapture(bench.first, is_relaxed ? cudaStreamCaptureModeRelaxed
                                                         : cudaStreamCaptureModeThreadLocal) ==
          cudaSuccess);
    cudaError_t got = cudaErrorUnknown;
    std::thread([&] { got = cudaStreamEndCapture(bench.first, &graph); }).join();
    CHECK(got == (is_relaxed ? cudaSuccess : cudaErrorStreamCaptureWrongThread));
    if (is_relaxed) continue;
    CHECK(cudaStreamEndCapture(bench.first, &graph) == cudaSuccess);
  }
}

TEST_CASE("simulated memory: use after free, double free, leaks") {
  const Bench bench;
  SECTION("use after free") {
    char* freed = bench.a;
    CHECK(cudaFree(freed) == cudaSuccess);
    CHECK(cudaMemsetAsync(freed, 1, kBytes, bench.first) == cudaErrorInvalidValue);
    CHECK_THAT(Simulation::findings(), ContainsSubstring("outside its buffer"));
  }
  SECTION("double free") {
    CHECK(cudaFree(bench.a) == cudaSuccess);
    CHECK(cudaFree(bench.a) == cudaErrorInvalidValue);
    CHECK_THAT(Simulation::findings(), ContainsSubstring("not the start of a live allocation"));
  }
  SECTION("past the end") {
    CHECK(cudaMemsetAsync(bench.a + 1, 1, kBytes, bench.first) == cudaErrorInvalidValue);
    CHECK_THAT(Simulation::findings(), ContainsSubstring("outside its buffer"));
  }
  SECTION("leaks") {
    CHECK_THAT(Simulation::leaks(), ContainsSubstring("4096"));
  }
  (void)cudaGetLastError();
}

TEST_CASE("simulated memory: rows further apart than a pitch may be are refused") {
  const Bench bench;
  int most = 0;
  CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxPitch, 0) == cudaSuccess);
  CHECK(most == 0x7fffffff);
  const auto pitch = static_cast<size_t>(most);
  char *from = nullptr, *to = nullptr;
  CHECK(cudaMalloc(reinterpret_cast<void**>(&from), pitch + kBytes) == cudaSuccess);
  CHECK(cudaMalloc(reinterpret_cast<void**>(&to), pitch + kBytes) == cudaSuccess);
  const auto copy = [&](size_t to_pitch, size_t from_pitch) {
    return cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, 16, 2, cudaMemcpyDeviceToDevice,
                             bench.first);
  };
  CHECK(cudaMemset2DAsync(from, pitch + 1, 1, 16, 2, bench.first) == cudaErrorInvalidValue);
  CHECK(cudaMemset2DAsync(from, pitch, 1, 16, 2, bench.first) == cudaSuccess);
  CHECK(copy(16, pitch + 1) == cudaErrorInvalidPitchValue);
  CHECK(copy(pitch + 1, pitch) == cudaErrorInvalidPitchValue);
  CHECK(copy(pitch, pitch) == cudaSuccess);
  CHECK(cudaMemcpy2D(to, pitch + 1, from, pitch, 16, 2, cudaMemcpyDeviceToDevice) ==
        cudaErrorInvalidPitchValue);
  CHECK_THAT(cudaGetErrorName(cudaGetLastError()), ContainsSubstring("InvalidPitchValue"));
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(Simulation::findings().empty());
}

TEST_CASE("simulated memory: a host that reads through a device pointer faults") {
  const Bench bench;
  bench.fill_a(bench.first);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    volatile char value = *static_cast<volatile char*>(bench.a);
    ::_exit(value == 1 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("simulated memory: what nothing has written is no number") {
  const Bench bench;
  std::vector<float> values(kBytes / 4);
  CHECK(cudaMemcpy(values.data(), bench.a, kBytes, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(values[0] != values[0]);
}

TEST_CASE("simulated device: a thread that has only asked has no context for tensor maps") {
  const Bench bench;
  std::thread([&] {
    int device = -1;
    void* function = nullptr;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    REQUIRE(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                             cudaEnableDefault, nullptr) == cudaSuccess);
    const auto encode = [&] {
      alignas(64) CUtensorMap map{};
      const cuuint64_t extent = 64;
      const cuuint32_t box = 16, step = 1;
      return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(
          &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 1, bench.a, &extent, nullptr, &box, &step,
          CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
          CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
    CHECK(encode() == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(cudaSetDevice(device) == cudaSuccess);
    CHECK(encode() == CUDA_SUCCESS);
  }).join();
  CHECK_THAT(Simulation::findings(), ContainsSubstring("has no context"));
}

TEST_CASE("simulated device: it says what it is, and refuses what it has not") {
  const Bench bench;
  cudaDeviceProp properties{};
  CHECK(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  CHECK_THAT(properties.name, ContainsSubstring("simulated"));
  CHECK((properties.major == 9 || properties.major == 8));
  CHECK(properties.warpSize == 32);
  const bench::RunDevice info = bench::run_device(Context::cuda(0));
  CHECK(info.uuid == "GPU-73696d75-6c61-7465-6420-475055203030");  // "simulated GPU 00"
  CHECK(info.pci_bus_id == "0000:00:00.0");
  CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
}

}  // namespace wide::test
