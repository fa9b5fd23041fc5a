// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention on the CPU: a task is a block of queries of one head. It takes one block of keys
// after another, transposed for the scores, which are then absorbed with the values. `wide` runs
// the tasks of all members at once, `sequential` member by member; both give the same bits.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "host/attention/flash_attention_cpu_block.hpp"
#include "host/attention/flash_attention_run.hpp"
#include "host/core/parallel.hpp"
#include "wide/convert.hpp"

namespace wide {

namespace {

constexpr int kQueries = cpu::kAttentionQueries, kKeys = cpu::kAttentionKeys;
constexpr float kLog2E = std::numbers::log2e_v<float>;

class HeadBlocks {
 public:
  HeadBlocks(const FlashAttentionProblem& problem, const FlashAttentionArguments& arguments)
      : p_(problem), a_(arguments), blocks_((p_.seq + kQueries - 1) / kQueries) {}

  int64_t tasks_per_member() const { return p_.batch * p_.heads * blocks_; }

  void operator()(int64_t member, int64_t task) const {
    const int64_t head = task / blocks_ % p_.heads, b = task / blocks_ / p_.heads;
    const int64_t first_query = task % blocks_ * kQueries;
    const Place place{member,
                      b,
                      head,
                      head / (p_.heads / p_.kv_heads),
                      first_query,
                      static_cast<int>(std::min<int64_t>(kQueries, p_.seq - first_query)),
                      key_length(member, b)};
    constexpr int kStep = cpu::kAttentionKeys;
    const int dims = static_cast<int>((p_.head_dim + kStep - 1) / kStep * kStep);
    cpu::AttentionState state;
    cpu::start_attention(state, dims);
    alignas(64) float queries[kQueries][cpu::kAttentionDims];
    alignas(64) float scores[kQueries][kKeys] = {};
    for (int i = 0; i < kQueries; ++i) {
      std::fill_n(queries[i], dims, 0.0f);
      if (i >= place.queries) continue;
      decode_row(p_.dtype, at(a_.q, p_.q, b * p_.seq + first_query + i, member, head), queries[i],
                 p_.head_dim);
    }
    alignas(64) union {  // keys are no longer needed when values are loaded
      float keys[cpu::kAttentionDims][kKeys];
      float values[kKeys][cpu::kAttentionDims];
    } block;
    const Range seen = keys_of(place, 0, place.queries - 1);
    for (int64_t key = seen.first; key < seen.last; key += kKeys) {
      const int keys = static_cast<int>(std::min<int64_t>(kKeys, seen.last - key));
      transpose_keys(place, key, keys, block.keys);
      cpu::score_keys({queries, block.keys, scores, place.queries, static_cast<int>(p_.head_dim)});
      bend(place, key, keys, scores);
      for (int j = 0; j < keys; ++j) {
        std::fill(block.values[j] + p_.head_dim, block.values[j] + dims, 0.0f);
        decode_row(p_.dtype, at(a_.v, p_.v, b * *p_.kv_seq + key + j, member, place.kv_head),
                   block.values[j], p_.head_dim);
      }
      cpu::absorb_keys(state, {scores, block.values, place.queries, keys, dims});
    }
    write(place, state);
  }

 private:
  /// A block of queries.
  struct Place {
    int64_t member, b, head, kv_head, first_query;
    int queries;
    int64_t key_length;
  };
  struct Range {
    int64_t first, last;
  };

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

  int64_t position_of(const Place& place, int query) const {
    return place.first_query + query - p_.seq +
           (p_.aligns_to_lengths ? place.key_length : *p_.kv_seq);
  }

  /// The largest range of keys that the queries from `from` to `to` see.
  Range keys_of(const Place& place, int from, int to) const {
    Range range{0, place.key_length};
    if (p_.is_causal) range.last = std::min(range.last, position_of(place, to) + 1);
    if (p_.window > 0) {
      range.first = std::max(range.first, position_of(place, from) - p_.window + 1);
      range.last = std::min(range.last, position_of(place, to) + p_.window);
    }
    return range;
  }

  /// out[d][j] = element d of key first_key + j, 0 where there are no more keys.
  void transpose_keys(const Place& place, int64_t first_key, int keys,
                      float (&out)[cpu::kAttentionDims][kKeys]) const {
    constexpr int kRows = 8;  // at a time: these become contiguous
    float rows[kRows][cpu::kAttentionDims];
    for (int first = 0; first < kKeys; first += kRows) {
      for (int j = 0; j < kRows; ++j) {
        if (first + j >= keys) {
          std::fill_n(rows[j], p_.head_dim, 0.0f);
          continue;
        }
        const int64_t key = place.b * *p_.kv_seq + first_key + first + j;
        decode_row(p_.dtype, at(a_.k, p_.k, key, place.member, place.kv_head), rows[j],
                   p_.head_dim);
      }
      for (int64_t d = 0; d < p_.head_dim; ++d) {
        for (int j = 0; j < kRows; ++j) out[d][first + j] = rows[j][d];
      }
    }
  }

  /// Turns products into base-2 logarithms of the powers that softmax adds up.
  void bend(const Place& place, int64_t first_key, int keys,
            float (&scores)[kQueries][kKeys]) const {
    constexpr float kNone = -std::numeric_limits<float>::infinity();
    for (int i = 0; i < place.queries; ++i) {
      float* row = scores[i];
      if (p_.soft_cap > 0 || p_.has_slopes) {
        const int64_t distance = position_of(place, i) - first_key;
        for (int j = 0; j < keys; ++j) row[j] = kLog2E * bent(place, row[j], distance - j);
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

  void add_bias(const Place& place, int query, int64_t first_key, int keys, float* row) const {
    const ScoreBiasStrides& strides = p_.bias;
    const int64_t element = place.member * strides.member + place.b * strides.batch +
                            place.head * strides.head +
                            (place.first_query + query) * strides.query + first_key;
    float bias[kKeys];
    decode_row(p_.dtype, static_cast<const char*>(a_.bias.data) + element * dtype_bytes(p_.dtype),
               bias, keys);
    // The lowest number, with which masks hide keys, too, stays finite.
    constexpr float kLowest = std::numeric_limits<float>::lowest();
    for (int j = 0; j < keys; ++j)
      row[j] += bias[j] < kLowest ? bias[j] : std::max(kLog2E * bias[j], kLowest);
  }

  float bent(const Place& place, float sum, int64_t distance) const {
    float score = *p_.scale * sum;
    if (p_.soft_cap > 0) score = p_.soft_cap * std::tanh(score / p_.soft_cap);
    if (p_.has_slopes) {
      const auto* slopes = static_cast<const float*>(a_.slopes.data);
      score -= slopes[place.member * p_.slopes_member_stride + place.head] *
               static_cast<float>(std::abs(distance));
    }
    return score;
  }

  void write(const Place& place, cpu::AttentionState& state) const {
    for (int i = 0; i < place.queries; ++i) {
      const float total = state.total[i];
      const float share = total == 0 ? 0.0f : 1.0f / total;  // of a query that sees nothing: 0
      for (int64_t d = 0; d < p_.head_dim; ++d) state.sums[i][d] *= share;
      const int64_t row = place.b * p_.seq + place.first_query + i;
      encode_row(p_.dtype, state.sums[i],
                 const_cast<void*>(at(a_.y, p_.y, row, place.member, place.head)), p_.head_dim);
    }
  }

  const FlashAttentionProblem& p_;
  const FlashAttentionArguments& a_;
  int64_t blocks_;
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
