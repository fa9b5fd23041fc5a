// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv on the CPU: as many batch rows as the caches hold are staged (conv_cpu_stage.hpp), then
// tiles of their outputs, channels of one group by positions, are multiplied and finished, and so
// on. The threads share both, of all members at once (`wide`) or of one member at a time
// (`sequential`). Both compute every output alike, so they give the same bits; they differ in how
// well small members fill the threads. Planes of padding are left out, but for what weights that
// are not finite make of zeros.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "host/conv/conv_cpu_stage.hpp"
#include "host/conv/conv_cpu_tile.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/core/activation_cpu.hpp"
#include "host/core/parallel.hpp"
#include "host/core/pointer.hpp"
#include "host/core/vectorised.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

using namespace cpu;

constexpr int64_t kRoundBytes = int64_t{4} << 20;  ///< staged at a time, if more than one image
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int64_t kProductsPerTask = int64_t{1} << 19;  ///< some tens of microseconds

/// Neighbouring outputs of one row of y, a part of a tile.
struct Run {
  int64_t row, column;
  int first, count;  ///< in the tile
};

/// A tile: where it lies in y.
struct Place {
  int64_t member = 0, batch = 0, group = 0;
  int64_t channel = 0;  ///< the first output channel, of the member's
  int64_t plane = 0, position = 0;
  int channels = 0, positions = 0;
};

