// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantised weights -> [num_members, out, in] in 16 bits, from which a kernel for packed weights
// then multiplies. With hundreds of rows a member, its blobs would be decoded again for every 64.
//
// Plan: bound by writing two bytes a weight. One warp per strip of 16 outputs and two tiles of 64
// inputs; nothing is shared between warps. A lane's codes are what it would hold of operand A of
// mma.m16n8k16: of its rows l / 4 and l / 4 + 8, two neighbours of every eight inputs. The four
// lanes of a row exchange them, so that each stores 16 contiguous bytes, and they together 64.
//
//   lane 4 r + t    before: inputs 2 t, 2 t + 1 of eights 0, 1, 2, 3     after: all of eight t
//
// The exchange takes 16 shuffles and 48 selections a tile and lane. All of it is 40 (int4 to bf16)
// to 63 % (fp6 to fp16) of what a multiprocessor can issue while its share of memory's rate serves
// the tile (counted in PTX; verify/linear/linear_issue_cuda_test.cpp holds it).
#include <type_traits>

#include "kernels/arch/grid.cuh"
#include "kernels/common/launch.hpp"
#include "kernels/linear/linear_decode.cuh"
#include "kernels/linear/linear_decoded.hpp"

namespace wide::kernels {

namespace {

constexpr int kEights = kQuantizedTile / 8;

/// Each of two values times the bf16 that `scale` has twice, rounded once.
template <class T>
__device__ inline uint32_t scaled(uint32_t pair, uint32_t scale) {
  if constexpr (std::is_same_v<T, __half>) {
    // A scale may be beyond fp16's range; in fp32 the product is exact.
    const float factor = __uint_as_float(scale & 0xffff0000u);
    const float2 values = __half22float2(two_of<T>(pair));
    return bits_of<T>(__floats2half2_rn(values.x * factor, values.y * factor));
  } else {
    return bits_of<T>(__hmul2(two_of<T>(pair), two_of<T>(scale)));
  }
}

/// Lane t of four has v[i] of row t; afterwards v[i] is what lane i had in v[t].
__device__ inline void exchange_in_four(uint32_t (&v)[4], int t) {
#pragma unroll
  for (int step = 1; step <= 2; ++step) {
    const bool is_upper = (t & step) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & step) != 0) continue;
      const uint32_t got = __shfl_xor_sync(0xffffffffu, is_upper ? v[i] : v[i + step], step);
      v[i] = is_upper ? got : v[i];
      v[i + step] = is_upper ? v[i + step] : got;
    }
  }
}

/// The lane's eights of one row of a tile.
template <class T>
__device__ inline void store_row(T* row, const uint32_t (&pairs)[kEights], int t) {
#pragma unroll
  for (int first = 0; first < kEights; first += 4) {
    uint32_t four[4] = {pairs[first], pairs[first + 1], pairs[first + 2], pairs[first + 3]};
    exchange_in_four(four, t);
    // One instruction, which the compiler may make four of for an ordinary store.
    __stwb(reinterpret_cast<uint4*>(row + 8 * (first + t)),
           make_uint4(four[0], four[1], four[2], four[3]));
  }
}

/// The tile whose scales are at `scales`, codes at `tile`; `row` is where the lane's first row of
/// it begins, the other one is 8 further.
template <class T, WeightFormat format>
__device__ inline void decode_tile(const char* scales, const char* tile, int lane, T* row,
                                   int64_t row_elements) {
  const LaneCodes<format> codes(tile, lane);
  const uint32_t both = *reinterpret_cast<const uint32_t*>(scales + lane / 4 * 4);
  const uint32_t scale = __byte_perm(both, 0, 0x1010), scale_8 = __byte_perm(both, 0, 0x3232);
  uint32_t pairs[kEights], pairs_8[kEights];
#pragma unroll
  for (int step = 0; step < kEights / 2; ++step) {
    uint32_t a[4];
    decode_step<T>(codes, step, a);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      pairs[2 * step + half] = scaled<T>(a[2 * half], scale);
      pairs_8[2 * step + half] = scaled<T>(a[2 * half + 1], scale_8);
    }
  }
  store_row(row, pairs, lane % 4);
  store_row(row + 8 * row_elements, pairs_8, lane % 4);
}

