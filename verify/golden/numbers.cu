// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Golden vectors of numbers: conversions to and from the small formats, with every special value;
// the approximations that our kernels' sources compile to; shuffles and reductions of a warp; the
// zeros of a short cp.async.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <bit>
#include <cstring>
#include <limits>

#include "kernels/arch/cp_async.cuh"
#include "kernels/arch/math.cuh"
#include "kernels/arch/maximum.cuh"
#include "verify/golden/golden.hpp"

namespace wide::golden {

namespace {

using namespace kernels;

constexpr int kCount = 1024;

/// Special values, values at which small formats round up, and bits of all exponents.
std::vector<std::byte> floats() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> values{0.0f,     -0.0f,  1.0f,   -1.0f,    0.5f,     1.00390625f, 1.01171875f,
                            448.0f,   464.0f, 465.0f, 57344.0f, 61440.0f, 65504.0f,    65519.0f,
                            65520.0f, 6e-8f,  3e-8f,  2e-3f,    9e-4f,    1e-5f,       100.0f};
  for (const float special : {Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(),
                              Limits::denorm_min(), Limits::epsilon()}) {
    values.push_back(special);
    values.push_back(-special);
  }
  for (uint32_t i = 0; values.size() < kCount; ++i) {
    values.push_back(std::bit_cast<float>(i * 2654435761u));
  }
  std::vector<std::byte> bytes(values.size() * 4);
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

struct ToHalf {
  __device__ static uint32_t of(float x) { return __half_as_ushort(__float2half_rn(x)); }
};
struct ToBfloat {
  __device__ static uint32_t of(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
};
struct FromHalf {
  __device__ static uint32_t of(float x) {
    const auto bits = static_cast<unsigned short>(__float_as_uint(x) >> 16);
    return __float_as_uint(__half2float(__ushort_as_half(bits)));
  }
};
template <__nv_fp8_interpretation_t kFormat>
struct ToFp8 {
  __device__ static uint32_t of(float x) {
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kFormat);
  }
};
template <__nv_fp8_interpretation_t kFormat>
struct FromFp8 {
  __device__ static uint32_t of(float x) {
    const auto bits = static_cast<__nv_fp8_storage_t>(__float_as_uint(x) >> 24);
    return __half_raw(__nv_cvt_fp8_to_halfraw(bits, kFormat)).x;
  }
};
struct MultiplyAddHalf {  // NaN, infinity and -0 in 16 bits
  __device__ static uint32_t of(float x) {
    const __half h = __ushort_as_half(static_cast<unsigned short>(__float_as_uint(x) >> 16));
    return __half_as_ushort(__hfma(h, h, h));
  }
};

struct LargerKeepingNan {
  __device__ static uint32_t of(float x) {
    return __float_as_uint(arch::max_keeping_nan(x, 0.25f));
  }
};

struct Exp2Approximately {
  __device__ static float of(float x) { return arch::exp2_approximately(x); }
};
struct Exp2Gradually {
  __device__ static float of(float x) { return arch::exp2_gradually(x); }
};
struct ReciprocalApproximately {
  __device__ static float of(float x) { return arch::reciprocal_approximately(x); }
};
struct Exp2 {
  __device__ static float of(float x) { return exp2f(x); }
};
struct ExpFast {
  __device__ static float of(float x) { return __expf(x); }
};
struct ReciprocalRoot {
  __device__ static float of(float x) { return rsqrtf(x); }
};
struct Quotient {
  __device__ static float of(float x) { return __fdividef(1.0f, x); }
};
struct Logarithm {
  __device__ static float of(float x) { return __log2f(x); }
};
struct ErrorFunction {
  __device__ static float of(float x) { return erff(x); }
};
struct HyperbolicTangent {
  __device__ static float of(float x) { return tanhf(x); }
};

template <class Function, class Result>
__global__ void evaluate(const float* in, Result* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = Function::of(in[i]);
}

template <class Function, class Result>
std::vector<std::byte> run_function() {
  const DeviceBytes in(floats()), out(kCount * 4);
  evaluate<Function, Result><<<kCount / 256, 256>>>(in.as<float>(), out.as<Result>());
  finish();
  return out.download();
}

/// Twelve words a lane: every shuffle, vote and reduction that a warp has.
__global__ void communicate(uint32_t* out) {
  const unsigned lane = threadIdx.x, all = 0xffffffffu;
  const unsigned value = lane * 2654435761u;
  uint32_t* to = out + lane * 12;
  to[0] = __shfl_sync(all, value, static_cast<int>(lane * 7 % 32));
  to[1] = __shfl_up_sync(all, value, 3);
  to[2] = __shfl_down_sync(all, value, 5);
  to[3] = __shfl_xor_sync(all, value, 9);
  to[4] = __shfl_sync(all, value, 2, 8);
  to[5] = __shfl_down_sync(all, value, 3, 16);
  to[6] = __ballot_sync(all, (value >> 13 & 1) != 0);
  to[7] = __match_any_sync(all, lane % 5);
  to[8] = __reduce_add_sync(all, value);
  to[9] = static_cast<uint32_t>(__reduce_max_sync(all, static_cast<int>(value)));
  to[10] = __reduce_xor_sync(all, value);
  to[11] = __activemask();
}

std::vector<std::byte> run_warp() {
  const DeviceBytes out(32 * 12 * 4);
  communicate<<<1, 32>>>(out.as<uint32_t>());
  finish();
  return out.download();
}

/// Lane l copies l of 16 bytes, from 17 on none; the rest of its 16 is zero.
__global__ void copy_short(const char* in, char* out) {
  __shared__ alignas(16) char bytes[32 * 16];
  const int lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 32 * 16; i += 32) bytes[i] = -1;
  __syncwarp();
  arch::cp_async_16(bytes + lane * 16, in + lane * 16, lane <= 16 ? lane : 0);
  arch::cp_async_commit();
  arch::cp_async_wait<0>();
  for (int i = 0; i < 16; ++i) out[lane * 16 + i] = bytes[lane * 16 + i];
}

std::vector<std::byte> run_copy() {
  const DeviceBytes in(counting_halves(256)), out(512);
  copy_short<<<1, 32>>>(in.as<char>(), out.as<char>());
  finish();
  return out.download();
}

template <class Function>
Case conversion(const char* name) {
  return {.name = name, .run = run_function<Function, uint32_t>};
}
/// Hardware's approximations differ from the simulated GPU's within PTX's stated error.
template <class Function>
Case approximation(const char* name, double relative, double absolute = 0) {
  return {.name = name,
          .tolerance = test::Tolerance{relative, absolute},
          .run = run_function<Function, float>};
}

}  // namespace

