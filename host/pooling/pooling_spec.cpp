// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// pooling for bench and verify: axes, sweeps, strategies, operands, cost.
#include "host/conv/conv_problem.hpp"
#include "host/plan_workload.hpp"
#include "host/pooling/pooling_cudnn.hpp"
#include "host/pooling/pooling_problem.hpp"
#include "host/pooling/pooling_reference.hpp"
#include "host/specs.hpp"
#include "host/window_positions.hpp"

namespace wide::catalog {

namespace {

/// The one place where axis values become a problem: square windows, of signals one row of them.
PoolingProblem problem_of(const Case& point) {
  PoolingProblem p;
  p.num_members = point.integer("n");
  p.batch = point.integer("batch");
  p.channels = point.integer("channels");
  p.height = point.integer("height");
  p.width = point.integer("width") == 0 ? p.height : point.integer("width");
  p.mode = *parse_pooling_mode(point.word("mode"));
  p.layout =
      point.word("layout") == "last" ? ChannelLayout::channels_last : ChannelLayout::channels_first;
  p.dtype = point.dtype();
  if (p.mode == PoolingMode::adaptive_average) {
    p.out_width = point.integer("out");
    p.out_height = p.height == 1 ? 1 : p.out_width;
    return p;
  }
  p.columns = {point.integer("kernel"), point.integer("stride"), point.integer("padding"),
               point.integer("dilation")};
  if (p.columns.stride == 0) p.columns.stride = p.columns.kernel;
  p.rows = p.height == 1 ? PoolingWindow{.stride = 1} : p.columns;
  p.ceil_mode = point.word("ceil") == "yes";
  p.counts_padding = point.word("count_padding") == "yes";
  p.out_height = pooling_outputs(p.height, p.rows, p.ceil_mode);
  p.out_width = pooling_outputs(p.width, p.columns, p.ceil_mode);
  return p;
}

std::string impossible_reason(const Case& point) {
  const PoolingProblem p = problem_of(point);
  if (point.word("count_padding") == "no" && p.mode != PoolingMode::average) {
    return "average alone counts";
  }
  if (p.mode == PoolingMode::adaptive_average) {
    return point.word("ceil") == "yes" ? "adaptive windows have no remainder" : "";
  }
  if (2 * p.columns.padding > p.columns.kernel) return "padding is more than half of the kernel";
  if (p.mode == PoolingMode::average && p.columns.dilation > 1) return "averages have no dilation";
  return p.out_height < 1 || p.out_width < 1 ? "the window is larger than x" : "";
}

class PoolingWorkload final : public PlanWorkload<describe_pooling, make_pooling_plan> {
 public:
  PoolingWorkload(const Context& context, const Case& point, const WorkloadOptions& options)
      : PlanWorkload(context, problem_of(point), options) {
    const PoolingProblem& p = like();
    const bool is_last = p.layout == ChannelLayout::channels_last;
    const PackedOperand& packing =
        is_last ? operands::pooling_x_channels_last : operands::pooling_x;
    const auto images = [&](int64_t height, int64_t width) {
      return conv_shape(p.layout, 4, p.batch, p.channels, 1, {height, width});
    };
    x_ = &add_operand(packing, p.dtype, images(p.height, p.width), Distribution::uniform());
    y_ = &add_operand(packing, p.dtype, images(p.out_height, p.out_width), Distribution::none());
  }

  /// Positions that no window has do not count.
  Cost cost() const override {
    return {elements_of(*y_) * taps(), bytes_of({x_}) * share_read(), bytes_of({y_})};
  }

  void reference_row(int64_t member, int64_t row, std::span<double> values,
                     std::span<double> tolerances) const override {
    pooling_reference(like(), x_->values(member), row, values, tolerances);
  }
  double reference_row_flops() const override {
    return (2 * taps() + static_cast<double>(like().width)) *
           static_cast<double>(y_->member_shape(0).back());
  }

 private:
  PoolingArguments arguments(const OperandViews& view) const override {
    return {view(x_), view(y_)};
  }
  std::string cudnn_unsupported_reason(const PoolingArguments& arguments) const override {
    return pooling_cudnn_unsupported_reason(arguments);
  }

