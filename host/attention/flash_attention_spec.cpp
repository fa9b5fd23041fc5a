// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// flash_attention for bench and verify: axes, sweeps, strategies, operands, cost.
#include <algorithm>

#include "host/attention/flash_attention_cudnn.hpp"
#include "host/attention/flash_attention_problem.hpp"
#include "host/attention/flash_attention_reference.hpp"
#include "host/core/text.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
FlashAttentionProblem problem_of(const Case& point) {
  FlashAttentionProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.seq = point.integer("seq");
  if (point.integer("kv_seq") != 0) p.kv_seq = point.integer("kv_seq");
  p.heads = point.integer("heads");
  p.kv_heads = point.integer("kv_heads");
  p.head_dim = point.integer("head_dim");
  p.dtype = point.dtype();
  p.is_causal = point.word("causal") == "yes";
  p.window = point.integer("window");
  p.soft_cap = static_cast<float>(point.integer("soft_cap"));
  p.key_lengths = point.word("lengths") == "no"       ? KeyLengths::none
                  : point.word("lengths") == "shared" ? KeyLengths::shared
                                                      : KeyLengths::per_member;
  p.aligns_to_lengths = point.word("lengths") == "cached";
  p.has_slopes = point.word("slopes") == "yes";
  p.has_bias = point.word("bias") == "yes";
  if (p.has_bias) {  // a bias of each score; strides of 0 would be of one that is shared
    const int64_t keys = p.kv_seq.value_or(p.seq);
    p.bias.query = keys;
    p.bias.head = p.seq * p.bias.query;
    p.bias.batch = p.heads * p.bias.head;
    p.bias.member = p.batch * p.bias.batch;
  }
  return p;
}

std::string impossible_reason(const Case& point) {
  const int64_t heads = point.integer("heads"), kv_heads = point.integer("kv_heads");
  if (kv_heads > 0 && heads % kv_heads != 0) {
    return std::to_string(kv_heads) + " kv_heads do not divide " + counted(heads, "head");
  }
  return point.integer("head_dim") > kMaxHeadDim
             ? "head_dim is above " + std::to_string(kMaxHeadDim)
             : "";
}

