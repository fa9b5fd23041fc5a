// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention on the CPU: a task is a block of rows, which are queries of one head, or, where
// these are few, of several heads that share keys. It takes one block of keys after another,
// transposed for the scores, which are then absorbed with the values. A row's bits do not depend on
// the others. `wide` runs the tasks of all members at once, `sequential` member by member; both
// give the same bits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "host/attention/flash_attention_cpu_block.hpp"
#include "host/attention/flash_attention_run.hpp"
#include "host/core/parallel.hpp"
#include "host/core/vectorised.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int kRows = cpu::kAttentionQueries, kKeys = cpu::kAttentionKeys;
constexpr float kLog2E = std::numbers::log2e_v<float>;

/// Rows of heads that share keys: up to eight cost as one, and sixteen hardly more than a block's
/// keys and values do. More in one task would only take work from other threads.
constexpr int64_t kSharedRows = 16;

class HeadBlocks {
 public:
  HeadBlocks(const FlashAttentionProblem& problem, const FlashAttentionArguments& arguments)
      : p_(problem),
        a_(arguments),
        blocks_((p_.seq + kRows - 1) / kRows),
        group_(p_.heads / std::max<int64_t>(1, p_.kv_heads)),
        shared_(std::clamp<int64_t>(kSharedRows / std::max<int64_t>(1, p_.seq), 1,
                                    std::max<int64_t>(1, group_))),
        shares_((group_ + shared_ - 1) / shared_) {}

  int64_t tasks_per_member() const { return p_.batch * p_.kv_heads * shares_ * blocks_; }

  void operator()(int64_t member, int64_t task) const {
    const Place place = place_of(member, task);
    constexpr int kStep = cpu::kAttentionKeys;
    const int dims = static_cast<int>((p_.head_dim + kStep - 1) / kStep * kStep);
    cpu::AttentionState state;
    cpu::start_attention(state, dims);
    alignas(64) float queries[kRows][cpu::kAttentionDims];
    alignas(64) float scores[kRows][kKeys] = {};
    load_queries(place, dims, queries);
    alignas(64) union {  // keys are no longer needed when values are loaded
      float keys[cpu::kAttentionDims][kKeys];
      float values[kKeys][cpu::kAttentionDims];
    } block;
    const Range seen = keys_of(place, 0, place.queries - 1);
    for (int64_t key = seen.first; key < seen.last; key += kKeys) {
      const int keys = static_cast<int>(std::min<int64_t>(kKeys, seen.last - key));
      transpose_keys(place, key, keys, block.keys);
      cpu::score_keys({queries, block.keys, scores, place.rows, static_cast<int>(p_.head_dim)});
      bend(place, key, keys, scores);
      load_values(place, key, keys, dims, block.values);
      cpu::absorb_keys(state, {scores, block.values, place.rows, keys, dims});
    }
    write(place, state);
  }

 private:
  /// A block: row i is query i % queries of head i / queries.
  struct Place {
    int64_t member, b, first_head, kv_head, first_query;
    int queries, rows;
    int64_t key_length;

    int64_t head(int row) const { return first_head + row / queries; }
    int64_t query(int row) const { return first_query + row % queries; }
  };
  struct Range {
    int64_t first, last;
  };

  Place place_of(int64_t member, int64_t task) const {
    const int64_t share = task / blocks_ % shares_, kv = task / blocks_ / shares_;
    const int64_t kv_head = kv % p_.kv_heads, b = kv / p_.kv_heads;
    const int64_t first_head = share * shared_, first_query = task % blocks_ * kRows;
    const auto heads = static_cast<int>(std::min(shared_, group_ - first_head));
    const auto queries = static_cast<int>(std::min<int64_t>(kRows, p_.seq - first_query));
    return {member,
            b,
            kv_head * group_ + first_head,
            kv_head,
            first_query,
            queries,
            heads * queries,
            key_length(member, b)};
  }

  const void* at(const ConstTensorView& view, const RowStrides& strides, int64_t row,
                 int64_t member, int64_t head) const {
    const int64_t element = row * strides.row + member * strides.member + head * p_.head_dim;
    return static_cast<const char*>(view.data) + element * dtype_bytes(p_.dtype);
  }

  int64_t key_length(int64_t member, int64_t b) const {
    if (p_.key_lengths == KeyLengths::none) return *p_.kv_seq;
    const auto* lengths = static_cast<const int32_t*>(a_.key_lengths.data);
    const int64_t length = lengths[member * p_.key_lengths_member_stride + b];
    return std::clamp<int64_t>(length, 0, *p_.kv_seq);
  }

  int64_t position_of(const Place& place, int row) const {
    return place.query(row) - p_.seq + (p_.aligns_to_lengths ? place.key_length : *p_.kv_seq);
  }

  /// The largest range of keys that the queries of rows `from` to `to`, both of a head, see.
  Range keys_of(const Place& place, int from, int to) const {
    Range range{0, place.key_length};
    if (p_.is_causal) range.last = std::min(range.last, position_of(place, to) + 1);
    if (p_.window > 0) {
      range.first = std::max(range.first, position_of(place, from) - p_.window + 1);
      range.last = std::min(range.last, position_of(place, to) + p_.window);
    }
    return range;
  }

  /// Zeros where there are no more rows or elements.
  void load_queries(const Place& place, int dims, float (&out)[kRows][cpu::kAttentionDims]) const {
    call_vectorised([&] {
      for (int i = 0; i < kRows; ++i) {
        std::fill_n(out[i], dims, 0.0f);
        if (i >= place.rows) continue;
        const int64_t row = place.b * p_.seq + place.query(i);
        decode_row(p_.dtype, at(a_.q, p_.q, row, place.member, place.head(i)), out[i], p_.head_dim);
      }
    });
  }

