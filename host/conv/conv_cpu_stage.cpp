// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/conv/conv_cpu_stage.hpp"

#include <algorithm>

#include "host/conv/conv_cpu_tile.hpp"
#include "host/core/check.hpp"
#include "host/core/vectorised.hpp"
#include "wide/convert.hpp"

namespace wide::cpu {

namespace {

/// Of a part at most. As many as a position has next to each other in x where channels are last:
/// lines of one position are far from those of the next.
constexpr int64_t kStagedChannels = 64;
constexpr int64_t kStagedFloats = int64_t{1} << 15;  ///< of a part: some microseconds

int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) {
    throw_invalid_argument("conv: the padded inputs do not fit in 64 bits");
  }
  return result;
}

/// A tap of the first channel, or of any: its plane of the kernel, its place in the weight and in a
/// staged image.
struct Tap {
  int64_t plane, weight, input;
};

/// Where a tap is along an axis: in which phase, and how far from its begin.
struct Step {
  int64_t phase, at;
};
Step step_of(int64_t tap, int64_t dilation, int64_t stride, int64_t phase_step) {
  if (phase_step != 1) return {tap, 0};
  return {tap * dilation % stride, tap * dilation / stride};
}

std::vector<Tap> taps_of(const ConvProblem& p, const ConvStage& stage) {
  std::vector<Tap> taps;
  for (int64_t plane = 0; plane < p.depth.kernel; ++plane) {
    for (int64_t row = 0; row < p.kernel.height; ++row) {
      for (int64_t column = 0; column < p.kernel.width; ++column) {
        const Step down = step_of(row, p.dilation.height, p.stride.height, stage.phase_step.height);
        const Step right =
            step_of(column, p.dilation.width, p.stride.width, stage.phase_step.width);
        taps.push_back(
            {plane, plane * p.depth.weight_stride + row * p.weight.row + column * p.weight.column,
             plane * p.depth.dilation * stage.plane_floats() +
                 (down.phase * stage.phases.width + right.phase) * stage.phase_floats() +
                 down.at * stage.size.width + right.at});
      }
    }
  }
  return taps;
}

/// Whether channels are neighbours in x, and positions are not.
bool is_transposed(const ConvProblem& p) {
  return p.x.channel == 1 && p.x.column != 1;
}

/// In the order in which they lie in a dense weight of the layout.
std::vector<Tap> terms_of(const ConvProblem& p, const ConvStage& stage) {
  const std::vector<Tap> taps = taps_of(p, stage);
  std::vector<Tap> terms;
  const auto add = [&](int64_t channel, const Tap& tap) {
    terms.push_back({tap.plane, channel * p.weight.in_channel + tap.weight,
                     channel * stage.channel_floats + tap.input});
  };
  const int64_t channels = p.in_channels / p.groups;
  if (p.layout == ChannelLayout::channels_last) {
    for (const Tap& tap : taps) {
      for (int64_t channel = 0; channel < channels; ++channel) add(channel, tap);
    }
  } else {
    for (int64_t channel = 0; channel < channels; ++channel) {
      for (const Tap& tap : taps) add(channel, tap);
    }
  }
  return terms;
}

/// The planes of the kernel that read x for a plane of y.
ConvPlaneTerms planes_of(const ConvDepth& depth, int64_t plane) {
  const auto is_within = [&](int64_t tap) {
    const int64_t at = plane * depth.stride - depth.padding + tap * depth.dilation;
    return at >= 0 && at < depth.input;
  };
  ConvPlaneTerms of;
  while (of.first < depth.kernel && !is_within(of.first)) ++of.first;
  of.end = of.first;
  while (of.end < depth.kernel && is_within(of.end)) ++of.end;
  return of;
}

size_t find_kind(const std::vector<ConvPlaneTerms>& kinds, const ConvPlaneTerms& kind) {
  size_t at = 0;
  while (at < kinds.size() && (kinds[at].first != kind.first || kinds[at].end != kind.end)) ++at;
  return at;
}