class FlashAttentionWorkload final
    : public PlanWorkload<describe_flash_attention, make_flash_attention_plan> {
 public:
  FlashAttentionWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, complete_flash_attention_problem(problem_of(point)), options) {
    const FlashAttentionProblem& p = like();
    const Shape queries{p.batch, p.seq, p.heads * p.head_dim};
    const Shape keys{p.batch, *p.kv_seq, p.kv_heads * p.head_dim};
    const auto uniform = Distribution::uniform();
    const auto spread = static_cast<double>(point.integer("spread"));
    q_ = &add_operand(operands::flash_attention_q, p.dtype, queries,
                      Distribution::uniform(-spread, spread));
    k_ = &add_operand(operands::flash_attention_k, p.dtype, keys, uniform);
    // A capped infinite score is far below the others: its power is 0 in fp32, but not in
    // fp64.
    const bool hides_keys = p.is_causal || p.window > 0 || p.soft_cap > 0;
    v_ = &add_operand(operands::flash_attention_v, p.dtype, keys, uniform.finite(hides_keys));
    if (p.key_lengths != KeyLengths::none) {
      // From 1 on: a query that sees no key would mask a poisoned member.
      const int64_t least = p.aligns_to_lengths ? std::clamp<int64_t>(p.seq, 1, *p.kv_seq) : 1;
      lengths_ = &add_operand(
          operands::flash_attention_key_lengths, Dtype::int32, {p.batch},
          {Distribution::Kind::ids, static_cast<double>(least), static_cast<double>(*p.kv_seq), 1},
          p.key_lengths == KeyLengths::shared);
    }
    if (p.has_slopes) {
      slopes_ = &add_operand(operands::flash_attention_slopes, Dtype::fp32, {p.heads},
                             Distribution::uniform(0, 1));
    }
    if (p.has_bias) {
      bias_ = &add_operand(operands::flash_attention_bias, p.dtype,
                           {p.batch, p.heads, p.seq, *p.kv_seq}, Distribution::uniform(-2, 2));
    }
    y_ = &add_operand(operands::flash_attention_q, p.dtype, queries, Distribution::none());
  }

  /// Two multiply-adds per element of each key that a query sees; keys that no query sees need not
  /// be read, nor biases of keys that their query does not see.
  Cost cost() const override {
    const FlashAttentionProblem& p = like();
    double pairs = 0, keys = 0;
    for (int64_t n = 0; n < p.num_members; ++n) {
      for (int64_t b = 0; b < p.batch; ++b) {
        const int64_t length = key_length(n, b);
        int64_t first = *p.kv_seq, last = 0;
        for (int64_t i = 0; i < p.seq; ++i) {
          const auto [low, high] = seen_keys(i, length);
          if (low >= high) continue;
          pairs += static_cast<double>(high - low);
          first = std::min(first, low), last = std::max(last, high);
        }
        keys += static_cast<double>(std::max<int64_t>(last - first, 0));
      }
    }
    const auto dim = static_cast<double>(p.head_dim), heads = static_cast<double>(p.heads);
    const double key_bytes =
        static_cast<double>(p.kv_heads) * dim * static_cast<double>(dtype_bytes(p.dtype));
    const double bias_bytes =
        bias_ == nullptr ? 0 : pairs * heads * static_cast<double>(dtype_bytes(p.dtype));
    return {4 * pairs * heads * dim,
            bytes_of({q_, lengths_, slopes_}) + bias_bytes + 2 * keys * key_bytes, bytes_of({y_})};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const FlashAttentionProblem& p = like();
    const auto dim = static_cast<size_t>(p.head_dim), heads = static_cast<size_t>(p.heads);
    const int64_t b = row / p.seq;
    const auto kv_row = static_cast<size_t>(*p.kv_seq * p.kv_heads * p.head_dim);
    const auto keys_of = [&](const Operand& operand) {
      return operand.values(member).subspan(static_cast<size_t>(b) * kv_row, kv_row);
    };
    const auto q = row_of(q_, member, row, p.heads * p.head_dim);
    FlashAttentionReferenceRow judged{
        {}, keys_of(*k_), keys_of(*v_), row % p.seq, 0, key_length(member, b), 0};
    for (size_t h = 0; h < heads; ++h) {
      judged.q = q.subspan(h * dim, dim);
      judged.kv_head = static_cast<int64_t>(h) / (p.heads / p.kv_heads);
      judged.slope = slopes_ == nullptr ? 0 : slopes_->values(member)[h];
      if (bias_ != nullptr) {
        const auto keys = static_cast<size_t>(*p.kv_seq);
        const auto line = (static_cast<size_t>(b) * heads + h) * static_cast<size_t>(p.seq) +
                          static_cast<size_t>(row % p.seq);
        judged.bias = bias_->values(member).subspan(line * keys, keys);
      }
      judge_flash_attention_row(p, judged, values.subspan(h * dim, dim),
                                tolerances.subspan(h * dim, dim));
    }
  }

  double reference_row_flops() const override {
    return 12 * static_cast<double>(*like().kv_seq) *
           static_cast<double>(like().heads * like().head_dim);
  }

 private:
  FlashAttentionArguments arguments(const OperandViews& view) const override {
    return {view(q_), view(k_), view(v_), view(lengths_), view(slopes_), view(y_), view(bias_)};
  }
  std::string cudnn_unsupported_reason(const FlashAttentionArguments& arguments) const override {
    return flash_attention_cudnn_unsupported_reason(arguments);
  }

  int64_t key_length(int64_t member, int64_t batch_row) const {
    if (lengths_ == nullptr) return *like().kv_seq;
    return static_cast<int64_t>(lengths_->values(member)[static_cast<size_t>(batch_row)]);
  }

  /// The visible keys, which are one range, [first, last).
  std::pair<int64_t, int64_t> seen_keys(int64_t query, int64_t key_length) const {
    const FlashAttentionProblem& p = like();
    const int64_t end = p.aligns_to_lengths ? key_length : *p.kv_seq;
    const int64_t position = query + end - p.seq;
    int64_t first = 0, last = std::min(*p.kv_seq, key_length);
    if (p.is_causal) last = std::min(last, position + 1);
    if (p.window > 0) {
      first = std::max(first, position - p.window + 1);
      last = std::min(last, position + p.window);
    }
    return {first, last};
  }

  const Operand *q_ = nullptr, *k_ = nullptr, *v_ = nullptr, *lengths_ = nullptr,
                *slopes_ = nullptr, *bias_ = nullptr, *y_ = nullptr;
};

