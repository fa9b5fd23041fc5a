// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y = (x - mean) / sqrt(variance + epsilon) * gamma[n, c] + beta[n, c], mean and variance over the
// channels of a group and their positions, for every batch row, member and group.
//
// Plan: a group of a row of a member is a slice for one block, or for a few of a block's warps
// where that suffices (norm_launch.cuh); gamma and beta of a chunk's channel come through L1.
// Limits: 2^31 - 1 values a group, and as many groups of all batch rows and members.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/norm/groupnorm_wide.hpp"
#include "kernels/norm/norm_blocks.hpp"
#include "kernels/norm/norm_launch.cuh"

namespace wide::kernels {

namespace {

/// One group of a batch row of a member.
template <class T>
struct ChannelGroup {
  const GroupnormParams& p;
  int64_t batch, member, channels, first_channel;

  __device__ ChannelGroup(const GroupnormParams& params, uint32_t number) : p(params) {
    const auto groups = static_cast<uint32_t>(p.groups);
    const auto members = static_cast<uint32_t>(p.num_members);
    const uint32_t image = number / groups, group = number - image * groups;
    batch = image / members;
    member = image % members;
    channels = p.channels / p.groups;
    first_channel = group * channels;
  }
  __device__ int64_t base_of(const ChannelStrides& s) const {
    return batch * s.batch + member * s.member + first_channel * s.channel;
  }
  __device__ NormSlice<T> slice(bool is_aligned, const Divisor32& by_run) const {
    return {
        {static_cast<const T*>(p.x) + base_of(p.x_strides), p.x_strides.channel, p.x_strides.row},
        {static_cast<T*>(p.y) + base_of(p.y_strides), p.y_strides.channel, p.y_strides.row},
        channels,
        p.height,
        p.width,
        is_aligned,
        by_run};
  }
};

/// normalize_slices()'s function_of.
template <class T>
__device__ auto function_of_groups(const GroupnormParams& p) {
  return [&p](uint32_t number, const NormSlice<T>& slice, const SliceMoments& m, bool) {
    const ChannelGroup<T> group(p, number);
    const float scale = 1.0f / sqrtf(m.variance + p.epsilon);
    const int64_t gammas = group.member * p.gamma_member_stride + group.first_channel;
    const int64_t betas = group.member * p.beta_member_stride + group.first_channel;
    return [&p, &slice, m, scale, gammas, betas](uint32_t chunk_number, const Vec16<T>& chunk) {
      const uint32_t channel = slice.run_of(chunk_number);
      const float gamma = channel_parameter<T>(p.gamma, gammas + channel, 1.0f);
      const float beta = channel_parameter<T>(p.beta, betas + channel, 0.0f);
      Vec16<T> out;
#pragma unroll
      for (int i = 0; i < Vec16<T>::kSize; ++i) {
        const float centred = to_float(chunk.v[i]) - m.rough_mean - m.mean;
        out.v[i] = from_float<T>(centred * scale * gamma + beta);
      }
      return out;
    };
  };
}

template <class T, bool is_kept>
__global__ void __launch_bounds__(kSliceThreads, 1)
    groupnorm_kernel(const __grid_constant__ GroupnormParams p,
                     const __grid_constant__ SliceAccess access) {
  const auto slice_of = [&](uint32_t number) {
    return ChannelGroup<T>(p, number).slice(access.is_aligned, access.by_run);
  };
  arch::follow_grid();
  normalize_slices<T, is_kept>(access, slice_of, function_of_groups<T>(p));
}

template <class T, uint32_t kParts>
__global__ void __launch_bounds__(kParts > 1 ? kShortHeldThreads : kSliceThreads,
                                  kParts > 1 ? kShortHeldBlocks : 1)
    groupnorm_held_kernel(const __grid_constant__ GroupnormParams p,
                          const __grid_constant__ SliceAccess access) {
  const auto slice_of = [&](uint32_t number) {
    return ChannelGroup<T>(p, number).slice(true, access.by_run);
  };
  arch::follow_grid();
  normalize_held_slices<T, kParts>(access, slice_of, function_of_groups<T>(p));
}

}  // namespace

cudaError_t launch_groupnorm_wide(Dtype dtype, const GroupnormParams& p,
                                  int64_t shared_bytes_per_block, cudaStream_t stream) {
  const int64_t slices = groupnorm_slices(p, p.num_members);
  if (slices == 0) return cudaSuccess;
  return dispatch_float(dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return launch_slices<T, GroupnormParams>(
        {groupnorm_kernel<T, true>, groupnorm_kernel<T, false>, groupnorm_held_kernel<T, 4>,
         groupnorm_held_kernel<T, 2>, groupnorm_held_kernel<T, 1>},
        p, {slices, p.channels / p.groups, p.x_strides.channel, p.y_strides.channel},
        shared_bytes_per_block, stream);
  });
}

}  // namespace wide::kernels
