// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/machine/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <numeric>
#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "bench/statistics/order.hpp"
#include "host/core/parallel.hpp"
#include "host/operand_values.hpp"
#include "wide/convert.hpp"
#include "wide/tensor.hpp"

namespace wide::bench {

namespace {

using Clock = std::chrono::steady_clock;

double now_ns() {
  return std::chrono::duration<double, std::nano>(Clock::now().time_since_epoch()).count();
}

constexpr double kPatienceNs = 0.25e9;
constexpr int kWindows = 3;  // of a CPU's ceilings, in which that time is spent

/// The best of all runs within a window: a ceiling is what the machine can do, and other processes
/// may be using it.
template <class F>
double best_ns(const F& body) {
  const double begin = now_ns();
  double best = 0;
  do {
    const double start = now_ns();
    body();
    const double taken = now_ns() - start;
    best = best == 0 ? taken : std::min(best, taken);
  } while (now_ns() - begin < kPatienceNs / kWindows);
  return best;
}

/// Two buffers of twice the last-level cache each, up to 256 MB in all: the shared cache of a
/// whole server is not exceeded, and the rate is then partly the cache's.
size_t bytes_copied(const Context& context) {
  const int64_t wanted = 2 * context.info().last_level_cache_bytes;
  return static_cast<size_t>(std::clamp<int64_t>(wanted, 64 << 20, 128 << 20));
}

double cpu_bandwidth(const Context& context, std::span<const char> source,
                     std::span<char> destination) {
  constexpr int64_t kPiece = 1 << 20;
  const int64_t pieces = std::ssize(source) / kPiece;
  const double taken = best_ns([&] {
    parallel_for(context, pieces, [&](int64_t piece) {
      std::memcpy(destination.data() + piece * kPiece, source.data() + piece * kPiece, kPiece);
    });
  });
  return 2.0 * static_cast<double>(pieces * kPiece) / (taken * 1e-9);
}

// Multiply-adds in registers, in independent chains: latency times issue rate
// of current cores is at most 10. Each returns a value so that it is not optimised away, and starts
// every chain elsewhere: of chains that are equal a compiler keeps one.
// Intrinsics, because generic vectors are split up before a target attribute can help them.
constexpr int kChains = 12;

float multiply_adds_portable(int64_t steps) {
  float sums[kChains];
  std::iota(std::begin(sums), std::end(sums), 0.0f);
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (float& sum : sums) sum = sum * 0.999f + 1e-3f;
  }
  return std::accumulate(std::begin(sums), std::end(sums), 0.0f);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] float multiply_adds_avx2(int64_t steps) {
  const __m256 factor = _mm256_set1_ps(0.999f), addend = _mm256_set1_ps(1e-3f);
  __m256 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm256_set1_ps(static_cast<float>(i));
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, addend);
  }
  for (const __m256& sum : sums) sums[0] = _mm256_add_ps(sums[0], sum);
  return _mm256_cvtss_f32(sums[0]);
}

[[gnu::target("avx512f")]] float multiply_adds_avx512(int64_t steps) {
  const __m512 factor = _mm512_set1_ps(0.999f), addend = _mm512_set1_ps(1e-3f);
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 12
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, addend);
  }
  for (const __m512& sum : sums) sums[0] = _mm512_add_ps(sums[0], sum);
  return _mm512_cvtss_f32(sums[0]);
}
#endif

double cpu_flops(const Context& context) {
  float (*loop)(int64_t) = multiply_adds_portable;
  int lanes = 1;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    loop = multiply_adds_avx512, lanes = 16;
  } else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    loop = multiply_adds_avx2, lanes = 8;
  }
#endif
  constexpr int64_t kSteps = 1 << 18;
  const int64_t tasks = 4 * context.info().num_multiprocessors;
  std::vector<float> sums(static_cast<size_t>(tasks));
  const double taken = best_ns([&] {
    parallel_for(context, tasks,
                 [&](int64_t task) { sums[static_cast<size_t>(task)] = loop(kSteps); });
  });
  return 2.0 * kChains * lanes * static_cast<double>(kSteps * tasks) / (taken * 1e-9);
}

