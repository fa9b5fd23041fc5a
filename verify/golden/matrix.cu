// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Golden vectors of matrix.cuh: where ldmatrix and stmatrix put which element, what mma makes of
// fragments that are nothing but loaded bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "kernels/arch/matrix.cuh"
#include "kernels/arch/target.cuh"
#include "verify/golden/golden.hpp"

namespace wide::golden {

namespace {

using namespace kernels;

constexpr int kMatrices = 4, kMatrixHalves = 64;

/// Lane l names row l of 32 rows of 16 bytes; each lane's registers are the result.
template <int kCount, bool kIsTransposed>
__global__ void load_matrices(const uint16_t* in, uint32_t* out) {
  __shared__ alignas(16) uint16_t rows[kMatrices * kMatrixHalves];
  for (int i = threadIdx.x; i < kMatrices * kMatrixHalves; i += 32) rows[i] = in[i];
  __syncwarp();
  uint32_t d[kCount];
  arch::ldmatrix<kIsTransposed>(d, &rows[threadIdx.x * 8]);
  for (int i = 0; i < kCount; ++i) out[threadIdx.x * kCount + i] = d[i];
}

template <int kCount, bool kIsTransposed>
__global__ void store_matrices(const uint32_t* in, uint16_t* out) {
  if constexpr (arch::kHasSm90a) {
    __shared__ alignas(16) uint16_t rows[kMatrices * kMatrixHalves];
    for (int i = threadIdx.x; i < kMatrices * kMatrixHalves; i += 32) rows[i] = 0xffff;
    __syncwarp();
    uint32_t s[kCount];
    for (int i = 0; i < kCount; ++i) s[i] = in[threadIdx.x * kCount + i];
    arch::stmatrix<kIsTransposed>(&rows[threadIdx.x * 8], s);
    __syncwarp();
    for (int i = threadIdx.x; i < kMatrices * kMatrixHalves; i += 32) out[i] = rows[i];
  } else {
    __trap();
  }
}

struct Tf32 {};  ///< as fp32, all of whose bits are given: the last 13 are not looked at

/// in: 32 lanes of four words of a, then of two of b; d begins as the lane's index.
template <typename T>
__global__ void multiply(const uint32_t* in, float* out) {
  uint32_t a[4], b[2];
  float d[4];
  for (int i = 0; i < 4; ++i) a[i] = in[threadIdx.x * 4 + i];
  for (int i = 0; i < 2; ++i) b[i] = in[128 + threadIdx.x * 2 + i];
  for (int i = 0; i < 4; ++i) d[i] = static_cast<float>(threadIdx.x);
  if constexpr (std::is_same_v<T, Tf32>) {
    arch::mma_m16n8k8_tf32(d, a, b);
  } else {
    arch::mma_m16n8k16<T>(d, a, b);
  }
  for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}

template <int kCount, bool kIsTransposed>
std::vector<std::byte> run_load() {
  const DeviceBytes in(counting_halves(kMatrices * kMatrixHalves)), out(32 * kCount * 4);
  load_matrices<kCount, kIsTransposed><<<1, 32>>>(in.as<uint16_t>(), out.as<uint32_t>());
  finish();
  return out.download();
}

template <int kCount, bool kIsTransposed>
std::vector<std::byte> run_store() {
  const DeviceBytes in(counting_halves(32 * kCount * 2)), out(kMatrices * kMatrixHalves * 2);
  store_matrices<kCount, kIsTransposed><<<1, 32>>>(in.as<uint32_t>(), out.as<uint16_t>());
  finish();
  return out.download();
}

template <typename T, typename Stored = T>
std::vector<std::byte> run_multiply(float (*input)(int64_t) = small_integer) {
  constexpr auto kCount = static_cast<int64_t>(32 * 6 * 4 / sizeof(Stored));
  const DeviceBytes in(inputs<Stored>(kCount, input)), out(32 * 4 * 4);
  multiply<T><<<1, 32>>>(in.as<uint32_t>(), out.as<float>());
  finish();
  return out.download();
}

/// Whole numbers, whose sums are exact on every device; and sums that are not, of one kind of core.
template <typename T, typename Stored = T>
void add_products(std::vector<Case>& cases, const std::string& form) {
  cases.push_back({.name = "mma_" + form, .run = [] { return run_multiply<T, Stored>(); }});
  cases.push_back({.name = "mma_mixed_" + form, .is_sm90a = true, .run = [] {
                     return run_multiply<T, Stored>(mixed_magnitude);
                   }});
}

template <int kCount, bool kIsTransposed>
void add_moves(std::vector<Case>& cases) {
  const std::string form = "_x" + std::to_string(kCount) + (kIsTransposed ? "_trans" : "");
  cases.push_back({.name = "ldmatrix" + form, .run = run_load<kCount, kIsTransposed>});
  cases.push_back(
      {.name = "stmatrix" + form, .is_sm90a = true, .run = run_store<kCount, kIsTransposed>});
}

}  // namespace

std::vector<Case> matrix_cases() {
  std::vector<Case> cases;
  add_moves<1, false>(cases);
  add_moves<1, true>(cases);
  add_moves<2, false>(cases);
  add_moves<2, true>(cases);
  add_moves<4, false>(cases);
  add_moves<4, true>(cases);
  add_products<__half>(cases, "m16n8k16_f16");
  add_products<__nv_bfloat16>(cases, "m16n8k16_bf16");
  add_products<Tf32, float>(cases, "m16n8k8_tf32");
  return cases;
}

}  // namespace wide::golden
