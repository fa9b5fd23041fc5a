// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// conv1d, conv2d and conv3d for bench and verify: one workload under three names, whose positions
// are one axis, two or three.
#include <algorithm>
#include <utility>
#include <vector>

#include "host/conv/conv_cudnn.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_reference.hpp"
#include "host/conv/conv_strategy.hpp"
#include "host/linear/linear_reference.hpp"
#include "host/linear_values.hpp"
#include "host/plan_workload.hpp"
#include "host/specs.hpp"
#include "host/window_positions.hpp"

namespace wide::catalog {

namespace {

/// Axes of positions.
int position_axes(const Case& point) {
  return point.op() == "conv1d" ? 1 : point.op() == "conv2d" ? 2 : 3;
}

/// The one place where axis values become a problem.
ConvProblem problem_of(const Case& point) {
  const auto or_else = [&](const char* axis, int64_t otherwise) {
    return point.integer(axis) == 0 ? otherwise : point.integer(axis);
  };
  ConvProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.in_channels = point.integer("channels");
  p.out_channels = or_else("out", p.in_channels);
  p.groups = point.integer("groups");
  p.kernel.width = point.integer("kernel");
  p.stride.width = point.integer("stride");
  p.dilation.width = point.integer("dilation");
  p.padding.width = point.integer("padding");
  const std::string& form = point.word("form");
  if (form == "pointwise") {
    p.kernel.width = p.stride.width = p.groups = 1;
    p.padding.width = 0;
  } else if (form == "depthwise") {
    p.groups = std::max<int64_t>(p.in_channels, 1);
    p.out_channels = p.in_channels;
  }
  if (p.padding.width < 0) p.padding.width = p.kernel.width / 2 * p.dilation.width;
  if (position_axes(point) == 1) {
    p.input.width = point.integer("length");
  } else {
    p.input.height = point.integer("height");
    p.input.width = or_else("width", p.input.height);
    p.stride.height = p.stride.width;
    p.padding.height = p.padding.width;
    p.dilation.height = p.dilation.width;
    p.kernel.height = p.kernel.width;
  }
  if (position_axes(point) == 3) {
    ConvDepth& d = p.depth;
    d.input = point.integer("depth");
    d.kernel = form == "pointwise" ? 1 : or_else("kernel_depth", p.kernel.width);
    d.stride = p.stride.width, d.dilation = p.dilation.width, d.padding = p.padding.width;
    const bool is_default = point.integer("padding") < 0;
    if (is_default) d.padding = d.kernel / 2 * d.dilation;
  }
  p.layout =
      point.word("layout") == "last" ? ChannelLayout::channels_last : ChannelLayout::channels_first;
  if (point.word("x_layout") == "first") p.x_layout = ChannelLayout::channels_first;
  if (point.word("x_layout") == "last") p.x_layout = ChannelLayout::channels_last;
  p.dtype = point.dtype();
  p.allow_tf32 = point.word("tf32") == "yes";
  p.epilogue.activation = *parse_activation(point.word("activation"));
  p.epilogue.has_bias = point.word("bias") == "yes";
  const std::string& residual = point.word("residual");
  p.epilogue.residual = residual == "before"  ? Residual::before_activation
                        : residual == "after" ? Residual::after_activation
                                              : Residual::none;
  return p;
}

std::string impossible_reason(const Case& point) {
  const std::string reason = tf32_impossible_reason(point);
  if (!reason.empty()) return reason;
  const ConvProblem p = problem_of(point);
  if (p.in_channels % p.groups != 0 || p.out_channels % p.groups != 0) {
    return std::to_string(p.groups) + " groups do not divide " + std::to_string(p.in_channels) +
           " and " + std::to_string(p.out_channels) + " channels";
  }
  const PerAxis output = conv_output_size(p);
  return std::min({conv_output_depth(p), output.height, output.width}) < 1
             ? "the kernel is larger than the padded input"
             : "";
}

constexpr const PackedOperand* kPackingsFirst[] = {&operands::conv1d_x, &operands::conv2d_x,
                                                   &operands::conv3d_x};
constexpr const PackedOperand* kPackingsLast[] = {&operands::conv1d_x_channels_last,
                                                  &operands::conv2d_x_channels_last,
                                                  &operands::conv3d_x_channels_last};
constexpr const PackedOperand* kPackingsOfWeights[] = {
    &operands::conv1d_weight, &operands::conv2d_weight, &operands::conv3d_weight};

class ConvWorkload final : public PlanWorkload<describe_conv, make_conv_plan> {
 public:
  ConvWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, complete_conv_problem(problem_of(point)), options),
        output_(conv_output_size(like())),
        output_depth_(conv_output_depth(like())) {
    const ConvProblem& p = like();
    const int num_axes = position_axes(point);
    const auto packing_of = [&](ChannelLayout layout) -> const PackedOperand& {
      return layout == ChannelLayout::channels_last ? *kPackingsLast[num_axes - 1]
                                                    : *kPackingsFirst[num_axes - 1];
    };
    const auto shaped = [&](ChannelLayout layout, int64_t outer, int64_t channels, int64_t depth,
                            const PerAxis& size) {
      return conv_shape(layout, num_axes + 2, outer, channels, depth, size);
    };
    const PackedOperand& packing = packing_of(p.layout);
    const Distribution parameters = linear_parameter_distribution(options.fill);
    x_ = &add_operand(packing_of(x_layout_of(p)), p.dtype,
                      shaped(x_layout_of(p), p.batch, p.in_channels, p.depth.input, p.input),
                      linear_input_distribution(options.fill, p.dtype, p.epilogue, conv_terms(p)));
    weight_ = &add_operand(
        *kPackingsOfWeights[num_axes - 1], p.dtype,
        shaped(p.layout, p.out_channels, p.in_channels / p.groups, p.depth.kernel, p.kernel),
        parameters);
    bias_ = add_operand_if(p.epilogue.has_bias, operands::conv_bias, p.dtype, {p.out_channels},
                           parameters);
    const Shape y = shaped(p.layout, p.batch, p.out_channels, output_depth_, output_);
    residual_ =
        add_operand_if(p.epilogue.residual != Residual::none, packing, p.dtype, y, parameters);
    y_ = &add_operand(packing, p.dtype, y, Distribution::none());
  }

