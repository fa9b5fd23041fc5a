// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands, plans and references of layernorm, rmsnorm and chain, in chain's terms; a Primitive has
// the differences:
//   kX, kParameter: operands' layouts    kFlops, kReferenceFlops: of an element
//   problem_of(point): in chain's terms  x_values(point): the values of x
//   describe, make_plan: the public functions of that name
//   problem, arguments: from chain's terms to the primitive's
//   reference(problem, row, y, tolerance)
//
// Routed rows are shuffled: a member's are scattered over x and y, and rows of nobody between them.
#pragma once

#include "host/norm/chain_reference.hpp"
#include "host/norm/norm_spec.hpp"
#include "host/norm/row_norm.hpp"
#include "host/norm/row_norm_cudnn.hpp"
#include "host/routed_workload.hpp"

namespace wide::catalog {

inline bool is_routed(const Case& point) {
  return point.word("routed") == "yes";
}

/// Of each member, then of nobody.
inline std::vector<int64_t> norm_row_counts(const Case& point) {
  const int64_t members = point.integer("n"), rows = point.integer("batch") * point.integer("seq");
  std::vector<int64_t> counts(static_cast<size_t>(members), rows);
  counts.push_back(members * rows * point.integer("dropped") / 100);
  return counts;
}

/// Of the axes that all three have.
inline ChainProblem rows_of(const Case& point) {
  ChainProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch") * point.integer("seq");
  p.features = point.integer("d");
  p.dtype = point.dtype();
  p.has_residual = point.word("residual") != "no";
  p.has_sum = point.word("residual") == "stored";
  if (!is_routed(point)) return p;
  const std::vector<int64_t> counts = norm_row_counts(point);
  p.rows = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  p.id_dtype = parse_dtype(point.word("id_dtype"));
  return p;
}

/// A member of the baseline has rows of its own, which cuDNN's layernorm and rmsnorm take; those of
/// `sequential` have gaps between them, which it does not. PyTorch's are among the peers.
template <class Primitive>
class RowNormWorkload final : public PlanWorkload<Primitive::describe, Primitive::make_plan> {
  using Base = PlanWorkload<Primitive::describe, Primitive::make_plan>;

 public:
  RowNormWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : Base(context, Primitive::problem(Primitive::problem_of(point)), options),
        features_(point.integer("d")) {
    const ChainProblem p = Primitive::problem_of(point);
    if (is_routed(point)) shuffled_.emplace(norm_row_counts(point));
    const Shape rows{point.integer("batch"), point.integer("seq"), p.features};
    const auto add_rows = [&](bool is_there, const Distribution& from) -> const Operand* {
      if (is_there && shuffled_) return &add_routed(p.dtype, from);
      return this->add_operand_if(is_there, Primitive::kX, p.dtype, rows, from);
    };
    const auto add_parameter = [&](bool is_there) {
      return this->add_operand_if(is_there, Primitive::kParameter, p.dtype, {p.features},
                                  Distribution::uniform());
    };
    x_ = add_rows(true, Primitive::x_values(point));
    bias_ = add_parameter(p.has_bias);
    residual_ = add_rows(p.has_residual, Distribution::uniform());
    gamma_ = add_parameter(p.has_gamma);
    beta_ = add_parameter(p.has_beta);
    if (p.id_dtype == Dtype::int64) add_ids<int64_t>(Dtype::int64);
    if (p.id_dtype == Dtype::int32) add_ids<int32_t>(Dtype::int32);
    sum_ = add_rows(p.has_sum, Distribution::none());
    y_ = add_rows(true, Distribution::none());
  }

  Cost cost() const override {
    return {Primitive::kFlops * elements_of(*x_),
            bytes_of({x_, bias_, residual_, gamma_, beta_, ids_}), bytes_of({y_, sum_})};
  }

  /// Of calls of one member each, none is for rows of nobody.
  MemberOutputs read_outputs(OutputOf which, Stream stream) override {
    MemberOutputs outputs = Base::read_outputs(which, stream);
    if (which == OutputOf::baseline && this->num_outputs() > this->num_members()) {
      std::ranges::fill(outputs.members.back().bytes, std::byte{0});
    }
    return outputs;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    if (member == this->num_members()) {  // nobody
      std::ranges::fill(values, 0);
      std::ranges::fill(tolerances, 0);
      return;
    }
    Primitive::reference(this->like(),
                         {row_of(x_, member, row, features_), values_of(bias_, member),
                          row_of(residual_, member, row, features_), values_of(gamma_, member),
                          values_of(beta_, member)},
                         values, tolerances);
  }
  double reference_row_flops() const override {
    return Primitive::kReferenceFlops * static_cast<double>(features_);
  }

