// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The CPU device's top_k, over rows, from several threads. `wide` visits a row's scores once and
// keeps the largest so far: a few in order, as a player sorts cards, many in a heap, so that no
// order of the scores is slow; `sequential` visits them for each choice, all rows after another.
// What has been chosen is in ids, and nowhere else.
#include <algorithm>
#include <cmath>
#include <limits>

#include "host/core/lanes_cpu.hpp"
#include "host/core/math_cpu.hpp"
#include "host/core/row_cpu.hpp"
#include "host/core/slices.hpp"
#include "host/routing/top_k_run.hpp"

namespace wide {

namespace {

/// NaN is larger than all.
bool is_larger(float a, float b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

/// Scores that are passed at once where none is chosen.
constexpr int64_t kGroup = 32;

bool has_larger(const float* scores, float than) {
  int any = 0;  // without branches: in vectors
  for (int64_t i = 0; i < kGroup; ++i) {
    any |= static_cast<int>(scores[i] > than) |
           (static_cast<int>(std::isnan(scores[i])) & static_cast<int>(!std::isnan(than)));
  }
  return any != 0;
}

/// More choices are kept in a heap: at 32, ascending scores take as long in order, and random ones
/// of short rows less.
constexpr int64_t kMostInserted = 32;

template <class Id>
class TopKRow {
 public:
  TopKRow(const TopKProblem& p, const TopKArguments& a, int64_t row)
      : p_(p),
        scores_(row_at(a.scores.data, {p.scores_row_stride, 0}, row, 0, p.dtype)),
        ids_(static_cast<Id*>(a.ids.data) + row * p.choices),
        gates_(p.has_gates ? static_cast<float*>(a.gates.data) + row * p.choices : nullptr) {}

  void choose_all() const {
    const bool has_heap = p_.choices > kMostInserted;
    int64_t count = 0;
    float least = 0;  // of the chosen ones
    float list[kMostInserted];
    const auto take = [&](int64_t n, float score) {
      const bool has_room = count < p_.choices;
      if (!has_room && !is_larger(score, least)) return;
      least = has_heap ? heap_with(n, count) : list_with(n, score, count, list);
      if (has_room) ++count;
    };
    cpu::for_each_chunk(
        p_.dtype, scores_, p_.num_members, [&](const float* scores, int64_t first, int64_t left) {
          for (int64_t i = 0; i < left; i += kGroup) {
            const int64_t end = std::min(left, i + kGroup);
            if (count == p_.choices && end == i + kGroup && !has_larger(scores + i, least))
              continue;
            for (int64_t j = i; j < end; ++j) take(first + j, scores[j]);
          }
        });
    if (has_heap) std::sort_heap(ids_, ids_ + p_.choices, precedes());
  }

  /// The first of what comes after the choice before.
  void choose(int64_t k) const {
    const int64_t previous = k == 0 ? -1 : static_cast<int64_t>(ids_[k - 1]);
    const float most = k == 0 ? std::numeric_limits<float>::quiet_NaN() : score_of(k - 1);
    int64_t best = -1;
    float largest = 0;
    for_each_score([&](int64_t n, float score) {
      const bool follows = is_larger(most, score) || (!is_larger(score, most) && n > previous);
      if (!follows || (best >= 0 && !is_larger(score, largest))) return;
      best = n;
      largest = score;
    });
    ids_[k] = static_cast<Id>(best);
  }

  void gate() const {
    if (gates_ == nullptr) return;
    const float largest = score_of(0);
    const auto power = [&](float score) { return cpu::exp_of_negative(score - largest); };
    cpu::Sum sum;
    if (p_.gate == GateFunction::softmax_all) {
      cpu::for_each_chunk(p_.dtype, scores_, p_.num_members,
                          [&](const float* scores, int64_t, int64_t count) {
                            sum.add(count, [&](int64_t i) { return power(scores[i]); });
                          });
    } else if (p_.gate == GateFunction::softmax) {
      for (int64_t first = 0; first < p_.choices; first += cpu::kRowChunk) {
        sum.add(std::min(cpu::kRowChunk, p_.choices - first),
                [&](int64_t i) { return power(score_of(first + i)); });
      }
    }
    const float total = sum.total();
    for (int64_t k = 0; k < p_.choices; ++k) {
      const float score = score_of(k);
      const bool is_softmax =
          p_.gate == GateFunction::softmax || p_.gate == GateFunction::softmax_all;
      gates_[k] = is_softmax                         ? power(score) / total
                  : p_.gate == GateFunction::sigmoid ? 1.0f / (1.0f + cpu::exp(-score))
                                                     : score;
    }
  }

 private:
  template <class F>
  void for_each_score(const F& f) const {
    cpu::for_each_chunk(p_.dtype, scores_, p_.num_members,
                        [&](const float* scores, int64_t first, int64_t count) {
                          for (int64_t i = 0; i < count; ++i) f(first + i, scores[i]);
                        });
  }
  float score_at(Id id) const {
    float buffer;
    return *cpu::chunk_of(p_.dtype, scores_, static_cast<int64_t>(id), 1, &buffer);
  }
  float score_of(int64_t k) const { return score_at(ids_[k]); }

  /// Whether one choice comes before another, which makes a heap's first element the last choice.
  auto precedes() const {
    return [this](Id a, Id b) {
      const float of_a = score_at(a), of_b = score_at(b);
      return is_larger(of_a, of_b) || (!is_larger(of_b, of_a) && a < b);
    };
  }

  // Add a choice, n, to the `count` ones there are, the last of which leaves where these are all.
  // Both return the score of the then last one. `list` has the scores of all.
  float list_with(int64_t n, float score, int64_t count, float* list) const {
    const int64_t last = count < p_.choices ? count : count - 1;
    int64_t k = last;
    for (; k > 0 && is_larger(score, list[k - 1]); --k) {
      list[k] = list[k - 1];
      ids_[k] = ids_[k - 1];
    }
    list[k] = score;
    ids_[k] = static_cast<Id>(n);
    return list[last];
  }
  float heap_with(int64_t n, int64_t count) const {
    Id* const end = ids_ + p_.choices;
    if (count < p_.choices) {
      ids_[count] = static_cast<Id>(n);
      if (count + 1 < p_.choices) return 0;  // not asked for before all are there
      std::make_heap(ids_, end, precedes());
    } else {
      std::pop_heap(ids_, end, precedes());
      end[-1] = static_cast<Id>(n);
      std::push_heap(ids_, end, precedes());
    }
    return score_of(0);
  }

  const TopKProblem& p_;
  const char* scores_;
  Id* ids_;
  float* gates_;
};

template <class Id>
void run(const Context& context, const TopKProblem& p, WideStrategy strategy,
         const TopKArguments& a) {
  const auto for_each_row = [&](const auto& body) {
    for_each_member_row(context, p.rows, 1, 1, p.num_members,
                        [&](int64_t row, int64_t) { body(TopKRow<Id>(p, a, row)); });
  };
  if (strategy == WideStrategy::wide) {
    return for_each_row([](const TopKRow<Id>& row) {
      row.choose_all();
      row.gate();
    });
  }
  for (int64_t k = 0; k < p.choices; ++k) {
    for_each_row([&](const TopKRow<Id>& row) {
      row.choose(k);
      if (k + 1 == p.choices) row.gate();
    });
  }
}

}  // namespace

void run_top_k_cpu(const Context& context, const TopKProblem& problem, WideStrategy strategy,
                   const TopKArguments& arguments) {
  const auto with = problem.id_dtype == Dtype::int64 ? run<int64_t> : run<int32_t>;
  with(context, problem, strategy, arguments);
}

}  // namespace wide