  /// Neither products with padding count, which nobody needs, nor positions that no output takes.
  Cost cost() const override {
    const ConvProblem& p = like();
    const double taps = static_cast<double>(taps_inside(p.depth.input, depths())) *
                        static_cast<double>(taps_inside(p.input.height, rows())) *
                        static_cast<double>(taps_inside(p.input.width, columns())) /
                        static_cast<double>(output_depth_ * output_.height * output_.width);
    const double products = taps * static_cast<double>(p.in_channels / p.groups);
    return {elements_of(*y_) * (2 * products + (bias_ ? 1 : 0) + (residual_ ? 1 : 0)),
            bytes_of({x_}) * share_read() + bytes_of({weight_, bias_, residual_}), bytes_of({y_})};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    const ConvProblem& p = like();
    const ConvReferenceOperands operands{x_->values(member), weight_->values(member),
                                         values_of(bias_, member), values_of(residual_, member)};
    const bool is_last = p.layout == ChannelLayout::channels_last;
    ProductSum judged{.terms = conv_terms(p),
                      .dtype = p.dtype,
                      .y_dtype = p.dtype,
                      .allow_tf32 = p.allow_tf32,
                      .activation = p.epilogue.activation};
    for (size_t i = 0; i < values.size(); ++i) {
      const auto along = static_cast<int64_t>(i);
      int64_t rest = row;
      const auto next = [&](int64_t extent) { return std::exchange(rest, rest / extent) % extent; };
      ConvOutput at;
      at.column = is_last ? next(output_.width) : along;
      at.row = next(output_.height);
      at.depth = next(output_depth_);
      at.channel = is_last ? along : next(p.out_channels);
      at.batch = rest;
      const ConvSum sum = conv_reference_sum(p, operands, at);
      judged.value = sum.value;
      judged.magnitude = sum.magnitude;
      if (p.epilogue.residual == Residual::after_activation) judged.residual_behind = sum.residual;
      const JudgedOutput output = judge_product_sum(judged, options().fill);
      values[i] = output.value;
      tolerances[i] = output.tolerance;
    }
  }

  double mean_square_limit() const override {
    return product_mean_square_limit(like().dtype, like().dtype, like().allow_tf32, options().fill);
  }

  double reference_row_flops() const override {
    return 4 * static_cast<double>(conv_terms(like())) *
           static_cast<double>(y_->member_shape(0).back());
  }

