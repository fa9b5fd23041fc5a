// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's batchnorm: a channel of a member is a slice, or, where it has one position and
// lies beside the next, a column, and neighbours are the lanes of vectors. `wide` spreads all
// members' channels over the threads at once, `sequential` those of one member after another.
#include <algorithm>
#include <cmath>

#include "host/core/vectorised.hpp"
#include "host/norm/batchnorm_run.hpp"
#include "host/norm/slice_cpu.hpp"

namespace wide {

namespace {

/// The parameters of one channel of one member.
struct Channel {
  const BatchnormProblem& p;
  const BatchnormArguments& a;
  int64_t member, channel;

  float& mean() const {
    return static_cast<float*>(a.running_mean.data)[member * p.mean_member_stride + channel];
  }
  float& variance() const {
    return static_cast<float*>(
        a.running_variance.data)[member * p.variance_member_stride + channel];
  }
  /// Moves the running statistics towards a batch's.
  void follow(const SliceMoments& m) const {
    const float momentum = decode_parameter(a.momentum, member, p.momentum);
    const auto count = static_cast<float>(p.batch * p.height * p.width);
    const float unbiased = m.variance * (count / (count - 1.0f));
    mean() = (1.0f - momentum) * mean() + momentum * (m.rough_mean + m.mean);
    variance() = (1.0f - momentum) * variance() + momentum * unbiased;
  }
  float gamma() const {
    return decode_parameter(a.gamma, member * p.gamma_member_stride + channel, 1.0f);
  }
  float beta() const {
    return decode_parameter(a.beta, member * p.beta_member_stride + channel, 0.0f);
  }
  float scale(float of_variance) const {
    return 1.0f / std::sqrt(of_variance + decode_parameter(a.epsilon, member, p.epsilon));
  }
};

void normalise_channel(const BatchnormProblem& p, const BatchnormArguments& a, int64_t member,
                       int64_t channel) {
  const auto element = [&](const ChannelStrides& s) {
    return (member * s.member + channel * s.channel) * dtype_bytes(p.dtype);
  };
  const CpuSlice slice({static_cast<const char*>(a.x.data) + element(p.x), p.x.batch, p.x.row},
                       {static_cast<char*>(a.y.data) + element(p.y), p.y.batch, p.y.row}, p.batch,
                       p.height, p.width, p.dtype);
  const Channel own{p, a, member, channel};
  SliceMoments m{0, own.mean(), own.variance()};
  if (p.mode == BatchnormMode::train) {
    m = slice.moments();
    own.follow(m);
  }
  const float gamma = own.gamma(), beta = own.beta();
  slice.write(
      m, own.scale(m.variance), [&](int64_t) { return gamma; }, [&](int64_t) { return beta; });
}

bool has_columns(const BatchnormProblem& p) {
  const auto are_adjacent = [&](const ChannelStrides& s) {
    return s.channel == 1 && s.member == p.channels;
  };
  return p.height * p.width == 1 && are_adjacent(p.x) && are_adjacent(p.y);
}

constexpr int64_t kColumns = 64;  ///< at once, at most: four of the widest vectors

/// Neighbouring channels, from number `first` of all members' on.
class CpuColumns {
 public:
  CpuColumns(const BatchnormProblem& p, const BatchnormArguments& a, int64_t first, int64_t count)
      : p_(p), a_(a), first_(first), count_(count) {}

  void normalise() {
    if (p_.mode == BatchnormMode::train) {
      take_moments();
    } else {
      for (int64_t c = 0; c < count_; ++c) moments_[c] = {0, at(c).mean(), at(c).variance()};
    }
    float rough_mean[kColumns], mean[kColumns], scale[kColumns], gamma[kColumns], beta[kColumns];
    for (int64_t c = 0; c < count_; ++c) {
      const Channel own = at(c);
      rough_mean[c] = moments_[c].rough_mean;
      mean[c] = moments_[c].mean;
      scale[c] = own.scale(moments_[c].variance);
      gamma[c] = own.gamma();
      beta[c] = own.beta();
    }
    for (int64_t row = 0; row < p_.batch; ++row) {
      char* y = static_cast<char*>(a_.y.data) + (row * p_.y.batch + first_) * dtype_bytes(p_.dtype);
      cpu::transform_row(p_.dtype, x(row), y, count_,
                         [&](const float* values, float* out, int64_t, int64_t count) {
                           WIDE_INDEPENDENT  // y may be x
                           for (int64_t c = 0; c < count; ++c) {
                             out[c] = (values[c] - rough_mean[c] - mean[c]) * scale[c] * gamma[c] +
                                      beta[c];
                           }
                         });
    }
  }

