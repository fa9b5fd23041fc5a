// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Attention, query by query.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "host/model/graph_reference.hpp"

namespace wide::catalog {

namespace {

class Attention {
 public:
  Attention(const FlashAttentionOp& op, const AttentionDoubles& operands)
      : op_(op),
        o_(operands),
        kv_heads_(op.kv_heads == 0 ? op.heads : op.kv_heads),
        tq_(o_.q.shape[1]),
        tk_(o_.k.shape[1]),
        d_(o_.q.shape[2] / op.heads),
        scale_(op.scale ? double{*op.scale} : 1 / std::sqrt(static_cast<double>(d_))) {}

  Doubles run() const {
    Doubles y{o_.q.shape, std::vector<double>(o_.q.values.size())};
    for (int64_t b = 0; b < o_.q.shape[0]; ++b)
      for (int64_t h = 0; h < op_.heads; ++h)
        for (int64_t i = 0; i < tq_; ++i) attend(b, h, i, y);
    return y;
  }

 private:
  static size_t z(int64_t i) { return static_cast<size_t>(i); }
  /// Features of a position's head: of queries, or of keys and values.
  int64_t query_at(int64_t b, int64_t h, int64_t i) const {
    return ((b * tq_ + i) * op_.heads + h) * d_;
  }
  int64_t key_at(int64_t b, int64_t h, int64_t j) const {
    return ((b * tk_ + j) * kv_heads_ + h / (op_.heads / kv_heads_)) * d_;
  }

  int64_t position_of(int64_t b, int64_t i) const {
    if (!op_.aligns_to_lengths) return i + tk_ - tq_;
    const auto length = static_cast<int64_t>(o_.key_lengths.values[z(b)]);
    return i + std::clamp<int64_t>(length, 0, tk_) - tq_;
  }
  bool sees(int64_t b, int64_t i, int64_t j) const {
    const int64_t position = position_of(b, i);
    const bool is_there =
        o_.key_lengths.values.empty() || static_cast<double>(j) < o_.key_lengths.values[z(b)];
    const bool is_near = op_.window == 0 || std::abs(position - j) < op_.window;
    return is_there && is_near && (!op_.is_causal || j <= position);
  }

  /// An element of [B, heads or 1, Tq or 1, Tk], or without the batch.
  double bias_of(int64_t b, int64_t h, int64_t i, int64_t j) const {
    const std::vector<int64_t>& shape = o_.bias.shape;
    if (shape.empty()) return 0;
    const int64_t heads = shape[shape.size() - 3], rows = shape[shape.size() - 2];
    const int64_t head = (shape.size() == 3 ? 0 : b) * heads + (heads == op_.heads ? h : 0);
    return o_.bias.values[z((head * rows + (rows == tq_ ? i : 0)) * tk_ + j)];
  }

  double score(int64_t b, int64_t h, int64_t i, int64_t j) const {
    double s = 0;
    for (int64_t e = 0; e < d_; ++e)
      s += o_.q.values[z(query_at(b, h, i) + e)] * o_.k.values[z(key_at(b, h, j) + e)];
    s *= scale_;
    const double cap = double{op_.soft_cap};
    if (cap > 0) s = cap * std::tanh(s / cap);
    if (!o_.slopes.values.empty())
      s -= o_.slopes.values[z(h)] * static_cast<double>(std::abs(position_of(b, i) - j));
    return s + bias_of(b, h, i, j);
  }

  void attend(int64_t b, int64_t h, int64_t i, Doubles& y) const {
    constexpr double kHidden = -std::numeric_limits<double>::infinity();
    std::vector<double> p(z(tk_), kHidden);
    for (int64_t j = 0; j < tk_; ++j)
      if (sees(b, i, j)) p[z(j)] = score(b, h, i, j);
    const double most = p.empty() ? kHidden : *std::max_element(p.begin(), p.end());
    if (most == kHidden) return;  // no key is seen
    double sum = 0;
    for (double& s : p) sum += s = std::exp(s - most);
    for (int64_t j = 0; j < tk_; ++j) {
      if (p[z(j)] == 0) continue;
      for (int64_t e = 0; e < d_; ++e)
        y.values[z(query_at(b, h, i) + e)] += p[z(j)] / sum * o_.v.values[z(key_at(b, h, j) + e)];
    }
  }

  const FlashAttentionOp& op_;
  const AttentionDoubles& o_;
  int64_t kv_heads_, tq_, tk_, d_;
  double scale_;
};

}  // namespace

Doubles attention_of(const FlashAttentionOp& op, const AttentionDoubles& operands) {
  return Attention(op, operands).run();
}

}  // namespace wide::catalog