std::vector<AxisInfo> axes() {
  // Sizes for tests divide each other where they must, and keep heads few.
  return {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "batch rows B", int64_t{8}, {}, 0, {2, 1}},
      {"seq", "queries of a batch row Tq", int64_t{128}, {}, 0, {5, 19, 131}},
      {"kv_seq", "keys of a batch row Tk; 0: seq", int64_t{0}, {}, 0, {7, 37, 139}},
      {"heads", "of queries, per member", int64_t{8}, {}, 1, {3, 2}},
      {"kv_heads", "of keys and values, divides heads; 0: heads", int64_t{0}, {}, 0, {1}},
      {"head_dim", "elements of a head D", int64_t{32}, {}, 1, {3, 20, 72}},
      dtype_axis("of q, k, v and y"),
      {"causal", "whether a query sees no later key", "no", {"no", "yes"}},
      {"window", "keys nearer than this are seen; 0: all", int64_t{0}, {}, 0, {0}},
      {"lengths",
       "of the keys: all, one set for all members, or one each, which positions follow if cached",
       "no",
       {"no", "shared", "own", "cached"}},
      {"slopes", "ALiBi", "no", {"no", "yes"}},
      {"bias", "of each score of each member, batch row and head", "no", {"no", "yes"}},
      {"soft_cap", "of the scores; 0: none", int64_t{0}, {}, 0, {0}},
      {"spread",
       "q lies in [-spread, spread]: large makes softmax sharp",
       int64_t{1},
       {},
       0,
       {3, 2, 1}}};
}

std::vector<StrategyInfo> strategies() {
  using enum DeviceType;
  using enum StrategyKind;
  return {
      {"sequential", cuda, sequential,
       "cuDNN's where it takes the problem, else the kernel that suits the dtype; one call per "
       "member"},
      {"cudnn", cuda, vendor, "cuDNN's, members become additional heads", {}, cudnn_policies()},
      {"simt",
       cuda,
       hand_written,
       "one launch; register tiles of scores, online softmax, fp32 multiply-adds",
       // A head's keys and values are read again for every 64 queries.
       {.rereads = 0.55, .bank_conflicts = 0.02}},
      {"short",
       cuda,
       hand_written,
       "one launch; all keys and values of a head stay in shared memory, all scores in registers",
       // Keys and values are read once.
       {.rereads = 0, .bank_conflicts = 0.02}},
      {"tensor_core",
       cuda,
       hand_written,
       "one launch; scores and their softmax stay in registers, keys and values are streamed",
       {.rereads = 0.05, .bank_conflicts = 0.02}},
      {"wgmma",
       cuda,
       hand_written,
       "one persistent launch: bulk tensor copies, warpgroup products, softmax between (Hopper)",
       {.rereads = 0.05, .bank_conflicts = 0.02}},
      {"decode",
       cuda,
       hand_written,
       "few queries: all heads that share keys as one tile, keys divided over warps and blocks",
       {.rereads = 0.05, .bank_conflicts = 0.02}},
      {"sequential", cpu, sequential, "member after member, each over all threads"},
      {"wide", cpu, hand_written, "the heads of all members over all threads at once"}};
}

std::vector<Sweep> sweeps() {
  const auto small = [](std::vector<AxisValue> n) {
    return std::vector<Axis>{{"n", std::move(n)},
                             {"batch", ints({8})},
                             {"seq", ints({128})},
                             {"heads", ints({8})},
                             {"head_dim", ints({32})}};
  };
  return {{"quick", small(ints({4, 8, 16, 32}))},
          {"full",
           {{"n", ints({2, 4, 8, 16, 32, 64})},
            {"batch", ints({4, 8, 16})},
            {"seq", ints({64, 128, 256, 512})},
            {"heads", ints({4, 8, 12})},
            {"head_dim", ints({32, 64, 128})},
            {"causal", {"no", "yes"}}}},
          {"ci", small(ints({4, 16}))}};
}

}  // namespace

const PrimitiveSpec& flash_attention_spec() {
  static const PrimitiveSpec spec{
      .name = "flash_attention",
      .summary = "y = softmax(scale q k^T) v, every head of every member",
      .axes = axes(),
      .strategies = strategies(),
      .sweeps = sweeps(),
      .tolerance_formula = kFlashAttentionToleranceFormula,
      .impossible_reason = impossible_reason,
      .tuning_key = tuned_by(problem_of),
      .make_workload = make_workload<FlashAttentionWorkload>};
  return spec;
}

}  // namespace wide::catalog
