// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// attention for bench and verify: axes, sweeps, strategies, operands, cost.
#include <algorithm>
#include <array>
#include <cmath>

#include "host/attention/attention_problem.hpp"
#include "host/attention/attention_reference.hpp"
#include "host/attention/flash_attention_problem.hpp"
#include "host/attention/flash_attention_reference.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
AttentionProblem problem_of(const Case& point) {
  AttentionProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.seq = point.integer("seq");
  p.features = point.integer("d_model");
  p.heads = point.integer("heads");
  p.dtype = point.dtype();
  p.is_cross = point.word("inputs") == "cross";
  if (p.is_cross) {
    if (point.integer("kv_seq") != 0) p.kv_seq = point.integer("kv_seq");
    p.key_features = point.integer("kdim");
    p.value_features = point.integer("vdim");
  }
  p.has_bias = point.word("bias") == "yes";
  p.is_causal = point.word("causal") == "yes";
  p.key_lengths = point.word("lengths") == "no"       ? KeyLengths::none
                  : point.word("lengths") == "shared" ? KeyLengths::shared
                                                      : KeyLengths::per_member;
  return p;
}

std::string impossible_reason(const Case& point) {
  const int64_t features = point.integer("d_model"), heads = point.integer("heads");
  if (features % heads != 0) {
    return std::to_string(heads) + " heads do not divide " + std::to_string(features);
  }
  return features / heads > kMaxHeadDim
             ? "heads of more than " + std::to_string(kMaxHeadDim) + " elements"
             : "";
}

