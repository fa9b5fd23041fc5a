// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Golden vectors of wgmma.cuh: a 64 x n product of small integers, whose operands come in by bulk
// tensor copies under every swizzle and major-ness, A also from registers: what lands in which
// register is the result. And of operands of mixed magnitudes, which say how sums are cut off.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <type_traits>

#include "host/core/tensor_map.hpp"
#include "kernels/arch/fence.cuh"
#include "kernels/arch/target.cuh"
#include "kernels/arch/tma.cuh"
#include "kernels/arch/wgmma.cuh"
#include "verify/golden/golden.hpp"

namespace wide::golden {

namespace {

using namespace kernels;
using arch::Major;
using arch::OperandSwizzle;

constexpr int kM = 64, kThreads = 128;
constexpr int kMaxN = 256;
constexpr int kRowBytes = 128;  // of k, four instructions of 32

template <typename T>
struct StoredAs {
  using Type = T;
};
template <>
struct StoredAs<arch::Tf32> {
  using Type = float;
};
template <typename T>
using Stored = typename StoredAs<T>::Type;
template <typename T>
constexpr int kBytes = static_cast<int>(sizeof(Stored<T>));
template <typename T>
constexpr int kK = kRowBytes / kBytes<T>;

constexpr int span_bytes(OperandSwizzle swizzle) {
  return swizzle == OperandSwizzle::bytes_128  ? 128
         : swizzle == OperandSwizzle::bytes_64 ? 64
         : swizzle == OperandSwizzle::bytes_32 ? 32
                                               : 16;
}

/// An operand of `extent` rows (of m or n) and kK<T> columns in shared memory, as boxes of one
/// span.
template <typename T, Major kMajor, OperandSwizzle kSwizzle>
struct Operand {
  /// K-major: boxes of {span of k, extent}; MN-major: boxes of {span of m or n, kK<T>}.
  __device__ static void load(char* to, const CUtensorMap& map, arch::Mbarrier* barrier,
                              int extent) {
    constexpr int kSpan = span_bytes(kSwizzle), kSpanElements = kSpan / kBytes<T>;
    const int across = kMajor == Major::k ? kK<T> : extent;
    const int box_bytes = kSpan * (kMajor == Major::k ? extent : kK<T>);
    for (int i = 0; i < across / kSpanElements; ++i) {
      arch::load_tile(to + i * box_bytes, map, barrier, i * kSpanElements, 0);
    }
  }