void add_terms(const ConvProblem& p, ConvStage& stage) {
  // Of others, and of planes further from the first and the last, all terms are multiplied.
  constexpr size_t kMostKinds = 8;
  constexpr int64_t kEdge = 16;
  const std::vector<Tap> terms = terms_of(p, stage);
  stage.has_dense_weights = true;
  for (size_t t = 0; t < terms.size(); ++t) {
    stage.weights.push_back(terms[t].weight);
    if (terms[t].weight != static_cast<int64_t>(t)) stage.has_dense_weights = false;
  }
  auto& kinds = stage.plane_terms;
  const auto add_kind = [&](ConvPlaneTerms kind) {
    for (size_t t = 0; t < terms.size(); ++t) {
      const bool is_read = terms[t].plane >= kind.first && terms[t].plane < kind.end;
      (is_read ? kind.terms : kind.padding).push_back(static_cast<int64_t>(t));
      if (is_read) kind.inputs.push_back(terms[t].input);
    }
    kinds.push_back(std::move(kind));
  };
  add_kind({0, p.depth.kernel});
  const int64_t planes = conv_output_depth(p);
  for (int64_t edge = 0; edge < std::min(planes, kEdge); ++edge) {
    for (const int64_t plane : {edge, planes - 1 - edge}) {
      const ConvPlaneTerms kind = planes_of(p.depth, plane);
      const bool is_known = find_kind(kinds, kind) < kinds.size();
      if (!is_known && kinds.size() < kMostKinds) add_kind(kind);
    }
  }
}

/// A row of a phase: of each channel's inputs from `from` on, every step-th between zeros.
struct Row {
  const char* from = nullptr;  ///< the first that is not a zero, of the first channel; or none
  int64_t first = 0, end = 0;  ///< columns that are not zeros
};

class Staging {
 public:
  Staging(const ConvProblem& problem, const ConvStage& stage, const char* x)
      : p_(problem), stage_(stage), x_(x), bytes_(dtype_bytes(problem.dtype)) {}

  /// One row of `channels` channels of x, whose first is `x`. Rows are numbered as they are staged:
  /// by planes, by phases of rows, by those of columns, from top to bottom.
  void write(int64_t index, int64_t channels, float* to) const {
    int64_t rest = index / stage_.size.height;
    const int64_t right = rest % stage_.phases.width * stage_.phase_step.width;
    rest /= stage_.phases.width;
    const int64_t row = index % stage_.size.height * p_.stride.height +
                        rest % stage_.phases.height * stage_.phase_step.height;
    const Row source = row_of(rest / stage_.phases.height, row, right);
    const bool is_empty = source.first == source.end,
               transposes = is_transposed(p_) && channels > 1;
    for (int64_t c = 0; c < channels; ++c) {
      float* out = to + c * stage_.channel_floats;
      std::fill_n(out, source.first, 0.0f);
      std::fill(out + source.end, out + stage_.size.width, 0.0f);
      if (!is_empty && !transposes) copy(source, c, out);
    }
    if (!is_empty && transposes) transpose_channels(source, channels, to);
  }

 private:
  Row row_of(int64_t plane, int64_t padded_row, int64_t right) const {
    const int64_t from = plane - p_.depth.padding, row = padded_row - p_.padding.height;
    if (from < 0 || from >= p_.depth.input || row < 0 || row >= p_.input.height) return {};
    // Column i is x's `column` + i * step.
    const int64_t column = right - p_.padding.width, step = p_.stride.width;
    const int64_t width = stage_.size.width;
    Row result;
    result.first = column >= 0 ? 0 : std::min(width, (-column - 1) / step + 1);
    result.end =
        column >= p_.input.width ? 0 : std::min(width, (p_.input.width - 1 - column) / step + 1);
    result.end = std::max(result.first, result.end);
    if (result.first == result.end) return result;
    result.from = x_ + bytes_ * (from * p_.depth.x_stride + row * p_.x.row +
                                 (column + result.first * step) * p_.x.column);
    return result;
  }

  void copy(const Row& row, int64_t channel, float* out) const {
    const char* from = row.from + channel * p_.x.channel * bytes_;
    const int64_t stride = p_.stride.width * p_.x.column, count = row.end - row.first;
    if (stride == 1) return decode_row(p_.dtype, from, out + row.first, count);
    for (int64_t i = 0; i < count; ++i) {
      decode_row(p_.dtype, from + i * stride * bytes_, out + row.first + i, 1);
    }
  }

  /// Of channels that are neighbours in x.
  void transpose_channels(const Row& row, int64_t channels, float* to) const {
    constexpr int64_t kSide = 16;
    const int64_t stride = p_.stride.width * p_.x.column * bytes_;
    alignas(64) float columns[kSide][kStagedChannels] = {}, rows[kStagedChannels][kSide];
    const char* from = row.from;
    for (int64_t first = row.first; first < row.end; first += kSide) {
      const int64_t count = std::min(kSide, row.end - first);
      for (int64_t i = 0; i < count; ++i, from += stride) {
        decode_row(p_.dtype, from, columns[i], channels);
      }
      if (count == kSide && channels % 4 == 0) {
        transpose(columns[0], kStagedChannels, to + first, stage_.channel_floats, kSide, channels);
        continue;
      }
      transpose(columns[0], kStagedChannels, rows[0], kSide, kSide, channels);
      for (int64_t c = 0; c < channels; ++c) {
        std::copy_n(rows[c], count, to + c * stage_.channel_floats + first);
      }
    }
  }