 private:
  typename Base::Arguments arguments(const OperandViews& view) const override {
    return arguments_of(
        view, [&](const Operand* rows) { return shuffled_ ? all_rows(rows) : view(rows); },
        view(ids_));
  }
  std::string cudnn_unsupported_reason(const typename Base::Arguments& arguments) const override {
    return row_norm_cudnn_unsupported_reason(to_chain(arguments));
  }
  /// Of rows that lie together.
  typename Base::Arguments member_arguments(int64_t n) const override {
    const OperandViews view(n);
    return arguments_of(view, [&](const Operand* rows) {
      return shuffled_ && rows != nullptr ? rows->member(n) : view(rows);
    });
  }
  template <class RowsOf>
  typename Base::Arguments arguments_of(const OperandViews& view, const RowsOf& rows,
                                        const TensorView& ids = {}) const {
    return Primitive::arguments({rows(x_), view(bias_), rows(residual_), view(gamma_), view(beta_),
                                 rows(y_), rows(sum_), ids});
  }

  int64_t row_stride() const { return features_ + this->options().row_padding; }
  TensorView all_rows(const Operand* operand) const {
    if (operand == nullptr) return {};
    TensorView rows = operand->packed();
    rows.shape = Shape{this->like().rows, features_};
    rows.strides = Strides{row_stride(), 1};
    return rows;
  }
  Operand& add_routed(Dtype dtype, const Distribution& from) {
    std::vector<MemberPlace> places;
    const auto place = [&](const std::vector<int64_t>& rows) {
      places.push_back(
          {.shape = {std::ssize(rows), features_}, .strides = {row_stride(), 1}, .rows = rows});
    };
    for (const auto& rows : shuffled_->of_member) place(rows);
    const bool is_output = from.kind == Distribution::Kind::none;
    if (is_output && !shuffled_->of_nobody.empty()) place(shuffled_->of_nobody);
    const int64_t rows = this->like().rows;
    return this->add_ragged_operand(Primitive::kX.name, dtype, std::move(places), from,
                                    rows == 0 ? 0 : (rows - 1) * row_stride() + features_);
  }
  template <class Id>
  void add_ids(Dtype dtype) {
    std::vector<Id> ids(static_cast<size_t>(this->like().rows), Id{-1});
    for (size_t n = 0; n < shuffled_->of_member.size(); ++n) {
      for (const int64_t row : shuffled_->of_member[n]) {
        ids[static_cast<size_t>(row)] = static_cast<Id>(n);
      }
    }
    ids_ = &this->add_operand(numbers_operand("ids", dtype, std::move(ids)));
  }

  int64_t features_;
  std::optional<ShuffledRows> shuffled_;
  const Operand *x_ = nullptr, *bias_ = nullptr, *residual_ = nullptr, *gamma_ = nullptr,
                *beta_ = nullptr, *ids_ = nullptr, *sum_ = nullptr, *y_ = nullptr;
};

inline constexpr std::string_view kRowNormCudnnSummary =
    "cuDNN's, over the rows of one member, or of all members where these have no gamma and beta";

/// What the specs of all three share; `own` are the axes after those of sizes.
template <class Primitive>
PrimitiveSpec row_norm_spec(std::string_view name, std::string_view summary,
                            std::vector<AxisInfo> own, double rereads) {
  PrimitiveSpec spec;
  spec.name = name;
  spec.summary = summary;
  spec.axes = {{"n", "members", int64_t{4}, {}, 1},
               {"batch", "batch rows B", int64_t{8}, {}, 0},
               {"seq", "positions per batch row T", int64_t{128}, {}, 0},
               {"d", "features that are normalised together", int64_t{256}, {}, 0}};
  spec.axes.insert(spec.axes.end(), own.begin(), own.end());
  spec.axes.push_back({"routed", "whether ids tell each row's member", "no", {"no", "yes"}, 0});
  spec.axes.push_back(dropped_axis());
  spec.axes.push_back({"id_dtype", "of ids", "int64", {"int64", "int32"}, 0});
  spec.strategies = wide_strategies(
      "one launch; a row in the registers of 8 lanes or a block, read once, written once",
      {.rereads = rereads, .is_memory_bound = true});
  const auto small = [](std::vector<AxisValue> n) {
    return std::vector<Axis>{
        {"n", std::move(n)}, {"batch", ints({8})}, {"d", ints({256})}, {"seq", ints({128})}};
  };
  spec.sweeps = {{"quick", small(ints({4, 8, 16, 32}))},
                 {"full",
                  {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
                   {"batch", ints({4, 8, 16, 32})},
                   {"d", ints({128, 256, 512, 768})},
                   {"seq", ints({64, 128, 256, 512})}}},
                 {"ci", small(ints({4, 16}))}};
  spec.sweeps.back().axes.push_back({"routed", {"no", "yes"}});
  spec.impossible_reason = [](const Case& point) {
    if (is_routed(point)) return std::string();
    if (point.integer("dropped") > 0) return std::string("rows of nobody are among routed ones");
    return std::string(point.word("id_dtype") != "int64" ? "only routed rows have ids" : "");
  };
  spec.tuning_key = [](const Case& point) {
    return tuning_key(Primitive::problem(Primitive::problem_of(point)));
  };
  spec.make_workload = make_workload<RowNormWorkload<Primitive>>;
  return spec;
}

}  // namespace wide::catalog
