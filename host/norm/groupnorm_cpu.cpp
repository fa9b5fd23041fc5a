// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's groupnorm: a group of a batch row of a member is a slice. `wide` spreads all
// members' groups over the threads at once, `sequential` those of one member after another.
#include <cmath>

#include "host/core/vectorised.hpp"
#include "host/norm/groupnorm_run.hpp"
#include "host/norm/slice_cpu.hpp"

namespace wide {

void run_groupnorm_cpu(const Context& context, const GroupnormProblem& p, WideStrategy strategy,
                       const GroupnormArguments& a) {
  const int64_t channels = p.channels / p.groups, values = channels * p.height * p.width;
  if (p.batch * values == 0) return;
  const auto normalise = [&](int64_t member, int64_t index) {
    const int64_t batch = index / p.groups, first = index % p.groups * channels;
    const auto element = [&](const ChannelStrides& s) {
      return (batch * s.batch + member * s.member + first * s.channel) * dtype_bytes(p.dtype);
    };
    const CpuSlice slice({static_cast<const char*>(a.x.data) + element(p.x), p.x.channel, p.x.row},
                         {static_cast<char*>(a.y.data) + element(p.y), p.y.channel, p.y.row},
                         channels, p.height, p.width, p.dtype);
    const SliceMoments m = slice.moments();
    slice.write(
        m, 1.0f / std::sqrt(m.variance + p.epsilon),
        [&](int64_t run) {
          return decode_parameter(a.gamma, member * p.gamma_member_stride + first + run, 1.0f);
        },
        [&](int64_t run) {
          return decode_parameter(a.beta, member * p.beta_member_stride + first + run, 0.0f);
        });
  };
  for_each_slice(context, p.num_members, strategy == WideStrategy::wide ? p.num_members : 1,
                 p.batch * p.groups, values, [&](int64_t member, int64_t index) {
                   call_vectorised([&] { normalise(member, index); });
                 });
}

}  // namespace wide