template <class T, WeightFormat format>
__global__ void __launch_bounds__(32 * kDecodedWarps)
    linear_decoded(const __grid_constant__ LinearDecodedParams params, uint32_t blocks_of_member) {
  arch::follow_grid();
  const auto tiles = static_cast<uint32_t>(params.tiles);
  const uint32_t parts = (tiles + kDecodedTiles - 1) / kDecodedTiles;
  const uint32_t warp = blockIdx.x % blocks_of_member * kDecodedWarps + threadIdx.x / 32;
  const int64_t member = blockIdx.x / blocks_of_member, strip = warp / parts;
  const int64_t first = warp % parts * kDecodedTiles;
  if (strip >= params.strips) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const char* const from = static_cast<const char*>(params.blobs) + member * params.member_bytes +
                           strip * params.strip_bytes;
  const int64_t row_elements = params.tiles * kQuantizedTile;
  T* const row = static_cast<T*>(params.weight) +
                 ((member * params.strips + strip) * kQuantizedStrip + lane / 4) * row_elements;
  const int pairs = params.tiles_per_group - 1;  // 1: tile t is of group t / 2
#pragma unroll
  for (int i = 0; i < kDecodedTiles; ++i) {
    const int64_t tile = first + i, group = tile >> pairs, first_of_group = group << pairs;
    if (tile >= params.tiles) break;
    const char* const scales =
        from + first_of_group * quantized_tile_bytes(format) + group * kQuantizedScaleBytes;
    const char* const codes =
        scales + kQuantizedScaleBytes + (tile - first_of_group) * quantized_tile_bytes(format);
    decode_tile<T, format>(scales, codes, lane, row + tile * kQuantizedTile, row_elements);
  }
}

template <class T>
cudaError_t launch_type(const LinearDecodedParams& params, WeightFormat format, unsigned blocks,
                        uint32_t blocks_of_member, cudaStream_t stream) {
  const auto launch = [&](auto* kernel) {
    return launch_kernel(kernel, blocks, 32 * kDecodedWarps, 0, stream, params, blocks_of_member);
  };
  switch (format) {
    case WeightFormat::packed:
      return cudaErrorInvalidValue;
    case WeightFormat::fp8_e4m3:
      return launch(linear_decoded<T, WeightFormat::fp8_e4m3>);
    case WeightFormat::int8:
      return launch(linear_decoded<T, WeightFormat::int8>);
    case WeightFormat::fp6_e3m2:
      return launch(linear_decoded<T, WeightFormat::fp6_e3m2>);
    case WeightFormat::int4:
      return launch(linear_decoded<T, WeightFormat::int4>);
    case WeightFormat::fp4_e2m1:
      return launch(linear_decoded<T, WeightFormat::fp4_e2m1>);
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_linear_decoded(const LinearDecodedParams& params, Dtype dtype,
                                  WeightFormat format, cudaStream_t stream) {
  const int64_t of_member = decoded_blocks(params.strips, params.tiles);
  if (of_member == 0 || params.num_members == 0) return cudaSuccess;
  if (!are_decodable(of_member, params.num_members)) return cudaErrorInvalidConfiguration;
  const auto blocks = static_cast<unsigned>(of_member * params.num_members);
  const auto blocks_of_member = static_cast<uint32_t>(of_member);
  if (dtype == Dtype::fp16) {
    return launch_type<__half>(params, format, blocks, blocks_of_member, stream);
  }
  if (dtype == Dtype::bf16) {
    return launch_type<__nv_bfloat16>(params, format, blocks, blocks_of_member, stream);
  }
  return cudaErrorInvalidValue;
}

}  // namespace wide::kernels
