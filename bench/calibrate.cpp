// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/statistics/statistics.hpp"
#include "host/core/parallel.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

double now_ns() {
  return std::chrono::duration<double, std::nano>(Clock::now().time_since_epoch()).count();
}

/// The best of all runs within a quarter of a second: a ceiling is what the machine can do, and
/// others may be using it.
template <class F>
double best_ns(const F& body) {
  constexpr double kPatienceNs = 0.25e9;
  const double begin = now_ns();
  double best = 0;
  do {
    const double start = now_ns();
    body();
    const double taken = now_ns() - start;
    best = best == 0 ? taken : std::min(best, taken);
  } while (now_ns() - begin < kPatienceNs);
  return best;
}

double cpu_bandwidth(const Context& context) {
  // Two buffers of twice the last-level cache, as far as 256 MB go: a cache shared by a whole
  // server is not outgrown, and the rate is then partly the cache's.
  const int64_t wanted = 2 * context.info().last_level_cache_bytes;
  const int64_t bytes = std::clamp<int64_t>(wanted, 64 << 20, 128 << 20);
  const Tensor source(context, Dtype::fp8_e4m3, {bytes}),
      destination(context, Dtype::fp8_e4m3, {bytes});
  fill_bytes(source, 1, Stream::cpu());
  fill_bytes(destination, 2, Stream::cpu());
  constexpr int64_t kPiece = 1 << 20;
  const double taken = best_ns([&] {
    parallel_for(context, bytes / kPiece, [&](int64_t piece) {
      std::memcpy(static_cast<char*>(destination.data()) + piece * kPiece,
                  static_cast<const char*>(source.data()) + piece * kPiece, kPiece);
    });
  });
  return 2.0 * static_cast<double>(bytes / kPiece * kPiece) / (taken * 1e-9);
}

/// Independent multiply-adds in registers; returns a value so that they cannot be left out.
typedef float Float4 __attribute__((vector_size(16)));
typedef float Float8 __attribute__((vector_size(32)));
typedef float Float16 __attribute__((vector_size(64)));

template <class Vector>
[[gnu::always_inline]] inline float multiply_adds(int64_t steps) {
  constexpr int kWidth = sizeof(Vector) / sizeof(float);
  constexpr int kChains = 12;  // latency times issue rate of current cores is at most 10
  Vector sums[kChains] = {};
  Vector factor = {}, addend = {};
  for (int i = 0; i < kWidth; ++i) factor[i] = 0.999f, addend[i] = 1e-3f;
  for (int64_t step = 0; step < steps; ++step) {
    for (Vector& sum : sums) sum = sum * factor + addend;
  }
  float total = 0;
  for (const Vector& sum : sums) {
    for (int i = 0; i < kWidth; ++i) total += sum[i];
  }
  return total;
}
constexpr double kFlopsPerStepAndLane = 2 * 12;

float multiply_adds_portable(int64_t steps) {
  return multiply_adds<Float4>(steps);
}
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] float multiply_adds_avx2(int64_t steps) {
  return multiply_adds<Float8>(steps);
}
[[gnu::target("avx512f,fma")]] float multiply_adds_avx512(int64_t steps) {
  return multiply_adds<Float16>(steps);
}
#endif

double cpu_flops(const Context& context) {
  float (*loop)(int64_t) = multiply_adds_portable;
  int width = 4;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    loop = multiply_adds_avx512, width = 16;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    loop = multiply_adds_avx2, width = 8;
  }
#endif
  constexpr int64_t kSteps = 1 << 18;
  const int64_t tasks = 4 * context.info().num_multiprocessors;
  std::vector<float> sums(static_cast<size_t>(tasks));
  const double taken = best_ns([&] {
    parallel_for(context, tasks,
                 [&](int64_t task) { sums[static_cast<size_t>(task)] = loop(kSteps); });
  });
  return kFlopsPerStepAndLane * width * static_cast<double>(kSteps * tasks) / (taken * 1e-9);
}

void calibrate_cpu(const Context& context, Calibration& c) {
  c.mem_bw_bytes_per_s = cpu_bandwidth(context);
  // The CPU device computes in fp32 whatever the operands are stored as.
  const double flops = cpu_flops(context);
  for (const char* dtype : {"fp32", "fp16", "bf16"}) c.flops_per_s.emplace_back(dtype, flops);
  std::vector<double> empty, quanta;
  const int64_t threads = context.info().num_multiprocessors;
  for (int i = 0; i < 200; ++i) {
    const double start = now_ns();
    parallel_for(context, threads, [](int64_t) {});
    empty.push_back(now_ns() - start);
    const double first = now_ns();
    double second = first;
    while (second == first) second = now_ns();
    quanta.push_back(second - first);
  }
  c.empty_launch_ns = median(empty);
  c.timer_quantum_ns = *std::min_element(quanta.begin(), quanta.end());
  c.timer_floor_ns = median(quanta);
}

}  // namespace

Calibration calibrate(const Context& context) {
  Calibration c;
  if (context.device().type == DeviceType::cuda) {
    calibrate_cuda(context, c);
  } else {
    calibrate_cpu(context, c);
  }
  return c;
}

Floor floor_of(const Calibration& c, const catalog::Cost& cost, Dtype dtype) {
  Floor floor;
  if (c.mem_bw_bytes_per_s > 0) floor.bytes_ns = cost.bytes() / c.mem_bw_bytes_per_s * 1e9;
  for (const auto& [name, rate] : c.flops_per_s) {
    if (name == dtype_name(dtype) && rate > 0) floor.flops_ns = cost.flops / rate * 1e9;
  }
  floor.launch_ns = c.empty_launch_ns;
  return floor;
}

}  // namespace wide::bench