  void load_values(const Place& place, int64_t first_key, int keys, int dims,
                   float (&out)[kKeys][cpu::kAttentionDims]) const {
    call_vectorised([&] {
      for (int j = 0; j < keys; ++j) {
        std::fill(out[j] + p_.head_dim, out[j] + dims, 0.0f);
        const int64_t row = place.b * *p_.kv_seq + first_key + j;
        decode_row(p_.dtype, at(a_.v, p_.v, row, place.member, place.kv_head), out[j], p_.head_dim);
      }
    });
  }

  /// out[d][j] = element d of key first_key + j, 0 where there are no more keys.
  void transpose_keys(const Place& place, int64_t first_key, int keys,
                      float (&out)[cpu::kAttentionDims][kKeys]) const {
    constexpr int kTogether = 8;  // these become contiguous
    call_vectorised([&] {
      float rows[kTogether][cpu::kAttentionDims];
      for (int first = 0; first < kKeys; first += kTogether) {
        for (int j = 0; j < kTogether; ++j) {
          if (first + j >= keys) {
            std::fill_n(rows[j], p_.head_dim, 0.0f);
            continue;
          }
          const int64_t row = place.b * *p_.kv_seq + first_key + first + j;
          decode_row(p_.dtype, at(a_.k, p_.k, row, place.member, place.kv_head), rows[j],
                     p_.head_dim);
        }
        for (int64_t d = 0; d < p_.head_dim; ++d) {
          for (int j = 0; j < kTogether; ++j) out[d][first + j] = rows[j][d];
        }
      }
    });
  }

  /// Turns products into base-2 logarithms of the powers that softmax adds up.
  void bend(const Place& place, int64_t first_key, int keys, float (&scores)[kRows][kKeys]) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    for (int i = 0; i < place.rows; ++i) {
      float* row = scores[i];
      if (p_.soft_cap > 0 || p_.has_slopes) {
        const int64_t distance = position_of(place, i) - first_key;
        for (int j = 0; j < keys; ++j) row[j] = kLog2E * bent(place, i, row[j], distance - j);
      } else {
        const float factor = kLog2E * *p_.scale;
        for (int j = 0; j < keys; ++j) row[j] *= factor;
      }
      if (p_.has_bias) add_bias(place, i, first_key, keys, row);
      const Range seen = keys_of(place, i, i);
      const auto first = std::clamp<int64_t>(seen.first - first_key, 0, keys);
      std::fill_n(row, first, kNone);
      std::fill(row + std::clamp<int64_t>(seen.last - first_key, first, keys), row + keys, kNone);
    }
  }

  void add_bias(const Place& place, int i, int64_t first_key, int keys, float* row) const {
    const ScoreBiasStrides& strides = p_.bias;
    const int64_t element = place.member * strides.member + place.b * strides.batch +
                            place.head(i) * strides.head + place.query(i) * strides.query +
                            first_key;
    float bias[kKeys];
    const char* from = static_cast<const char*>(a_.bias.data) + element * dtype_bytes(p_.dtype);
    call_vectorised([&] { decode_row(p_.dtype, from, bias, keys); });
    // The lowest number, with which masks hide keys, too, stays finite.
    constexpr float kLowest = std::numeric_limits<float>::lowest();
    for (int j = 0; j < keys; ++j)
      row[j] += bias[j] < kLowest ? bias[j] : std::max(kLog2E * bias[j], kLowest);
  }

  float bent(const Place& place, int i, float sum, int64_t distance) const {
    float score = *p_.scale * sum;
    if (p_.soft_cap > 0) score = p_.soft_cap * std::tanh(score / p_.soft_cap);
    if (p_.has_slopes) {
      const auto* slopes = static_cast<const float*>(a_.slopes.data);
      score -= slopes[place.member * p_.slopes_member_stride + place.head(i)] *
               static_cast<float>(std::abs(distance));
    }
    return score;
  }

  void write(const Place& place, cpu::AttentionState& state) const {
    call_vectorised([&] {
      for (int i = 0; i < place.rows; ++i) {
        const float total = state.total[i];
        const float share = total == 0 ? 0.0f : 1.0f / total;  // of a query that sees nothing: 0
        for (int64_t d = 0; d < p_.head_dim; ++d) state.sums[i][d] *= share;
        const int64_t row = place.b * p_.seq + place.query(i);
        encode_row(p_.dtype, state.sums[i],
                   const_cast<void*>(at(a_.y, p_.y, row, place.member, place.head(i))),
                   p_.head_dim);
      }
    });
  }

  const FlashAttentionProblem& p_;
  const FlashAttentionArguments& a_;
  int64_t blocks_;  ///< of a head's queries
  int64_t group_;   ///< heads that share keys
  int64_t shared_;  ///< of these, heads of one block
  int64_t shares_;  ///< blocks of these
};

}  // namespace

void run_flash_attention_cpu(const Context& context, const FlashAttentionProblem& problem,
                             FlashAttentionStrategy strategy,
                             const FlashAttentionArguments& arguments) {
  const HeadBlocks run_block(problem, arguments);
  const int64_t per_member = run_block.tasks_per_member();
  const int64_t at_once = strategy == FlashAttentionStrategy::wide ? problem.num_members : 1;
  for (int64_t first = 0; first < problem.num_members; first += at_once) {
    parallel_for(context, at_once * per_member,
                 [&](int64_t task) { run_block(first + task / per_member, task % per_member); });
  }
}

}  // namespace wide
