// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// From a problem and its operands to the parameters of the hand-written kernels.
#pragma once

#include "host/core/pointer.hpp"
#include "kernels/conv/conv_params.hpp"
#include "wide/conv.hpp"
#include "wide/dtype.hpp"

namespace wide {

/// The sizes alone, where there are no operands.
inline kernels::ConvParams conv_params(const ConvProblem& p, const ConvArguments& a = {}) {
  const auto axes = [](const PerAxis& of) {
    return kernels::ConvAxes{static_cast<int32_t>(of.height), static_cast<int32_t>(of.width)};
  };
  kernels::ConvParams params{};
  params.x = a.x.data;
  params.weight = a.weight.data;
  params.bias = a.bias.data;
  params.residual = a.residual.data;
  params.y = a.y.data;
  params.num_members = p.num_members;
  params.batch = p.batch;
  params.in_channels = static_cast<int32_t>(p.in_channels);
  params.out_channels = static_cast<int32_t>(p.out_channels);
  params.groups = static_cast<int32_t>(p.groups);
  params.in_per_group = static_cast<int32_t>(p.in_channels / p.groups);
  params.out_per_group = static_cast<int32_t>(p.out_channels / p.groups);
  params.input = axes(p.input);
  params.output = axes(conv_output_size(p));
  params.kernel = axes(p.kernel);
  params.stride = axes(p.stride);
  params.padding = axes(p.padding);
  params.dilation = axes(p.dilation);
  const auto narrow = [](int64_t value) { return static_cast<int32_t>(value); };
  const ConvDepth& d = p.depth;
  params.depth = {narrow(d.input),   narrow(conv_output_depth(p)),
                  narrow(d.kernel),  narrow(d.stride),
                  narrow(d.padding), narrow(d.dilation),
                  d.x_stride,        d.y_stride,
                  d.residual_stride, d.weight_stride};
  params.x_strides = p.x;
  params.y_strides = p.y;
  params.residual_strides = p.residual;
  params.weight_strides = p.weight;
  params.bias_member_stride = p.bias_member_stride;
  params.activation = p.epilogue.activation;
  params.residual_is_activated = p.epilogue.residual == Residual::before_activation;
  return params;
}

/// Narrows the parameters to member n.
inline kernels::ConvParams conv_member(kernels::ConvParams params, int64_t n, Dtype dtype) {
  const int64_t bytes = dtype_bytes(dtype);
  params.num_members = 1;
  params.x = advanced(params.x, n * params.x_strides.member, bytes);
  params.weight = advanced(params.weight, n * params.weight_strides.member, bytes);
  params.bias = advanced(params.bias, n * params.bias_member_stride, bytes);
  params.residual = advanced(params.residual, n * params.residual_strides.member, bytes);
  params.y = advanced(params.y, n * params.y_strides.member, bytes);
  return params;
}

}  // namespace wide
