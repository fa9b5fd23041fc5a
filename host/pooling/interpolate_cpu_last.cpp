// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's interpolate, channels last: an output's neighbours are contiguous channels, as
// many at a time as a buffer on the stack has. `wide` spreads rows of outputs of all members over
// the threads at once, some members' channels together, `sequential` one member's after the
// other's.
#include <algorithm>

#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"
#include "host/core/vectorised.hpp"
#include "host/pooling/interpolate_cpu.hpp"
#include "host/pooling/interpolate_params.hpp"
#include "host/pooling/interpolate_run.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

using interpolate_cpu::between, interpolate_cpu::tap_of;

constexpr int64_t kChannels = 512;  ///< at a time
constexpr int kMostTaps = 512;      ///< that are found once

class Interpolator {
 public:
  Interpolator(const InterpolateProblem& p, const InterpolateArguments& a)
      : p_(p), a_(a), size_(dtype_bytes(p.dtype)), params_(interpolate_params(p)) {
    for (int64_t i = 0; i < std::min<int64_t>(p.out_width, kMostTaps); ++i) {
      first_columns_[i] = tap_of(params_.columns, i);
    }
  }

  /// One row of a member's outputs.
  void operator()(int64_t member, int64_t slice) const {
    const int64_t batch = slice / p_.out_height, row = slice % p_.out_height;
    const kernels::LinearTap down = tap_of(params_.rows, row);
    const auto element = [&](const ChannelStrides& s, int64_t at) {
      return (batch * s.batch + member * s.member + at * s.row) * size_;
    };
    const char* x = static_cast<const char*>(a_.x.data) + element(p_.x, down.first);
    char* y = static_cast<char*>(a_.y.data) + element(p_.y, row);
    call_vectorised([&] {
      for (int64_t first = 0; first < p_.channels; first += kChannels) {
        const int64_t count = std::min(kChannels, p_.channels - first);
        write_row(x + first * size_, down.weight, count, y + first * size_);
      }
    });
  }

 private:
  /// The channels of one position in the row above outputs, and in the one below.
  struct Column {
    const float *above, *below;  ///< the same where that has no weight
  };
  /// Columns of x as floats, of which two are kept: neighbours do not displace one another.
  struct Decoded {
    int64_t held[2] = {-1, -1};
    float above[2][kChannels], below[2][kChannels];
  };

  Column column_of(const char* x, int64_t column, float weight, int64_t count,
                   Decoded& decoded) const {
    const int64_t at = column * p_.x.column;
    if (p_.dtype == Dtype::fp32) {
      const float* above = reinterpret_cast<const float*>(x) + at;
      return {above, weight > 0.0f ? above + p_.x.row : above};
    }
    const auto place = static_cast<size_t>(column % 2);
    const Column result{decoded.above[place], decoded.below[place]};
    if (decoded.held[place] != column) {
      decode_row(p_.dtype, x + at * size_, decoded.above[place], count);
      if (weight > 0.0f) {
        decode_row(p_.dtype, x + (at + p_.x.row) * size_, decoded.below[place], count);
      }
      decoded.held[place] = column;
    }
    return result;
  }

  void write_row(const char* x, float down, int64_t count, char* y) const {
    Decoded decoded;
    float outputs[kChannels];
    for (int64_t i = 0; i < p_.out_width; ++i, y += p_.y.column * size_) {
      const kernels::LinearTap across =
          i < kMostTaps ? first_columns_[i] : tap_of(params_.columns, i);
      const Column left = column_of(x, across.first, down, count, decoded);
      const bool is_direct = p_.dtype == Dtype::fp32;
      float* const out = is_direct ? reinterpret_cast<float*>(y) : outputs;
      if (across.weight > 0.0f) {
        const Column right = column_of(x, across.first + 1, down, count, decoded);
        write_between(left, right, across.weight, down, count, out);
      } else if (down > 0.0f) {
        cpu::map(left.above, left.below, out, count,
                 [&](float a, float b) { return between(a, b, down); });
      } else {
        std::copy_n(left.above, count, out);
      }
      if (!is_direct) encode_row(p_.dtype, outputs, y, count);
    }
  }

  static void write_between(const Column& left, const Column& right, float across, float down,
                            int64_t count, float* out) {
    const auto between_columns = [across](float a, float b) { return between(a, b, across); };
    if (down == 0.0f) return cpu::map(left.above, right.above, out, count, between_columns);
    WIDE_INDEPENDENT
    for (int64_t c = 0; c < count; ++c) {
      out[c] = between(between_columns(left.above[c], right.above[c]),
                       between_columns(left.below[c], right.below[c]), down);
    }
  }

  const InterpolateProblem& p_;
  const InterpolateArguments& a_;
  int64_t size_;
  kernels::InterpolateParams params_;
  kernels::LinearTap first_columns_[kMostTaps];  ///< which rows of outputs share
};

}  // namespace

void run_interpolate_cpu_last(const Context& context, const InterpolateProblem& problem,
                              WideStrategy strategy, const InterpolateArguments& arguments) {
  const bool is_wide = strategy == WideStrategy::wide;
  const int64_t of_row = problem.out_width * problem.channels;
  const InterpolateProblem p =
      is_wide ? with_members_together(
                    problem, std::min(kChannels / problem.channels, kElementsPerTask / of_row))
              : problem;
  for_each_slice(context, p.num_members, is_wide ? p.num_members : 1, p.batch * p.out_height,
                 p.out_width * p.channels, Interpolator(p, arguments));
}

}  // namespace wide
