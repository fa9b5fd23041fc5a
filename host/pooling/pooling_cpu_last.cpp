// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's pooling, channels last: an output's window is folded position by position, as
// many channels at a time as a buffer on the stack has: along each row, then over the rows. `wide`
// spreads rows of outputs of all members over the threads at once, `sequential` one member's after
// the other's.
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
        columns_(p, p.columns, p.width, p.out_width) {}

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
            const float weight = static_cast<float>(rows_.weight(down)) *
                                 static_cast<float>(columns_.weight(across));
            for (int64_t i = 0; i < count; ++i) values[i] /= weight;
          }
          encode_row(p_.dtype, values, y + (column * p_.y.column + first) * size_, count);
        }
      }
    });
  }

 private:
  void fold_window(const char* x, const Taps& down, const Taps& across, int64_t count,
                   float* values) const {
    float of_row[kChannels], decoded[kChannels];
    std::fill_n(values, count, kNothing<is_max>);
    for (int64_t t = 0; t < down.count; ++t) {
      const int64_t row = down.first + t * down.dilation;
      if (row < 0 || row >= p_.height) continue;
      std::fill_n(of_row, count, kNothing<is_max>);
      for (int64_t u = 0; u < across.count; ++u) {
        const int64_t column = across.first + u * across.dilation;
        if (column < 0 || column >= p_.width) continue;
        const char* from = x + (row * p_.x.row + column * p_.x.column) * size_;
        const bool is_float = p_.dtype == Dtype::fp32;
        if (!is_float) decode_row(p_.dtype, from, decoded, count);
        const float* taps = is_float ? reinterpret_cast<const float*>(from) : decoded;
        for (int64_t i = 0; i < count; ++i) of_row[i] = combined<is_max>(of_row[i], taps[i]);
      }
      for (int64_t i = 0; i < count; ++i) values[i] = combined<is_max>(values[i], of_row[i]);
    }
  }

  const PoolingProblem& p_;
  const PoolingArguments& a_;
  int64_t size_;
  Axis rows_, columns_;
};

}  // namespace

void run_pooling_cpu_last(const Context& context, const PoolingProblem& problem,
                          WideStrategy strategy, const PoolingArguments& arguments) {
  const int64_t at_once = strategy == WideStrategy::wide ? problem.num_members : 1;
  const int64_t elements =
      std::max(problem.height * problem.width / problem.out_height, problem.out_width) *
      problem.channels;
  const auto pool = [&](const auto& pooler) {
    for_each_slice(context, problem.num_members, at_once, problem.batch * problem.out_height,
                   std::max<int64_t>(elements, 1), pooler);
  };
  if (problem.mode == PoolingMode::max) return pool(Pooler<true>(problem, arguments));
  pool(Pooler<false>(problem, arguments));
}

}  // namespace wide
