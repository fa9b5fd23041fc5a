// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators with windows: convolutions, pools, and reductions, which are pools of one window.
#include <algorithm>
#include <string>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"
#include "host/import/onnx/windows.hpp"
#include "wide/convert.hpp"

namespace wide::onnx {

int64_t limited(Lowering& at, const char* what, int64_t value, int64_t least) {
  constexpr int64_t kMost = int64_t{1} << 30;
  const bool is_small = value < least;
  at.require(!is_small && value <= kMost, std::string("has ") + what + " " + std::to_string(value) +
                                              ", expected at " + (is_small ? "least " : "most ") +
                                              std::to_string(is_small ? least : kMost));
  return value;
}

std::vector<int64_t> per_axis(Lowering& at, const char* attribute, size_t num_axes, int64_t usual,
                              int64_t least) {
  std::vector<int64_t> values = at.integers(attribute);
  if (values.empty()) values.assign(num_axes, usual);
  at.require(values.size() == num_axes, std::string("has ") + std::to_string(values.size()) + " " +
                                            attribute + ", expected " + std::to_string(num_axes));
  for (const int64_t value : values) limited(at, attribute, value, least);
  return values;
}

PerAxis pair(const std::vector<int64_t>& values, int64_t usual) {
  return {values.size() == 1 ? usual : values[values.size() - 2], values.back()};
}

std::span<const int64_t> positions_of(Lowering& at, Value x) {
  const Shape& shape = at.shape(x);
  at.support(shape.rank() >= 3 && shape.rank() <= 5,
             "has an input of " + counted(shape.rank(), "axis", "axes") + ", expected 3, 4 or 5");
  return {shape.begin() + 2, shape.end()};
}

std::vector<int64_t> kernel_of(Lowering& at, Value x) {
  const Shape& weight = at.constant_shape(1);
  at.require(weight.rank() == at.shape(x).rank(), "has a weight " + to_string(weight) +
                                                      ", expected " +
                                                      counted(at.shape(x).rank(), "axis", "axes"));
  const std::vector<int64_t> kernel(weight.begin() + 2, weight.end());
  const std::vector<int64_t> said = at.integers("kernel_shape");
  at.require(said.empty() || said == kernel,
             "has a kernel_shape that is not its weight's " + to_string(weight));
  return kernel;
}

std::vector<Operand> with_weights(Lowering& at, Value x) {
  std::vector<Operand> operands{{"x", x}, {"weight", at.parameter(1, at.dtype(x))}};
  if (at.has(2)) operands.push_back({"bias", at.parameter(2, at.dtype(x))});
  return operands;
}

namespace {

/// Per axis of positions: one for signals, two for images, three for volumes.
struct Windows {
  std::vector<int64_t> kernel, stride, dilation, padding, behind;  ///< padding: before
};

/// `positions`: the extents of x after its channels.
Windows windows_of(Lowering& at, const std::vector<int64_t>& kernel,
                   std::span<const int64_t> positions) {
  const size_t n = positions.size();
  Windows w{kernel, per_axis(at, "strides", n, 1, 1), per_axis(at, "dilations", n, 1, 1), {}, {}};
  for (const int64_t extent : kernel) limited(at, "kernel", extent, 1);
  std::vector<int64_t> pads = per_axis(at, "pads", 2 * n, 0, 0);
  const std::string_view mode = at.text("auto_pad", "NOTSET");
  const bool is_same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  at.require(is_same || mode == "NOTSET" || mode == "VALID", "has auto_pad " + std::string(mode));
  if (mode == "VALID") std::fill(pads.begin(), pads.end(), 0);
  for (size_t i = 0; i < n; ++i) {
    if (is_same) {
      const int64_t outputs = (positions[i] + w.stride[i] - 1) / w.stride[i];
      const int64_t reach = (kernel[i] - 1) * w.dilation[i] + 1;
      const int64_t wanted = (outputs - 1) * w.stride[i] + reach - positions[i];
      // Below 0 all agree where convolutions begin, but not where pools do.
      at.support(wanted >= -1 || at.node().op == "Conv",
                 "leaves out " + std::to_string(-wanted) + " positions, expected at most 1");
      const int64_t all = std::max<int64_t>(0, wanted);
      pads[i] = pads[i + n] = all / 2;
      if (all % 2 != 0) ++pads[mode == "SAME_UPPER" ? i + n : i];
    }
    w.padding.push_back(pads[i]);
    w.behind.push_back(pads[i + n]);
  }
  return w;
}

void require_even_pads(Lowering& at, const Windows& w) {
  for (size_t i = 0; i < w.padding.size(); ++i) {
    at.support(w.padding[i] == w.behind[i], "pads " + std::to_string(w.padding[i]) +
                                                " before and " + std::to_string(w.behind[i]) +
                                                " after, expected as much");
  }
}

void lower_conv(Lowering& at) {
  at.only({"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  const Value x = at.x(0);
  const auto positions = positions_of(at, x);
  const std::vector<int64_t> kernel = kernel_of(at, x);
  const Windows w = windows_of(at, kernel, positions);
  require_even_pads(at, w);
  ConvOp op;
  op.groups = at.integer("group", 1);
  op.stride = pair(w.stride, 1);
  op.padding = pair(w.padding, 0);
  op.dilation = pair(w.dilation, 1);
  if (kernel.size() == 3) {
    op.depth.stride = w.stride[0];
    op.depth.padding = w.padding[0];
    op.depth.dilation = w.dilation[0];
  }
  at.set(at.append(op, with_weights(at, x)));
}

PoolingWindow window(const Windows& w, size_t i) {
  return {w.kernel[i], w.stride[i], w.padding[i], w.dilation[i]};
}

/// How many windows there are with these pads; 0 where x is too small for one.
int64_t num_windows(const Windows& w, size_t i, int64_t size, bool rounds_up) {
  const int64_t room = size + w.padding[i] + w.behind[i] - w.dilation[i] * (w.kernel[i] - 1) - 1;
  if (room < 0) return 0;
  const int64_t windows = (room + (rounds_up ? w.stride[i] - 1 : 0)) / w.stride[i] + 1;
  return windows - ((windows - 1) * w.stride[i] >= size + w.padding[i] ? 1 : 0);
}

/// Whether the leading pads, used on both sides, give the same windows, and with which rounding:
/// where padding has no value, trailing pads only determine the number of windows.
bool can_be_even(const Windows& w, std::span<const int64_t> positions, bool& rounds_up) {
  for (const bool tried : {false, true}) {
    bool fits = true;
    for (size_t i = 0; i < positions.size(); ++i) {
      const int64_t windows = num_windows(w, i, positions[i], rounds_up);
      fits = fits && windows > 0 && pooling_outputs(positions[i], window(w, i), tried) == windows;
    }
    if (!fits) continue;
    rounds_up = tried;
    return true;
  }
  return false;
}

/// A last window that ends behind the padding has less to be divided by than its kernel, as PyTorch
/// has it; ONNX divides by the kernel.
void support_ragged_mean(Lowering& at, const Windows& w, std::span<const int64_t> positions) {
  for (size_t i = 0; i < positions.size(); ++i) {
    const int64_t room = positions[i] + w.padding[i] + w.behind[i];
    const int64_t end = (num_windows(w, i, positions[i], true) - 1) * w.stride[i] + w.kernel[i];
    at.support(end <= room, "counts padding in a window that ends at " + std::to_string(end) +
                                " of " + std::to_string(room) +
                                " positions, expected one that ends inside");
  }
}

/// For volumes: a window's maximum is that of its planes' maxima and, as padding and ragged ends
/// leave out whole rows and columns, its mean that of their means. So planes are pooled as images,
/// and then columns of planes: two calls of existing primitives.
Value pool_volumes(Lowering& at, PoolingOp op, const PoolingWindow& depth, Value x) {
  const Shape shape = at.shape(x);
  const int64_t c = shape[1], planes = shape[2];
  Value y = at.append(op, {{"x", at.reshaped(x, {kBatch, c * planes, shape[3], shape[4]})}});
  const int64_t height = at.shape(y)[2], width = at.shape(y)[3];
  op.rows = depth, op.columns = {};
  y = at.append(op, {{"x", at.reshaped(y, {kBatch, c, planes, height * width})}});
  return at.reshaped(y, {kBatch, c, at.shape(y)[2], height, width});
}

void lower_pool(Lowering& at, PoolingMode mode) {
  const Value x = at.x(0);
  const auto positions = positions_of(at, x);
  const std::vector<int64_t> kernel = at.integers("kernel_shape");
  at.require(kernel.size() == positions.size(),
             "has a kernel_shape of " + counted(kernel.size(), "axis", "axes") + ", expected " +
                 std::to_string(positions.size()));
  const Windows w = windows_of(at, kernel, positions);
  PoolingOp op;
  op.mode = mode;
  // Pads that are chosen by the number of windows leave nothing to be rounded.
  op.ceil_mode = at.integer("ceil_mode", 0) != 0 && at.text("auto_pad", "NOTSET") == "NOTSET";
  op.columns = window(w, w.kernel.size() - 1);
  if (w.kernel.size() >= 2) op.rows = window(w, w.kernel.size() - 2);
  if (mode == PoolingMode::average) op.counts_padding = at.integer("count_include_pad", 0) != 0;
  for (size_t i = 0; i < kernel.size(); ++i) {
    at.support(w.padding[i] <= kernel[i] / 2,
               "pads " + std::to_string(w.padding[i]) + ", expected at most half its kernel");
    at.support(mode == PoolingMode::max || w.dilation[i] == 1, "takes averages with dilation");
  }
  const bool pads_count = mode == PoolingMode::average && op.counts_padding;
  if (pads_count && op.ceil_mode) support_ragged_mean(at, w, positions);
  if (w.padding != w.behind && (pads_count || !can_be_even(w, positions, op.ceil_mode)))
    require_even_pads(at, w);
  at.set(w.kernel.size() == 3 ? pool_volumes(at, op, window(w, 0), x) : at.append(op, {{"x", x}}));
}

void lower_max_pool(Lowering& at) {
  at.only(
      {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "storage_order", "strides"});
  at.support(!at.is_used(1), "writes indices, which no primitive does");
  lower_pool(at, PoolingMode::max);
}
void lower_average_pool(Lowering& at) {
  at.only({"auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads",
           "strides"});
  lower_pool(at, PoolingMode::average);
}

PoolingOp whole_window(PoolingMode mode, std::span<const int64_t> positions) {
  PoolingOp op;
  op.mode = mode == PoolingMode::average ? PoolingMode::adaptive_average : mode;
  op.columns.kernel = positions.back();
  if (positions.size() == 2) op.rows.kernel = positions[0];
  if (mode == PoolingMode::average) {
    op.columns = op.rows = {};
    op.out_height = op.out_width = 1;
  }
  return op;
}

void lower_global(Lowering& at, PoolingMode mode) {
  at.only({});
  Value x = at.x(0);
  const Shape shape = at.shape(x);
  const bool is_volume = positions_of(at, x).size() == 3;
  if (is_volume) x = at.reshaped(x, {kBatch, shape[1], shape[2] * shape[3], shape[4]});
  const Value y = at.append(whole_window(mode, positions_of(at, x)), {{"x", x}});
  at.set(is_volume ? at.reshaped(y, {kBatch, shape[1], 1, 1, 1}) : y);
}
void lower_global_average(Lowering& at) {
  lower_global(at, PoolingMode::average);
}
void lower_global_max(Lowering& at) {
  lower_global(at, PoolingMode::max);
}

/// The axes of a reduction as the middle one of [B, outer, reduced, inner].
struct Reduction {
  int first = 0, end = 0;  ///< of x's axes
  int64_t size = 1;
  Shape kept;
};

Reduction reduction_of(Lowering& at, Value x) {
  const Shape& shape = at.shape(x);
  const std::vector<int64_t> axes = at.integers(1, "axes");
  const std::vector<bool> marked = marked_axes(axes, shape.rank());
  at.support(!axes.empty() && !marked[0], "reduces the batch, expected axes behind it");
  Reduction r;
  while (!marked[static_cast<size_t>(r.first)]) ++r.first;
  r.end = r.first;
  while (r.end < shape.rank() && marked[static_cast<size_t>(r.end)]) r.size *= shape[r.end++];
  std::vector<int64_t> kept;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_reduced = marked[static_cast<size_t>(axis)];
    at.support(!is_reduced || axis < r.end, "reduces axes that do not lie together");
    if (!is_reduced) kept.push_back(shape[axis]);
    if (is_reduced && at.integer("keepdims", 1) != 0) kept.push_back(1);
  }
  r.kept = Shape(kept);
  return r;
}

/// The sums of x [B, outer, size, inner] as a product with ones, which is rounded once. A mean
/// times `size` would be rounded before: in fp16 it may come so close to 0 that its bits are lost.
Value product_with_ones(Lowering& at, Value x, int64_t outer, int64_t size, int64_t inner) {
  const auto ones = [&](const Shape& shape) {
    return at.constants(shape, at.dtype(x), [](int64_t) { return 1; });
  };
  if (inner == 1)
    return at.append(LinearOp{},
                     {{"x", at.reshaped(x, {kBatch, outer, size})}, {"weight", ones({1, size})}});
  return at.append(ConvOp{.groups = outer}, {{"x", at.reshaped(x, {kBatch, outer * size, inner})},
                                             {"weight", ones({outer, size, 1})}});
}

Value reduce(Lowering& at, Value x, PoolingMode mode, bool is_sum = false) {
  at.only({"axes", "keepdims", "noop_with_empty_axes"});
  if (at.integer("noop_with_empty_axes", 0) != 0 && at.integers(1, "axes").empty()) return x;
  const Shape shape = at.shape(x);
  const Reduction r = reduction_of(at, x);
  int64_t outer = 1, inner = 1;
  for (int axis = 1; axis < r.first; ++axis) outer *= shape[axis];
  for (int axis = r.end; axis < shape.rank(); ++axis) inner *= shape[axis];
  if (is_sum && at.dtype(x) == Dtype::fp16)
    return at.reshaped(product_with_ones(at, x, outer, r.size, inner), r.kept);
  const bool is_image = r.first == 2 && r.end == shape.rank() && shape.rank() <= 4;
  Value y;
  if (is_image) {
    y = at.append(whole_window(mode, {shape.begin() + 2, shape.end()}), {{"x", x}});
  } else {
    PoolingOp op;
    op.mode = mode;
    op.rows.kernel = r.size;
    y = at.append(op, {{"x", at.reshaped(x, {kBatch, outer, r.size, inner})}});
  }
  return at.multiplied(at.reshaped(y, r.kept), is_sum ? static_cast<double>(r.size) : 1);
}

Value negated(Lowering& at, Value x) {
  return at.multiplied(x, -1);
}

void lower_reduce_mean(Lowering& at) {
  at.support(!at.is_integer(0), "takes the mean of integers, expected floating-point numbers");
  at.set(reduce(at, at.x(0), PoolingMode::average));
}
void lower_reduce_sum(Lowering& at) {
  at.set(reduce(at, at.x(0), PoolingMode::average, true));
}
void lower_reduce_max(Lowering& at) {
  at.set(reduce(at, at.x(0), PoolingMode::max));
}
void lower_reduce_min(Lowering& at) {
  at.set(negated(at, reduce(at, negated(at, at.x(0)), PoolingMode::max)));
}
void lower_reduce_sum_square(Lowering& at) {
  const Value x = at.x(0);
  const bool is_row = at.shape(x).rank() == 1;  // one number per row
  const Value rows = is_row ? at.reshaped(x, {kBatch, 1}) : x;
  const Value square =
      at.append(BinaryOp{BinaryFunction::multiply}, {{"x", rows}, {"other", rows}});
  at.set(reduce(at, is_row ? at.reshaped(square, {kBatch}) : square, PoolingMode::average, true));
}

}  // namespace

void add_window_operators(std::map<std::string_view, Lower>& table) {
  table["Conv"] = lower_conv;
  table["MaxPool"] = lower_max_pool;
  table["AveragePool"] = lower_average_pool;
  table["GlobalAveragePool"] = lower_global_average;
  table["GlobalMaxPool"] = lower_global_max;
  table["ReduceMean"] = lower_reduce_mean;
  table["ReduceSum"] = lower_reduce_sum;
  table["ReduceMax"] = lower_reduce_max;
  table["ReduceMin"] = lower_reduce_min;
  table["ReduceSumSquare"] = lower_reduce_sum_square;
}

}  // namespace wide::onnx
