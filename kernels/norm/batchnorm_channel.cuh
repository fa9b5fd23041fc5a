// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One channel of one member: its parameters, and how a batch moves its running statistics.
#pragma once

#include "kernels/norm/batchnorm_wide.hpp"
#include "kernels/norm/norm_moments.cuh"

namespace wide::kernels {

template <class T>
struct BatchnormChannel {
  const BatchnormParams& p;
  int64_t member, channel;

  /// `number`: of all members' channels.
  __device__ BatchnormChannel(const BatchnormParams& params, uint32_t number) : p(params) {
    const auto channels = static_cast<uint32_t>(p.channels);
    member = number / channels;
    channel = number - static_cast<uint32_t>(member) * channels;
  }
  __device__ int64_t base_of(const ChannelStrides& s) const {
    return member * s.member + channel * s.channel;
  }
  /// What centred values are multiplied by.
  __device__ float scale(float variance) const {
    const float epsilon = p.epsilons != nullptr ? p.epsilons[member] : p.epsilon;
    return channel_parameter<T>(p.gamma, member * p.gamma_member_stride + channel, 1.0f) /
           sqrtf(variance + epsilon);
  }
  __device__ float shift() const {
    return channel_parameter<T>(p.beta, member * p.beta_member_stride + channel, 0.0f);
  }
  __device__ float& running_mean() const {
    return p.running_mean[member * p.mean_member_stride + channel];
  }
  __device__ float& running_variance() const {
    return p.running_variance[member * p.variance_member_stride + channel];
  }
  /// Moves the running statistics towards a batch's.
  __device__ void follow(const SliceMoments& m) const {
    const float momentum = p.momenta != nullptr ? p.momenta[member] : p.momentum;
    const float unbiased = m.variance * (m.count / (m.count - 1.0f));
    const auto move = [&](float& statistic, float batch) {
      statistic = (1.0f - momentum) * statistic + momentum * batch;
    };
    move(running_mean(), m.rough_mean + m.mean);
    move(running_variance(), unbiased);
  }
};

}  // namespace wide::kernels
