// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Golden vectors of tma.cuh: a box of a tensor whose elements count up, as it lies in shared memory
// under every swizzle, over the tensor's edges, in one to five dimensions; and the way back.
#include "host/core/tensor_map.hpp"
#include "kernels/arch/fence.cuh"
#include "kernels/arch/target.cuh"
#include "kernels/arch/tma.cuh"
#include "verify/golden/golden.hpp"
#include "verify/simt_kernels/unused_instructions.cuh"

namespace wide::golden {

namespace {

using namespace kernels;

constexpr int kMaxBytes = 16 << 10, kThreads = 128;

struct Coordinates {
  int32_t c[5];
};

struct alignas(1024) Tile {
  char bytes[kMaxBytes];
  arch::Mbarrier barrier;
};

template <int kRank>
__device__ void load(char* to, const CUtensorMap& map, arch::Mbarrier* barrier,
                     const Coordinates& at) {
  const int32_t* c = at.c;
  if constexpr (kRank == 1) arch::load_tile(to, map, barrier, c[0]);
  if constexpr (kRank == 2) arch::load_tile(to, map, barrier, c[0], c[1]);
  if constexpr (kRank == 3) arch::load_tile(to, map, barrier, c[0], c[1], c[2]);
  if constexpr (kRank == 4) arch::load_tile(to, map, barrier, c[0], c[1], c[2], c[3]);
  if constexpr (kRank == 5) arch::load_tile(to, map, barrier, c[0], c[1], c[2], c[3], c[4]);
}
template <int kRank>
__device__ void store(const CUtensorMap& map, const char* from, const Coordinates& at) {
  const int32_t* c = at.c;
  if constexpr (kRank == 1) arch::store_tile(map, from, c[0]);
  if constexpr (kRank == 2) arch::store_tile(map, from, c[0], c[1]);
  if constexpr (kRank == 3) arch::store_tile(map, from, c[0], c[1], c[2]);
  if constexpr (kRank == 4) arch::store_tile(map, from, c[0], c[1], c[2], c[3]);
  if constexpr (kRank == 5) arch::store_tile(map, from, c[0], c[1], c[2], c[3], c[4]);
}

/// The box as it lies in shared memory.
template <int kRank>
__global__ void load_box(const __grid_constant__ CUtensorMap map, Coordinates at, uint32_t bytes,
                         char* out) {
  if constexpr (arch::kHasSm90a) {
    __shared__ Tile tile;
    if (threadIdx.x == 0) {
      arch::mbarrier_init(&tile.barrier, 1);
      arch::fence_mbarrier_init();
      arch::mbarrier_arrive_expect_bytes(&tile.barrier, bytes);
      load<kRank>(tile.bytes, map, &tile.barrier, at);
    }
    __syncthreads();
    arch::mbarrier_wait(&tile.barrier, 0);
    for (uint32_t i = threadIdx.x; i < bytes; i += kThreads) out[i] = tile.bytes[i];
  } else {
    __trap();
  }
}

/// Shared memory that counts up in 16-bit steps goes to the box.
template <int kRank>
__global__ void store_box(const __grid_constant__ CUtensorMap map, Coordinates at, uint32_t bytes) {
  if constexpr (arch::kHasSm90a) {
    __shared__ Tile tile;
    auto* halves = reinterpret_cast<uint16_t*>(tile.bytes);
    for (uint32_t i = threadIdx.x; i < bytes / 2; i += kThreads) {
      halves[i] = static_cast<uint16_t>(i + 1);
    }
    arch::fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
      store<kRank>(map, tile.bytes, at);
      arch::commit_stores();
      arch::wait_stores<0>();
    }
  } else {
    __trap();
  }
}

/// 512 bytes in by one bulk copy, out by another.
__global__ void copy_bulk(const char* in, char* out) {
  if constexpr (arch::kHasSm90a) {
    __shared__ Tile tile;
    if (threadIdx.x == 0) {
      arch::mbarrier_init(&tile.barrier, 1);
      arch::fence_mbarrier_init();
      arch::mbarrier_arrive_expect_bytes(&tile.barrier, 512);
      arch::load_bulk(tile.bytes, in, 512, &tile.barrier);
      arch::mbarrier_wait(&tile.barrier, 0);
      arch::store_bulk(out, tile.bytes + 16, 496);
      arch::commit_stores();
      arch::wait_stores<0>();
    }
  } else {
    __trap();
  }
}

struct Box {
  std::vector<int64_t> extent, box;
  Coordinates at;
  TileSwizzle swizzle = TileSwizzle::none;
  std::vector<int64_t> step{};  ///< empty: one in every dimension
  int64_t pitch = 0;            ///< elements from row to row; 0: the first extent
};

int64_t product(const std::vector<int64_t>& values) {
  int64_t result = 1;
  for (const int64_t value : values) result *= value;
  return result;
}

/// Of the tensor's memory, what follows its rows included.
int64_t num_elements(const Box& box) {
  const int64_t width = box.extent.front();
  return product(box.extent) / width * (box.pitch == 0 ? width : box.pitch);
}

int64_t moved_bytes(const Box& box) {
  int64_t bytes = 2;
  for (size_t i = 0; i < box.box.size(); ++i) {
    const int64_t step = box.step.empty() ? 1 : box.step[i];
    bytes *= (box.box[i] + step - 1) / step;
  }
  return bytes;
}

void encode_box(const Box& box, const void* data, CUtensorMap& encoded) {
  TileMap map{.data = data, .dtype = Dtype::bf16, .rank = static_cast<int>(box.extent.size())};
  int64_t stride = 1;
  for (size_t i = 0; i < box.extent.size(); ++i) {
    map.extent[i] = box.extent[i];
    map.stride[i] = stride;
    map.box[i] = box.box[i];
    if (!box.step.empty()) map.step[i] = box.step[i];
    stride *= i == 0 && box.pitch != 0 ? box.pitch : box.extent[i];
  }
  map.swizzle = box.swizzle;
  encode_tile_map(map, encoded);
}

template <int kRank>
std::vector<std::byte> run_load(const Box& box) {
  const DeviceBytes tensor(counting_halves(num_elements(box)));
  const auto bytes = static_cast<uint32_t>(moved_bytes(box));
  const DeviceBytes out(bytes);
  CUtensorMap map;
  encode_box(box, tensor.as<void>(), map);
  load_box<kRank><<<1, kThreads>>>(map, box.at, bytes, out.as<char>());
  finish();
  return out.download();
}

template <int kRank>
std::vector<std::byte> run_store(const Box& box) {
  const DeviceBytes tensor(static_cast<size_t>(2 * num_elements(box)));
  const auto bytes = static_cast<uint32_t>(moved_bytes(box));
  CUtensorMap map;
  encode_box(box, tensor.as<void>(), map);
  store_box<kRank><<<1, kThreads>>>(map, box.at, bytes);
  finish();
  return tensor.download();
}

std::vector<std::byte> run_bulk() {
  const DeviceBytes in(counting_halves(256)), out(512);
  copy_bulk<<<1, kThreads>>>(in.as<char>(), out.as<char>());
  finish();
  return out.download();
}

template <int kRank>
void add_load(std::vector<Case>& cases, const std::string& name, const Box& box) {
  cases.push_back({.name = "load_tile_" + name, .is_sm90a = true, .run = [box] {
                     return run_load<kRank>(box);
                   }});
}

template <int kRank>
void add(std::vector<Case>& cases, const std::string& name, const Box& box) {
  add_load<kRank>(cases, name, box);
  cases.push_back({.name = "store_tile_" + name, .is_sm90a = true, .run = [box] {
                     return run_store<kRank>(box);
                   }});
}

}  // namespace

