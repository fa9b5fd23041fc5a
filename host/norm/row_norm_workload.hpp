// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operands, plans and references of layernorm, rmsnorm and chain, in chain's terms; a Primitive has
// the differences:
//   Problem, Arguments, Plan
//   kX, kParameter: operands' layouts    kFlops, kReferenceFlops: of an element
//   problem_of(point): in chain's terms  x_values(point): the values of x
//   describe, make_plan: the public functions of that name
//   problem, arguments: from chain's terms to the primitive's
//   reference(problem, row, y, tolerance)
#pragma once

#include "host/norm/chain_reference.hpp"
#include "host/norm/norm_spec.hpp"
#include "host/norm/row_norm.hpp"

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

template <class Primitive>
class RowNormWorkload final : public PackedWorkload {
 public:
  RowNormWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PackedWorkload(context, point.integer("n"), options), shape_(Primitive::problem_of(point)) {
    const ChainProblem& p = shape_;
    const Shape rows{point.integer("batch"), point.integer("seq"), p.features};
    const auto add_rows = [&](bool is_there, const Distribution& from) {
      return is_there ? &add_operand(Primitive::kX, p.dtype, rows, from) : nullptr;
    };
    const auto add_parameter = [&](bool is_there) {
      return is_there ? &add_operand(Primitive::kParameter, p.dtype, {p.features},
                                     Distribution::uniform())
                      : nullptr;
    };
    x_ = add_rows(true, Primitive::x_values(point));
    bias_ = add_parameter(p.has_bias);
    residual_ = add_rows(p.has_residual, Distribution::uniform());
    gamma_ = add_parameter(p.has_gamma);
    beta_ = add_parameter(p.has_beta);
    sum_ = add_rows(p.has_sum, Distribution::none());
    y_ = add_rows(true, Distribution::none());
    const auto packed = [](const Operand* operand) {
      return operand == nullptr ? TensorView() : operand->packed();
    };
    arguments_ = Primitive::arguments({packed(x_), packed(bias_), packed(residual_), packed(gamma_),
                                       packed(beta_), packed(y_), packed(sum_)});
    problem_ = Primitive::describe(arguments_, Primitive::problem(shape_));
  }

  std::string unsupported_reason(std::string_view strategy) const override {
    return reason_against([&] {
      return Primitive::make_plan(context(), problem_, {.strategy = std::string(strategy)});
    });
  }

  Prepared prepare(const PlanOptions& options) override {
    return prepared(Primitive::make_plan(context(), problem_, options), arguments_);
  }

  /// A baseline member is our own kernel with N = 1: cuDNN's layernorm and rmsnorm take dense rows
  /// only, hence no member of `sequential`. PyTorch's are among the peers.
  PreparedMembers prepare_members() override {
    typename Primitive::Problem one = Primitive::problem(shape_);
    one.num_members = 1;
    const auto plan = Primitive::make_plan(context(), one, {.strategy = "sequential"});
    std::vector<typename Primitive::Arguments> arguments;
    for (int64_t n = 0; n < num_members(); ++n) {
      arguments.push_back(
          Primitive::arguments({own_rows(x_, n), own_parameters(bias_, n), own_rows(residual_, n),
                                own_parameters(gamma_, n), own_parameters(beta_, n),
                                own_rows(y_, n), own_rows(sum_, n)}));
    }
    return prepared_members(plan, std::move(arguments));
  }

  Cost cost() const override {
    const auto read = static_cast<double>(x_->bytes() + bytes_of(bias_) + bytes_of(residual_) +
                                          bytes_of(gamma_) + bytes_of(beta_));
    const double elements =
        static_cast<double>(x_->bytes()) / static_cast<double>(dtype_bytes(shape_.dtype));
    return {Primitive::kFlops * elements, read, static_cast<double>(y_->bytes() + bytes_of(sum_))};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const auto d = static_cast<size_t>(shape_.features);
    const auto of_row = [&](const Operand* operand) {
      return operand == nullptr ? std::span<const double>()
                                : operand->values(member).subspan(static_cast<size_t>(row) * d, d);
    };
    Primitive::reference(problem_,
                         {of_row(x_), values_of(bias_, member), of_row(residual_),
                          values_of(gamma_, member), values_of(beta_, member)},
                         values, tolerances);
  }
  double reference_row_flops() const override {
    return Primitive::kReferenceFlops * static_cast<double>(shape_.features);
  }

 private:
  ChainProblem shape_;  ///< of the case; problem_ has the operands' strides, too
  Operand* x_ = nullptr;
  Operand* bias_ = nullptr;
  Operand* residual_ = nullptr;
  Operand* gamma_ = nullptr;
  Operand* beta_ = nullptr;
  Operand* sum_ = nullptr;
  Operand* y_ = nullptr;
  typename Primitive::Arguments arguments_;
  typename Primitive::Problem problem_;
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
