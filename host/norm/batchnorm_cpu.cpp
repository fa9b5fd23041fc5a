// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's batchnorm: the same corrected two-pass statistics as the CUDA kernel. A channel
// of a member is one task; `wide` spreads all members' channels over the threads at once,
// `sequential` one member's after the other's.
#include <cmath>

#include "host/core/parallel.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/norm_cpu.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

/// One channel of one member.
class ChannelNorm {
 public:
  ChannelNorm(const BatchnormProblem& problem, const BatchnormArguments& arguments, int64_t member,
              int64_t channel)
      : p_(problem),
        a_(arguments),
        member_(member),
        channel_(channel),
        length_(problem.height * problem.width),
        size_(dtype_bytes(problem.dtype)) {}

  void eval() const { write(0, running(a_.running_mean, p_.mean_member_stride), variance()); }

  void train() const {
    const int64_t count = p_.batch * length_;
    Sum sum;
    for_each_chunk([&](const float* v, int64_t, int64_t, int64_t n) {
      sum.add(n, [&](int64_t i) { return v[i]; });
    });
    const float rough_mean = sum.mean(count);
    Moments moments;
    for_each_chunk(
        [&](const float* v, int64_t, int64_t, int64_t n) { moments.add(v, n, rough_mean); });
    const float mean = moments.mean(count), biased = moments.variance(count);
    const float momentum = own(a_.momentum, p_.momentum);
    const auto move = [&](float& statistic, float batch) {
      statistic = (1.0f - momentum) * statistic + momentum * batch;
    };
    move(running(a_.running_mean, p_.mean_member_stride), rough_mean + mean);
    move(variance(), biased * (static_cast<float>(count) / static_cast<float>(count - 1)));
    write(rough_mean, mean, biased);
  }

 private:
  float& running(const TensorView& view, int64_t member_stride) const {
    return static_cast<float*>(view.data)[member_ * member_stride + channel_];
  }
  float& variance() const { return running(a_.running_variance, p_.variance_member_stride); }
  float own(const ConstTensorView& view, float common) const {
    return view.is_absent() ? common : static_cast<const float*>(view.data)[member_];
  }
  float parameter(const ConstTensorView& view, int64_t member_stride, float absent) const {
    if (view.is_absent()) return absent;
    float value = 0;
    const int64_t element = member_ * member_stride + channel_;
    decode_row(p_.dtype, static_cast<const char*>(view.data) + element * size_, &value, 1);
    return value;
  }

  void write(float rough_mean, float mean, float variance) const {
    const float gamma = parameter(a_.gamma, p_.gamma_member_stride, 1);
    const float scale = gamma / std::sqrt(variance + own(a_.epsilon, p_.epsilon));
    const float shift = parameter(a_.beta, p_.beta_member_stride, 0);
    for_each_chunk([&](const float* v, int64_t batch, int64_t first, int64_t count) {
      float out[kChunk];
      for (int64_t i = 0; i < count; ++i) out[i] = (v[i] - rough_mean - mean) * scale + shift;
      char* y = static_cast<char*>(a_.y.data);
      for_each_piece(batch, first, count, p_.y, [&](int64_t element, int64_t at, int64_t n) {
        encode_row(p_.dtype, out + at, y + element * size_, n);
      });
    });
  }

  /// Calls f(element of the operand, place in the chunk, count) for what of the positions
  /// [first, first + count) lies together.
  template <class F>
  void for_each_piece(int64_t batch, int64_t first, int64_t count, const ChannelStrides& strides,
                      const F& f) const {
    const int64_t base =
        batch * strides.batch + member_ * strides.member + channel_ * strides.channel;
    const bool has_gaps = strides.row != p_.width;
    for (int64_t at = 0; at < count;) {
      const int64_t row = (first + at) / p_.width, column = (first + at) % p_.width;
      const int64_t together = has_gaps ? std::min(p_.width - column, count - at) : count;
      f(base + row * strides.row + column, at, together);
      at += together;
    }
  }

  /// Calls f(values, batch, first position, count) for the slice in its order, whatever its
  /// strides.
  template <class F>
  void for_each_chunk(const F& f) const {
    const char* x = static_cast<const char*>(a_.x.data);
    float values[kChunk];
    for (int64_t batch = 0; batch < p_.batch; ++batch) {
      for (int64_t first = 0; first < length_; first += kChunk) {
        const int64_t count = std::min(kChunk, length_ - first);
        for_each_piece(batch, first, count, p_.x, [&](int64_t element, int64_t at, int64_t n) {
          decode_row(p_.dtype, x + element * size_, values + at, n);
        });
        f(values, batch, first, count);
      }
    }
  }

  const BatchnormProblem& p_;
  const BatchnormArguments& a_;
  int64_t member_, channel_, length_, size_;
};

}  // namespace

void run_batchnorm_cpu(const Context& context, const BatchnormProblem& problem,
                       NormStrategy strategy, const BatchnormArguments& arguments) {
  const int64_t values = problem.batch * problem.height * problem.width;
  if (values * problem.channels == 0) return;
  const int64_t at_once = strategy == NormStrategy::wide ? problem.num_members : 1;
  const int64_t slices = at_once * problem.channels;
  const int64_t step = std::max<int64_t>(1, kElementsPerTask / values);
  for (int64_t first = 0; first < problem.num_members; first += at_once) {
    parallel_for(context, (slices + step - 1) / step, [&](int64_t task) {
      const int64_t end = std::min(slices, (task + 1) * step);
      for (int64_t i = task * step; i < end; ++i) {
        const ChannelNorm norm(problem, arguments, first + i / problem.channels,
                               i % problem.channels);
        problem.mode == BatchnormMode::eval ? norm.eval() : norm.train();
      }
    });
  }
}

}  // namespace wide
