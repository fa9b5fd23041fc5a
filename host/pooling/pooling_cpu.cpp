// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's pooling: rows of x decoded to floats on the stack, as many outputs at a time as
// their windows fit there. `wide` spreads all members' images over the threads at once,
// `sequential` one member's after the other's.
#include <algorithm>
#include <limits>

#include "host/core/slices.hpp"
#include "host/pooling/pooling_run.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kChunk = 512;

/// Positions first + t * dilation, t < count, of one axis.
struct Taps {
  int64_t first = 0, count = 0, dilation = 1;
  int64_t weight = 1;  ///< what a mean divides by
  int64_t end() const { return first + (count - 1) * dilation + 1; }
};

class Axis {
 public:
  Axis(const PoolingProblem& p, const PoolingWindow& window, int64_t in, int64_t out)
      : window_(window),
        is_adaptive_(p.mode == PoolingMode::adaptive_average),
        counts_padding_(p.counts_padding),
        in_(in),
        out_(out) {}

  Taps operator[](int64_t output) const {
    if (is_adaptive_) {
      const int64_t first = output * in_ / out_, end = ((output + 1) * in_ + out_ - 1) / out_;
      return {first, end - first, 1, end - first};
    }
    Taps taps{output * window_.stride - window_.padding, window_.kernel, window_.dilation, 0};
    taps.weight = std::min(taps.first + window_.kernel, in_ + window_.padding) - taps.first;
    while (taps.count > 0 && taps.first < 0) {
      taps.first += taps.dilation;
      --taps.count;
    }
    while (taps.count > 0 && taps.end() > in_) --taps.count;
    if (!counts_padding_) taps.weight = taps.count;
    return taps;
  }

 private:
  PoolingWindow window_;
  bool is_adaptive_, counts_padding_;
  int64_t in_, out_;
};

class Pooler {
 public:
  Pooler(const PoolingProblem& p, const PoolingArguments& a)
      : p_(p),
        a_(a),
        is_max_(p.mode == PoolingMode::max),
        size_(dtype_bytes(p.dtype)),
        rows_(p, p.rows, p.height, p.out_height),
        columns_(p, p.columns, p.width, p.out_width) {}

  void operator()(int64_t member, int64_t image) const {
    const int64_t batch = image / p_.channels, channel = image % p_.channels;
    const auto element = [&](const ChannelStrides& s) {
      return (batch * s.batch + member * s.member + channel * s.channel) * size_;
    };
    const char* x = static_cast<const char*>(a_.x.data) + element(p_.x);
    char* y = static_cast<char*>(a_.y.data) + element(p_.y);
    for (int64_t row = 0; row < p_.out_height; ++row)
      pool_row(x, rows_[row], y + row * p_.y.row * size_);
  }

 private:
  float nothing() const { return is_max_ ? -std::numeric_limits<float>::infinity() : 0.0f; }
  float combined(float a, float b) const {
    if (!is_max_) return a + b;
    return b > a || b != b ? b : a;  // a NaN is not less than anything: it stays
  }
  float combined(const float* values, int64_t count, int64_t step) const {
    float result = nothing();
    for (int64_t t = 0; t < count; ++t) result = combined(result, values[t * step]);
    return result;
  }

  /// Outputs [first, first + count) whose windows lie in positions [start, end) of a row.
  struct Together {
    int64_t first, count = 0, start, end;
  };
  /// As many as fit in a chunk, at least one.
  Together together_from(int64_t first) const {
    Together group{first, 0, p_.width, 0};
    for (int64_t i = first; i < p_.out_width && group.count < kChunk; ++i) {
      const Taps taps = columns_[i];
      const int64_t start = taps.count > 0 ? std::min(group.start, taps.first) : group.start;
      const int64_t end = taps.count > 0 ? std::max(group.end, taps.end()) : group.end;
      if (i > first && end - start > kChunk) break;
      group = {first, group.count + 1, start, end};
    }
    return group;
  }

  void pool_row(const char* x, const Taps& down, char* y) const {
    float values[kChunk];
    for (int64_t first = 0; first < p_.out_width;) {
      const Together group = together_from(first);
      std::fill_n(values, group.count, nothing());
      for (int64_t t = 0; t < down.count; ++t) {
        const char* row = x + (down.first + t * down.dilation) * p_.x.row * size_;
        if (group.count == 1) {
          values[0] = combined(values[0], long_window(row, columns_[first]));
        } else {
          combine_windows(row, group, values);
        }
      }
      for (int64_t i = 0; i < group.count && !is_max_; ++i) {
        values[i] /= static_cast<float>(down.weight * columns_[first + i].weight);
      }
      encode_row(p_.dtype, values, y + first * size_, group.count);
      first += group.count;
    }
  }

  /// Adds one row of the windows.
  void combine_windows(const char* row, const Together& group, float* values) const {
    float chunk[kChunk];
    if (group.end <= group.start) return;
    decode_row(p_.dtype, row + group.start * size_, chunk, group.end - group.start);
    for (int64_t i = 0; i < group.count; ++i) {
      const Taps taps = columns_[group.first + i];
      const float of_row = combined(chunk + taps.first - group.start, taps.count, taps.dilation);
      values[i] = combined(values[i], of_row);
    }
  }

  float long_window(const char* row, const Taps& taps) const {
    float chunk[kChunk], result = nothing();
    for (int64_t done = 0; done < taps.count;) {
      const int64_t span = std::min(kChunk, (taps.count - done - 1) * taps.dilation + 1);
      const int64_t count = (span - 1) / taps.dilation + 1;
      decode_row(p_.dtype, row + (taps.first + done * taps.dilation) * size_, chunk, span);
      result = combined(result, combined(chunk, count, taps.dilation));
      done += count;
    }
    return result;
  }

  const PoolingProblem& p_;
  const PoolingArguments& a_;
  bool is_max_;
  int64_t size_;
  Axis rows_, columns_;
};

}  // namespace

void run_pooling_cpu(const Context& context, const PoolingProblem& problem, WideStrategy strategy,
                     const PoolingArguments& arguments) {
  if (problem.batch * problem.channels == 0) return;
  const int64_t at_once = strategy == WideStrategy::wide ? problem.num_members : 1;
  const int64_t positions =
      std::max(problem.height * problem.width, problem.out_height * problem.out_width);
  for_each_slice(context, problem.num_members, at_once, problem.batch * problem.channels, positions,
                 Pooler(problem, arguments));
}

}  // namespace wide
