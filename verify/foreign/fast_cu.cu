// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One of fast.cu's products of bf16 for compute capability 9.0; the command line says which. They
/// are headers that expect what their own program includes and defines in front of them.
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda/barrier>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "verify/foreign/product.cuh"

using bf16 = __nv_bfloat16;
/// The driver's function, by the runtime: without linking the driver.
template <class... Arguments>
CUresult encode(Arguments... arguments) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  foreign::require(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                    cudaEnableDefault, &found),
                   "cudaGetDriverEntryPointByVersion");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function)(arguments...);
}
#define cuTensorMapEncodeTiled encode
#define CEIL_DIV(m, n) (((m) + (n)-1) / (n))
#define cudaCheck(call) foreign::require(call, "fast.cu")
#include WIDE_KERNEL_HEADER

/// From the third on they take a place for times, too.
template <class Kernel>
void run(Kernel* kernel, int m, int n, int k, bf16* a, bf16* b, bf16* d) {
  if constexpr (std::is_invocable_v<Kernel, int, int, int, bf16*, bf16*, bf16*, int*>) {
    kernel(m, n, k, a, b, d, static_cast<int*>(nullptr));
  } else {
    kernel(m, n, k, a, b, d);
  }
}

int main(int argc, char** argv) {
  if (argc != 4) return std::printf("usage: %s m n k\n", argv[0]), 2;
  const int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
  foreign::Matrix<bf16> a(m, k, true), b(k, n, false), d(m, n, false);
  a.fill(1), b.fill(2);
  run(WIDE_KERNEL, m, n, k, a.data(), b.data(), d.data());
  foreign::require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  return foreign::judge(a, b, static_cast<foreign::Matrix<bf16>*>(nullptr), d, m, n, k, 1.0, 0.0);
}