  /// Of the 32 bytes of k from k0 on.
  __device__ static uint64_t descriptor(const char* operand, int extent, int k0) {
    constexpr int kSpan = span_bytes(kSwizzle);
    if constexpr (kMajor == Major::k) {
      const int box_bytes = kSpan * extent;
      constexpr int kSpanElements = kSpan / kBytes<T>;
      const char* first = operand + k0 / kSpanElements * box_bytes + k0 % kSpanElements * kBytes<T>;
      return arch::operand_descriptor(first, static_cast<uint32_t>(box_bytes), 8 * kSpan, kSwizzle);
    } else if constexpr (kSwizzle == OperandSwizzle::none) {
      return arch::operand_descriptor(operand + k0 * kSpan, 8 * kSpan, kK<T> * kSpan, kSwizzle);
    } else {
      return arch::operand_descriptor(operand + k0 * kSpan, kK<T> * kSpan, 8 * kSpan, kSwizzle);
    }
  }
};

struct alignas(1024) Storage {
  char a[kM * kRowBytes], b[kMaxN * kRowBytes];
  arch::Mbarrier barrier;
};

template <class A, class B>
__device__ void load_operands(Storage& s, const CUtensorMap& a, const CUtensorMap& b, int n) {
  if (threadIdx.x == 0) {
    arch::mbarrier_init(&s.barrier, 1);
    arch::fence_mbarrier_init();
    arch::mbarrier_arrive_expect_bytes(&s.barrier, static_cast<uint32_t>((kM + n) * kRowBytes));
    A::load(s.a, a, &s.barrier, kM);
    B::load(s.b, b, &s.barrier, n);
  }
  __syncthreads();
  arch::mbarrier_wait(&s.barrier, 0);
}

template <int kN>
__device__ void write(const float (&d)[kN / 2], float* out) {
  for (int i = 0; i < kN / 2; ++i) out[threadIdx.x * (kN / 2) + i] = d[i];
}

template <typename T, int kN, Major kMajorA, Major kMajorB, OperandSwizzle kSwizzle>
__global__ void __launch_bounds__(kThreads)
    multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
             float* out) {
  if constexpr (arch::kHasSm90a) {
    using A = Operand<T, kMajorA, kSwizzle>;
    using B = Operand<T, kMajorB, kSwizzle>;
    extern __shared__ char dynamic[];
    auto& s =
        *reinterpret_cast<Storage*>((reinterpret_cast<uintptr_t>(dynamic) + 1023) / 1024 * 1024);
    load_operands<A, B>(s, a, b, kN);
    float d[kN / 2];
    arch::wgmma_pin(d);
    arch::wgmma_fence();
#pragma unroll
    for (int k = 0; k < kK<T>; k += 32 / kBytes<T>) {
      arch::wgmma<T, kMajorA, kMajorB>(d, A::descriptor(s.a, kM, k), B::descriptor(s.b, kN, k),
                                       k > 0);
    }
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
    arch::wgmma_pin(d);
    write<kN>(d, out);
  } else {
    __trap();
  }
}

/// A's fragments are the words of `a` in the order of threads: which element they are, the result
/// says. Of B the second 32 bytes of k.
template <typename T, int kN, Major kMajorB>
__global__ void __launch_bounds__(kThreads)
    multiply_registers(const uint32_t* a, const __grid_constant__ CUtensorMap b, float* out) {
  if constexpr (arch::kHasSm90a) {
    using B = Operand<T, kMajorB, OperandSwizzle::bytes_128>;
    extern __shared__ char dynamic[];
    auto& s =
        *reinterpret_cast<Storage*>((reinterpret_cast<uintptr_t>(dynamic) + 1023) / 1024 * 1024);
    if (threadIdx.x == 0) {
      arch::mbarrier_init(&s.barrier, 1);
      arch::fence_mbarrier_init();
      arch::mbarrier_arrive_expect_bytes(&s.barrier, kN * kRowBytes);
      B::load(s.b, b, &s.barrier, kN);
    }
    __syncthreads();
    arch::mbarrier_wait(&s.barrier, 0);
    uint32_t fragment[4];
    for (int i = 0; i < 4; ++i) fragment[i] = a[threadIdx.x * 4 + i];
    float d[kN / 2];
    arch::wgmma_pin(d);
    arch::wgmma_fence();
    arch::wgmma<T, kMajorB>(d, fragment, B::descriptor(s.b, kN, 32 / kBytes<T>), false);
    arch::wgmma_commit();
    arch::wgmma_wait<0>();
    arch::wgmma_pin(d);
    write<kN>(d, out);
  } else {
    __trap();
  }
}

constexpr TileSwizzle tile_swizzle(OperandSwizzle swizzle) {
  return swizzle == OperandSwizzle::bytes_128  ? TileSwizzle::bytes_128
         : swizzle == OperandSwizzle::bytes_64 ? TileSwizzle::bytes_64
         : swizzle == OperandSwizzle::bytes_32 ? TileSwizzle::bytes_32
                                               : TileSwizzle::none;
}

template <typename T>
constexpr Dtype kDtype = std::is_same_v<T, __half>          ? Dtype::fp16
                         : std::is_same_v<T, __nv_bfloat16> ? Dtype::bf16
                         : std::is_same_v<T, __nv_fp8_e4m3> ? Dtype::fp8_e4m3
                         : std::is_same_v<T, __nv_fp8_e5m2> ? Dtype::fp8_e5m2
                                                            : Dtype::fp32;
template <typename T>
void encode_operand(const DeviceBytes& data, Major major, OperandSwizzle swizzle, int extent,
                    CUtensorMap& encoded) {
  const bool is_k_major = major == Major::k;
  const int64_t inner = is_k_major ? kK<T> : extent, outer = is_k_major ? extent : kK<T>;
  encode_tile_map({.data = data.as<void>(),
                   .dtype = kDtype<T>,
                   .rank = 2,
                   .extent = {inner, outer},
                   .stride = {1, inner},
                   .box = {span_bytes(swizzle) / kBytes<T>, outer},
                   .swizzle = tile_swizzle(swizzle)},
                  encoded);
}

constexpr int kSharedBytes = sizeof(Storage) + 1024;

template <typename T, int kN, Major kMajorA, Major kMajorB, OperandSwizzle kSwizzle>
std::vector<std::byte> run(float (*input)(int64_t)) {
  const DeviceBytes a(inputs<Stored<T>>(kM * kK<T>, input));
  const DeviceBytes b(inputs<Stored<T>>(kN * kK<T>, input));
  const DeviceBytes out(kM * kN * 4);
  const auto kernel = multiply<T, kN, kMajorA, kMajorB, kSwizzle>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  CUtensorMap map_a, map_b;
  encode_operand<T>(a, kMajorA, kSwizzle, kM, map_a);
  encode_operand<T>(b, kMajorB, kSwizzle, kN, map_b);
  kernel<<<1, kThreads, kSharedBytes>>>(map_a, map_b, out.as<float>());
  finish();
  return out.download();
}

template <typename T, int kN, Major kMajorB>
std::vector<std::byte> run_registers() {
  const DeviceBytes a(inputs<Stored<T>>(kThreads * 16 / kBytes<T>));
  const DeviceBytes b(inputs<Stored<T>>(kN * kK<T>));
  const DeviceBytes out(kM * kN * 4);
  const auto kernel = multiply_registers<T, kN, kMajorB>;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes));
  CUtensorMap map_b;
  encode_operand<T>(b, kMajorB, OperandSwizzle::bytes_128, kN, map_b);
  kernel<<<1, kThreads, kSharedBytes>>>(a.as<uint32_t>(), map_b, out.as<float>());
  finish();
  return out.download();
}

