// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's groupnorm with channels last: whole groups of up to 256 neighbouring channels
// of an image at a time, whose lanes go down the positions together; of larger groups one at a
// time, piece by piece. Statistics are those of two passes, as groupnorm_cpu.cpp's.
#include <algorithm>
#include <cmath>

#include "host/core/independent.hpp"
#include "host/core/vectorised.hpp"
#include "host/norm/groupnorm_run.hpp"
#include "host/norm/norm_cpu.hpp"
#include "host/norm/slice_cpu.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int64_t kLanes = 256;
constexpr int64_t kInFloat = 16;  // positions whose sums are added up in fp32

/// Sums of lanes, and of the groups that they are of.
class LaneSums {
 public:
  /// Adds values(lane) to each.
  template <class Values>
  void add(int64_t lanes, const Values& values) {
    for (int64_t i = 0; i < lanes; ++i) few_[i] += values(i);
    if (++positions_ == kInFloat) flush(lanes);
  }
  /// Of a group's `channels` lanes each, or all of them of one.
  void add_to(double* groups, int64_t lanes, int64_t channels) {
    flush(lanes);
    for (int64_t i = 0; i < lanes; ++i) groups[i / channels] += all_[i];
    std::fill_n(all_, lanes, 0.0);
  }

 private:
  void flush(int64_t lanes) {
    for (int64_t i = 0; i < lanes; ++i) all_[i] += few_[i];
    std::fill_n(few_, lanes, 0.0f);
    positions_ = 0;
  }
  float few_[kLanes] = {};
  double all_[kLanes] = {};
  int64_t positions_ = 0;
};

/// Some groups of an image of a member.
class Groups {
 public:
  Groups(const GroupnormProblem& p, const GroupnormArguments& a, int64_t member, int64_t batch,
         int64_t first, int64_t count)
      : p_(p),
        a_(a),
        channels_(p.channels / p.groups),
        first_(first * channels_),
        columns_(count * channels_),
        member_(member),
        x_(static_cast<const char*>(a.x.data) + bytes(element(p.x, batch))),
        y_(static_cast<char*>(a.y.data) + bytes(element(p.y, batch))) {}

  void normalise() {
    find_moments();
    for (int64_t at = 0; at < columns_; at += kLanes) write(at, std::min(kLanes, columns_ - at));
  }

 private:
  int64_t bytes(int64_t elements) const { return elements * dtype_bytes(p_.dtype); }
  int64_t element(const ChannelStrides& s, int64_t batch) const {
    return batch * s.batch + member_ * s.member + first_;
  }
  int64_t group_of(int64_t column) const { return column / channels_; }

  /// Calls f(values, y) for these channels of every position.
  template <class F>
  void for_each_position(int64_t at, int64_t lanes, const F& f) const {
    float decoded[kLanes];
    for (int64_t row = 0; row < p_.height; ++row) {
      for (int64_t column = 0; column < p_.width; ++column) {
        const char* x = x_ + bytes(row * p_.x.row + column * p_.x.column + at);
        char* y = y_ + bytes(row * p_.y.row + column * p_.y.column + at);
        if (p_.dtype == Dtype::fp32) {
          f(reinterpret_cast<const float*>(x), y);
        } else {
          decode_row(p_.dtype, x, decoded, lanes);
          f(static_cast<const float*>(decoded), y);
        }
      }
    }
  }

  void find_moments() {
    const double values = static_cast<double>(p_.height * p_.width * channels_);
    double totals[2][kLanes] = {};
    for (int64_t at = 0; at < columns_; at += kLanes) {
      const int64_t lanes = std::min(kLanes, columns_ - at);
      LaneSums sums;
      for_each_position(at, lanes, [&](const float* v, char*) {
        sums.add(lanes, [&](int64_t i) { return v[i]; });
      });
      sums.add_to(totals[0], lanes, channels_);
    }
    const int64_t groups = columns_ / channels_;
    for (int64_t g = 0; g < groups; ++g) rough_[g] = static_cast<float>(totals[0][g] / values);
    std::fill_n(totals[0], groups, 0.0);
    for (int64_t at = 0; at < columns_; at += kLanes) {
      const int64_t lanes = std::min(kLanes, columns_ - at);
      float rough[kLanes];
      for (int64_t i = 0; i < lanes; ++i) rough[i] = rough_[group_of(at + i)];
      LaneSums sums, squares;
      for_each_position(at, lanes, [&](const float* v, char*) {
        sums.add(lanes, [&](int64_t i) { return v[i] - rough[i]; });
        squares.add(lanes, [&](int64_t i) { return (v[i] - rough[i]) * (v[i] - rough[i]); });
      });
      sums.add_to(totals[0], lanes, channels_);
      squares.add_to(totals[1], lanes, channels_);
    }
    for (int64_t g = 0; g < groups; ++g) {
      const double mean = totals[0][g] / values;
      const double variance = std::max(totals[1][g] / values - mean * mean, 0.0);
      mean_[g] = static_cast<float>(mean);
      scale_[g] = static_cast<float>(1.0 / std::sqrt(variance + double{p_.epsilon}));
    }
  }

  void write(int64_t at, int64_t lanes) const {
    float rough[kLanes], mean[kLanes], factor[kLanes], shift[kLanes], results[kLanes];
    for (int64_t i = 0; i < lanes; ++i) {
      const int64_t g = group_of(at + i), channel = first_ + at + i;
      rough[i] = rough_[g];
      mean[i] = mean_[g];
      factor[i] =
          scale_[g] * decode_parameter(a_.gamma, member_ * p_.gamma_member_stride + channel, 1.0f);
      shift[i] = decode_parameter(a_.beta, member_ * p_.beta_member_stride + channel, 0.0f);
    }
    for_each_position(at, lanes, [&](const float* v, char* y) {
      const bool is_direct = p_.dtype == Dtype::fp32;
      float* out = is_direct ? reinterpret_cast<float*>(y) : results;
      WIDE_INDEPENDENT  // y may be x
      for (int64_t i = 0; i < lanes; ++i) {
        out[i] = (v[i] - rough[i] - mean[i]) * factor[i] + shift[i];
      }
      if (!is_direct) encode_row(p_.dtype, results, y, lanes);
    });
  }

  const GroupnormProblem& p_;
  const GroupnormArguments& a_;
  int64_t channels_, first_, columns_;  ///< of a group; the first one's, of a member; of all
  int64_t member_;
  const char* x_;
  char* y_;
  float rough_[kLanes], mean_[kLanes], scale_[kLanes];  ///< of groups
};

}  // namespace

void run_groupnorm_cpu_last(const Context& context, const GroupnormProblem& p,
                            WideStrategy strategy, const GroupnormArguments& a) {
  const int64_t channels = p.channels / p.groups, positions = p.height * p.width;
  if (p.batch * channels * positions == 0) return;
  const int64_t together = std::clamp<int64_t>(kLanes / channels, 1, p.groups);
  const int64_t blocks = (p.groups - 1) / together + 1;
  for_each_slice(
      context, p.num_members, strategy == WideStrategy::wide ? p.num_members : 1, p.batch * blocks,
      together * channels * positions, [&](int64_t member, int64_t index) {
        const int64_t first = index % blocks * together;
        Groups groups(p, a, member, index / blocks, first, std::min(together, p.groups - first));
        call_vectorised([&] { groups.normalise(); });
      });
}

}  // namespace wide
