// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// top_k for bench and verify: axes, sweeps, strategies, operands, cost.
//
// Members are the scores of a row, and meet in one result: a row of its K ids, as numbers, and
// their gates.
#include "host/core/text.hpp"
#include "host/plan_workload.hpp"
#include "host/routing/top_k_reference.hpp"
#include "host/routing/top_k_run.hpp"
#include "host/specs.hpp"
#include "wide/convert.hpp"

namespace wide::catalog {

namespace {

constexpr PackedOperand kScores{"top_k scores", PackedOperand::Kind::joined, -1, 2, 2};

/// The one place where axis values become a problem.
TopKProblem problem_of(const Case& point) {
  TopKProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch");
  p.choices = point.integer("choices");
  p.gate = *parse_gate_function(point.word("gate"));
  p.has_gates = point.word("gates") == "yes";
  p.dtype = point.dtype();
  p.id_dtype = *parse_dtype(point.word("id_dtype"));
  return p;
}

std::string impossible_reason(const Case& point) {
  const int64_t choices = point.integer("choices"), n = point.integer("n");
  if (choices <= n) return "";
  return counted(choices, "choice") + " of " + counted(n, "member");
}

class TopKWorkload final : public PlanWorkload<describe_top_k, make_top_k_plan> {
 public:
  TopKWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {
    const TopKProblem& p = like();
    scores_ = &add_operand(kScores, p.dtype, {p.rows, 1},
                           options.fill == Fill::integers ? Distribution::integers(-8, 8)
                                                          : Distribution::uniform(-4, 4));
    ids_ = &add_output("top_k ids", p.id_dtype);
    if (p.has_gates) gates_ = &add_output("top_k gates", Dtype::fp32);
  }

  std::string baseline_unsupported_reason() const override {
    return "top_k: members meet in one result, which no calls of single members make";
  }
  PreparedMembers prepare_members() override {
    throw Error(ErrorCode::unsupported, baseline_unsupported_reason());
  }

  /// An operation per score, whatever is chosen.
  Cost cost() const override {
    return {elements_of(*scores_), bytes_of({scores_}), footprint() - bytes_of({scores_}),
            static_cast<double>(like().rows)};
  }
  int64_t footprint_bytes() const override { return static_cast<int64_t>(footprint()); }

  int64_t num_outputs() const override { return 1; }
  int64_t rows(int64_t) const override { return like().rows; }
  int64_t row_length(int64_t) const override { return like().choices * (like().has_gates ? 2 : 1); }

  void poison_outputs(OutputOf which, Stream stream) override {
    ids_->poison(which, stream);
    if (gates_ != nullptr) gates_->poison(which, stream);
  }

  /// As fp32, which holds ids of as many members as there are in any case.
  MemberOutputs read_outputs(OutputOf, Stream stream) override {
    const int64_t choices = like().choices, length = row_length(0), all = like().rows * length;
    MemberOutputs outputs{Dtype::fp32, {}};
    auto& output = outputs.members.emplace_back();
    output = {like().rows, length, std::vector<std::byte>(static_cast<size_t>(4 * all))};
    const auto add = [&](const Operand& from, int64_t place) {
      const std::vector<std::byte> bytes = read(from.packed(), stream);
      const Dtype dtype = from.description().dtype;
      for (int64_t i = 0; i < like().rows * choices; ++i) {
        const double value = load_element(bytes.data(), dtype, i);
        store_element(output.bytes.data(), Dtype::fp32, i / choices * length + place + i % choices,
                      value);
      }
    };
    add(*ids_, 0);
    if (gates_ != nullptr) add(*gates_, choices);
    return outputs;
  }

  void reference_row(int64_t, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    if (values_.empty()) {
      for (int64_t n = 0; n < num_members(); ++n) {
        const auto own = scores_->values(n);
        values_.emplace_back(own.begin(), own.end());
      }
    }
    std::vector<double> scores;
    for (const auto& own : values_) scores.push_back(own[static_cast<size_t>(row)]);
    const auto choices = static_cast<size_t>(like().choices);
    std::vector<int64_t> ids(choices);
    top_k_reference(like(), scores, ids, values.subspan(choices), tolerances.subspan(choices));
    for (size_t k = 0; k < choices; ++k) {
      values[k] = static_cast<double>(ids[k]);
      tolerances[k] = 0;
    }
  }
  double reference_row_flops() const override { return 64 * static_cast<double>(num_members()); }