  /// Of an output.
  double taps() const {
    const PoolingProblem& p = like();
    if (p.mode != PoolingMode::adaptive_average) {
      return static_cast<double>(p.rows.kernel * p.columns.kernel);
    }
    return static_cast<double>(p.height * p.width) /
           static_cast<double>(p.out_height * p.out_width);
  }

  /// Of x. Where channels are first, rows whole: what windows skip lies in sectors that they need.
  double share_read() const {
    const PoolingProblem& p = like();
    if (p.mode == PoolingMode::adaptive_average) return 1;
    const auto read = [](int64_t extent, int64_t outputs, const PoolingWindow& w) {
      return positions_read(extent, {outputs, w.kernel, w.stride, w.padding, w.dilation});
    };
    const int64_t rows = read(p.height, p.out_height, p.rows);
    const int64_t columns =
        p.layout == ChannelLayout::channels_first ? p.width : read(p.width, p.out_width, p.columns);
    return static_cast<double>(rows * columns) / static_cast<double>(p.height * p.width);
  }

  const Operand *x_ = nullptr, *y_ = nullptr;
};

std::vector<Sweep> sweeps() {
  const Axis modes{"mode", word_values(kAllPoolingModes, pooling_mode_name)};
  return {{"quick",
           {{"n", ints({4, 8, 16, 32})},
            {"batch", ints({8})},
            {"channels", ints({64})},
            {"height", ints({32})},
            modes}},
          {"full",
           {{"n", ints({2, 4, 8, 16, 32, 64, 100})},
            {"batch", ints({8, 32})},
            {"channels", ints({64, 256})},
            {"height", ints({14, 28, 56})},
            modes,
            {"layout", {"first", "last"}},
            {"kernel", ints({2, 3})}}},
          {"ci",
           {{"n", ints({4, 16})},
            {"batch", ints({2})},
            {"channels", ints({16})},
            {"height", ints({32})},
            modes,
            {"layout", {"first", "last"}}}}};
}

PrimitiveSpec make_spec() {
  PrimitiveSpec spec;
  spec.name = "pooling";
  spec.summary = "y = the largest or the mean of windows of x, channel by channel";
  spec.axes = {
      {"n", "members", int64_t{4}, {}, 1},
      {"batch", "batch rows B", int64_t{8}, {}, 0, {3, 2, 2}},
      {"channels", "channels C of a member", int64_t{64}, {}, 0, {5, 7, 11}},
      {"height", "rows of positions H; 1: signals", int64_t{32}, {}, 1, {7, 5, 19}},
      {"width", "positions in a row W; 0: as height", int64_t{0}, {}, 0, {11, 13, 67}},
      {"mode", "what becomes of a window", "max", words_of(kAllPoolingModes, pooling_mode_name)},
      {"kernel", "positions of a window, along each axis", int64_t{2}, {}, 1, {3, 2, 3}},
      {"stride", "from window to window; 0: kernel", int64_t{0}, {}, 0, {2, 3, 2}},
      {"padding", "at either end", int64_t{0}, {}, 0, {1}},
      {"dilation", "from position to position of max's windows", int64_t{1}, {}, 1, {1}},
      {"out", "adaptive outputs along each axis", int64_t{1}, {}, 1, {3, 2, 5}},
      {"ceil", "whether a last window may end outside", "no", {"no", "yes"}, 0},
      {"count_padding", "whether averages count it", "yes", {"yes", "no"}, 0},
      dtype_axis("of x and y"),
      {"layout", "whether channels are first or last", "first", {"first", "last"}}};
  spec.strategies = with_cudnn(wide_strategies(
      "one launch; channels first: whole images in shared memory, read once; last: 16 bytes of "
      "channels a load",
      {.streamed = 1.03, .is_memory_bound = true}));
  spec.sweeps = sweeps();
  spec.tolerance_formula =
      "max: 0; means: (h + w + 9) 2^-24 sum |x| / weight + u_out |y| + min_subnormal, of windows "
      "of h rows of w positions";
  spec.impossible_reason = impossible_reason;
  spec.tuning_key = tuned_by(problem_of);
  spec.make_workload = make_workload<PoolingWorkload>;
  return spec;
}

}  // namespace

const PrimitiveSpec& pooling_spec() {
  static const PrimitiveSpec spec = make_spec();
  return spec;
}

}  // namespace wide::catalog
