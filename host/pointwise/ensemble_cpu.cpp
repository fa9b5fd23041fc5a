// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's ensembles, over chunks of a row that are decoded to floats: `wide` takes all
// members of a chunk while its sums lie on the stack, `sequential` the rows of one member after
// another, sums in the workspace. Votes lie there in either case: a row's features have no limit.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "host/core/math_cpu.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"
#include "host/pointwise/ensemble_run.hpp"

namespace wide {

namespace {

constexpr int64_t kChunk = cpu::kRowChunk;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A chunk's sums: up to three kinds, depending on the function.
using Parts = std::array<float*, 3>;

void begin(EnsembleFunction function, const Parts& parts, int64_t count) {
  for (int64_t part = 0; part < ensemble_parts(function); ++part) {
    const bool is_largest = function == EnsembleFunction::log_mean_exp && part == 0;
    std::fill_n(parts[static_cast<size_t>(part)], count, is_largest ? -kInfinity : 0.0f);
  }
}

/// Adds the k-th member that counts, k from 1.
void add(EnsembleFunction function, const Parts& parts, const float* x, int64_t count, int64_t k) {
  float *a = parts[0], *b = parts[1], *c = parts[2];
  const float inverse = 1.0f / static_cast<float>(k);
  if (function == EnsembleFunction::mean || function == EnsembleFunction::sum) {
    for (int64_t i = 0; i < count; ++i) a[i] += x[i];
  } else if (function == EnsembleFunction::variance) {  // Welford's, of differences to the first
    if (k == 1) std::copy_n(x, count, a);
    for (int64_t i = 0; i < count; ++i) {
      const float difference = x[i] - a[i], delta = difference - b[i];
      b[i] += delta * inverse;
      c[i] += delta * (difference - b[i]);
    }
  } else {  // the largest, and the sum of exp(x - largest)
    for (int64_t i = 0; i < count; ++i) {
      const float shrunk = cpu::exp(-std::fabs(x[i] - a[i]));
      const float power = x[i] == a[i] ? 1.0f : shrunk;  // for equal infinities, too
      b[i] = x[i] > a[i] ? b[i] * power + 1.0f : b[i] + power;
      a[i] = x[i] > a[i] ? x[i] : a[i];
    }
  }
}

/// The result for k members, into the function's first part.
void finish(EnsembleFunction function, const Parts& parts, int64_t count, int64_t k) {
  if (function == EnsembleFunction::sum) return;
  const auto [a, b, c] = parts;
  const auto members = static_cast<float>(k);
  const auto others = static_cast<float>(std::max<int64_t>(k - 1, 0));  // 0 / 0 for one, for none
  if (function == EnsembleFunction::variance) {
    cpu::map(c, a, count, [&](float sum) { return sum / others; });
  } else if (function == EnsembleFunction::log_mean_exp) {
    cpu::map(a, b, a, count,
             [&](float largest, float sum) { return largest + cpu::log_of_normal(sum / members); });
  } else {
    cpu::map(a, a, count, [&](float sum) { return sum / members; });
  }
}

/// The first of equals; the first NaN, where there is one.
int64_t largest_of(Dtype dtype, const char* row, int64_t features) {
  constexpr int64_t kStep = 64;  // few of which exceed all before
  float largest = -kInfinity;
  int64_t index = 0;
  bool is_nan = false;
  cpu::for_each_chunk(dtype, row, features, [&](const float* v, int64_t first, int64_t count) {
    for (int64_t from = 0; from < count && !is_nan; from += kStep) {
      const int64_t end = std::min(count, from + kStep);
      int beaten = 0;
      for (int64_t i = from; i < end; ++i) beaten |= v[i] <= largest ? 0 : 1;
      for (int64_t i = from; beaten != 0 && i < end && !is_nan; ++i) {
        if (v[i] <= largest) continue;
        is_nan = std::isnan(v[i]);
        largest = v[i];
        index = first + i;
      }
    }
  });
  return index;
}

class Runner {
 public:
  Runner(const Context& context, const EnsembleProblem& p, const EnsembleArguments& a, void* state)
      : context_(context), p_(p), a_(a), state_(static_cast<float*>(state)) {
    for (int64_t n = 0; n < p.num_members; ++n) num_counted_ += counts(n) ? 1 : 0;
  }

