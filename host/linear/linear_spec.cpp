// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// linear for bench and verify: axes, sweeps, strategies, operands, cost.
#include <optional>

#include "host/linear/linear_policy.hpp"
#include "host/linear/linear_problem.hpp"
#include "host/linear/linear_reference.hpp"
#include "host/linear/linear_strategy.hpp"
#include "host/linear/linear_weight_workload.hpp"
#include "host/linear_values.hpp"
#include "host/operand_values.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"
#include "wide/linear.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem.
LinearProblem problem_of(const Case& point) {
  LinearProblem problem;
  const int64_t d = point.integer("d"), in = point.integer("in"), out = point.integer("out");
  problem.num_members = point.integer("n");
  problem.batch = point.integer("batch");
  problem.in_features = in == 0 ? d : in;
  problem.out_features = out == 0 ? d : out;
  problem.dtype = point.dtype();
  if (is_fp8(problem.dtype)) problem.y_dtype = Dtype::bf16;
  problem.shared_input = point.word("shared") == "yes";
  problem.allow_tf32 = point.word("tf32") == "yes";
  const QuantizedWeight weight = weight_of_case(point, problem.out_features, problem.in_features);
  problem.weight_format = weight.format, problem.group_size = weight.group_size;
  problem.allow_rounded_weights = point.word("rounded") == "yes";
  problem.epilogue = epilogue_of_case(point);
  return problem;
}

std::string impossible_reason(const Case& point) {
  const std::string reason = weights_impossible_reason(point);
  if (!reason.empty()) return reason;
  const bool is_rounded = point.word("rounded") == "yes";
  return is_rounded && point.word("weights") == "packed" ? "packed weights are not rounded again"
                                                         : "";
}

int64_t scales_of(const LinearProblem& problem) {
  return problem.epilogue.scale == OutputScale::per_member ? 1 : problem.out_features;
}

