// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks that norms over channels share. Their problems and arguments have these fields under
// the same names; each norm checks its other fields itself.
#pragma once

#include <string>
#include <string_view>

#include "host/core/channels.hpp"
#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/same_problem.hpp"
#include "host/norm/norm_plan.hpp"

namespace wide {

template <class Problem>
void require_legal_channels(std::string_view primitive, const Problem& p) {
  require_at_least(primitive, "num_members", p.num_members, 1);
  require_at_least(primitive, "batch", p.batch, 0);
  require_at_least(primitive, "channels", p.channels, 0);
  require_at_least(primitive, "height", p.height, 0);
  require_at_least(primitive, "width", p.width, 0);
  require_float_dtype(primitive, p.dtype);
  require_epsilon(primitive, p.epsilon);
  (void)checked_bytes({p.batch, p.num_members, p.channels, p.height, p.width},
                      dtype_bytes(p.dtype));
}

/// Of a norm that has both layouts, or channels first alone.
template <class Problem>
ChannelLayout layout_of(const Problem& p) {
  if constexpr (requires { p.layout; }) {
    return p.layout;
  } else {
    return ChannelLayout::channels_first;
  }
}

template <class Problem>
void complete_channels(std::string_view primitive, Problem& p) {
  const MemberChannels extents{p.batch, p.num_members, p.channels, p.height, p.width,
                               {},      layout_of(p)};
  p.x = complete_strides(primitive, "x", extents, p.x);
  p.y = complete_strides(primitive, "y", extents, p.y);
  complete_parameter(name_of(primitive, "gamma_member_stride"), p.gamma_member_stride, p.has_gamma,
                     p.num_members, p.channels);
  complete_parameter(name_of(primitive, "beta_member_stride"), p.beta_member_stride, p.has_beta,
                     p.num_members, p.channels);
}

/// The member stride of parameters [N, C] or [N*C] on y's device; 0 where they are absent.
template <class Problem>
int64_t read_parameters(std::string_view primitive, const char* name, const ConstTensorView& view,
                        const TensorView& y, const Problem& p, Dtype dtype) {
  if (view.is_absent()) return 0;
  require_device(primitive, name, view, y.device);
  require_own_memory(primitive, "y", y, name, view);
  return parameter_stride(primitive, name,
                          member_parameters(primitive, name, view, p.num_members, p.channels),
                          "[num_members, channels]", p.num_members, p.channels, dtype);
}

/// Fills in what x, gamma, beta and y show of p, whose num_members is known.
template <class Arguments, class Problem>
void read_channels(std::string_view primitive, const Arguments& a, Problem& p) {
  p.dtype = a.x.dtype;
  p.has_gamma = !a.gamma.is_absent();
  p.has_beta = !a.beta.is_absent();
  const auto read = [&](const char* argument, const ConstTensorView& view) {
    return layout_of(p) == ChannelLayout::channels_last
               ? member_channels_last(primitive, argument, view, p.num_members)
               : member_channels(primitive, argument, view, p.num_members);
  };
  const MemberChannels x = read("x", a.x);
  p.batch = x.batch;
  p.channels = x.channels;
  p.height = x.height;
  p.width = x.width;
  p.x = x.strides;
  require_legal_channels(primitive, p);
  const MemberChannels y = read("y", a.y);
  const std::string name(primitive);
  WIDE_REQUIRE(a.y.shape == a.x.shape, name + ": y is " + to_string(a.y.shape) +
                                           ", expected the shape of x = " + to_string(a.x.shape));
  require_disjoint_channels(primitive, "y", y);
  p.y = y.strides;
  require_dtype(primitive, "y", a.y, p.dtype);
  require_device(primitive, "x", a.x, a.y.device);
  const bool is_in_place = a.x.data == a.y.data && p.x == p.y;
  WIDE_REQUIRE(is_in_place || !may_overlap(a.x, a.y),
               name + ": y overlaps x, expected x itself or memory of its own");
  p.gamma_member_stride = read_parameters(primitive, "gamma", a.gamma, a.y, p, p.dtype);
  p.beta_member_stride = read_parameters(primitive, "beta", a.beta, a.y, p, p.dtype);
}

/// Whether there is no output element.
template <class Problem>
bool is_empty_channels(const Problem& p) {
  return p.batch == 0 || p.channels == 0 || p.height == 0 || p.width == 0;
}

/// The list of fields.
template <class Same, class Problem>
void channel_norm_fields(const Same& same, const Problem& got, const Problem& plan) {
  same("num_members", got.num_members, plan.num_members);
  same("batch", got.batch, plan.batch);
  same("channels", got.channels, plan.channels);
  same("height", got.height, plan.height);
  same("width", got.width, plan.width);
  same.presence("gamma", got.has_gamma, plan.has_gamma);
  same.presence("beta", got.has_beta, plan.has_beta);
  same("dtype", got.dtype, plan.dtype);
  same("stride of x", got.x, plan.x);
  same("stride of y", got.y, plan.y);
  same("member stride of gamma", got.gamma_member_stride, plan.gamma_member_stride);
  same("member stride of beta", got.beta_member_stride, plan.beta_member_stride);
  same("epsilon", got.epsilon, plan.epsilon);
}

}  // namespace wide