std::vector<Case> tile_cases() {
  std::vector<Case> cases{{.name = "bulk", .is_sm90a = true, .run = run_bulk}};
  // Sixteen rows, so that every permutation comes round twice; over two edges of the tensor.
  add<2>(cases, "2d_none", {{64, 24}, {64, 16}, {{0, 4}}, TileSwizzle::none});
  add<2>(cases, "2d_32b", {{64, 24}, {16, 16}, {{16, 4}}, TileSwizzle::bytes_32});
  add<2>(cases, "2d_64b", {{64, 24}, {32, 16}, {{32, 4}}, TileSwizzle::bytes_64});
  add<2>(cases, "2d_128b", {{128, 24}, {64, 16}, {{64, 4}}, TileSwizzle::bytes_128});
  add<2>(cases, "2d_before", {{64, 24}, {32, 16}, {{-8, -3}}, TileSwizzle::bytes_64});
  add<2>(cases, "2d_after", {{72, 24}, {64, 16}, {{40, 20}}, TileSwizzle::bytes_128});
  add<1>(cases, "1d", {{200}, {64}, {{152}}});
  add<3>(cases, "3d", {{64, 10, 3}, {64, 8, 2}, {{0, 5, 1}}, TileSwizzle::bytes_128});
  add<4>(cases, "4d", {{24, 5, 4, 3}, {16, 3, 2, 2}, {{8, 3, 1, 2}}, TileSwizzle::bytes_32});
  add<5>(cases, "5d", {{16, 4, 3, 3, 2}, {8, 2, 2, 2, 1}, {{8, 1, 2, 0, 1}}});
  // Rows of no whole 16 bytes: what follows them is neither read nor written.
  add<2>(cases, "2d_ragged",
         {.extent = {100, 24},
          .box = {64, 16},
          .at = {{64, 4}},
          .swizzle = TileSwizzle::bytes_128,
          .pitch = 104});
  add<2>(cases, "2d_ragged_edge",
         {.extent = {67, 24}, .box = {64, 16}, .at = {{8, 20}}, .pitch = 72});
  // Every second row, from one before the tensor and to behind its end.
  using enum TileSwizzle;
  add_load<2>(cases, "2d_steps", {{64, 24}, {64, 16}, {{0, 4}}, bytes_128, {1, 2}});
  add_load<2>(cases, "2d_steps_before", {{64, 24}, {32, 16}, {{-8, -3}}, bytes_64, {1, 2}});
  add_load<2>(cases, "2d_steps_after", {{72, 24}, {64, 15}, {{40, 19}}, bytes_128, {1, 2}});
  add_load<3>(cases, "3d_steps", {{64, 10, 7}, {64, 8, 4}, {{0, -1, 4}}, bytes_128, {1, 2, 3}});
  return cases;
}

}  // namespace wide::golden