  void run_wide() const {
    if (p_.function == EnsembleFunction::vote) {
      for_each_piece(p_.features, p_.num_members, [&](int64_t row, int64_t, int64_t) {
        begin(p_.function, kept(row, 0), p_.features);
        for (int64_t n = 0; n < p_.num_members; ++n) add_vote(row, n);
        write(row, 0, p_.features, kept(row, 0));
      });
      return;
    }
    for_each_piece(kChunk, p_.num_members, [&](int64_t row, int64_t first, int64_t count) {
      float sums[3][kChunk];
      const Parts parts{sums[0], sums[1], sums[2]};
      begin(p_.function, parts, count);
      int64_t k = 0;
      for (int64_t n = 0; n < p_.num_members; ++n) {
        if (counts(n)) add_member(row, first, count, n, ++k, parts);
      }
      write(row, first, count, parts);
    });
  }

  void run_sequential() const {
    const int64_t length = p_.function == EnsembleFunction::vote ? p_.features : kChunk;
    for_each_piece(length, 1, [&](int64_t row, int64_t first, int64_t count) {
      begin(p_.function, kept(row, first), count);
    });
    int64_t k = 0;
    for (int64_t n = 0; n < p_.num_members; ++n) {
      if (!counts(n)) continue;
      ++k;
      for_each_piece(length, 1, [&](int64_t row, int64_t first, int64_t count) {
        if (p_.function == EnsembleFunction::vote) return add_vote(row, n);
        add_member(row, first, count, n, k, kept(row, first));
      });
    }
    for_each_piece(length, 1, [&](int64_t row, int64_t first, int64_t count) {
      write(row, first, count, kept(row, first));
    });
  }

 private:
  bool counts(int64_t member) const {
    return !p_.has_mask || static_cast<const uint8_t*>(a_.mask.data)[member] != 0;
  }
  Parts kept(int64_t row, int64_t first) const {
    const int64_t plane = p_.rows * p_.features;
    float* parts = state_ + row * p_.features + first;
    return {parts, parts + plane, parts + 2 * plane};
  }

  /// body(row, first, count) for pieces of y's rows, for which `num_members` members are read, from
  /// several threads.
  template <class Body>
  void for_each_piece(int64_t length, int64_t num_members, const Body& body) const {
    if (p_.features == 0) return;
    const int64_t pieces = (p_.features + length - 1) / length;
    const int64_t elements = std::min(length, p_.features) * num_members;
    for_each_member_row(context_, p_.rows, pieces, pieces, elements,
                        [&](int64_t row, int64_t piece) {
                          const int64_t first = piece * length;
                          body(row, first, std::min(length, p_.features - first));
                        });
  }

  void add_vote(int64_t row, int64_t n) const {
    if (!counts(n)) return;
    const char* x = row_at(a_.x.data, p_.x, row, n, p_.dtype);
    kept(row, 0)[0][largest_of(p_.dtype, x, p_.features)] += 1.0f;
  }
  void add_member(int64_t row, int64_t first, int64_t count, int64_t n, int64_t k,
                  const Parts& parts) const {
    float values[kChunk];
    const char* x = row_at(a_.x.data, p_.x, row, n, p_.dtype);
    add(p_.function, parts, cpu::chunk_of(p_.dtype, x, first, count, values), count, k);
  }

  void write(int64_t row, int64_t first, int64_t count, const Parts& parts) const {
    finish(p_.function, parts, count, num_counted_);
    char* y = row_at(a_.y.data, {p_.y_row_stride, 0}, row, 0, p_.dtype);
    encode_row(p_.dtype, parts[0], y + first * dtype_bytes(p_.dtype), count);
  }

  const Context& context_;
  const EnsembleProblem& p_;
  const EnsembleArguments& a_;
  float* state_;
  int64_t num_counted_ = 0;
};

}  // namespace

void run_ensemble_cpu(const Context& context, const EnsembleProblem& problem, WideStrategy strategy,
                      const EnsembleArguments& arguments, void* state) {
  const Runner runner(context, problem, arguments, state);
  if (strategy == WideStrategy::wide) return runner.run_wide();
  runner.run_sequential();
}

}  // namespace wide