class AttentionWorkload final : public PlanWorkload<describe_attention, make_attention_plan> {
 public:
  AttentionWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, complete_attention_problem(problem_of(point)), options) {
    const AttentionProblem& p = like();
    const int64_t d = p.features;
    // Values that causality hides are multiplied by 0, and must be finite.
    const bool is_finite = p.is_causal;
    const auto input = [&](int64_t seq, int64_t features) {
      return &add_operand(operands::attention_x, p.dtype, {p.batch, seq, features},
                          Distribution::uniform().finite(is_finite));
    };
    const auto add_weight = [&](int64_t out, int64_t in, bool stays_finite) {
      const double spread = 4 / std::sqrt(static_cast<double>(in));
      return &add_operand(operands::attention_weight, p.dtype, {out, in},
                          Distribution::uniform(-spread, spread).finite(stays_finite));
    };
    const auto add_bias = [&](int64_t out, bool stays_finite) {
      return &add_operand(operands::attention_bias, p.dtype, {out},
                          Distribution::uniform().finite(stays_finite));
    };
    // Queries and keys of about 1.4, so that softmax prefers some keys and drowns no others.
    const auto weight = [&](int64_t out, int64_t in) { return add_weight(out, in, is_finite); };
    x_ = input(p.seq, d);
    if (p.is_cross) {
      key_ = input(*p.kv_seq, p.key_features), value_ = input(*p.kv_seq, p.value_features);
      q_weight_ = weight(d, d);
      k_weight_ = weight(d, p.key_features), v_weight_ = weight(d, p.value_features);
    } else {
      qkv_weight_ = weight(3 * d, d);
    }
    // The sign of an infinity's factor is that of a rounded number: unknown near 0.
    out_weight_ = add_weight(d, d, true);
    if (p.has_bias) qkv_bias_ = add_bias(3 * d, is_finite), out_bias_ = add_bias(d, false);
    if (p.key_lengths != KeyLengths::none) {
      lengths_ = &add_operand(operands::flash_attention_key_lengths, Dtype::int32, {p.batch},
                              {Distribution::Kind::ids, 1, static_cast<double>(*p.kv_seq), 1},
                              p.key_lengths == KeyLengths::shared);
    }
    y_ = &add_operand(operands::attention_x, p.dtype, {p.batch, p.seq, d}, Distribution::none());
  }

  std::string baseline_unsupported_reason() const override {
    return is_empty(like()) ? "" : cublas_unavailable_reason();
  }

  /// Tensors between the parts need not be in memory.
  Cost cost() const override {
    const AttentionProblem& p = like();
    double pairs = 0;
    for (int64_t n = 0; n < p.num_members; ++n) {
      for (int64_t row = 0; row < p.batch * p.seq; ++row) {
        const int64_t last = std::min(key_length(n, row / p.seq), *p.kv_seq);
        const int64_t position = row % p.seq + *p.kv_seq - p.seq + 1;
        const int64_t seen = p.is_causal ? std::min(last, position) : last;
        pairs += static_cast<double>(std::max<int64_t>(seen, 0));
      }
    }
    const auto d = static_cast<double>(p.features), members = static_cast<double>(p.num_members);
    const double queries = members * static_cast<double>(p.batch * p.seq);
    const double keys = members * static_cast<double>(p.batch * *p.kv_seq);
    Cost cost;
    cost.flops = 4 * d * pairs + 4 * d * d * queries +
                 2 * d * keys * static_cast<double>(p.key_features + p.value_features);
    for (const Operand* operand : inputs()) cost.bytes_read += bytes_of({operand});
    cost.bytes_written = bytes_of({y_});
    return cost;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const int64_t batch_row = row / like().seq;
    const AttentionReferenceMember own = member_values(member);
    if (keys_of_ != std::pair(member, batch_row)) {
      keys_ = attention_reference_keys(like(), own, batch_row, key_length(member, batch_row));
      keys_of_ = {member, batch_row};
    }
    judge_attention_row(like(), own, keys_, row, values, tolerances);
  }

  int64_t reference_rows_together() const override { return like().seq; }
  /// For a row that is the first of its batch row.
  double reference_row_flops() const override {
    const auto d = static_cast<double>(like().features), keys = static_cast<double>(*like().kv_seq);
    return 4 * d * keys * static_cast<double>(like().key_features + like().value_features) +
           12 * keys * d + 8 * d * d;
  }

 private:
  std::array<const Operand*, 11> inputs() const {
    return {x_,        key_,        value_,    qkv_weight_, q_weight_, k_weight_,
            v_weight_, out_weight_, qkv_bias_, out_bias_,   lengths_};
  }

  AttentionArguments arguments(const OperandViews& view) const override {
    AttentionArguments a;
    a.x = view(x_), a.key = view(key_), a.value = view(value_);
    a.parameters = {view(qkv_weight_), view(q_weight_),   view(k_weight_), view(v_weight_),
                    view(qkv_bias_),   view(out_weight_), view(out_bias_)};
    a.key_lengths = view(lengths_);
    a.y = view(y_);
    return a;
  }

  AttentionReferenceMember member_values(int64_t member) const {
    const auto of = [&](const Operand* operand) { return values_of(operand, member); };
    AttentionReferenceMember own;
    own.x = of(x_);
    own.key = like().is_cross ? of(key_) : own.x;
    own.value = like().is_cross ? of(value_) : own.x;
    const auto d = static_cast<size_t>(like().features);
    const auto third = [&](size_t i) { return of(qkv_weight_).subspan(i * d * d, d * d); };
    own.q_weight = like().is_cross ? of(q_weight_) : third(0);
    own.k_weight = like().is_cross ? of(k_weight_) : third(1);
    own.v_weight = like().is_cross ? of(v_weight_) : third(2);
    own.qkv_bias = of(qkv_bias_);
    own.out_weight = of(out_weight_);
    own.out_bias = of(out_bias_);
    return own;
  }

  int64_t key_length(int64_t member, int64_t batch_row) const {
    if (lengths_ == nullptr) return *like().kv_seq;
    return static_cast<int64_t>(lengths_->values(member)[static_cast<size_t>(batch_row)]);
  }

  const Operand *x_ = nullptr, *key_ = nullptr, *value_ = nullptr, *qkv_weight_ = nullptr,
                *q_weight_ = nullptr, *k_weight_ = nullptr, *v_weight_ = nullptr,
                *qkv_bias_ = nullptr, *out_weight_ = nullptr, *out_bias_ = nullptr,
                *lengths_ = nullptr, *y_ = nullptr;
  mutable AttentionReferenceKeys keys_;  ///< the reference's, of one member and batch row
  mutable std::pair<int64_t, int64_t> keys_of_{-1, -1};
};

