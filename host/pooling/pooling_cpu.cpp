// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's pooling, channels first: the rows of windows are folded into floats on the
// stack, those of as many rows of outputs as fit there, side by side, and their positions into
// outputs. `wide` spreads all members' images over the threads at once, `sequential` one member's
// after the other's.
#include <algorithm>

#include "host/core/lanes_cpu.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"
#include "host/core/vectorised.hpp"
#include "host/pooling/pooling_cpu.hpp"
#include "host/pooling/pooling_run.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

using namespace pooling_cpu;

constexpr int kSpan = 512;  ///< positions folded at a time

template <bool is_max>
class Pooler {
 public:
  Pooler(const PoolingProblem& p, const PoolingArguments& a)
      : p_(p),
        a_(a),
        is_adaptive_(p.mode == PoolingMode::adaptive_average),
        size_(dtype_bytes(p.dtype)),
        rows_(p, p.rows, p.height, p.out_height),
        columns_(p, p.columns, p.width, p.out_width),
        common_weight_(rows_.common_weight() * columns_.common_weight()) {
    choose_group(0, first_group_);
  }

  void operator()(int64_t member, int64_t image) const {
    const int64_t batch = image / p_.channels, channel = image % p_.channels;
    const auto element = [&](const ChannelStrides& s) {
      return (batch * s.batch + member * s.member + channel * s.channel) * size_;
    };
    const char* x = static_cast<const char*>(a_.x.data) + element(p_.x);
    char* y = static_cast<char*>(a_.y.data) + element(p_.y);
    call_vectorised([&] {
      Group later;  // one call of pool_columns: it is inlined wherever it is called
      for (int64_t first = 0; first < p_.out_width;) {
        if (first > 0) choose_group(first, later);
        const Group& group = first > 0 ? later : first_group_;
        pool_columns(x, group, y);
        first += group.count;
      }
    });
  }

 private:
  static float folded(const float* values, int64_t count, int64_t step) {
    constexpr int64_t kLanes = cpu::Lanes::kCount;
    float result = kNothing<is_max>;
    int64_t done = 0;
    if (step == 1 && count >= 2 * kLanes) {
      cpu::Lanes lanes(kNothing<is_max>);
      done = count - count % kLanes;
      cpu::Lanes::for_each(done, [&](int64_t i, int64_t lane) {
        lanes[lane] = combined<is_max>(lanes[lane], values[i]);
      });
      result = lanes.join(combined<is_max>);
    }
    for (; done < count; ++done) result = combined<is_max>(result, values[done * step]);
    return result;
  }

  /// Positions [start, start + span): `low` do not exist, then `count` do, the rest does not.
  struct Positions {
    int64_t start, span, low, count;
  };

  Positions positions(int64_t start, int64_t span) const {
    const int64_t low = std::clamp<int64_t>(-start, 0, span);
    return {start, span, low, std::clamp<int64_t>(p_.width - start, low, span) - low};
  }

  /// Outputs [first, first + count), whose windows lie in the positions [start, start + span).
  struct Group {
    int64_t first, count, start, span;
    int64_t rows;         ///< of outputs that are folded together
    int64_t row_outputs;  ///< of a row, then: at least `count`
    Positions row;        ///< that are folded of a row: at least `span`
    int begin[kSpan];     ///< of adaptive windows, from start
    int length[kSpan];    ///< likewise
    float weight[kSpan];  ///< of means
  };

  /// As many as fit, at least one.
  void choose_group(int64_t first, Group& group) const {
    const Taps taps = columns_[first];
    group.first = first;
    group.start = taps.first;
    group.span = taps.end() - taps.first;
    group.count = 1;
    group.begin[0] = 0;
    group.length[0] = static_cast<int>(std::min<int64_t>(taps.count, kSpan));
    group.weight[0] = static_cast<float>(columns_.weight(taps));
    const int64_t most = std::min<int64_t>(p_.out_width - first, kSpan);
    for (; group.count < most; ++group.count) {
      const Taps next = columns_[first + group.count];
      if (next.end() - group.start > kSpan) break;
      group.span = next.end() - group.start;
      group.begin[group.count] = static_cast<int>(next.first - group.start);
      group.length[group.count] = static_cast<int>(next.count);
      group.weight[group.count] = static_cast<float>(columns_.weight(next));
    }
    group.rows = 1;
    group.row_outputs = group.count;
    group.row = positions(group.start, group.span);
    const int64_t stride = p_.columns.stride;
    if (is_adaptive_ || stride > kSpan / 2 - group.span) return;
    group.row_outputs = (group.span + stride - 1) / stride;
    group.row = positions(group.start, group.row_outputs * stride);
    group.rows = kSpan / group.row.span;
  }

  void pool_columns(const char* x, const Group& group, char* y) const {
    for (int64_t row = 0; row < p_.out_height; row += group.rows) {
      pool_rows(x, row, std::min(group.rows, p_.out_height - row), group,
                y + (row * p_.y.row + group.first) * size_);
    }
  }

