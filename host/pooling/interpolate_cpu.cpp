// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's interpolate, channels first: a row of x is combined between its columns into
// floats on the stack, and two such rows into each row of outputs that lies between them. `wide`
// spreads all members' images over the threads at once, `sequential` one member's after the
// other's.
#include "host/pooling/interpolate_cpu.hpp"

#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"
#include "host/core/vectorised.hpp"
#include "host/pooling/interpolate_params.hpp"
#include "host/pooling/interpolate_run.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

using interpolate_cpu::between, interpolate_cpu::tap_of;

constexpr int kMost = 512;  ///< positions, and outputs, of a row at a time

class Interpolator {
 public:
  Interpolator(const InterpolateProblem& p, const InterpolateArguments& a)
      : p_(p), a_(a), size_(dtype_bytes(p.dtype)), params_(interpolate_params(p)) {
    choose_group(0, first_group_);
    for (int64_t i = 0; i < std::min<int64_t>(p.out_height, kMost); ++i) {
      first_rows_[i] = tap_of(params_.rows, i);
    }
  }

  void operator()(int64_t member, int64_t image) const {
    const int64_t batch = image / p_.channels, channel = image % p_.channels;
    const auto element = [&](const ChannelStrides& s) {
      return (batch * s.batch + member * s.member + channel * s.channel) * size_;
    };
    const char* x = static_cast<const char*>(a_.x.data) + element(p_.x);
    char* y = static_cast<char*>(a_.y.data) + element(p_.y);
    call_vectorised([&] {
      Group later;
      for (int64_t first = 0; first < p_.out_width;) {
        if (first > 0) choose_group(first, later);
        const Group& group = first > 0 ? later : first_group_;
        write_group(x, group, y + first * size_);
        first += group.count;
      }
    });
  }

 private:
  /// Outputs [first, first + count), which lie between the positions [start, start + span).
  struct Group {
    int64_t first, count, start, span;
    int left[kMost], right[kMost];  ///< from start; the same where the weight is 0
    float weight[kMost];            ///< of the right one
  };

  /// As many as fit, at least one.
  void choose_group(int64_t first, Group& group) const {
    group.first = first;
    group.start = tap_of(params_.columns, first).first;
    group.count = group.span = 0;
    const int64_t most = std::min<int64_t>(p_.out_width - first, kMost);
    for (int64_t i = 0; i < most; ++i) {
      const kernels::LinearTap tap = tap_of(params_.columns, first + i);
      const auto left = static_cast<int>(tap.first - group.start);
      const int right = left + (tap.weight > 0.0f ? 1 : 0);
      if (right >= kMost) break;
      group.left[i] = left;
      group.right[i] = right;
      group.weight[i] = tap.weight;
      group.span = right + 1;
      group.count = i + 1;
    }
  }

  /// A row of x between its columns. A neighbour without weight does not count, even an infinite
  /// one.
  void combine_columns(const char* x, int64_t row, const Group& group, float* out) const {
    float buffer[kMost];
    const float* positions =
        cpu::chunk_of(p_.dtype, x, row * p_.x.row + group.start, group.span, buffer);
    WIDE_INDEPENDENT
    for (int64_t i = 0; i < group.count; ++i) {
      const float left = positions[group.left[i]], weight = group.weight[i];
      const float sum = between(left, positions[group.right[i]], weight);
      out[i] = weight == 0.0f ? left : sum;
    }
  }

  void write_group(const char* x, const Group& group, char* y) const {
    float rows[2][kMost], outputs[kMost];
    int64_t held[2] = {-1, -1};  // of x, in `rows`: neighbours do not displace one another
    const auto row_of = [&](int64_t row) {
      const auto place = static_cast<size_t>(row % 2);
      if (held[place] != row) combine_columns(x, row, group, rows[place]);
      held[place] = row;
      return rows[place];
    };
    const bool is_direct = p_.dtype == Dtype::fp32;
    for (int64_t i = 0; i < p_.out_height; ++i, y += p_.y.row * size_) {
      const kernels::LinearTap down = i < kMost ? first_rows_[i] : tap_of(params_.rows, i);
      const float* values = row_of(down.first);
      if (down.weight > 0.0f) {
        float* const out = is_direct ? reinterpret_cast<float*>(y) : outputs;
        cpu::map(values, row_of(down.first + 1), out, group.count,
                 [&](float a, float b) { return between(a, b, down.weight); });
        values = out;
      }
      if (!is_direct || down.weight == 0.0f) encode_row(p_.dtype, values, y, group.count);
    }
  }

  const InterpolateProblem& p_;
  const InterpolateArguments& a_;
  int64_t size_;
  kernels::InterpolateParams params_;
  Group first_group_;                     ///< whose divisions images share,
  kernels::LinearTap first_rows_[kMost];  ///< likewise
};

}  // namespace

void run_interpolate_cpu(const Context& context, const InterpolateProblem& problem,
                         WideStrategy strategy, const InterpolateArguments& arguments) {
  if (problem.batch * problem.channels == 0) return;
  if (problem.layout == ChannelLayout::channels_last) {
    return run_interpolate_cpu_last(context, problem, strategy, arguments);
  }
  const int64_t at_once = strategy == WideStrategy::wide ? problem.num_members : 1;
  const int64_t positions =
      std::max(problem.height * problem.width, problem.out_height * problem.out_width);
  for_each_slice(context, problem.num_members, at_once, problem.batch * problem.channels, positions,
                 Interpolator(problem, arguments));
}

}  // namespace wide