 private:
  Channel at(int64_t c) const {
    return {p_, a_, (first_ + c) / p_.channels, (first_ + c) % p_.channels};
  }
  const char* x(int64_t row) const {
    return static_cast<const char*>(a_.x.data) +
           (row * p_.x.batch + first_) * dtype_bytes(p_.dtype);
  }

  void take_moments() {
    const auto batch = static_cast<double>(p_.batch);
    double sums[kColumns]{}, squares[kColumns]{};
    float rough_mean[kColumns]{};
    add_rows(sums, squares, rough_mean);
    for (int64_t c = 0; c < count_; ++c) {
      rough_mean[c] = static_cast<float>(sums[c] / batch);
      sums[c] = squares[c] = 0;
    }
    add_rows(sums, squares, rough_mean);
    for (int64_t c = 0; c < count_; ++c) {
      const auto mean = static_cast<float>(sums[c] / batch);
      const float variance = static_cast<float>(squares[c] / batch) - mean * mean;
      moments_[c] = {rough_mean[c], mean, variance < 0.0f ? 0.0f : variance};
      at(c).follow(moments_[c]);
    }
  }
  /// Adds up values minus `rough_mean`, and their squares: in fp32 for a few rows, then in fp64.
  void add_rows(double* sums, double* squares, const float* rough_mean) const {
    constexpr int64_t kRows = 16;
    float buffer[kColumns];
    for (int64_t first = 0; first < p_.batch; first += kRows) {
      float some[kColumns]{}, of_squares[kColumns]{};
      for (int64_t row = first; row < std::min(p_.batch, first + kRows); ++row) {
        const float* values = cpu::chunk_of(p_.dtype, x(row), 0, count_, buffer);
        for (int64_t c = 0; c < count_; ++c) {
          const float d = values[c] - rough_mean[c];
          some[c] += d;
          of_squares[c] += d * d;
        }
      }
      for (int64_t c = 0; c < count_; ++c) {
        sums[c] += static_cast<double>(some[c]);
        squares[c] += static_cast<double>(of_squares[c]);
      }
    }
  }

  const BatchnormProblem& p_;
  const BatchnormArguments& a_;
  int64_t first_, count_;
  SliceMoments moments_[kColumns];
};

/// Columns of `at_once` members at a time, in pieces that leave no thread without one.
void run_columns(const Context& context, const BatchnormProblem& p, const BatchnormArguments& a,
                 int64_t at_once) {
  constexpr int64_t kFewColumns = 1024, kPieceOfFew = 16;
  const int64_t columns = at_once * p.channels;
  const int64_t piece = columns <= kFewColumns ? kPieceOfFew : kColumns;
  const int64_t pieces = (columns + piece - 1) / piece;
  for_each_slice(
      context, p.num_members / at_once, 1, pieces, piece * p.batch, [&](int64_t set, int64_t i) {
        const int64_t first = i * piece, count = std::min(piece, columns - first);
        call_vectorised([&] { CpuColumns(p, a, set * columns + first, count).normalise(); });
      });
}

}  // namespace

void run_batchnorm_cpu(const Context& context, const BatchnormProblem& problem,
                       WideStrategy strategy, const BatchnormArguments& arguments) {
  const int64_t values = problem.batch * problem.height * problem.width;
  if (values * problem.channels == 0) return;
  const int64_t at_once = strategy == WideStrategy::wide ? problem.num_members : 1;
  if (has_columns(problem)) return run_columns(context, problem, arguments, at_once);
  for_each_slice(context, problem.num_members, at_once, problem.channels, values,
                 [&](int64_t member, int64_t channel) {
                   call_vectorised([&] { normalise_channel(problem, arguments, member, channel); });
                 });
}

}  // namespace wide
