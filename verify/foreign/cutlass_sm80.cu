// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One of CUTLASS's products for compute capability 8.0, whose sum over k SLICES blocks share. The
/// command line says which: types A, B and D, layouts, the tiles of a block, a warp and an
/// instruction, and the operation.
#include <cutlass/gemm/device/gemm.h>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "verify/foreign/product.cuh"

using A = WIDE_A;
using B = WIDE_B;
using D = WIDE_D;
using LayoutA = cutlass::layout::WIDE_LAYOUT_A;
using LayoutB = cutlass::layout::WIDE_LAYOUT_B;
using LayoutD = cutlass::layout::RowMajor;
using Block = cutlass::gemm::GemmShape<WIDE_TILE_M, WIDE_TILE_N, WIDE_TILE_K>;
using Warp = cutlass::gemm::GemmShape<WIDE_TILE_M / 2, WIDE_TILE_N / 2, WIDE_TILE_K>;
using Instruction =
    cutlass::gemm::GemmShape<WIDE_INSTRUCTION_M, WIDE_INSTRUCTION_N, WIDE_INSTRUCTION_K>;

template <class T>
constexpr int kAlignment = WIDE_ALIGNMENT / sizeof(T);

using Epilogue = cutlass::epilogue::thread::LinearCombination<D, kAlignment<D>, float, float>;
using Gemm = cutlass::gemm::device::Gemm<
    A, LayoutA, B, LayoutB, D, LayoutD, float, cutlass::arch::WIDE_CLASS, cutlass::arch::Sm80,
    Block, Warp, Instruction, Epilogue,
    cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>, WIDE_STAGES, kAlignment<A>,
    kAlignment<B>, true, cutlass::arch::WIDE_OPERATION>;

template <class Layout>
constexpr bool kIsRowMajor = std::is_same_v<Layout, cutlass::layout::RowMajor>;

int main(int argc, char** argv) {
  if (argc != 4) return std::printf("usage: %s m n k\n", argv[0]), 2;
  const int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
  foreign::Matrix<A> a(m, k, kIsRowMajor<LayoutA>);
  foreign::Matrix<B> b(k, n, kIsRowMajor<LayoutB>);
  foreign::Matrix<D> c(m, n, true), d(m, n, true);
  a.fill(1), b.fill(2), c.fill(3);
  const float alpha = 2, beta = -1;
  const auto reference = [](auto& matrix, auto layout) {
    return cutlass::TensorRef(matrix.data(), decltype(layout)(static_cast<int>(matrix.stride())));
  };
  typename Gemm::Arguments arguments({m, n, k}, reference(a, LayoutA()), reference(b, LayoutB()),
                                     reference(c, LayoutD()), reference(d, LayoutD()),
                                     {alpha, beta}, WIDE_SLICES);
  void* workspace = nullptr;
  if (const size_t bytes = Gemm::get_workspace_size(arguments))
    foreign::require(cudaMalloc(&workspace, bytes), "cudaMalloc");
  Gemm gemm;
  if (const auto status = gemm(arguments, workspace); status != cutlass::Status::kSuccess)
    return std::printf("run: %s\n", cutlassGetStatusString(status)), 2;
  foreign::require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const int result = foreign::judge(a, b, &c, d, m, n, k, alpha, beta);
  foreign::require(cudaFree(workspace), "cudaFree");
  return result;
}
