// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A linear workload on the CPU whose operands lie open, so that a test can compute y wrongly in a
// chosen way. Reference and tolerances are the catalogue's own: contents depend on seed, operand
// and member only, so the catalogue's workload for the same case holds the same values.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "host/operand.hpp"
#include "wide/linear.hpp"

namespace wide::test {

class OpenLinear final : public catalog::PackedWorkload {
 public:
  OpenLinear(const Context& context, const LinearProblem& problem,
             const catalog::WorkloadOptions& options);

  const LinearProblem& problem() const { return problem_; }
  double x(int64_t member, int64_t row, int64_t in) const;
  double weight(int64_t member, int64_t out, int64_t in) const;
  double bias(int64_t member, int64_t out) const;
  double y(int64_t member, int64_t row, int64_t out) const;
  void set_y(int64_t member, int64_t row, int64_t out, double value);
  /// Start of the packed tensors, for errors that no index arithmetic would make.
  void* x_data() const { return x_view_.data; }
  void* weight_data() const { return weight_view_.data; }
  void* y_data() const { return y_view_.data; }
  int64_t y_elements() const { return y_view_.num_elements(); }
  int64_t x_row_stride() const { return x_view_.strides[0]; }
  int64_t y_row_stride() const { return y_view_.strides[0]; }
  /// The library's own plan.
  void run_library(std::string_view strategy);

  std::string unsupported_reason(std::string_view strategy) const override;
  catalog::Prepared prepare(const PlanOptions& options) override;
  std::string baseline_unsupported_reason() const override { return "not what is tested"; }
  catalog::PreparedMembers prepare_members() override { return {}; }
  catalog::Cost cost() const override { return real_->cost(); }
  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override;
  double mean_square_limit() const override { return real_->mean_square_limit(); }
  double reference_row_flops() const override { return real_->reference_row_flops(); }

 private:
  LinearProblem problem_;
  catalog::Operand& x_;
  catalog::Operand& weight_;
  catalog::Operand& bias_;
  catalog::Operand& y_;
  std::unique_ptr<catalog::Workload> real_;
  /// Checked once: they are asked for in every multiplication.
  TensorView x_view_, weight_view_, bias_view_, y_view_;
};

/// How to compute y, with every step open to error. The defaults are a correct implementation.
struct LinearRecipe {
  std::function<int64_t(int64_t member)> x_of{}, weight_of{}, bias_of{};  ///< whose; -1: none
  std::function<double(double)> round_operand{};
  std::function<double(double)> round_sum{};  ///< after every addition; default: to fp32
  bool is_weight_transposed = false;
  bool skips_activation = false;
  bool is_backwards = false;  ///< the sum from its last term to its first
  int64_t doubled_term = -1;
  int64_t dropped_term = -1;
  int64_t num_rows_less = 0, num_columns_less = 0, num_terms_more = 0;
};
void compute(OpenLinear& linear, const LinearRecipe& recipe);

}  // namespace wide::test
