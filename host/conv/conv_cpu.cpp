// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv on the CPU: tiles of outputs, channels of one group by positions of one batch row, are
// handed to the threads, all members' at once (`wide`) or one member's at a time (`sequential`).
// Both compute every tile alike, so they give the same bits; they differ in how well small members
// fill the threads.
//
// A tile's inputs are gathered, for any strides, layout and padding (conv_cpu_gather.hpp), and
// then multiplied as a matrix: many channels share the cost of gathering.
#include <algorithm>

#include "host/conv/conv_cpu_gather.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/core/activation_cpu.hpp"
#include "host/core/parallel.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

using namespace cpu;

struct Tiling {
  int64_t channel_tiles, position_tiles;  ///< of one group and plane
  int64_t per_member;
};

Tiling tiling_of(const ConvProblem& p) {
  const PerAxis output = conv_output_size(p);
  Tiling tiling{};
  tiling.channel_tiles = (p.out_channels / p.groups - 1) / kConvChannels + 1;
  tiling.position_tiles = (output.height * output.width - 1) / kConvPositions + 1;
  tiling.per_member =
      p.batch * conv_output_depth(p) * p.groups * tiling.channel_tiles * tiling.position_tiles;
  return tiling;
}

Place place_of(const ConvProblem& p, const Tiling& tiling, int64_t member, int64_t tile) {
  const PerAxis output = conv_output_size(p);
  const int64_t per_group = p.out_channels / p.groups;
  Place place{};
  place.member = member;
  const int64_t channel_tile = tile % tiling.channel_tiles * kConvChannels;
  tile /= tiling.channel_tiles;
  int64_t position = tile % tiling.position_tiles * kConvPositions;
  tile /= tiling.position_tiles;
  place.group = tile % p.groups;
  tile /= p.groups;
  place.plane = tile % conv_output_depth(p);
  place.batch = tile / conv_output_depth(p);
  place.channel = place.group * per_group + channel_tile;
  place.channels = static_cast<int>(std::min<int64_t>(kConvChannels, per_group - channel_tile));
  const int64_t end = std::min(output.height * output.width, position + kConvPositions);
  for (int at = 0; position < end;) {
    const int64_t column = position % output.width;
    const int64_t count = std::min(end - position, output.width - column);
    place.runs[static_cast<size_t>(place.num_runs++)] = {position / output.width, column, at,
                                                         static_cast<int>(count)};
    position += count;
    at += static_cast<int>(count);
  }
  return place;
}

void finish(const ConvProblem& p, const ConvArguments& a, const Place& place,
            float (*sums)[kConvPositions]) {
  const Epilogue& epilogue = p.epilogue;
  const auto offset = [&](const ChannelStrides& s, int64_t plane_stride, const Run& run) {
    return place.batch * s.batch + place.member * s.member + place.channel * s.channel +
           place.plane * plane_stride + run.row * s.row + run.column * s.column;
  };
  const auto add = [](float* values, auto addend, int count) {
    for (int i = 0; i < count; ++i) values[i] += addend(i);
  };
  float bias[kConvChannels] = {};
  if (epilogue.has_bias) {
    decode(p.dtype, a.bias.data, place.member * p.bias_member_stride + place.channel, 1, bias,
           place.channels);
  }
  for (int r = 0; r < place.num_runs; ++r) {
    const Run& run = place.runs[static_cast<size_t>(r)];
    float residual[kConvPositions] = {};
    for (int o = 0; o < place.channels; ++o) {
      if (epilogue.residual != Residual::none) {
        decode(p.dtype, a.residual.data,
               offset(p.residual, p.depth.residual_stride, run) + o * p.residual.channel,
               p.residual.column, residual, run.count);
      }
      float* values = sums[o] + run.first;
      const auto rest = [&](int i) { return residual[i]; };
      if (epilogue.has_bias)
        add(
            values, [&](int) { return bias[o]; }, run.count);
      if (epilogue.residual == Residual::before_activation) add(values, rest, run.count);
      activate_cpu(epilogue.activation, values, run.count);
      if (epilogue.residual == Residual::after_activation) add(values, rest, run.count);
      void* y = const_cast<void*>(
          element_at(a.y.data, offset(p.y, p.depth.y_stride, run) + o * p.y.channel, p.dtype));
      if (p.y.column == 1) {
        encode_row(p.dtype, values, y, run.count);
        continue;
      }
      for (int i = 0; i < run.count; ++i) {
        encode_row(p.dtype, values + i, const_cast<void*>(element_at(y, i * p.y.column, p.dtype)),
                   1);
      }
    }
  }
}

void compute_tile(const ConvProblem& p, const ConvArguments& a, const Place& place) {
  const int64_t terms = conv_terms(p);
  float sums[kConvChannels][kConvPositions] = {};
  TileInputs inputs(p, a.x.data, place);
  float buffer[kConvChannels * kConvDepth];
  Term term(p);
  for (int64_t first = 0; first < terms; first += kConvDepth) {
    const int depth = static_cast<int>(std::min<int64_t>(kConvDepth, terms - first));
    int64_t stride = 0;
    const float* weights =
        gather_weights(p, a.weight.data, place, first, term, depth, buffer, stride);
    inputs.gather(term, depth);
    best_conv_tile()({weights, stride, inputs.terms(), place.channels, depth, sums});
  }
  finish(p, a, place, sums);
}

}  // namespace

ConvRunner make_conv_cpu_wide(const Context& context, const ConvProblem& problem) {
  return {[context, problem](const ConvArguments& arguments, const Execution&) {
    const Tiling tiling = tiling_of(problem);
    parallel_for(context, problem.num_members * tiling.per_member, [&](int64_t task) {
      const int64_t member = task / tiling.per_member;
      compute_tile(problem, arguments, place_of(problem, tiling, member, task % tiling.per_member));
    });
  }};
}

ConvRunner make_conv_cpu_sequential(const Context& context, const ConvProblem& problem) {
  return {[context, problem](const ConvArguments& arguments, const Execution&) {
    const Tiling tiling = tiling_of(problem);
    for (int64_t member = 0; member < problem.num_members; ++member) {
      parallel_for(context, tiling.per_member, [&](int64_t task) {
        compute_tile(problem, arguments, place_of(problem, tiling, member, task));
      });
    }
  }};
}

}  // namespace wide