void measure_timer(const Context& context, Calibration& c) {
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

CpuCeilings::CpuCeilings(const Context& context)
    : context_(context),
      source_(bytes_copied(context), '\1'),
      destination_(bytes_copied(context), '\2') {}

Calibration CpuCeilings::measure() {
  Calibration c;
  c.mem_bw_bytes_per_s = cpu_bandwidth(context_, source_, destination_);
  // The CPU device computes in fp32 whatever the operands are stored as.
  const double flops = cpu_flops(context_);
  for (const char* dtype : {"fp32", "fp16", "bf16"}) c.flops_per_s.emplace_back(dtype, flops);
  measure_timer(context_, c);
  return c;
}

void raise_ceilings(Calibration& ceilings, const Calibration& found) {
  const auto raise = [](double& ceiling, double rate) { ceiling = std::max(ceiling, rate); };
  raise(ceilings.mem_bw_bytes_per_s, found.mem_bw_bytes_per_s);
  for (auto& [dtype, ceiling] : ceilings.flops_per_s) {
    for (const auto& [name, rate] : found.flops_per_s) {
      if (name == dtype) raise(ceiling, rate);
    }
  }
}

Calibration calibrate(const Context& context, double l2_factor) {
  Calibration c;
  if (context.device().type == DeviceType::cuda) {
    calibrate_cuda(context, l2_factor, c);
    return c;
  }
  CpuCeilings windows(context);
  c = windows.measure();
  for (int i = 1; i < kWindows; ++i) raise_ceilings(c, windows.measure());
  return c;
}

double best_sample_ns(Sampler& sampler, int64_t at_most) {
  constexpr int64_t kAtLeast = 11;
  const double begin = now_ns();
  double best = sampler.sample_ns();
  for (int64_t i = 1; i < kAtLeast || (i < at_most && now_ns() - begin < kPatienceNs); ++i)
    best = std::min(best, sampler.sample_ns());
  return best;
}

std::vector<std::byte> uniform_operand(Dtype dtype, int64_t count, uint64_t seed) {
  std::vector<std::byte> values(static_cast<size_t>(count * dtype_bytes(dtype)));
  for (int64_t i = 0; i < count; ++i) {
    const double unit = catalog::to_unit(catalog::random_bits(seed, static_cast<uint64_t>(i)));
    store_element(values.data(), dtype, i, 2 * unit - 1);
  }
  return values;
}

void fill_uniform(const Context& context, const TensorView& to, uint64_t seed, Stream stream) {
  const int64_t count = to.num_elements();
  const int64_t once = std::min<int64_t>(count, 1 << 20);
  const std::vector<std::byte> values = uniform_operand(to.dtype, once, seed);
  for (int64_t from = 0; from < count; from += once) {
    const Shape part{std::min(once, count - from)};
    void* const at = static_cast<std::byte*>(to.data) + from * dtype_bytes(to.dtype);
    copy(ConstTensorView(values.data(), to.dtype, part, Device{}),
         TensorView(at, to.dtype, part, to.device), stream);
  }
  context.synchronize(stream);
}

double flops_rate(const Calibration& c, Dtype dtype, bool allows_tf32) {
  double rate = 0;
  for (const auto& [name, measured] : c.flops_per_s) {
    const bool is_tf32 = allows_tf32 && dtype == Dtype::fp32 && name == kTf32;
    if (name == dtype_name(dtype) || is_tf32) rate = std::max(rate, measured);
  }
  return rate;
}

Floor floor_of(const Calibration& c, const catalog::Cost& cost, Dtype dtype, bool allows_tf32) {
  Floor floor;
  if (c.mem_bw_bytes_per_s > 0) floor.bytes_ns = cost.bytes() / c.mem_bw_bytes_per_s * 1e9;
  const double rate = flops_rate(c, dtype, allows_tf32);
  if (rate > 0) floor.flops_ns = cost.flops / rate * 1e9;
  floor.launch_ns = c.empty_launch_ns;
  return floor;
}

}  // namespace wide::bench