class LinearWorkload final : public PlanWorkload<describe_linear, make_linear_plan> {
 public:
  LinearWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, complete_linear_problem(problem_of(point)), options),
        x_(add_operand(operands::linear_x, like().dtype, {like().batch, like().in_features},
                       linear_input_distribution(options.fill, *like().y_dtype, like().epilogue,
                                                 like().in_features),
                       like().shared_input)),
        weight_(add_operand(
            linear_weight_operand(linear_quantized_weight(like()), like().dtype, options))),
        bias_(like().epilogue.has_bias
                  ? &add_operand(operands::linear_bias, *like().y_dtype, {like().out_features},
                                 linear_parameter_distribution(options.fill))
                  : nullptr),
        scale_(like().epilogue.scale != OutputScale::none
                   ? &add_operand(operands::linear_scale, Dtype::fp32, {scales_of(like())},
                                  linear_scale_distribution(options.fill))
                   : nullptr),
        residual_(like().epilogue.residual != Residual::none
                      ? &add_operand(operands::linear_residual, *like().y_dtype,
                                     {like().batch, like().out_features},
                                     linear_parameter_distribution(options.fill))
                      : nullptr),
        y_(add_operand(operands::linear_y, *like().y_dtype, {like().batch, like().out_features},
                       Distribution::none())) {}

  std::string unsupported_reason(std::string_view strategy) const override {
    const DeviceInfo& device = context().info();
    const LinearProblem problem = this->problem();
    std::optional<LinearStrategy> wanted = parse_linear_strategy(strategy, device.device.type);
    if (is_automatic(strategy)) {
      try {
        wanted = choose_linear_strategy(problem, device, verified_strategies(), strategy).strategy;
      } catch (const std::exception& error) {
        return error.what();
      }
    }
    if (!wanted) return "no such strategy on " + to_string(device.device);
    const std::string reason = linear_unsupported_reason(*wanted, problem, device);
    const bool calls_cublas = linear_workspace(*wanted, problem, device).cublas_bytes > 0;
    if (!reason.empty() || !calls_cublas) return reason;
    if (!cublas_unavailable_reason().empty()) return cublas_unavailable_reason();
    return *wanted == LinearStrategy::cublaslt ? no_algorithm_reason(problem) : "";
  }

  std::string baseline_unsupported_reason() const override {
    const DeviceInfo& device = context().info();
    if (device.device.type == DeviceType::cpu) return "";
    const LinearProblem one = member_like();
    const auto sequential = LinearStrategy::sequential;
    const std::string reason = linear_unsupported_reason(sequential, one, device);
    const bool calls_cublas = linear_workspace(sequential, one, device).cublas_bytes > 0;
    return reason.empty() && calls_cublas ? cublas_unavailable_reason() : reason;
  }

  Cost cost() const override {
    const auto outputs = static_cast<double>(like().num_members) *
                         static_cast<double>(like().batch) *
                         static_cast<double>(like().out_features);
    Cost cost;
    cost.flops = outputs * (2 * static_cast<double>(like().in_features) + (bias_ ? 1 : 0) +
                            (scale_ ? 1 : 0) + (residual_ ? 1 : 0));
    cost.bytes_read = bytes_of({&x_, &weight_, bias_, scale_, residual_});
    cost.bytes_written = bytes_of({&y_});
    return cost;
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const LinearReferenceRow operands{row_of(&x_, member, row, like().in_features),
                                      weights_.of(weight_, member), values_of(bias_, member),
                                      values_of(scale_, member),
                                      row_of(residual_, member, row, like().out_features)};
    judge_linear_row(like(), operands, options().fill, values, tolerances);
  }

  double mean_square_limit() const override {
    // A rounded weight adds to a sum's error as much as the sum's own rounding.
    return product_mean_square_limit(like().dtype, like().y_dtype.value_or(like().dtype),
                                     like().allow_tf32, options().fill) *
           (like().allow_rounded_weights ? 2 : 1);
  }

  double reference_row_flops() const override {
    return 4 * static_cast<double>(like().in_features) * static_cast<double>(like().out_features);
  }

 private:
  LinearArguments arguments(const OperandViews& view) const override {
    return {.x = view(x_),
            .weight = view(weight_),
            .bias = view(bias_),
            .y = view(y_),
            .scale = view(scale_),
            .residual = view(residual_)};
  }

  std::string member_strategy(const LinearProblem& one) const override {
    const bool is_there = is_cublaslt_one_call(one, context().info()) &&
                          cublas_unavailable_reason().empty() && no_algorithm_reason(one).empty();
    return is_there ? "cublaslt" : "sequential";
  }

  /// Only cuBLASLt knows whether it has an algorithm.
  std::string no_algorithm_reason(const LinearProblem& problem) const {
    try {
      (void)make_linear_plan(context(), problem, {.strategy = "cublaslt"});
      return "";
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;
      return error.what();
    }
  }

  const Operand& x_;
  const Operand& weight_;
  const Operand* bias_;
  const Operand* scale_;
  const Operand* residual_;
  const Operand& y_;
  ReferenceWeights weights_{linear_quantized_weight(like())};
};

std::vector<AxisInfo> axes() {
  return {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "rows of x per member: B, or B*T", int64_t{16}, {}, 0},
      {"d", "in = out = d", int64_t{256}, {}, 0},
      {"in", "in_features; 0: d", int64_t{0}, {}, 0},
      {"out", "out_features; 0: d", int64_t{0}, {}, 0},
      {"dtype",
       "of x and weight, and of bias and y: of fp8 these are bf16",
       "fp32",
       {"fp32", "fp16", "bf16", "fp8_e4m3", "fp8_e5m2"}},
      activation_axis("after the bias"),
      bias_axis(),
      linear_scale_axis(),
      epilogue_residual_axis(),
      shared_axis(),
      tf32_axis(),
      weights_axis("how they are stored"),
      group_axis(),
      {"rounded", "whether quantised weights may be rounded to dtype", "no", {"no", "yes"}, 0},
  };
}