 private:
  ConvArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(weight_), view(bias_), view(y_), view(residual_)};
  }
  std::string cudnn_unsupported_reason(const ConvArguments& arguments) const override {
    return conv_cudnn_unsupported_reason(arguments);
  }

  Windows depths() const {
    const ConvDepth& d = like().depth;
    return {output_depth_, d.kernel, d.stride, d.padding, d.dilation};
  }
  Windows rows() const {
    const ConvProblem& p = like();
    return {output_.height, p.kernel.height, p.stride.height, p.padding.height, p.dilation.height};
  }
  Windows columns() const {
    const ConvProblem& p = like();
    return {output_.width, p.kernel.width, p.stride.width, p.padding.width, p.dilation.width};
  }

  /// Of x. Where channels are first, rows whole: what outputs skip lies in sectors that they need.
  double share_read() const {
    const ConvProblem& p = like();
    const bool is_first = x_layout_of(p) == ChannelLayout::channels_first;
    const int64_t read = positions_read(p.depth.input, depths()) *
                         positions_read(p.input.height, rows()) *
                         (is_first ? p.input.width : positions_read(p.input.width, columns()));
    return static_cast<double>(read) /
           static_cast<double>(p.depth.input * p.input.height * p.input.width);
  }

  PerAxis output_;
  int64_t output_depth_;
  const Operand *x_ = nullptr, *weight_ = nullptr, *bias_ = nullptr, *residual_ = nullptr,
                *y_ = nullptr;
};

std::vector<AxisInfo> axes(const std::vector<AxisInfo>& positions, std::vector<int64_t> batches,
                           std::vector<int64_t> paddings) {
  // For tests: groups that divide channels, kernels that fit, and each number somewhere different
  // from its default.
  std::vector<AxisInfo> all{
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "batch rows B", int64_t{8}, {}, 0, std::move(batches)},
      {"channels", "channels C of a member's x", int64_t{64}, {}, 0, {3, 20}},
      {"out", "channels of a member's y; 0: as channels", int64_t{0}, {}, 0, {6, 12}},
      {"kernel", "taps along each axis of positions", int64_t{3}, {}, 1, {3}}};
  all.insert(all.end(), positions.begin(), positions.end());
  all.insert(all.end(),
             {{"stride", "positions from one output to the next", int64_t{1}, {}, 1, {2, 1}},
              {"padding",
               "zeros on either side; -1: kernel / 2 * dilation",
               int64_t{-1},
               {},
               -1,
               std::move(paddings)},
              {"dilation", "positions from one tap to the next", int64_t{1}, {}, 1, {2, 1}},
              {"groups", "of a member's channels", int64_t{1}, {}, 1, {3, 2}},
              dtype_axis("of all operands"),
              {"layout", "whether channels are first or last", "first", {"first", "last"}},
              {"x_layout", "those of x, where it is another", "same", {"same", "first", "last"}},
              {"form",
               "as the axes say; or kernel, stride, groups 1 and no padding; or groups = channels",
               "full",
               {"full", "pointwise", "depthwise"}},
              activation_axis("after the bias"),
              bias_axis(),
              epilogue_residual_axis(),
              tf32_axis()});
  return all;
}

/// Traffic of strategies for images and signals.
struct ConvTraffic {
  /// Sectors at the ends of halos; tiles of one member and batch row reread halos and weights. Of
  /// 16-bit values, 16 channels of a position are stored on eight banks: depthwise, channels last,
  /// there is little else.
  Traffic direct{.streamed = 1.15, .rereads = 1.8, .bank_conflicts = 0.09};
  /// A block requests a pixel once for each tap that reads it, and rereads its weights.
  Traffic implicit_gemm{.streamed = 5, .rereads = 4.5, .bank_conflicts = 0.04};
  Traffic wgmma = implicit_gemm;
};

/// In volumes 27 taps read a position. Direct loads one plane of the kernel after another: a
/// channel's taps of one plane begin and end within sectors where channels are first.
constexpr ConvTraffic kTrafficOfVolumes{
    .direct = {.streamed = 9.5, .rereads = 3.2, .bank_conflicts = 0.11},
    .implicit_gemm = {.streamed = 5, .rereads = 9, .bank_conflicts = 0.08},
    .wgmma = {.streamed = 5, .rereads = 5.6, .bank_conflicts = 0.04}};

std::vector<StrategyInfo> strategies(const ConvTraffic& traffic) {
  using enum DeviceType;
  using enum StrategyKind;
  std::vector<StrategyInfo> list{
      {"sequential", cuda, sequential,
       "cuDNN's where it takes the problem, else the direct kernel; one call per member"},
      {"grouped", cuda, vendor,
       "cuDNN's, members as groups of one convolution; channels first; policies: its guesses"},
      {"channels_last", cuda, vendor, "cuDNN's likewise; channels last"},
      {"pointwise",
       cuda,
       hand_written,
       "kernels of one tap, channels last: linear's kernels on the same operands (form=pointwise)",
       // Every row of outputs requests the bias again.
       {.streamed = 1.25, .rereads = 0.6, .bank_conflicts = 0.02}},
      {"direct", cuda, hand_written,
       "one launch; x with its halo staged once, taps are offsets into it, fp32 multiply-adds",
       traffic.direct},
      {"implicit_gemm", cuda, hand_written,
       "one launch; a matrix product on tensor cores that gathers x as it goes",
       traffic.implicit_gemm},
      {"wgmma", cuda, hand_written,
       "the same on Hopper's wgmma; channels last, one group; a tap is a box of x, moved",
       traffic.wgmma},
      {"sequential", cpu, sequential, "member after member, each over all threads"},
      {"wide", cpu, hand_written, "the tiles of all members over all threads at once"},
  };
  for (StrategyInfo& info : list) {
    const ConvStrategy* const strategy = find_conv_strategy(info.name, info.device);
    if (strategy->make_at != nullptr) info.policies = cudnn_policies();
  }
  return list;
}

