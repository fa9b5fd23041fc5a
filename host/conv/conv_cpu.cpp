// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv on the CPU: tiles of outputs, channels of one group by positions of one batch row, are
// handed to the threads, all members' at once (`wide`) or one member's at a time (`sequential`).
// Both compute every tile alike, so they give the same bits; what differs is how well small members
// fill the threads.
//
// A tile's inputs are gathered term by term, whatever strides, layout and padding, and then
// multiplied as a matrix: the gathering is paid for by the channels that share it.
#include <algorithm>
#include <array>

#include "host/conv/conv_cpu_tile.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/core/activation_cpu.hpp"
#include "host/core/parallel.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

using cpu::kConvChannels;
using cpu::kConvDepth;
using cpu::kConvPositions;

const void* element_at(const void* base, int64_t offset, Dtype dtype) {
  return static_cast<const char*>(base) + offset * dtype_bytes(dtype);
}

/// `count` values `stride` elements apart.
void decode(Dtype dtype, const void* base, int64_t offset, int64_t stride, float* out,
            int64_t count) {
  if (stride == 1) return decode_row(dtype, element_at(base, offset, dtype), out, count);
  for (int64_t i = 0; i < count; ++i) {
    decode_row(dtype, element_at(base, offset + i * stride, dtype), out + i, 1);
  }
}

/// One term of every output of a group, in the order in which they lie in the weight.
class Term {
 public:
  /// The first one.
  explicit Term(const ConvProblem& p) : p_(p) {}

  void advance() {
    if (p_.layout == ConvLayout::channels_last) {
      if (++channel_ < p_.in_channels / p_.groups) return;
      channel_ = 0;
    }
    if (++column_ < p_.kernel.width) return;
    column_ = 0;
    if (++row_ < p_.kernel.height) return;
    row_ = 0;
    ++channel_;
  }

  /// From the output channel's first weight.
  int64_t weight() const {
    return channel_ * p_.weight.in_channel + row_ * p_.weight.row + column_ * p_.weight.column;
  }
  /// From the group's first channel, at position 0.
  int64_t x() const { return channel_ * p_.x.channel; }
  int64_t row() const { return row_ * p_.dilation.height; }
  int64_t column() const { return column_ * p_.dilation.width; }

 private:
  const ConvProblem& p_;
  int64_t channel_ = 0, row_ = 0, column_ = 0;
};

/// Whether an output channel's weights lie side by side in that order.
bool has_dense_weights(const ConvProblem& p) {
  const ConvWeightStrides& s = p.weight;
  const int64_t in = p.in_channels / p.groups, height = p.kernel.height, width = p.kernel.width;
  return p.layout == ConvLayout::channels_first
             ? (height == 1 || s.row == width) && (in == 1 || s.in_channel == height * width)
             : (width == 1 || s.column == in) && (height == 1 || s.row == width * in);
}

/// Neighbouring outputs of one row of y, a part of a tile.
struct Run {
  int64_t row, column;
  int first, count;  ///< in the tile
};

/// A tile: where it lies.
struct Place {
  int64_t member, batch, group, channel;  ///< the first output channel, of the member's
  int channels;
  int num_runs;
  std::array<Run, kConvPositions> runs;
};

struct Tiling {
  int64_t channel_tiles, position_tiles;  ///< of one group and batch row
  int64_t per_member;
};