std::vector<StrategyInfo> strategies() {
  using enum StrategyKind;
  std::vector<StrategyInfo> list{
      {"sequential", DeviceType::cuda, sequential,
       "one cuBLAS GEMM per member, then one epilogue; quantised weights: weight_only's kernel"},
      {"cublas_batched", DeviceType::cuda, vendor,
       "one strided-batched cuBLAS GEMM on the packed operands, then one epilogue"},
      {"cublaslt", DeviceType::cuda, vendor,
       "one cuBLASLt call with its own bias, residual and relu; runs measure its algorithms first"},
      {"cublas_grouped", DeviceType::cuda, vendor, "one grouped cuBLAS GEMM by pointers"},
      {"simt",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel for all members, fp32 multiply-adds, epilogue fused",
       // Blocks of one member, a tile of outputs each, read its x again; sums are exchanged once.
       {.rereads = 0.2, .bank_conflicts = 0.02}},
      {"gemv",
       DeviceType::cuda,
       hand_written,
       "one kernel for all members of one to four rows, fp32 multiply-adds, epilogue fused",
       // Up to four rows of x are read for four of the weight; a group of lanes stores four
       // outputs, less than a sector of 16-bit ones.
       {.streamed = 1.12, .rereads = 1.0, .bank_conflicts = 0}},
      {"small_m",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel for all members on tensor cores, up to 64 rows each, epilogue fused",
       // Few rows of x are read by every tile of outputs, at least 16 wide; sums of such narrow
       // tiles are not exchanged without conflicts.
       {.rereads = 0.9, .bank_conflicts = 0.15}},
      {"tensor_core",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel for all members on tensor cores, epilogue fused",
       {.rereads = 0.2, .bank_conflicts = 0.02}},
      {"wgmma",
       DeviceType::cuda,
       hand_written,
       "one persistent kernel for all members: bulk tensor copies, warpgroup products (Hopper)",
       // nvcc makes two stores for each first pair of sums exchanged; ptxas may join them.
       {.rereads = 0.2, .bank_conflicts = 0.05}},
      {"tf32x3",
       DeviceType::cuda,
       hand_written,
       "small_m or tensor_core for fp32: three tf32 products for one, fp32's accuracy",
       {.rereads = 0.9, .bank_conflicts = 0.15},  // as small_m
       {},
       false},  // infinity minus its tf32 is NaN
      {"shared_input",
       DeviceType::cuda,
       hand_written,
       "members that read one x as one wider member, by the kernel that suits it (shared=yes)",
       {.streamed = 1.12, .rereads = 1.0, .bank_conflicts = 0.15}},  // as its kernels
      {"weight_only",
       DeviceType::cuda,
       hand_written,
       "one tiled kernel for all members, on quantised weights (weights=int4, ..)",
       // As small_m, with a quarter of its bytes for the same x.
       {.rereads = 2.5, .bank_conflicts = 0.2}},
      {"decoded",
       DeviceType::cuda,
       hand_written,
       "quantised weights to 16 bits in the workspace, then the kernel for these (rounded=yes)",
       // Of few rows: beside 4 bits a weight 16 written, and read by small_m.
       {.streamed = 6.3, .rereads = 2.5, .bank_conflicts = 0.15}},
      {"sequential", DeviceType::cpu, sequential, "member after member, each over all threads"},
      {"wide", DeviceType::cpu, hand_written, "the tiles of all members over all threads at once"},
  };
  for (StrategyInfo& info : list) {
    info.policies = linear_policy_names(*parse_linear_strategy(info.name, info.device));
  }
  return list;
}

std::vector<Sweep> sweeps() {
  return {
      {"quick", {{"n", ints({4, 8, 16, 32})}, {"batch", ints({16})}, {"d", ints({256})}}},
      {"full",
       {{"n", ints({2, 4, 6, 8, 10, 12, 16, 20, 32, 64, 100})},
        {"batch", ints({8, 16, 32, 64})},
        {"d", ints({128, 256, 512, 768})}}},
      {"ci", {{"n", ints({4, 16})}, {"batch", ints({16})}, {"d", ints({256})}}},
  };
}

}  // namespace

const PrimitiveSpec& linear_spec() {
  static const PrimitiveSpec spec{
      .name = "linear",
      .summary = "y = activation(x * weight^T + bias), one fully connected layer per member",
      .axes = axes(),
      .strategies = strategies(),
      .sweeps = sweeps(),
      .tolerance_formula = kLinearToleranceFormula,
      .trusted_zeros = 0.9,  // of relu, and of few whole numbers
      .impossible_reason = impossible_reason,
      .tuning_key = tuned_by(problem_of),
      .make_workload = make_workload<LinearWorkload>};
  return spec;
}

}  // namespace wide::catalog
