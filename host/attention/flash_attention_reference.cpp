// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Plain fp64 loops over one query: all scores, their softmax, the sum. Shares only the problem with
// what it judges.
#include "host/attention/flash_attention_reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace wide::catalog {

namespace {

/// A visible key's score, and by how much a kernel's score may be off.
struct Score {
  int64_t key = 0;
  double value = 0, error = 0;
};

constexpr double kRoundoff = unit_roundoff(Dtype::fp32);  ///< of sums

int64_t position_of(const FlashAttentionProblem& p, int64_t query, int64_t key_length) {
  if (!p.aligns_to_lengths) return query + *p.kv_seq - p.seq;
  return query + std::clamp<int64_t>(key_length, 0, *p.kv_seq) - p.seq;
}

Score score_of(const FlashAttentionProblem& p, const FlashAttentionReferenceRow& row, int64_t key) {
  const auto dim = static_cast<size_t>(p.head_dim);
  const auto first = static_cast<size_t>(key * p.kv_heads + row.kv_head) * dim;
  double dot = 0, magnitude = 0;
  for (size_t d = 0; d < dim; ++d) {
    const double product = row.q[d] * row.k[first + d];
    dot += product;
    magnitude += std::fabs(product);
  }
  const auto scale = static_cast<double>(*p.scale), cap = static_cast<double>(p.soft_cap);
  Score score{key, scale * dot,
              std::fabs(scale) * 8 * std::sqrt(static_cast<double>(p.head_dim) + 1) * kRoundoff *
                  magnitude};
  if (cap > 0) {
    // A reached cap removes the score's error, which may be infinite.
    if (std::isinf(score.value)) score.error = 0;
    score.value = cap * std::tanh(score.value / cap);
    score.error += 16 * kRoundoff * cap;
  }
  if (p.has_slopes) {
    const int64_t distance = position_of(p, row.position, row.key_length) - key;
    const double bias = row.slope * static_cast<double>(std::abs(distance));
    score.value -= bias;
    score.error += 4 * kRoundoff * std::fabs(bias);
  }
  if (!row.bias.empty()) {
    const double bias = row.bias[static_cast<size_t>(key)];
    score.value += bias;
    score.error += 4 * kRoundoff * std::fabs(bias);
  }
  return score;
}

/// The effect of the operands' errors on element d of y, to first order: four times the root of the
/// sum of squares, as they are independent. `scores` hold powers.
double operand_error(const FlashAttentionProblem& p, const FlashAttentionReferenceRow& row,
                     std::span<const Score> scores, double total, double y, size_t d) {
  const auto dim = static_cast<size_t>(p.head_dim);
  const auto scale = static_cast<double>(*p.scale);
  std::vector<double> slopes(dim);  // of y over the elements of q
  double squares = 0;
  for (const Score& score : scores) {
    if (score.value == 0) continue;  // k and its error may be infinite: so was the score
    const size_t first = static_cast<size_t>(score.key * p.kv_heads + row.kv_head) * dim;
    const double share = score.value / total, slope = scale * share * (row.v[first + d] - y);
    for (size_t e = 0; e < dim; ++e) {
      slopes[e] += slope * row.k[first + e];
      squares += std::pow(slope * row.q[e] * row.k_error[first + e], 2);
    }
    squares += std::pow(share * row.v_error[first + d], 2);
  }
  for (size_t e = 0; e < dim; ++e) {
    if (slopes[e] != 0) squares += std::pow(slopes[e] * row.q_error[e], 2);
  }
  return 4 * std::sqrt(squares);
}

}  // namespace

bool sees_key(const FlashAttentionProblem& p, int64_t query, int64_t key, int64_t key_length) {
  const int64_t position = position_of(p, query, key_length);
  if (p.key_lengths != KeyLengths::none && key >= key_length) return false;
  if (p.is_causal && key > position) return false;
  return p.window == 0 || std::abs(position - key) < p.window;
}

const std::string_view kFlashAttentionToleranceFormula =
    "sum_j p_j (|v_j| + |y|) e_j + (16 sqrt(K + 1) 2^-24 + [16 bits: u]) sum_j p_j |v_j| + "
    "[fp16: 2^-25 sum_j |v_j| / sum_j exp(s_j - m)] + u |y| + smallest subnormal, per output over "
    "the K visible keys j; p = softmax(s), m = max s, u the dtype's unit roundoff, e_j = |scale| 8 "
    "sqrt(D + 1) 2^-24 sum |q||k| + [soft cap: 16 2^-24 cap] + [slopes: 4 2^-24 |slope distance|] "
    "+ [bias: 4 2^-24 |bias|] + 8 2^-24 (|s_j| + |m| + 1), the error of an exponent, base-2 "
    "arithmetic and its exp "
    "included. u sum p |v| is the rounding of p to the dtype, 2^-25 that of a subnormal p.";

void judge_flash_attention_row(const FlashAttentionProblem& p,
                               const FlashAttentionReferenceRow& row, std::span<double> values,
                               std::span<double> tolerances) {
  std::vector<Score> scores;
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  double most = kNone, total = 0;
  for (int64_t key = 0; key < *p.kv_seq; ++key) {
    if (!sees_key(p, row.position, key, row.key_length)) continue;
    scores.push_back(score_of(p, row, key));
    most = std::fmax(most, scores.back().value);
  }
  if (most == kNone) most = 0;  // every score is -infinity: as if none were seen, or one is NaN
  for (Score& score : scores) {
    score.error += 8 * kRoundoff * (std::fabs(score.value) + std::fabs(most) + 1);
    score.value = std::exp(score.value - most);
    total += score.value;
  }
  const auto share_of = [&](const Score& score) { return total == 0 ? 0 : score.value / total; };
  const double unit = unit_roundoff(p.dtype);
  const double sums = 16 * std::sqrt(static_cast<double>(scores.size()) + 1) * kRoundoff +
                      (p.dtype == Dtype::fp32 ? 0 : unit);
  const auto dim = static_cast<size_t>(p.head_dim);
  for (size_t d = 0; d < dim; ++d) {
    const auto value_of = [&](const Score& score) {
      return row.v[static_cast<size_t>(score.key * p.kv_heads + row.kv_head) * dim + d];
    };
    double y = 0, error = 0;
    for (const Score& score : scores) y += share_of(score) * value_of(score);
    for (const Score& score : scores) {
      if (score.value == 0) continue;  // its error may be infinite: so was the score
      const double share = share_of(score), magnitude = std::fabs(value_of(score));
      error += share * ((magnitude + std::fabs(y)) * score.error + magnitude * sums);
      if (p.dtype == Dtype::fp16) error += 0x1p-25 * magnitude / total;
    }
    if (!row.q_error.empty()) error += operand_error(p, row, scores, total, y, d);
    values[d] = y;
    tolerances[d] = error + unit * std::fabs(y) + min_subnormal(p.dtype);
  }
}

}  // namespace wide::catalog