std::vector<Case> number_cases() {
  return {
      conversion<ToHalf>("cvt_f32_to_f16"),
      conversion<ToBfloat>("cvt_f32_to_bf16"),
      conversion<FromHalf>("cvt_f16_to_f32"),
      conversion<ToFp8<__NV_E4M3>>("cvt_f32_to_e4m3"),
      conversion<ToFp8<__NV_E5M2>>("cvt_f32_to_e5m2"),
      conversion<FromFp8<__NV_E4M3>>("cvt_e4m3_to_f16"),
      conversion<FromFp8<__NV_E5M2>>("cvt_e5m2_to_f16"),
      conversion<MultiplyAddHalf>("fma_f16"),
      conversion<LargerKeepingNan>("max_nan"),
      approximation<Exp2Approximately>("ex2_ftz", 4e-7),
      approximation<Exp2Gradually>("ex2", 4e-7),
      approximation<ReciprocalApproximately>("rcp_ftz", 2e-7),
      approximation<Exp2>("exp2f", 4e-7),
      approximation<ExpFast>("expf_fast", 4e-5),  // its argument is rounded first
      approximation<ReciprocalRoot>("rsqrtf", 4e-7),
      approximation<Quotient>("fdividef", 4e-7),
      // lg2.approx: "maximum absolute error is 2^-22" between 0.5 and 2, relative elsewhere.
      approximation<Logarithm>("log2f_fast", 4e-7, 3e-7),
      approximation<ErrorFunction>("erff", 4e-7),
      approximation<HyperbolicTangent>("tanhf", 4e-7),
      {.name = "warp", .run = run_warp},
      {.name = "cp_async_16", .run = run_copy},
  };
}

}  // namespace wide::golden
