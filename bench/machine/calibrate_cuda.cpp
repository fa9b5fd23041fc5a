// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Ceilings of a GPU: copies and reads of at least four times the L2, enough of them that their
// launches are negligible, and cuBLAS products, whose launches are hidden.
#include <cublasLt.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "bench/machine/calibrate.hpp"
#include "bench/machine/peaks.hpp"
#include "bench/statistics/order.hpp"
#include "bench/timer/device_timing.hpp"
#include "bench/timer/empty_kernel.hpp"
#include "bench/timer/flush.hpp"
#include "bench/timer/held_stream.hpp"
#include "bench/timer/sampler.hpp"
#include "host/core/cuda_check.hpp"
#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

namespace {

constexpr int kSize = 4096;
/// The coarsest event clock step seen on any device; this device's own is measured after the
/// ceilings.
constexpr double kCoarsestQuantumNs = 1024;

double median_sample_ns(Sampler& sampler) {
  std::vector<double> samples;
  for (int i = 0; i < 20; ++i) samples.push_back(sampler.sample_ns());
  return median(samples);
}

/// A ceiling that cannot be measured is left out; a sticky error is thrown again.
template <class F>
bool attempt(const Context& context, Stream stream, const F& body) {
  try {
    body();
    return true;
  } catch (const Error&) {
    context.synchronize(stream);
    return false;
  }
}

/// The higher one of a driver's copies and a kernel's reads: on Hopper copies within a device were
/// seen at three quarters of what its memory delivers (github.com/NVIDIA/nccl, issue 1264).
double memory_bandwidth(const Context& context, Stream stream) {
  const DeviceInfo& info = context.info();
  const int64_t wanted = std::max<int64_t>(4 * info.last_level_cache_bytes, 256 << 20);
  const int64_t bytes = std::min(wanted, info.memory_bytes / 16) / 16 * 16;
  const Shape elements{bytes / dtype_bytes(Dtype::fp32)};
  Tensor source(context, Dtype::fp32, elements), destination(context, Dtype::fp32, elements);
  fill_uniform(context, source, 1, stream);
  constexpr int kPasses = 8;
  const auto rate = [&](double bytes_per_pass, const Call& pass) {
    double ns = std::numeric_limits<double>::infinity();
    attempt(context, stream, [&] {
      ns = best_sample_ns(*make_stream_sampler(context, stream, [&] {
        for (int i = 0; i < kPasses; ++i) pass();
      }));
    });
    return kPasses * bytes_per_pass / (ns * 1e-9);
  };
  const auto size = static_cast<double>(source.bytes());
  const auto found = static_cast<uint32_t*>(destination.data());
  return std::max(
      rate(2 * size, [&] { copy(source, destination, stream); }), rate(size, [&] {
        WIDE_CHECK_CUDA(launch_read(source.data(), source.bytes(), found, native(stream)));
      }));
}

struct Product {
  Dtype dtype;
  const char* name;
  cudaDataType_t type;
  cublasComputeType_t compute;
};
constexpr Product kProducts[] = {
    {Dtype::fp32, "fp32", CUDA_R_32F, CUBLAS_COMPUTE_32F},
    {Dtype::fp32, kTf32, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    {Dtype::fp16, "fp16", CUDA_R_16F, CUBLAS_COMPUTE_32F},
    {Dtype::bf16, "bf16", CUDA_R_16BF, CUBLAS_COMPUTE_32F},
};
/// Compute capabilities from which on multiprocessors support these; on older ones cuBLAS accepts
/// tf32, too, and computes it as fp32.
constexpr int kHasTf32 = 80, kHasFp8 = 89;
constexpr double kProductFlops = 2.0 * kSize * kSize * kSize;

/// x^T y of fp8 in bf16, which cuBLAS itself does not offer.
class Fp8Product {
 public:
  explicit Fp8Product(void* cublas) : handle_(static_cast<cublasLtHandle_t>(cublas)) {
    const cublasOperation_t transpose = CUBLAS_OP_T;
    WIDE_CHECK_CUBLAS(cublasLtMatmulDescInit(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    WIDE_CHECK_CUBLAS(cublasLtMatmulDescSetAttribute(&operation_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                     &transpose, sizeof(transpose)));
    WIDE_CHECK_CUBLAS(cublasLtMatrixLayoutInit(&operand_, CUDA_R_8F_E4M3, kSize, kSize, kSize));
    WIDE_CHECK_CUBLAS(cublasLtMatrixLayoutInit(&out_, CUDA_R_16BF, kSize, kSize, kSize));
    cublasLtMatmulPreferenceOpaque_t preference;
    WIDE_CHECK_CUBLAS(cublasLtMatmulPreferenceInit(&preference));
    int found = 0;
    WIDE_CHECK_CUBLAS(cublasLtMatmulAlgoGetHeuristic(handle_, &operation_, &operand_, &operand_,
                                                     &out_, &out_, &preference, 1, &algorithm_,
                                                     &found));
    if (found == 0) WIDE_CHECK_CUBLAS(CUBLAS_STATUS_NOT_SUPPORTED);
  }
  void run(const Tensor& x, const Tensor& y, Tensor& out, Stream stream) {
    const float one = 1, zero = 0;
    WIDE_CHECK_CUBLAS(cublasLtMatmul(handle_, &operation_, &one, x.data(), &operand_, y.data(),
                                     &operand_, &zero, out.data(), &out_, out.data(), &out_,
                                     &algorithm_.algo, nullptr, 0, native(stream)));
  }

 private:
  cublasLtHandle_t handle_;
  cublasLtMatmulDescOpaque_t operation_;
  cublasLtMatrixLayoutOpaque_t operand_, out_;
  cublasLtMatmulHeuristicResult_t algorithm_;
};

void measure_products(const Context& context, Stream stream, Calibration& c) {
  const VendorHandles handles(context);
  if (handles.cublas() == nullptr) return;
  const auto cublas = static_cast<cublasHandle_t>(handles.cublas());
  Tensor a(context, Dtype::fp32, {kSize, kSize}), b(context, Dtype::fp32, {kSize, kSize});
  Tensor out(context, Dtype::fp32, {kSize, kSize});
  // The values repeat every 256 rows, which is deeper than any tile.
  const auto fill = [&](Dtype dtype) {
    uint64_t seed = 0;
    for (Tensor* tensor : {&a, &b}) {
      const TensorView operand(tensor->data(), dtype, {kSize, kSize}, context.device());
      fill_uniform(context, operand, ++seed, stream);
    }
  };
  WIDE_CHECK_CUBLAS(cublasSetStream(cublas, native(stream)));
  // Otherwise a capture would allocate one, in every replay. The size documented for Hopper.
  Tensor workspace(context, Dtype::uint8, {32 << 20});
  WIDE_CHECK_CUBLAS(
      cublasSetWorkspace(cublas, workspace.data(), static_cast<size_t>(workspace.bytes())));
  const float one = 1, zero = 0;
  const int capability = context.info().compute_capability;
  for (const Product& product : kProducts) {
    if (product.name == kTf32 && capability < kHasTf32) continue;
    attempt(context, stream, [&] {
      fill(product.dtype);
      const double taken = best_captured_ns(context, stream, [&] {
        WIDE_CHECK_CUBLAS(cublasGemmEx(cublas, CUBLAS_OP_T, CUBLAS_OP_N, kSize, kSize, kSize, &one,
                                       a.data(), product.type, kSize, b.data(), product.type, kSize,
                                       &zero, out.data(), product.type, kSize, product.compute,
                                       CUBLAS_GEMM_DEFAULT));
      });
      c.flops_per_s.emplace_back(product.name, kProductFlops / (taken * 1e-9));
    });
  }
  if (capability < kHasFp8) return;
  attempt(context, stream, [&] {
    fill(Dtype::fp8_e4m3);
    Fp8Product product(cublas);
    const double taken = best_captured_ns(context, stream, [&] { product.run(a, b, out, stream); });
    for (const char* dtype : {"fp8_e4m3", "fp8_e5m2"})
      c.flops_per_s.emplace_back(dtype, kProductFlops / (taken * 1e-9));
  });
}

struct Events {
  explicit Events(size_t count) : all(count) {
    for (cudaEvent_t& event : all) WIDE_CHECK_CUDA(cudaEventCreate(&event));
  }
  ~Events() {
    for (const cudaEvent_t event : all) (void)cudaEventDestroy(event);
  }
  Events(const Events&) = delete;
  std::vector<cudaEvent_t> all;
};

/// The smallest step between event times, and the reading of an empty pair of events: on a held
/// stream, since on an idle one the steps are the host's. 2000 pairs, in parts that fit a held
/// stream's queue.
void measure_events(const Context& context, Stream stream, bool holds, Calibration& c) {
  constexpr int kParts = 4;
  constexpr size_t kPairs = 500;
  static_assert(kPairs < kMaxBlockedLaunches);
  const Events events(kPairs + 1);
  HeldStream held(context, stream, holds ? std::ssize(events.all) : kMaxBlockedLaunches + 1);
  std::vector<double> steps;
  for (int part = 0; part < kParts; ++part) {
    held.run([&] {
      for (const cudaEvent_t event : events.all)
        WIDE_CHECK_CUDA(cudaEventRecord(event, native(stream)));
    });
    for (size_t i = 0; i < kPairs; ++i) {
      float ms = 0;
      WIDE_CHECK_CUDA(cudaEventElapsedTime(&ms, events.all[i], events.all[i + 1]));
      steps.push_back(static_cast<double>(ms) * 1e6);
    }
  }
  c.timer_floor_ns = median(steps);
  std::sort(steps.begin(), steps.end());
  double quantum = 0;
  for (size_t i = 1; i < steps.size(); ++i) {
    const double step = steps[i] - steps[i - 1];
    if (step > 1 && (quantum == 0 || step < quantum)) quantum = step;
  }
  c.timer_quantum_ns = quantum > 0 ? quantum : steps.front();
}

/// From event to event on an idle stream, so that it includes the host's time to launch a graph.
double graph_launch_ns(Stream stream) {
  const CapturedGraph graph(
      stream, [&] { WIDE_CHECK_CUDA(launch_empty_kernel(native(stream))); }, 1);
  EventPair events(stream);
  std::vector<double> times;
  for (int i = 0; i < 21; ++i) times.push_back(events.time_ns([&] { graph.launch(); }));
  times.erase(times.begin());  // the first launch's, which may upload
  return median(times);
}

}  // namespace

double best_captured_ns(const Context& context, Stream stream, const Call& call) {
  double best = 0;
  call();  // uncaptured: it may load its kernels
  const bool is_captured = attempt(context, stream, [&] {
    best = best_sample_ns(*make_graph_sampler(context, stream, call, kCoarsestQuantumNs));
  });
  return is_captured ? best : best_sample_ns(*make_stream_sampler(context, stream, call));
}

Hardware hardware_of(const Context& context) {
  const auto attribute = [&](cudaDeviceAttr name) {
    int value = 0;
    const cudaError_t error = cudaDeviceGetAttribute(&value, name, context.device().ordinal);
    if (error != cudaSuccess) (void)cudaGetLastError();  // without an answer it is unknown
    return error == cudaSuccess ? static_cast<double>(value) : 0;
  };
  return {context.info().compute_capability, context.info().num_multiprocessors,
          1e3 * attribute(cudaDevAttrClockRate), 1e3 * attribute(cudaDevAttrMemoryClockRate),
          attribute(cudaDevAttrGlobalMemoryBusWidth) / 8};
}

void calibrate_cuda(const Context& context, double l2_factor, Calibration& c) {
  const OwnedStream stream(context);
  // The ceilings first: short things are then measured at the clocks that ceilings leave.
  attempt(context, stream.get(),
          [&] { c.mem_bw_bytes_per_s = memory_bandwidth(context, stream.get()); });
  attempt(context, stream.get(), [&] { measure_products(context, stream.get(), c); });
  const bool is_held =
      attempt(context, stream.get(), [&] { measure_events(context, stream.get(), true, c); });
  // If no stream can be held, the host's steps are the floor: an overestimate, and therefore safe.
  if (!is_held)
    attempt(context, stream.get(), [&] { measure_events(context, stream.get(), false, c); });
  attempt(context, stream.get(), [&] {
    const Call launch = [&] { WIDE_CHECK_CUDA(launch_empty_kernel(native(stream.get()))); };
    c.host_launch_ns = median_sample_ns(*make_enqueue_sampler(context, stream.get(), launch, 1));
  });
  attempt(context, stream.get(), [&] {
    c.flush_ns = flush_ns(context, stream.get(),
                          {Cache::flush, l2_factor, context.info().last_level_cache_bytes, 0});
  });
  // The distance of launches within a graph is the device's own minimum per launch.
  attempt(context, stream.get(), [&] {
    const auto empty = make_graph_sampler(
        context, stream.get(),
        [&] { WIDE_CHECK_CUDA(launch_following_kernel(native(stream.get()))); },
        c.timer_quantum_ns);
    c.empty_launch_ns = median_sample_ns(*empty);
    c.graph_launch_ns = graph_launch_ns(stream.get());
  });
}

}  // namespace wide::bench
