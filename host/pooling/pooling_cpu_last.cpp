// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's pooling, channels last: an output's window is folded position by position, as
// many channels at a time as a buffer on the stack has: along each row, then over the rows. `wide`
// spreads rows of outputs of all members over the threads at once, some members' channels together,
// `sequential` one member's after the other's.
#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"
#include "host/core/vectorised.hpp"
#include "host/pooling/pooling_cpu.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

using namespace pooling_cpu;

constexpr int64_t kChannels = 256;  ///< folded at a time

template <bool is_max>
class Pooler {
 public:
  Pooler(const PoolingProblem& p, const PoolingArguments& a)
      : p_(p),
        a_(a),
        size_(dtype_bytes(p.dtype)),
        rows_(p, p.rows, p.height, p.out_height),
        columns_(p, p.columns, p.width, p.out_width),
        common_weight_(rows_.common_weight() * columns_.common_weight()) {}

  /// One row of a member's outputs.
  void operator()(int64_t member, int64_t slice) const {
    const int64_t batch = slice / p_.out_height, row = slice % p_.out_height;
    const auto element = [&](const ChannelStrides& s, int64_t at) {
      return (batch * s.batch + member * s.member + at * s.row) * size_;
    };
    const char* x = static_cast<const char*>(a_.x.data) + element(p_.x, 0);
    char* y = static_cast<char*>(a_.y.data) + element(p_.y, row);
    const Taps down = rows_[row];
    call_vectorised([&] {
      for (int64_t column = 0; column < p_.out_width; ++column) {
        const Taps across = columns_[column];
        for (int64_t first = 0; first < p_.channels; first += kChannels) {
          const int64_t count = std::min(kChannels, p_.channels - first);
          float values[kChannels];
          fold_window(x + first * size_, down, across, count, values);
          if constexpr (!is_max) {
            const int64_t weight =
                common_weight_ > 0 ? common_weight_ : rows_.weight(down) * columns_.weight(across);
            divide(values, count, weight);
          }
          encode_row(p_.dtype, values, y + (column * p_.y.column + first) * size_, count);
        }
      }
    });
  }

 private:
  void fold_window(const char* x, const Taps& down, const Taps& across, int64_t count,
                   float* values) const {
    float of_row[kChannels];
    bool has_values = false;
    for (int64_t tap = 0; tap < down.count; ++tap) {
      const int64_t row = down.first + tap * down.dilation;
      if (row < 0 || row >= p_.height) continue;
      fold_taps<is_max, kChannels>(p_.dtype, x + row * p_.x.row * size_, across, p_.width,
                                   p_.x.column, count, has_values ? of_row : values);
      if (has_values) fold_few<is_max, 1>(values, of_row, 0, count, values);
      has_values = true;
    }
    if (!has_values) std::fill_n(values, count, kNothing<is_max>);
  }

  const PoolingProblem& p_;
  const PoolingArguments& a_;
  int64_t size_;
  Axis rows_, columns_;
  int64_t common_weight_;  ///< of windows; 0 where they differ
};

}  // namespace

void run_pooling_cpu_last(const Context& context, const PoolingProblem& problem,
                          WideStrategy strategy, const PoolingArguments& arguments) {
  const int64_t positions = std::max(
      {problem.height * problem.width / problem.out_height, problem.out_width, int64_t{1}});
  const bool is_wide = strategy == WideStrategy::wide;
  const int64_t elements = positions * problem.channels;
  const PoolingProblem p =
      is_wide ? with_members_together(
                    problem, std::min(kChannels / problem.channels, kElementsPerTask / elements))
              : problem;
  const auto pool = [&](const auto& pooler) {
    for_each_slice(context, p.num_members, is_wide ? p.num_members : 1, p.batch * p.out_height,
                   positions * p.channels, pooler);
  };
  if (p.mode == PoolingMode::max) return pool(Pooler<true>(p, arguments));
  pool(Pooler<false>(p, arguments));
}

}  // namespace wide
