// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's pooling, channels first: the rows of windows are folded into one row of floats
// on the stack, its positions into outputs, as many as fit there. `wide` spreads all members'
// images over the threads at once, `sequential` one member's after the other's.
#include <algorithm>

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
        columns_(p, p.columns, p.width, p.out_width) {
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
    constexpr int64_t kLanes = 16;
    float result = kNothing<is_max>;
    int64_t done = 0;
    if (step == 1 && count >= 2 * kLanes) {
      float lane[kLanes];
      std::fill_n(lane, kLanes, kNothing<is_max>);
      for (; done + kLanes <= count; done += kLanes) {
        for (int64_t i = 0; i < kLanes; ++i) lane[i] = combined<is_max>(lane[i], values[done + i]);
      }
      result = folded(lane, kLanes, 1);
    }
    for (; done < count; ++done) result = combined<is_max>(result, values[done * step]);
    return result;
  }

  /// Outputs [first, first + count), whose windows lie in the positions [start, start + span).
  struct Group {
    int64_t first, count, start, span;
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
  }

  void pool_columns(const char* x, const Group& group, char* y) const {
    for (int64_t row = 0; row < p_.out_height; ++row) {
      pool_row(x, rows_[row], group, y + (row * p_.y.row + group.first) * size_);
    }
  }

  void pool_row(const char* x, const Taps& down, const Group& group, char* y) const {
    float values[kSpan];
    if (group.span > kSpan) {
      values[0] = long_window(x, down, columns_[group.first]);
    } else {
      float folded_rows[kSpan];
      fold_rows(x, down, group.start, group.span, folded_rows);
      fold_columns(folded_rows, group, values);
    }
    if constexpr (!is_max) {
      const auto weight = static_cast<float>(rows_.weight(down));
      for (int64_t i = 0; i < group.count; ++i) values[i] /= weight * group.weight[i];
    }
    encode_row(p_.dtype, values, y, group.count);
  }

  /// out[i] = what position start + i has in the rows of a window.
  void fold_rows(const char* x, const Taps& down, int64_t start, int64_t span, float* out) const {
    float decoded[kSpan];
    const int64_t low = std::clamp<int64_t>(-start, 0, span);
    const int64_t count = std::clamp<int64_t>(p_.width - start, low, span) - low;
    std::fill_n(out, span, kNothing<is_max>);
    for (int64_t t = 0; t < down.count && count > 0; ++t) {
      const int64_t row = down.first + t * down.dilation;
      if (row < 0 || row >= p_.height) continue;
      const char* from = x + (row * p_.x.row + start + low) * size_;
      const bool is_float = p_.dtype == Dtype::fp32;
      if (!is_float) decode_row(p_.dtype, from, decoded, count);
      const float* values = is_float ? reinterpret_cast<const float*>(from) : decoded;
      for (int64_t i = 0; i < count; ++i) out[low + i] = combined<is_max>(out[low + i], values[i]);
    }
  }

  void fold_columns(const float* row, const Group& group, float* values) const {
    if (is_adaptive_) {
      for (int64_t i = 0; i < group.count; ++i) {
        values[i] = folded(row + group.begin[i], group.length[i], 1);
      }
      return;
    }
    const int64_t stride = p_.columns.stride;
    if (stride == 2) {
      float halves[2][kSpan / 2];  // even and odd positions: of each, windows' taps lie together
      for (int64_t i = 0; 2 * i < group.span; ++i) {
        halves[0][i] = row[2 * i];
        halves[1][i] = row[2 * i + 1];
      }
      return fold_taps(group.count, values, [&](int64_t position) {
        return [from = halves[position % 2] + position / 2](int64_t i) { return from[i]; };
      });
    }
    fold_taps(group.count, values, [&](int64_t position) {
      return [from = row + position, stride](int64_t i) { return from[i * stride]; };
    });
  }

  /// at(position)(i) is what lies `position` behind the beginning of window i.
  template <class At>
  void fold_taps(int64_t count, float* values, const At& at) const {
    const auto first = at(0);
    for (int64_t i = 0; i < count; ++i) values[i] = first(i);
    for (int64_t t = 1; t < p_.columns.kernel; ++t) {
      const auto next = at(t * p_.columns.dilation);
      for (int64_t i = 0; i < count; ++i) values[i] = combined<is_max>(values[i], next(i));
    }
  }

  float long_window(const char* x, const Taps& down, const Taps& taps) const {
    const int64_t together = std::max<int64_t>(1, kSpan / taps.dilation);
    float row[kSpan], result = kNothing<is_max>;
    for (int64_t done = 0; done < taps.count; done += together) {
      const int64_t count = std::min(together, taps.count - done);
      fold_rows(x, down, taps.first + done * taps.dilation, (count - 1) * taps.dilation + 1, row);
      result = combined<is_max>(result, folded(row, count, taps.dilation));
    }
    return result;
  }

  const PoolingProblem& p_;
  const PoolingArguments& a_;
  bool is_adaptive_;
  int64_t size_;
  Axis rows_, columns_;
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