 private:
  /// Contiguous, whatever the padding.
  Operand& add_output(std::string_view name, Dtype dtype) {
    const MemberPlace all{{like().rows * like().choices}, 0, {1}};
    return add_ragged_operand(name, dtype,
                              std::vector(static_cast<size_t>(like().num_members), all),
                              Distribution::none());
  }

  double footprint() const {
    const auto chosen = static_cast<double>(like().rows * like().choices);
    const int64_t bytes = dtype_bytes(like().id_dtype) + (like().has_gates ? 4 : 0);
    return bytes_of({scores_}) + chosen * static_cast<double>(bytes);
  }

  std::vector<std::byte> read(const TensorView& view, Stream stream) const {
    std::vector<std::byte> bytes(
        static_cast<size_t>(view.num_elements() * dtype_bytes(view.dtype)));
    copy(view, TensorView(bytes.data(), view.dtype, view.shape, Device{}), stream);
    context().synchronize(stream);
    return bytes;
  }

  TensorView rows_of(const Operand* operand) const {
    if (operand == nullptr) return TensorView();
    const TensorView all = operand->packed();
    return TensorView(all.data, all.dtype, {like().rows, like().choices}, all.device);
  }
  TopKArguments arguments(const OperandViews& view) const override {
    return {view(scores_), rows_of(ids_), rows_of(gates_)};
  }

  const Operand* scores_ = nullptr;
  Operand *ids_ = nullptr, *gates_ = nullptr;
  mutable std::vector<std::vector<double>> values_;  ///< of each member
};

std::vector<Sweep> sweeps() {
  return {
      {"quick", {{"n", ints({8, 64, 256})}, {"batch", ints({4096})}, {"choices", ints({2, 8})}}},
      {"full",
       {{"n", ints({8, 64, 256, 1024})},
        {"batch", ints({1, 64, 4096})},
        {"choices", ints({1, 2, 8})},
        {"gate", word_values(kAllGateFunctions, gate_function_name)}}},
      {"ci", {{"n", ints({8, 300})}, {"batch", ints({64})}, {"choices", ints({2, 8})}}}};
}

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "top_k";
  spec.summary = "which K of N members each row goes to, by a score for each, and their gates";
  spec.joins_members = true;
  spec.axes = {
      {"n", "members", int64_t{64}, {}, 1},
      {"batch", "rows", int64_t{1024}, {}, 0},
      {"choices", "K, members of a row", int64_t{2}, {}, 1, {1, 2, 3}},
      {"gate", "what the chosen scores become: softmax is over these, softmax_all over all",
       "softmax", words_of(kAllGateFunctions, gate_function_name)},
      {"gates", "whether these are wanted", "yes", {"yes", "no"}, 0},
      dtype_axis("of scores"),
      {"id_dtype", "of ids", "int64", {"int64", "int32"}, 0}};
  // Each row of scores, ids and gates is moved on its own, in sectors of 32 bytes.
  spec.strategies =
      wide_strategies("one launch: a row's scores stay in registers", {.streamed = 2.45});
  spec.strategies[0].summary = "the wide kernel, one launch per choice";
  spec.strategies[2].summary = "choice after choice, each threaded over rows";
  spec.strategies[3].summary = "all choices of a row at once, threaded over rows";
  spec.sweeps = sweeps();
  spec.trusted_zeros = 0.65;  // ids of few members are
  spec.tolerance_formula =
      "ids 0; gates: softmax (2 (|d| + A + 16 + sqrt(count)) + 1) 2^-24 y + min_subnormal + "
      "2^-140, d = s - max, A = sum |d| exp(d) / sum exp(d); sigmoid (17 + 4 max(-s, 0)) 2^-24 y + "
      "2^-119; none 0";
  spec.impossible_reason = impossible_reason;
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<TopKWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& top_k_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
