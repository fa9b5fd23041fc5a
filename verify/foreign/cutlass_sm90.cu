// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One of CUTLASS's products for compute capability 9.0, as its collective builders make it. The
/// command line says which: types A, B and D, layouts, the tile, schedules of mainloop and
/// epilogue, and what addresses are multiples of.
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

#include <cstdio>
#include <cstdlib>
#include <type_traits>

#include "verify/foreign/product.cuh"

using cute::_1;
using A = WIDE_A;
using B = WIDE_B;
using D = WIDE_D;
using LayoutA = cutlass::layout::WIDE_LAYOUT_A;
using LayoutB = cutlass::layout::WIDE_LAYOUT_B;
using LayoutD = cutlass::layout::WIDE_LAYOUT_D;
using Tile = cute::Shape<cute::Int<WIDE_TILE_M>, cute::Int<WIDE_TILE_N>, cute::Int<WIDE_TILE_K>>;
using Cluster = cute::Shape<_1, _1, _1>;

template <class T>
constexpr int kAlignment = WIDE_ALIGNMENT / sizeof(T);

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, float, float, D, LayoutD, kAlignment<D>, D,
    LayoutD, kAlignment<D>, cutlass::epilogue::WIDE_EPILOGUE>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, A, LayoutA, kAlignment<A>, B, LayoutB,
    kAlignment<B>, float, Tile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(
        sizeof(typename Epilogue::SharedStorage))>,
    cutlass::gemm::WIDE_SCHEDULE>::CollectiveOp;
using Kernel =
    cutlass::gemm::kernel::GemmUniversal<cute::Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

template <class Stride>
Stride packed(int rows, int columns) {
  return cutlass::make_cute_packed_stride(Stride{}, cute::make_shape(rows, columns, 1));
}

template <class Layout>
constexpr bool kIsRowMajor = std::is_same_v<Layout, cutlass::layout::RowMajor>;

int main(int argc, char** argv) {
  if (argc != 4) return std::printf("usage: %s m n k\n", argv[0]), 2;
  const int m = std::atoi(argv[1]), n = std::atoi(argv[2]), k = std::atoi(argv[3]);
  foreign::Matrix<A> a(m, k, kIsRowMajor<LayoutA>);
  foreign::Matrix<B> b(k, n, kIsRowMajor<LayoutB>);
  foreign::Matrix<D> c(m, n, kIsRowMajor<LayoutD>), d(m, n, kIsRowMajor<LayoutD>);
  a.fill(1), b.fill(2), c.fill(3);
  const float alpha = 2, beta = -1;
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = cutlass::KernelHardwareInfo::query_device_multiprocessor_count(0);
  typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                     {m, n, k, 1},
                                     {a.data(), packed<typename Kernel::StrideA>(m, k), b.data(),
                                      packed<typename Kernel::StrideB>(n, k)},
                                     {{alpha, beta},
                                      c.data(),
                                      packed<typename Kernel::StrideC>(m, n),
                                      d.data(),
                                      packed<typename Kernel::StrideD>(m, n)},
                                     hardware};
  Gemm gemm;
  if (const auto status = gemm.can_implement(arguments); status != cutlass::Status::kSuccess)
    return std::printf("can_implement: %s\n", cutlassGetStatusString(status)), 2;
  void* workspace = nullptr;
  if (const size_t bytes = Gemm::get_workspace_size(arguments))
    foreign::require(cudaMalloc(&workspace, bytes), "cudaMalloc");
  if (const auto status = gemm.run(arguments, workspace); status != cutlass::Status::kSuccess)
    return std::printf("run: %s\n", cutlassGetStatusString(status)), 2;
  foreign::require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const int result = foreign::judge(a, b, &c, d, m, n, k, alpha, beta);
  foreign::require(cudaFree(workspace), "cudaFree");
  return result;
}