int64_t rounded_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class CpuConv {
 public:
  explicit CpuConv(const ConvProblem& problem, int64_t members_at_once)
      : p_(problem),
        stage_(make_conv_stage(problem)),
        output_(conv_output_size(problem)),
        images_(members_at_once * problem.batch) {
    const int64_t image_bytes = stage_.image_floats * int64_t{sizeof(float)};
    images_at_once_ = std::clamp<int64_t>(kRoundBytes / image_bytes, 1, images_);
  }

  int64_t workspace_bytes() const {
    return (images_at_once_ * stage_.image_floats + num_paddings()) * int64_t{sizeof(float)};
  }

  void run(const Context& context, const ConvArguments& arguments, void* workspace) const {
    auto* staged = static_cast<float*>(workspace);
    if (num_paddings() > 0) {
      multiply_padding(context, arguments, staged + images_at_once_ * stage_.image_floats);
    }
    const int64_t all = p_.num_members * p_.batch;
    for (int64_t from = 0; from < all; from += images_) {
      for (int64_t first = from; first < from + images_; first += images_at_once_) {
        const int64_t count = std::min(images_at_once_, from + images_ - first);
        stage(context, arguments, first, count, staged);
        compute(context, arguments, first, count, staged);
      }
    }
  }

 private:
  void stage(const Context& context, const ConvArguments& a, int64_t first, int64_t count,
             float* staged) const {
    parallel_for(context, count * stage_.parts, [&](int64_t task) {
      const int64_t image = task / stage_.parts;
      const int64_t member = (first + image) / p_.batch, batch = (first + image) % p_.batch;
      stage_part(p_, stage_, at(a.x.data, member * p_.x.member + batch * p_.x.batch),
                 task % stage_.parts, staged + image * stage_.image_floats);
    });
  }

  /// One of each kind of planes that leaves terms out, of each output channel.
  int64_t num_paddings() const {
    return (std::ssize(stage_.plane_terms) - 1) * p_.num_members * p_.out_channels;
  }

  /// What the terms that are left out add: 0, but NaN where a weight is not finite.
  void multiply_padding(const Context& context, const ConvArguments& a, float* paddings) const {
    const int64_t kinds = std::ssize(stage_.plane_terms) - 1;
    parallel_for(context, p_.num_members * p_.out_channels, [&](int64_t channel) {
      float* of_channel = paddings + channel * kinds;
      std::fill_n(of_channel, kinds, 0.0f);
      Place place;
      place.member = channel / p_.out_channels;
      place.channel = channel % p_.out_channels;
      place.channels = 1;
      if (has_finite_weights(a.weight.data, place)) return;
      for (int64_t kind = 0; kind < kinds; ++kind) {
        for (const int64_t term : stage_.plane_terms[static_cast<size_t>(kind + 1)].padding) {
          float weight[1][kConvDepth];
          load_weights(a.weight.data, place, {&term, 1}, weight);
          of_channel[kind] += 0.0f * weight[0][0];
        }
      }
    });
  }

  bool has_finite_weights(const void* weight, const Place& place) const {
    bool is_finite = true;
    call_vectorised([&] {
      const std::vector<int64_t>& terms = stage_.plane_terms[0].terms;
      float weights[1][kConvDepth];
      for (size_t first = 0; first < terms.size(); first += kConvDepth) {
        const size_t count = std::min<size_t>(kConvDepth, terms.size() - first);
        load_weights(weight, place, std::span(terms).subspan(first, count), weights);
        for (size_t t = 0; t < count; ++t) is_finite &= std::fabs(weights[0][t]) < kInfinity;
      }
    });
    return is_finite;
  }

  void compute(const Context& context, const ConvArguments& a, int64_t first, int64_t count,
               const float* staged) const {
    const float* paddings = staged + images_at_once_ * stage_.image_floats;
    const int64_t per_group = p_.out_channels / p_.groups;
    const int64_t channel_tiles = (per_group - 1) / kConvChannels + 1;
    const int64_t positions = stage_.positions(output_);
    const int64_t blocks = (positions - 1) / kConvPositions + 1;
    // Wide tiles read the weights less often, small ones fill the threads. Bits are the same.
    const int64_t rows = count * conv_output_depth(p_) * p_.groups * channel_tiles;
    const int64_t wanted = 4 * context.info().num_multiprocessors;
    const int64_t span =
        kConvPositions * std::clamp<int64_t>(rows * blocks / wanted, 1, kConvBlocks);
    const int64_t position_tiles = (positions - 1) / span + 1;
    const int64_t tiles = rows * position_tiles;
    const int64_t products = std::min<int64_t>(per_group, kConvChannels) * span * conv_terms(p_);
    const int64_t step = std::max<int64_t>(1, kProductsPerTask / std::max<int64_t>(1, products));
    parallel_for(context, (tiles - 1) / step + 1, [&](int64_t task) {
      for (int64_t tile = task * step; tile < std::min(tiles, (task + 1) * step); ++tile) {
        int64_t rest = tile / position_tiles;
        Place place;
        place.position = tile % position_tiles * span;
        place.positions = static_cast<int>(std::min(span, positions - place.position));
        const int64_t channel = rest % channel_tiles * kConvChannels;
        place.channels = static_cast<int>(std::min<int64_t>(kConvChannels, per_group - channel));
        rest /= channel_tiles;
        place.group = rest % p_.groups;
        place.channel = place.group * per_group + channel;
        rest /= p_.groups;
        place.plane = rest % conv_output_depth(p_);
        const int64_t image = rest / conv_output_depth(p_);
        place.member = (first + image) / p_.batch;
        place.batch = (first + image) % p_.batch;
        compute_tile(a, place, staged + image * stage_.image_floats, paddings);
      }
    });
  }

  void compute_tile(const ConvArguments& a, const Place& place, const float* image,
                    const float* paddings) const {
    alignas(64) float weights[kConvChannels][kConvDepth];
    alignas(64) float sums[kConvChannels][kConvSpan];
    ConvTile tile;
    tile.weights = weights[0];
    tile.sums = sums;
    tile.inputs = image + place.group * (p_.in_channels / p_.groups) * stage_.channel_floats +
                  place.plane * p_.depth.stride * stage_.plane_floats() + place.position;
    tile.channels = place.channels;
    tile.positions = place.positions;
    // Those beyond the tile's channels are transposed with it.
    for (int64_t o = place.channels; o < rounded_up(place.channels, 4); ++o) {
      std::fill_n(sums[o], kConvSpan, 0.0f);
    }
    const size_t kind = kind_of_plane(p_, stage_, place.plane);
    const ConvPlaneTerms& all = stage_.plane_terms[kind];
    const bool reads_weights = stage_.has_dense_weights && p_.dtype == Dtype::fp32;
    if (reads_weights) {
      tile.weights = static_cast<const float*>(a.weight.data) + place.member * p_.weight.member +
                     place.channel * p_.weight.out_channel;
      tile.weight_stride = p_.weight.out_channel;
    }
    const size_t most = reads_weights ? kConvDenseDepth : kConvDepth;
    for (size_t first = 0; tile.is_first || first < all.terms.size(); first += most) {
      const size_t depth = std::min(most, all.terms.size() - first);
      tile.depth = static_cast<int>(depth);
      if (reads_weights && kind > 0) tile.terms = all.terms.data() + first;
      tile.offsets = all.inputs.data() + first;
      if (!reads_weights) {
        call_vectorised([&] {
          load_weights(a.weight.data, place, std::span(all.terms).subspan(first, depth), weights);
        });
      }
      best_conv_tile()(tile);
      tile.is_first = false;
      if (reads_weights && kind == 0) tile.weights += depth;
    }
    call_vectorised([&] {
      if (kind > 0) add_padding(paddings + kind - 1, place, sums);
      constexpr int kFew = 8;  // channels that are not worth transposing
      if (p_.y.column == 1 || place.channels < kFew) {
        finish_rows(a, place, sums);
      } else {
        finish_columns(a, place, sums);
      }
    });
  }

  void load_weights(const void* weight, const Place& place, std::span<const int64_t> terms,
                    float (*weights)[kConvDepth]) const {
    for (size_t t = 0, end = 0; t < terms.size(); t = end) {
      const int64_t offset = stage_.weights[static_cast<size_t>(terms[t])];
      // Neighbours in memory are loaded as one.
      for (end = t + 1; end < terms.size() && stage_.has_dense_weights;) {
        if (terms[end] != terms[end - 1] + 1) break;
        ++end;
      }
      for (int o = 0; o < place.channels; ++o) {
        const int64_t channel =
            place.member * p_.weight.member + (place.channel + o) * p_.weight.out_channel;
        decode_row(p_.dtype, at(weight, channel + offset), weights[o] + t,
                   static_cast<int64_t>(end - t));
      }
    }
  }

  /// What the terms add that planes of a kind leave out: of the tile's first channel.
  void add_padding(const float* padding, const Place& place, float (*sums)[kConvSpan]) const {
    const int64_t kinds = std::ssize(stage_.plane_terms) - 1;
    padding += (place.member * p_.out_channels + place.channel) * kinds;
    for (int o = 0; o < place.channels; ++o, padding += kinds) {
      if (*padding == 0) continue;
      for (int i = 0; i < place.positions; ++i) sums[o][i] += *padding;
    }
  }

  /// Calls f(run) for the parts of a tile's positions that are y's.
  template <class F>
  void for_each_run(const Place& place, const F& f) const {
    const int64_t pitch = stage_.size.width;
    for (int at = 0; at < place.positions;) {
      const int64_t position = place.position + at;
      const int64_t row = position / pitch, column = position % pitch;
      const int64_t end = std::min<int64_t>(place.positions, at + pitch - column);
      const int64_t kept = std::min(end, at + output_.width - column);
      if (kept > at) f(Run{row, column, at, static_cast<int>(kept) - at});
      at = static_cast<int>(end);
    }
  }

  static int64_t offset_of(const Place& place, const ChannelStrides& s, int64_t plane_stride,
                           const Run& run) {
    return place.batch * s.batch + place.member * s.member + place.channel * s.channel +
           place.plane * plane_stride + run.row * s.row + run.column * s.column;
  }

  template <class Pointer>
  Pointer at(Pointer base, int64_t offset) const {
    return advanced(base, offset, dtype_bytes(p_.dtype));
  }

  void load_bias(const ConvArguments& a, const Place& place, float (&bias)[kConvChannels]) const {
    if (!p_.epilogue.has_bias) return;
    decode_row(p_.dtype, at(a.bias.data, place.member * p_.bias_member_stride + place.channel),
               bias, place.channels);
  }

  /// y = activation(values + bias + residual) + residual, as the problem has them. Adding an absent
  /// one as 0 would turn -0 into +0.
  template <class Bias>
  void bend(float* values, const Bias& bias, const float* residual, int count) const {
    const auto add_residual = [&] {
      for (int i = 0; i < count; ++i) values[i] += residual[i];
    };
    if (p_.epilogue.has_bias) {
      for (int i = 0; i < count; ++i) values[i] += bias(i);
    }
    if (p_.epilogue.residual == Residual::before_activation) add_residual();
    activate_cpu(p_.epilogue.activation, values, count);
    if (p_.epilogue.residual == Residual::after_activation) add_residual();
  }

  /// A row of y after the other.
  void finish_rows(const ConvArguments& a, const Place& place, float (*sums)[kConvSpan]) const {
    float bias[kConvChannels] = {}, residual[kConvSpan];
    load_bias(a, place, bias);
    for_each_run(place, [&](const Run& run) {
      const int64_t y = offset_of(place, p_.y, p_.depth.y_stride, run);
      const int64_t added = offset_of(place, p_.residual, p_.depth.residual_stride, run);
      for (int o = 0; o < place.channels; ++o) {
        if (p_.epilogue.residual != Residual::none) {
          load(a.residual.data, added + o * p_.residual.channel, p_.residual.column, residual,
               run.count);
        }
        float* values = sums[o] + run.first;
        bend(
            values, [&](int) { return bias[o]; }, residual, run.count);
        store(values, a.y.data, y + o * p_.y.channel, p_.y.column, run.count);
      }
    });
  }

  /// A position's channels after the other's.
  void finish_columns(const ConvArguments& a, const Place& place, float (*sums)[kConvSpan]) const {
    constexpr int kSide = 16;
    float bias[kConvChannels] = {}, residual[kConvChannels];
    alignas(64) float columns[kSide][kConvChannels];
    load_bias(a, place, bias);
    int transposed = 0;
    for_each_run(place, [&](const Run& run) {
      for (int i = 0; i < run.count; ++i) {
        const int position = run.first + i;
        for (; transposed <= position; transposed += kSide) {
          transpose(sums[0] + transposed, kConvSpan, columns[0], kConvChannels, place.channels,
                    kSide);
        }
        const Run one{run.row, run.column + i, position, 1};
        if (p_.epilogue.residual != Residual::none) {
          load(a.residual.data, offset_of(place, p_.residual, p_.depth.residual_stride, one),
               p_.residual.channel, residual, place.channels);
        }
        float* values = columns[position % kSide];
        bend(
            values, [&](int o) { return bias[o]; }, residual, place.channels);
        store(values, a.y.data, offset_of(place, p_.y, p_.depth.y_stride, one), p_.y.channel,
              place.channels);
      }
    });
  }

  /// `count` values `stride` elements apart.
  void load(const void* from, int64_t offset, int64_t stride, float* values, int count) const {
    if (stride == 1) return decode_row(p_.dtype, at(from, offset), values, count);
    for (int i = 0; i < count; ++i) {
      decode_row(p_.dtype, at(from, offset + i * stride), values + i, 1);
    }
  }
  void store(const float* values, void* to, int64_t offset, int64_t stride, int count) const {
    if (stride == 1) return encode_row(p_.dtype, values, at(to, offset), count);
    for (int i = 0; i < count; ++i) {
      encode_row(p_.dtype, values + i, at(to, offset + i * stride), 1);
    }
  }

  ConvProblem p_;
  ConvStage stage_;
  PerAxis output_;
  int64_t images_, images_at_once_;
};

ConvRunner make_cpu_runner(const Context& context, const ConvProblem& problem,
                           int64_t members_at_once) {
  auto conv = std::make_shared<const CpuConv>(problem, members_at_once);
  ConvRunner runner;
  runner.workspace_bytes = conv->workspace_bytes();
  runner.run = [context, conv](const ConvArguments& arguments, const Execution& execution) {
    conv->run(context, arguments, execution.workspace.data);
  };
  return runner;
}

}  // namespace

ConvRunner make_conv_cpu_wide(const Context& context, const ConvProblem& problem) {
  return make_cpu_runner(context, problem, problem.num_members);
}

ConvRunner make_conv_cpu_sequential(const Context& context, const ConvProblem& problem) {
  return make_cpu_runner(context, problem, 1);
}

}  // namespace wide
