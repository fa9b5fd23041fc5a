// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Ceilings of a GPU: a copy of at least four times the L2, and cuBLAS products, both many times
// larger than a launch.
#include <algorithm>
#include <vector>

#include "bench/calibrate.hpp"
#include "bench/statistics/order.hpp"
#include "bench/timer/empty_kernel.hpp"
#include "bench/timer/sampler.hpp"
#include "host/core/cuda_check.hpp"
#include "wide/error.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

namespace {

double best_sample_ns(const Context& context, Stream stream, const Call& call) {
  const auto sampler = make_stream_sampler(context, stream, call);
  double best = sampler->sample_ns();
  for (int i = 0; i < 10; ++i) best = std::min(best, sampler->sample_ns());
  return best;
}

double median_sample_ns(Sampler& sampler) {
  std::vector<double> samples;
  for (int i = 0; i < 20; ++i) samples.push_back(sampler.sample_ns());
  return median(samples);
}

double copy_bandwidth(const Context& context, Stream stream) {
  const DeviceInfo& info = context.info();
  const int64_t wanted = std::max<int64_t>(4 * info.last_level_cache_bytes, 256 << 20);
  const int64_t bytes = std::min(wanted, info.memory_bytes / 16);
  const Tensor source(context, Dtype::uint8, {bytes}), destination(context, Dtype::uint8, {bytes});
  fill_bytes(source, 0x5a, stream);
  const double taken = best_sample_ns(context, stream, [&] { copy(source, destination, stream); });
  return 2.0 * static_cast<double>(bytes) / (taken * 1e-9);
}

/// Random data: products of zeros draw less power and run faster than any real ones.
void fill_random(const Context& context, const Tensor& tensor, Stream stream) {
  std::vector<uint16_t> values(static_cast<size_t>(tensor.bytes() / 2));
  uint64_t state = 42;
  for (uint16_t& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    // Sign and mantissa random, exponent of [0.5, 1) in bf16; as fp16 and fp32 the values are
    // small, too.
    value = static_cast<uint16_t>((state >> 48 & 0x807fu) | 0x3f00u);
  }
  copy(ConstTensorView(values.data(), tensor.dtype(), tensor.shape(), Device{}), tensor, stream);
  context.synchronize(stream);
}

struct Product {
  const char* name;
  cudaDataType_t type;
  int64_t element_bytes;
  cublasComputeType_t compute;
};
constexpr Product kProducts[] = {
    {"fp32", CUDA_R_32F, 4, CUBLAS_COMPUTE_32F},
    {"fp16", CUDA_R_16F, 2, CUBLAS_COMPUTE_32F},
    {"bf16", CUDA_R_16BF, 2, CUBLAS_COMPUTE_32F},
};

void measure_products(const Context& context, Stream stream, Calibration& c) {
  const VendorHandles handles(context);
  if (handles.cublas() == nullptr) return;
  const auto cublas = static_cast<cublasHandle_t>(handles.cublas());
  constexpr int kSize = 4096;
  const Tensor a(context, Dtype::fp32, {kSize, kSize}), b(context, Dtype::fp32, {kSize, kSize});
  const Tensor out(context, Dtype::fp32, {kSize, kSize});
  fill_random(context, a, stream);
  fill_random(context, b, stream);
  WIDE_CHECK_CUBLAS(cublasSetStream(cublas, static_cast<cudaStream_t>(stream.native())));
  const float one = 1, zero = 0;
  for (const Product& product : kProducts) {
    const double taken = best_sample_ns(context, stream, [&] {
      WIDE_CHECK_CUBLAS(cublasGemmEx(cublas, CUBLAS_OP_T, CUBLAS_OP_N, kSize, kSize, kSize, &one,
                                     a.data(), product.type, kSize, b.data(), product.type, kSize,
                                     &zero, out.data(), product.type, kSize, product.compute,
                                     CUBLAS_GEMM_DEFAULT));
    });
    c.flops_per_s.emplace_back(product.name, 2.0 * kSize * kSize * kSize / (taken * 1e-9));
  }
}

/// The smallest step between event times, and what an empty pair of events reads.
void measure_events(Stream stream, Calibration& c) {
  const auto native = static_cast<cudaStream_t>(stream.native());
  constexpr size_t kPairs = 2000;
  std::vector<cudaEvent_t> events(kPairs + 1);
  for (cudaEvent_t& event : events) WIDE_CHECK_CUDA(cudaEventCreate(&event));
  for (const cudaEvent_t event : events) WIDE_CHECK_CUDA(cudaEventRecord(event, native));
  WIDE_CHECK_CUDA(cudaStreamSynchronize(native));
  std::vector<double> steps;
  for (size_t i = 0; i < kPairs; ++i) {
    float ms = 0;
    WIDE_CHECK_CUDA(cudaEventElapsedTime(&ms, events[i], events[i + 1]));
    steps.push_back(static_cast<double>(ms) * 1e6);
  }
  for (const cudaEvent_t event : events) (void)cudaEventDestroy(event);
  c.timer_floor_ns = median(steps);
  std::sort(steps.begin(), steps.end());
  double quantum = 0;
  for (size_t i = 1; i < steps.size(); ++i) {
    const double step = steps[i] - steps[i - 1];
    if (step > 1 && (quantum == 0 || step < quantum)) quantum = step;
  }
  c.timer_quantum_ns = quantum > 0 ? quantum : steps.front();
}

/// A ceiling that cannot be measured is left out; an error that stays is thrown again.
template <class F>
void attempt(const Context& context, Stream stream, const F& body) {
  try {
    body();
  } catch (const Error&) {
    context.synchronize(stream);
  }
}

}  // namespace

void calibrate_cuda(const Context& context, Calibration& c) {
  const OwnedStream stream(context);
  const auto native = static_cast<cudaStream_t>(stream.get().native());
  measure_events(stream.get(), c);
  attempt(context, stream.get(),
          [&] { c.mem_bw_bytes_per_s = copy_bandwidth(context, stream.get()); });
  attempt(context, stream.get(), [&] { measure_products(context, stream.get(), c); });
  attempt(context, stream.get(), [&] {
    const Call launch = [&] { WIDE_CHECK_CUDA(launch_empty_kernel(native)); };
    c.host_launch_ns = median_sample_ns(*make_enqueue_sampler(context, stream.get(), launch, 1));
  });
  attempt(context, stream.get(), [&] {
    c.flush_ns = flush_ns(context, stream.get(),
                          {Cache::flush, 2, context.info().last_level_cache_bytes, 0});
  });
  // Between the launches of a graph lies what the device itself needs for one.
  attempt(context, stream.get(), [&] {
    const auto empty = make_graph_sampler(
        context, stream.get(), [&] { WIDE_CHECK_CUDA(launch_empty_kernel(native)); },
        c.timer_quantum_ns);
    c.empty_launch_ns = median_sample_ns(*empty);
    const auto single = make_graph_sampler(
        context, stream.get(), [&] { WIDE_CHECK_CUDA(launch_empty_kernel(native)); }, 0, 1);
    c.graph_launch_ns = median_sample_ns(*single);
  });
}

}  // namespace wide::bench