std::vector<AxisInfo> axes() {
  // Sizes for tests divide each other where they must, and keep heads few.
  return {{"n", "members", int64_t{4}, {}, 1},
          {"batch", "batch rows B", int64_t{8}, {}, 0, {2, 1}},
          {"seq", "positions T of x and y", int64_t{128}, {}, 0, {5, 19, 67}},
          {"d_model", "features D of x and y, divided into heads", int64_t{256}, {}, 1, {6, 40}},
          {"heads", "per member", int64_t{8}, {}, 1, {3, 2}},
          {"kv_seq", "cross: positions of keys and values; 0: seq", int64_t{0}, {}, 0, {7, 37}},
          {"kdim", "cross: features of keys' input; 0: d_model", int64_t{0}, {}, 0, {5, 24}},
          {"vdim", "cross: features of values' input; 0: d_model", int64_t{0}, {}, 0, {7, 11}},
          dtype_axis("of all operands but lengths"),
          {"inputs", "of keys and values: x, or their own", "self", {"self", "cross"}},
          {"bias", "of every projection", "yes", {"yes", "no"}},
          {"causal", "whether a query sees no later key", "no", {"no", "yes"}},
          {"lengths",
           "of the keys: all, one set for all members, or one each",
           "no",
           {"no", "shared", "own"}}};
}

std::vector<StrategyInfo> strategies() {
  using enum DeviceType;
  using enum StrategyKind;
  return {
      {"sequential", cuda, sequential,
       "member by member: cuBLAS GEMMs around flash_attention's sequential"},
      {"cublas_batched", cuda, vendor,
       "one strided-batched cuBLAS GEMM a projection, around what flash_attention's AUTO takes"},
      {"fused",
       cuda,
       hand_written,
       "three launches for all members: projection, flash_attention, projection; nothing is "
       "permuted between them",
       // Queries, keys, values and heads are written and read once each: eight times x.
       {.streamed = 5.0, .rereads = 3.0, .bank_conflicts = 0.05}},
      {"sequential", cpu, sequential, "member by member, each part over all threads"},
      {"wide", cpu, hand_written, "part by part, all members over all threads at once"}};
}

std::vector<Sweep> sweeps() {
  const auto small = [](std::vector<AxisValue> n) {
    return std::vector<Axis>{{"n", std::move(n)},
                             {"batch", ints({8})},
                             {"seq", ints({128})},
                             {"d_model", ints({256})},
                             {"heads", ints({8})}};
  };
  return {{"quick", small(ints({4, 8, 16, 32}))},
          {"full",
           {{"n", ints({2, 4, 8, 16, 32, 64})},
            {"batch", ints({4, 8, 16})},
            {"seq", ints({64, 128, 256, 512})},
            {"d_model", ints({256, 512, 768})},
            {"heads", ints({4, 8, 12})}}},
          {"ci", small(ints({4, 16}))}};
}

}  // namespace

const PrimitiveSpec& attention_spec() {
  static const PrimitiveSpec spec{
      .name = "attention",
      .summary = "multi-head attention with its projections, one module per member",
      .axes = axes(),
      .strategies = strategies(),
      .sweeps = sweeps(),
      .tolerance_formula = kAttentionToleranceFormula,
      .impossible_reason = impossible_reason,
      .tuning_key = tuned_by(problem_of),
      .make_workload = make_workload<AttentionWorkload>};
  return spec;
}

}  // namespace wide::catalog