  /// Rows [first, first + rows) of a group.
  void pool_rows(const char* x, int64_t first, int64_t rows, const Group& group, char* y) const {
    float buffer[kSpan];
    const bool is_dense =
        rows == 1 || (group.row_outputs == group.count && p_.y.row == group.count);
    const bool is_direct = p_.dtype == Dtype::fp32 && is_dense;
    float* values = is_direct ? reinterpret_cast<float*>(y) : buffer;
    const int64_t count = (rows - 1) * group.row_outputs + group.count;
    if (group.span > kSpan) {
      values[0] = long_window(x, rows_[first], columns_[group.first]);
    } else {
      float folded_rows[kSpan];
      for (int64_t r = 0; r < rows; ++r) {
        fold_rows(x, rows_[first + r], group.row, folded_rows + r * group.row.span);
      }
      fold_columns(folded_rows, (rows - 1) * group.row.span + group.span, group, count, values);
    }
    if constexpr (!is_max) {
      if (common_weight_ > 0) {
        divide(values, count, common_weight_);
      } else {
        divide_each(values, first, rows, group);
      }
    }
    if (is_direct) return;
    for (int64_t r = 0; r < rows; ++r) {
      encode_row(p_.dtype, values + r * group.row_outputs, y + r * p_.y.row * size_, group.count);
    }
  }

  void divide_each(float* values, int64_t first, int64_t rows, const Group& group) const {
    for (int64_t r = 0; r < rows; ++r) {
      float* row = values + r * group.row_outputs;
      const auto weight = static_cast<float>(rows_.weight(rows_[first + r]));
      for (int64_t i = 0; i < group.count; ++i) row[i] /= weight * group.weight[i];
    }
  }

  /// out[i] = what position start + i has in the rows of a window.
  void fold_rows(const char* x, const Taps& down, const Positions& row, float* out) const {
    if (row.count < row.span) std::fill_n(out, row.span, kNothing<is_max>);
    if (row.count == 0) return;
    fold_taps<is_max, kSpan>(p_.dtype, x + (row.start + row.low) * size_, down, p_.height, p_.x.row,
                             row.count, out + row.low);
  }

  /// `count` outputs of `positions` folded ones, which may be several rows'.
  void fold_columns(const float* row, int64_t positions, const Group& group, int64_t count,
                    float* values) const {
    if (is_adaptive_) {
      for (int64_t i = 0; i < group.count; ++i) {
        values[i] = folded(row + group.begin[i], group.length[i], 1);
      }
      return;
    }
    // Positions a stride apart, put together: of each, windows' taps lie side by side.
    const int64_t stride = p_.columns.stride, length = (positions - 1) / stride + 1;
    float apart[2 * kSpan];
    if (stride == 2) {
      for (int64_t i = 0; i < length; ++i) {
        apart[i] = row[2 * i];
        apart[length + i] = row[2 * i + 1];
      }
    } else if (stride > 2) {
      for (int64_t first = 0; first < std::min(stride, group.span); ++first) {
        for (int64_t i = 0; i * stride < positions - first; ++i) {
          apart[first * length + i] = row[first + i * stride];
        }
      }
    }
    if (stride == 1) {
      const int64_t dilation = p_.columns.dilation;
      return fold_steps<is_max>(row, dilation, p_.columns.kernel, count, values);
    }
    if (p_.columns.kernel == 1) std::copy_n(apart, count, values);
    const float* first = apart;
    for (int64_t tap = 1; tap < p_.columns.kernel; ++tap, first = values) {
      const int64_t position = tap * p_.columns.dilation;
      const float* next = apart + position % stride * length + position / stride;
      fold_few<is_max, 1>(first, next, 0, count, values);
    }
  }

  float long_window(const char* x, const Taps& down, const Taps& taps) const {
    const int64_t together = std::max<int64_t>(1, kSpan / taps.dilation);
    float row[kSpan], result = kNothing<is_max>;
    for (int64_t done = 0; done < taps.count; done += together) {
      const int64_t count = std::min(together, taps.count - done);
      const int64_t first = taps.first + done * taps.dilation;
      fold_rows(x, down, positions(first, (count - 1) * taps.dilation + 1), row);
      result = combined<is_max>(result, folded(row, count, taps.dilation));
    }
    return result;
  }

  const PoolingProblem& p_;
  const PoolingArguments& a_;
  bool is_adaptive_;
  int64_t size_;
  Axis rows_, columns_;
  int64_t common_weight_;  ///< of windows; 0 where they differ
  Group first_group_;
};

}  // namespace

void run_pooling_cpu(const Context& context, const PoolingProblem& problem, WideStrategy strategy,
                     const PoolingArguments& arguments) {
  if (problem.batch * problem.channels == 0) return;
  if (problem.layout == ChannelLayout::channels_last) {
    return run_pooling_cpu_last(context, problem, strategy, arguments);
  }
  const int64_t at_once = strategy == WideStrategy::wide ? problem.num_members : 1;
  const int64_t positions =
      std::max(problem.height * problem.width, problem.out_height * problem.out_width);
  const auto pool = [&](const auto& pooler) {
    for_each_slice(context, problem.num_members, at_once, problem.batch * problem.channels,
                   positions, pooler);
  };
  if (problem.mode == PoolingMode::max) return pool(Pooler<true>(problem, arguments));
  pool(Pooler<false>(problem, arguments));
}

}  // namespace wide
