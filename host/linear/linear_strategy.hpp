// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which strategy runs a linear problem on which device. Pure functions of their arguments: they
// are tested for absent devices.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "host/core/strategy_choice.hpp"
#include "host/core/verified.hpp"
#include "kernels/linear/linear_mma_tile.hpp"
#include "kernels/linear/linear_simt_tile.hpp"
#include "kernels/linear/linear_weight_only_tile.hpp"
#include "kernels/linear/linear_wgmma_tile.hpp"
#include "wide/device.hpp"
#include "wide/linear.hpp"

namespace wide {

enum class LinearStrategy : uint8_t {
  sequential,      ///< a cuBLAS call (fp8, quantised: a launch) per member; CPU: one by one
  cublas_batched,  ///< one strided-batched cuBLAS call
  cublaslt,        ///< one cuBLASLt call with its algorithm and epilogue: linear_cublaslt.hpp
  cublas_grouped,  ///< one grouped cuBLAS call by pointers
  simt,            ///< fp32 multiply-adds: kernels/linear/linear_simt.cu
  gemv,            ///< one to four rows, fp32 multiply-adds: kernels/linear/linear_gemv.cu
  small_m,         ///< streams weights to tensor cores: kernels/linear/linear_small_m.cu
  tensor_core,     ///< kernels/linear/linear_tensor_core.cu
  wgmma,           ///< Hopper's warpgroup products: kernels/linear/linear_wgmma.cu
  tf32x3,          ///< the tiles of both for fp32, three tf32 products per product
  shared_input,    ///< members of one x as one wider member, by one of the kernels above
  weight_only,     ///< quantised weights: kernels/linear/linear_weight_only.cuh
  decoded,         ///< these as 16-bit weights in the workspace, by one of the kernels above
  wide,            ///< CPU: all members' tiles at once
};

std::string_view strategy_name(LinearStrategy strategy);
/// The names a caller may ask for on such a device, without "auto".
std::span<const std::string_view> linear_strategy_names(DeviceType device);
std::optional<LinearStrategy> parse_linear_strategy(std::string_view name, DeviceType device);

/// Why the strategy cannot run the (completed) problem there; empty where it can.
std::string linear_unsupported_reason(LinearStrategy strategy, const LinearProblem& problem,
                                      const DeviceInfo& device);

using LinearChoice = StrategyChoice<LinearStrategy>;

/// "auto" is `wide` on the CPU; on CUDA a vendor's strategy, or one of our own that is in
/// `verified` for this compute capability and expected to be faster. Throws as choose_strategy().
LinearChoice choose_linear_strategy(const LinearProblem& problem, const DeviceInfo& device,
                                    std::span<const VerifiedStrategy> verified,
                                    std::string_view name = "auto", const Tuning& tuning = {});

/// Tiles of one member's output; saturates instead of overflowing.
int64_t linear_tiles_of(const LinearProblem& problem, int64_t tile_m, int64_t tile_n);
/// The tile of `simt`, for all of problem.num_members in one launch. No bit depends on it.
kernels::LinearSimtTile choose_linear_simt_tile(const LinearProblem& problem,
                                                const DeviceInfo& device);

/// The most rows that `gemv` takes.
inline constexpr int64_t kMaxGemvBatch = 4;
/// Rows of x up to which reading the weights takes the time: `small_m` takes no more,
/// `weight_only` takes these as one tile.
inline constexpr int64_t kMaxSmallBatch = 64;
/// Rows per member from which decoding once, for wgmma, is expected to be faster than decoding
/// again for every 64: there scripts/expectation.py has it overtake weight_only, in every format,
/// for 8 members of 2048 x 2048.
inline constexpr int64_t kMinDecodedBatch = 512;

/// Whether `kernel`, wgmma or tensor_core, should take a problem that small_m takes, too: its tile
/// holds all rows, where small_m's two tiles both read the weights, and `num_members` members have
/// enough tiles for all multiprocessors.
bool reads_weights_once_instead(LinearStrategy kernel, const LinearProblem& problem,
                                const DeviceInfo& device, int64_t num_members);
/// Assumed number of members where a choice must not depend on it: neighbours never change a
/// member's bits.
inline constexpr int64_t kUsualMembers = 8;

/// The members of a shared input as one member with all their outputs; the same problem where their
/// weights, biases or outputs do not lie side by side.
LinearProblem as_one_member(const LinearProblem& problem);
/// The problem with its quantised weights as packed ones of x's dtype, as `decoded` has them in its
/// workspace: whole strips and tiles, side by side.
LinearProblem as_decoded(const LinearProblem& problem);
/// Which of our kernels runs the strategy: its own, or for shared_input the one for that member,
/// for decoded the one for its packed weights. Also for sequential with fp8, which cuBLAS's GEMMs
/// do not multiply.
LinearStrategy linear_kernel_of(LinearStrategy strategy, const LinearProblem& problem,
                                const DeviceInfo& device);
/// Whether `sequential` on CUDA launches that per member: cuBLAS's GEMMs lack fp8 and codes.
bool launches_linear_members(const LinearProblem& problem);

/// The first of our kernels that takes the problem, those for few rows before those for many: what
/// primitives built from linears run. By a member's own problem: row strides are multiples of
/// those of a member.
LinearStrategy own_linear_kernel(const LinearProblem& problem, const DeviceInfo& device);

/// The tile of small_m, tensor_core and tf32x3. Where k is divided over warps, which changes the
/// order of a sum, it depends on the member's problem alone; the others sum in the same order, and
/// may depend on what fills the device.
kernels::LinearMmaTile choose_linear_mma_tile(LinearStrategy strategy, const LinearProblem& problem,
                                              const DeviceInfo& device);
/// Over how many blocks a tile of few rows divides its k: by the member's problem alone.
int choose_linear_planes(const LinearProblem& problem, kernels::LinearMmaTile tile);
/// The tile of weight_only: by the member's problem alone.
kernels::LinearWeightOnlyTile choose_linear_weight_only_tile(const LinearProblem& problem);
/// The tile of wgmma; it changes no bit.
kernels::LinearWgmmaTile choose_linear_wgmma_tile(const LinearProblem& problem,
                                                  const DeviceInfo& device);
/// Whether wgmma may store y as boxes of a tensor map: 16 bits, rows that end at whole 16 bytes,
/// and strides of such.
bool linear_stores_boxes(const LinearProblem& problem);
/// Whether a call of cuBLASLt computes all of what cuBLAS would need a kernel beside its own for.
bool is_cublaslt_one_call(const LinearProblem& problem, const DeviceInfo& device);
kernels::LinearMath linear_math(LinearStrategy strategy, const LinearProblem& problem);

/// Scratch memory of the strategies that call NVIDIA's libraries, and of decoded. 0 for the others.
struct LinearWorkspace {
  int64_t cublas_bytes = 0;    ///< the library's own
  int64_t sums_bytes = 0;      ///< fp32 sums, where they are not written to y
  int64_t pointers_bytes = 0;  ///< the grouped call's: three addresses of every member
  int64_t weight_bytes = 0;    ///< decoded's 16-bit weights, in front of all sums
  int64_t bytes() const { return cublas_bytes + sums_bytes + pointers_bytes + weight_bytes; }
};
/// What cuBLAS wants for itself, or its heuristics offer fewer algorithms: the "cuBLAS Library User
/// Guide", section cublasSetWorkspace, recommends 32 MiB on compute capabilities 9.0 and 10.x, 12
/// MiB on 12.x and 4 MiB elsewhere.
int64_t cublas_workspace_bytes(int compute_capability);
LinearWorkspace cublas_workspace(const LinearProblem& problem, const DeviceInfo& device,
                                 bool has_sums);
LinearWorkspace linear_workspace(LinearStrategy strategy, const LinearProblem& problem,
                                 const DeviceInfo& device);

}  // namespace wide
