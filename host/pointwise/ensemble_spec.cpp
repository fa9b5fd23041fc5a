// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ensemble for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/plan_workload.hpp"
#include "host/pointwise/ensemble_reference.hpp"
#include "host/pointwise/ensemble_run.hpp"
#include "host/specs.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
EnsembleProblem problem_of(const Case& point) {
  EnsembleProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch");
  p.features = point.integer("d");
  p.function = *parse_ensemble_function(point.word("function"));
  p.has_mask = point.word("mask") == "some";
  p.dtype = point.dtype();
  return p;
}

class EnsembleWorkload final : public PlanWorkload<describe_ensemble, make_ensemble_plan> {
 public:
  EnsembleWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {
    const EnsembleProblem& p = like();
    const Shape rows{p.rows, p.features};
    x_ = &add_operand(operands::ensemble_x, p.dtype, rows,
                      options.fill == Fill::integers ? Distribution::integers(-8, 8)
                                                     : Distribution::uniform(-4, 4));
    if (p.has_mask) mask_ = &add_mask();
    y_ = &add_operand(operands::ensemble_x, p.dtype, rows, Distribution::none(), true);
  }

  std::string baseline_unsupported_reason() const override {
    return "ensemble: members meet in one result, which no calls of single members make";
  }
  PreparedMembers prepare_members() override {
    throw Error(ErrorCode::unsupported, baseline_unsupported_reason());
  }

  /// One operation per element of x, whatever the function: bytes determine the time.
  Cost cost() const override {
    const double elements = elements_of(*x_) / static_cast<double>(num_members()) * counted();
    const double x_bytes = elements * static_cast<double>(dtype_bytes(like().dtype));
    return {elements, x_bytes + bytes_of({mask_}), bytes_of({y_})};
  }

  void reference_row(int64_t, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    std::vector<std::span<const double>> members;
    if (values_.empty()) {
      for (int64_t n = 0; n < num_members(); ++n) {
        const auto own = x_->values(n);
        values_.emplace_back(own.begin(), own.end());
      }
    }
    for (int64_t n = 0; n < num_members(); ++n) {
      if (like().has_mask && is_left_out(n)) continue;
      const std::span<const double> own = values_[static_cast<size_t>(n)];
      members.push_back(own.subspan(static_cast<size_t>(row) * values.size(), values.size()));
    }
    ensemble_reference(like(), members, values, tolerances);
  }
  double reference_row_flops() const override {
    return 64 * static_cast<double>(like().features) * static_cast<double>(num_members());
  }

 private:
  /// The mask "some" leaves out a third, never the first.
  static bool is_left_out(int64_t member) { return member % 3 == 1; }

  Operand& add_mask() {
    Operand::Description mask;
    mask.packing.name = "ensemble mask";
    mask.dtype = Dtype::uint8;
    mask.member_shape = {num_members()};
    mask.is_shared = true;
    mask.contents = [](int64_t, bool, std::span<std::byte> bytes) {
      for (size_t n = 0; n < bytes.size(); ++n) {
        bytes[n] =
            std::byte{static_cast<uint8_t>(is_left_out(static_cast<int64_t>(n)) ? 0 : n % 255 + 1)};
      }
    };
    return add_operand(std::move(mask));
  }

  double counted() const {
    int64_t count = 0;
    for (int64_t n = 0; n < num_members(); ++n) {
      count += like().has_mask && is_left_out(n) ? 0 : 1;
    }
    return static_cast<double>(count);
  }

  EnsembleArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(mask_), view(y_)};
  }

  const Operand *x_ = nullptr, *mask_ = nullptr, *y_ = nullptr;
  mutable std::vector<std::vector<double>> values_;  ///< of each member
};

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "ensemble";
  spec.summary = "y = mean, sum, variance, vote or log mean exp of x over the members";
  spec.joins_members = true;
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "rows of x per member: B, or B*T", int64_t{1024}, {}, 0},
      {"d", "features", int64_t{256}, {}, 0},
      {"function", "what members become: vote is the share of those whose largest feature it is",
       "mean", words_of(kAllEnsembleFunctions, ensemble_function_name)},
      {"mask", "which members are left out", "no", {"no", "some"}, 0},
      dtype_axis("of x and y")};
  spec.strategies =
      wide_strategies("one launch: all of x is read once, the result is all that is written",
                      {.streamed = 1.03, .is_memory_bound = true});
  const Axis functions{"function", word_values(kAllEnsembleFunctions, ensemble_function_name)};
  spec.sweeps = {
      {"quick", {{"n", ints({8, 32})}, {"batch", ints({1024})}, {"d", ints({256})}, functions}},
      {"full",
       {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
        {"batch", ints({1024, 4096})},
        {"d", ints({10, 256, 1000, 4096})},
        functions}},
      {"ci", {{"n", ints({4, 16})}, {"batch", ints({128})}, {"d", ints({256})}}}};
  spec.trusted_zeros = 0.99;  // a vote is for one of many classes
  spec.tolerance_formula =
      "K members that count: mean (K + 1) 2^-24 mean |x| + min_subnormal + u_out |y|; sum K 2^-24 "
      "sum |x| + min_subnormal + u_out |y|; variance ((7 K + 8) 2^-24 + u_out) y + min_subnormal; "
      "vote (2^-24 + u_out) y; log_mean_exp 2^-24 (2 A + 8 K + 8 + 2 |log(sum exp(d) / K)| + |y|) "
      "+ u_out |y| + min_subnormal, d = x - max, A = sum |d| exp(d) / sum exp(d)";
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<EnsembleWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& ensemble_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