/// The seeds' sweeps: Cin = Cout = C, stride 1, padding k / 2, bias.
std::vector<Sweep> sweeps(std::vector<AxisValue> full_batch, std::vector<AxisValue> full_kernel,
                          const std::vector<Axis>& small_positions,
                          const std::vector<Axis>& full_positions,
                          const std::vector<Axis>& ci_positions = {}) {
  const auto small = [&](std::vector<AxisValue> n, const std::vector<Axis>& positions) {
    return joined<Axis>({{"n", std::move(n)},
                         {"batch", ints({8})},
                         {"channels", ints({64})},
                         {"kernel", ints({3})}},
                        positions);
  };
  return {{"quick", small(ints({4, 8, 16, 32}), small_positions)},
          {"full", joined<Axis>({{"n", ints({2, 4, 6, 8, 10, 12, 16, 20, 32, 64})},
                                 {"batch", std::move(full_batch)},
                                 {"channels", ints({32, 64, 128})},
                                 {"kernel", std::move(full_kernel)}},
                                full_positions)},
          {"ci", small(ints({4, 16}), ci_positions.empty() ? small_positions : ci_positions)}};
}

PrimitiveSpec make_spec(std::string_view name, const std::vector<AxisInfo>& positions,
                        std::vector<Sweep> sweeps, std::vector<int64_t> batches = {2, 3},
                        std::vector<int64_t> paddings = {1, 2}) {
  PrimitiveSpec spec;
  spec.name = name;
  spec.summary = "y = activation(weight * x + bias), one convolution per member";
  spec.axes = axes(positions, std::move(batches), std::move(paddings));
  spec.strategies = strategies(name == "conv3d" ? kTrafficOfVolumes : ConvTraffic{});
  spec.sweeps = std::move(sweeps);
  static const std::string formula =
      "with in = channels / groups * taps: " + std::string(kLinearToleranceFormula);
  spec.tolerance_formula = formula;
  spec.trusted_zeros = 0.9;  // of relu, and of few whole numbers
  spec.impossible_reason = impossible_reason;
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<ConvWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& conv1d_spec() {
  static const PrimitiveSpec spec =
      make_spec("conv1d", {{"length", "positions L", int64_t{256}, {}, 1, {11, 19}}},
                sweeps(ints({8}), ints({1, 3, 5, 7}), {{"length", ints({256})}},
                       {{"length", ints({64, 256, 1024})}}));
  return spec;
}

const PrimitiveSpec& conv2d_spec() {
  static const PrimitiveSpec spec =
      make_spec("conv2d",
                {{"height", "rows of positions H", int64_t{32}, {}, 1, {7, 5}},
                 {"width", "positions in a row W; 0: as height", int64_t{0}, {}, 0, {9, 11}}},
                sweeps(ints({4, 8, 16}), ints({1, 3, 5}), {{"height", ints({32})}},
                       {{"height", ints({16, 32, 56})}, {"width", ints({16, 32, 56})}}));
  return spec;
}

const PrimitiveSpec& conv3d_spec() {
  // Tests' volumes are small, and ci's: every plane of y and of the kernel costs the simulated GPU
  // and the reference what an image does.
  static const PrimitiveSpec spec = make_spec(
      "conv3d",
      {{"depth", "planes of positions D", int64_t{8}, {}, 1, {2}},
       {"height", "rows of positions in a plane H", int64_t{16}, {}, 1, {4, 3}},
       {"width", "positions in a row W; 0: as height", int64_t{0}, {}, 0, {5, 3}},
       {"kernel_depth", "taps along the depth; 0: as kernel", int64_t{0}, {}, 0, {2}}},
      sweeps(ints({2, 4, 8}), ints({1, 3}), {{"depth", ints({8})}, {"height", ints({16})}},
             {{"depth", ints({8, 16})}, {"height", ints({16, 32})}},
             {{"depth", ints({3})}, {"height", ints({16})}}),
      {2, 1}, {1});
  return spec;
}

}  // namespace wide::catalog