template <typename T, int kN, Major kMajorA, Major kMajorB, OperandSwizzle kSwizzle>
void add(std::vector<Case>& cases, bool is_mixed = false) {
  const auto letter = [](Major major) { return major == Major::k ? "k" : "mn"; };
  cases.push_back(
      {.name = std::string(is_mixed ? "wgmma_mixed_n" : "wgmma_n") + std::to_string(kN) + "_" +
               std::string(dtype_name(kDtype<T>)) + "_a" + letter(kMajorA) + "_b" +
               letter(kMajorB) + "_" + std::to_string(span_bytes(kSwizzle)) + "b",
       .is_sm90a = true,
       .run = [is_mixed] {
         return run<T, kN, kMajorA, kMajorB, kSwizzle>(is_mixed ? mixed_magnitude : small_integer);
       }});
}

/// K-major, as all types may be: under two swizzles, and of mixed magnitudes.
template <typename T>
void add_types(std::vector<Case>& cases) {
  add<T, 64, Major::k, Major::k, OperandSwizzle::bytes_32>(cases);
  add<T, 64, Major::k, Major::k, OperandSwizzle::bytes_128>(cases);
  add<T, 64, Major::k, Major::k, OperandSwizzle::bytes_128>(cases, true);
}

template <typename T, int kN, Major kMajorB>
void add_registers(std::vector<Case>& cases) {
  cases.push_back({.name = "wgmma_n" + std::to_string(kN) + "_" +
                           std::string(dtype_name(kDtype<T>)) + "_aregisters_b" +
                           (kMajorB == Major::k ? "k" : "mn"),
                   .is_sm90a = true,
                   .run = run_registers<T, kN, kMajorB>});
}

template <OperandSwizzle kSwizzle>
void add_majors(std::vector<Case>& cases) {
  using T = __nv_bfloat16;
  add<T, 64, Major::k, Major::k, kSwizzle>(cases);
  add<T, 64, Major::k, Major::mn, kSwizzle>(cases);
  add<T, 64, Major::mn, Major::k, kSwizzle>(cases);
  add<T, 64, Major::mn, Major::mn, kSwizzle>(cases);
}

}  // namespace

std::vector<Case> wgmma_cases() {
  std::vector<Case> cases;
  add_majors<OperandSwizzle::none>(cases);
  add_majors<OperandSwizzle::bytes_32>(cases);
  add_majors<OperandSwizzle::bytes_64>(cases);
  add_majors<OperandSwizzle::bytes_128>(cases);
  using enum arch::Major;
  add<__nv_bfloat16, 32, k, k, OperandSwizzle::bytes_128>(cases);
  add<__nv_bfloat16, 128, k, k, OperandSwizzle::bytes_128>(cases);
  add<__nv_bfloat16, 256, k, mn, OperandSwizzle::bytes_128>(cases);
  add<__nv_bfloat16, 64, k, k, OperandSwizzle::bytes_128>(cases, true);
  add_types<__half>(cases);
  add_types<arch::Tf32>(cases);
  add_types<__nv_fp8_e4m3>(cases);
  add_types<__nv_fp8_e5m2>(cases);
  add_registers<__nv_bfloat16, 64, k>(cases);
  add_registers<__half, 32, k>(cases);
  add_registers<__half, 64, mn>(cases);
  add_registers<__nv_bfloat16, 128, mn>(cases);
  add_registers<__nv_bfloat16, 192, mn>(cases);
  add_registers<__nv_bfloat16, 256, mn>(cases);
  add_registers<arch::Tf32, 64, k>(cases);
  add_registers<__nv_fp8_e4m3, 64, k>(cases);
  return cases;
}

}  // namespace wide::golden
