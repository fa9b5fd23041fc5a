// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's batchnorm: a channel of a member is a slice. `wide` spreads all members'
// channels over the threads at once, `sequential` those of one member after another.
#include <cmath>

#include "host/core/vectorised.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/slice_cpu.hpp"

namespace wide {

namespace {

void normalise_channel(const BatchnormProblem& p, const BatchnormArguments& a, int64_t member,
                       int64_t channel) {
  const auto element = [&](const ChannelStrides& s) {
    return (member * s.member + channel * s.channel) * dtype_bytes(p.dtype);
  };
  const CpuSlice slice({static_cast<const char*>(a.x.data) + element(p.x), p.x.batch, p.x.row},
                       {static_cast<char*>(a.y.data) + element(p.y), p.y.batch, p.y.row}, p.batch,
                       p.height, p.width, p.dtype);
  const auto own = [&](const ConstTensorView& view, float common) {
    return decode_parameter(view, member, common);
  };
  float& mean = static_cast<float*>(a.running_mean.data)[member * p.mean_member_stride + channel];
  float& variance =
      static_cast<float*>(a.running_variance.data)[member * p.variance_member_stride + channel];
  SliceMoments m{0, mean, variance};
  if (p.mode == BatchnormMode::train) {
    m = slice.moments();
    const float momentum = own(a.momentum, p.momentum);
    const auto count = static_cast<float>(slice.num_values());
    const float unbiased = m.variance * (count / (count - 1.0f));
    mean = (1.0f - momentum) * mean + momentum * (m.rough_mean + m.mean);
    variance = (1.0f - momentum) * variance + momentum * unbiased;
  }
  const float gamma = decode_parameter(a.gamma, member * p.gamma_member_stride + channel, 1.0f);
  const float beta = decode_parameter(a.beta, member * p.beta_member_stride + channel, 0.0f);
  const float scale = 1.0f / std::sqrt(m.variance + own(a.epsilon, p.epsilon));
  slice.write(
      m, scale, [&](int64_t) { return gamma; }, [&](int64_t) { return beta; });
}

}  // namespace

void run_batchnorm_cpu(const Context& context, const BatchnormProblem& problem,
                       WideStrategy strategy, const BatchnormArguments& arguments) {
  const int64_t values = problem.batch * problem.height * problem.width;
  if (values * problem.channels == 0) return;
  for_each_slice(context, problem.num_members,
                 strategy == WideStrategy::wide ? problem.num_members : 1, problem.channels, values,
                 [&](int64_t member, int64_t channel) {
                   call_vectorised([&] { normalise_channel(problem, arguments, member, channel); });
                 });
}

}  // namespace wide