Tiling tiling_of(const ConvProblem& p) {
  const PerAxis output = conv_output_size(p);
  Tiling tiling{};
  tiling.channel_tiles = (p.out_channels / p.groups - 1) / kConvChannels + 1;
  tiling.position_tiles = (output.height * output.width - 1) / kConvPositions + 1;
  tiling.per_member = p.batch * p.groups * tiling.channel_tiles * tiling.position_tiles;
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
  place.batch = tile / p.groups;
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

/// The inputs of one term at a run's positions; 0 in the padding.
void gather(const ConvProblem& p, const void* x, int64_t offset, const Term& term, const Run& run,
            float* out) {
  const int64_t row = run.row * p.stride.height - p.padding.height + term.row();
  const int64_t column = run.column * p.stride.width - p.padding.width + term.column();
  const int64_t step = p.stride.width;
  const auto steps = [&](int64_t columns) { return step == 1 ? columns : columns / step; };
  int64_t first = column >= 0 ? 0 : std::min<int64_t>(run.count, steps(-column + step - 1));
  int64_t end = column >= p.input.width
                    ? 0
                    : std::min<int64_t>(run.count, steps(p.input.width - 1 - column) + 1);
  if (row < 0 || row >= p.input.height || first >= end) first = end = run.count;
  std::fill_n(out, first, 0.0f);
  std::fill(out + end, out + run.count, 0.0f);
  if (first == end) return;
  decode(p.dtype, x, offset + term.x() + row * p.x.row + (column + first * step) * p.x.column,
         step * p.x.column, out + first, end - first);
}

void finish(const ConvProblem& p, const ConvArguments& a, const Place& place,
            float (*sums)[kConvPositions]) {
  const Epilogue& epilogue = p.epilogue;
  const auto offset = [&](const ConvStrides& s, const Run& run) {
    return place.batch * s.batch + place.member * s.member + place.channel * s.channel +
           run.row * s.row + run.column * s.column;
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
        decode(p.dtype, a.residual.data, offset(p.residual, run) + o * p.residual.channel,
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
      void* y =
          const_cast<void*>(element_at(a.y.data, offset(p.y, run) + o * p.y.channel, p.dtype));
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

/// The weights of terms [first, first + depth), `begin` the first of them, for the tile's channels,
/// at `stride` from channel to channel: in their place, or decoded into `buffer`.
const float* gather_weights(const ConvProblem& p, const void* weight, const Place& place,
                            int64_t first, const Term& begin, int depth, float* buffer,
                            int64_t& stride) {
  const bool is_dense = has_dense_weights(p);
  const int64_t base = place.member * p.weight.member + place.channel * p.weight.out_channel;
  stride = p.weight.out_channel;
  if (is_dense && p.dtype == Dtype::fp32) return static_cast<const float*>(weight) + base + first;
  for (int o = 0; o < place.channels; ++o, buffer += kConvDepth) {
    const int64_t channel = base + o * p.weight.out_channel;
    if (is_dense) {
      decode(p.dtype, weight, channel + first, 1, buffer, depth);
      continue;
    }
    Term term = begin;
    for (int t = 0; t < depth; ++t, term.advance()) {
      decode(p.dtype, weight, channel + term.weight(), 1, buffer + t, 1);
    }
  }
  stride = kConvDepth;
  return buffer - place.channels * kConvDepth;
}

void compute_tile(const ConvProblem& p, const ConvArguments& a, const Place& place) {
  const int64_t terms = conv_terms(p), in = p.in_channels / p.groups;
  const int64_t x =
      place.batch * p.x.batch + place.member * p.x.member + place.group * in * p.x.channel;
  float sums[kConvChannels][kConvPositions] = {};
  float inputs[kConvDepth][kConvPositions] = {};
  float buffer[kConvChannels * kConvDepth];
  Term term(p);
  for (int64_t first = 0; first < terms; first += kConvDepth) {
    const int depth = static_cast<int>(std::min<int64_t>(kConvDepth, terms - first));
    int64_t stride = 0;
    const float* weights =
        gather_weights(p, a.weight.data, place, first, term, depth, buffer, stride);
    for (int t = 0; t < depth; ++t, term.advance()) {
      for (int r = 0; r < place.num_runs; ++r) {
        const Run& run = place.runs[static_cast<size_t>(r)];
        gather(p, a.x.data, x, term, run, inputs[t] + run.first);
      }
    }
    cpu::best_conv_tile()({weights, stride, inputs, place.channels, depth, sums});
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