  const ConvProblem& p_;
  const ConvStage& stage_;
  const char* x_;
  int64_t bytes_;
};

}  // namespace

ConvStage make_conv_stage(const ConvProblem& p) {
  const PerAxis output = conv_output_size(p);
  const PerAxis reach{(p.kernel.height - 1) * p.dilation.height,
                      (p.kernel.width - 1) * p.dilation.width};
  ConvStage stage;
  stage.phases = {std::min(p.stride.height, reach.height + 1),
                  std::min(p.stride.width, reach.width + 1)};
  stage.size = {output.height + reach.height / p.stride.height,
                output.width + reach.width / p.stride.width};
  // The zeros at the end of a row are those at the begin of the next.
  if (p.stride.width == 1) stage.size.width -= std::min(p.padding.width, reach.width);
  // A phase of each tap where taps lie so far apart that most of what is between them is not read.
  const auto shorten = [&](int64_t PerAxis::*axis) {
    const bool is_shorter = p.kernel.*axis * output.*axis < stage.phases.*axis * stage.size.*axis;
    if (p.dilation.*axis == 1 || !is_shorter) return;
    stage.phases.*axis = p.kernel.*axis;
    stage.size.*axis = output.*axis;
    stage.phase_step.*axis = p.dilation.*axis;
  };
  shorten(&PerAxis::height);
  shorten(&PerAxis::width);
  stage.planes =
      (conv_output_depth(p) - 1) * p.depth.stride + (p.depth.kernel - 1) * p.depth.dilation + 1;
  const int64_t phase = product(stage.size.height, stage.size.width);
  const int64_t plane = product(product(stage.phases.height, stage.phases.width), phase);
  stage.channel_floats = product(plane, stage.planes);
  const int64_t tail = p.padding.width + kConvPositions;
  constexpr int64_t kMargin = 8;  // 4 bytes of a float, and as much again for the tail
  stage.image_floats =
      product(product(stage.channel_floats, p.in_channels), kMargin) / kMargin + tail;
  if (p.in_channels > 0) {
    // Fewer where rows are long and each channel has its own, so that threads share them.
    const int64_t most = is_transposed(p) ? kStagedChannels : kStagedFloats / stage.size.width;
    stage.channels_at_once = std::clamp<int64_t>(most, 1, std::min(p.in_channels, kStagedChannels));
    stage.rows_at_once = std::clamp<int64_t>(
        kStagedFloats / stage.channels_at_once / stage.size.width, 1, stage.rows());
    stage.row_parts = (stage.rows() - 1) / stage.rows_at_once + 1;
    stage.parts = ((p.in_channels - 1) / stage.channels_at_once + 1) * stage.row_parts;
  }
  add_terms(p, stage);
  return stage;
}

size_t kind_of_plane(const ConvProblem& p, const ConvStage& stage, int64_t plane) {
  if (stage.plane_terms.size() == 1) return 0;
  const size_t kind = find_kind(stage.plane_terms, planes_of(p.depth, plane));
  return kind < stage.plane_terms.size() ? kind : 0;
}

void stage_part(const ConvProblem& p, const ConvStage& stage, const void* x, int64_t part,
                float* image) {
  const int64_t first = part / stage.row_parts * stage.channels_at_once;
  const int64_t channels = std::min(stage.channels_at_once, p.in_channels - first);
  const int64_t first_row = part % stage.row_parts * stage.rows_at_once;
  const int64_t end_row = std::min(stage.rows(), first_row + stage.rows_at_once);
  const char* from = static_cast<const char*>(x) + first * p.x.channel * dtype_bytes(p.dtype);
  float* to = image + first * stage.channel_floats;
  call_vectorised([&] {
    const Staging staging(p, stage, from);
    for (int64_t row = first_row; row < end_row; ++row) {
      staging.write(row, channels, to + row * stage.size.width);
    }
  });
  if (part == stage.parts - 1) {
    std::fill(to + channels * stage.channel_floats, image + stage.image_floats, 0.0f);
  }
}

}  // namespace wide::cpu
