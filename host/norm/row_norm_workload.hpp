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
#pragma once

#include "host/norm/chain_reference.hpp"
#include "host/norm/norm_spec.hpp"

namespace wide::catalog {

/// Of the axes that all three have.
inline ChainProblem rows_of(const Case& point) {
  ChainProblem p;
  p.num_members = point.integer("n");
  p.rows = point.integer("batch") * point.integer("seq");
  p.features = point.integer("d");
  p.dtype = point.dtype();
  p.has_residual = point.word("residual") != "no";
  p.has_sum = point.word("residual") == "stored";
  return p;
}

/// The baseline is our own kernel, too: cuDNN's layernorm and rmsnorm take dense rows only, hence
/// no member of `sequential`. PyTorch's are among the peers.
template <class Primitive>
class RowNormWorkload final : public PlanWorkload<Primitive::describe, Primitive::make_plan> {
  using Base = PlanWorkload<Primitive::describe, Primitive::make_plan>;

 public:
  RowNormWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : Base(context, Primitive::problem(Primitive::problem_of(point)), options),
        features_(point.integer("d")) {
    const ChainProblem p = Primitive::problem_of(point);
    const Shape rows{point.integer("batch"), point.integer("seq"), p.features};
    const auto add_rows = [&](bool is_there, const Distribution& from) {
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
    sum_ = add_rows(p.has_sum, Distribution::none());
    y_ = add_rows(true, Distribution::none());
  }

  Cost cost() const override {
    return {Primitive::kFlops * elements_of(*x_), bytes_of({x_, bias_, residual_, gamma_, beta_}),
            bytes_of({y_, sum_})};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
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
    return Primitive::arguments(
        {view(x_), view(bias_), view(residual_), view(gamma_), view(beta_), view(y_), view(sum_)});
  }

  int64_t features_;
  const Operand *x_ = nullptr, *bias_ = nullptr, *residual_ = nullptr, *gamma_ = nullptr,
                *beta_ = nullptr, *sum_ = nullptr, *y_ = nullptr;
};

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
  spec.tuning_key = [](const Case& point) {
    return tuning_key(Primitive::problem(Primitive::problem_of(point)));
  };
  spec.make_workload = make_workload<RowNormWorkload<Primitive>>;
  return spec;
}

}  // namespace wide::catalog
