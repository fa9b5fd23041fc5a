// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators that make more positions, or fewer: transposed convolutions, blocks of positions that
// come from channels or become them, and Resize to nearest neighbours or between them.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "host/core/text.hpp"
#include "host/import/onnx/lowering.hpp"
#include "host/import/onnx/numbers.hpp"
#include "host/import/onnx/windows.hpp"

namespace wide::onnx {

namespace {

/// One axis of a transposed convolution.
struct Around {
  int64_t stride, dilation, padding, more;  ///< more: positions at the end, beyond even pads
};

/// Pads are those of the convolution that is undone; a size that is asked for determines them.
std::vector<Around> around_of(Lowering& at, const std::vector<int64_t>& kernel,
                              std::span<const int64_t> positions) {
  const size_t n = positions.size();
  const std::vector<int64_t> stride = per_axis(at, "strides", n, 1, 1),
                             dilation = per_axis(at, "dilations", n, 1, 1),
                             pads = per_axis(at, "pads", 2 * n, 0, 0),
                             more = per_axis(at, "output_padding", n, 0, 0);
  const std::vector<int64_t> wanted = at.integers("output_shape");
  const std::string_view mode = at.text("auto_pad", "NOTSET");
  const bool is_same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  at.require(is_same || mode == "NOTSET" || mode == "VALID", "has auto_pad " + std::string(mode));
  at.require(wanted.empty() || wanted.size() == n, "has an output_shape of " +
                                                       counted(wanted.size(), "axis", "axes") +
                                                       ", expected " + std::to_string(n));
  std::vector<Around> all;
  for (size_t i = 0; i < n; ++i) {
    const int64_t reach = dilation[i] * (limited(at, "kernel", kernel[i], 1) - 1) + 1;
    const int64_t in = limited(at, "positions", positions[i], 1);
    const int64_t most = stride[i] * (in - 1) + reach + more[i];  // without padding
    int64_t before = mode == "NOTSET" ? pads[i] : 0, behind = mode == "NOTSET" ? pads[i + n] : 0;
    int64_t extra = more[i];
    if (is_same || !wanted.empty()) {
      const int64_t size =
          wanted.empty() ? in * stride[i] : limited(at, "output_shape", wanted[i], 1);
      const int64_t spare = std::max<int64_t>(most - size, 0);
      before = mode == "SAME_UPPER" ? spare / 2 : spare - spare / 2;
      behind = spare - before;
      extra += std::max<int64_t>(size - most, 0);
    }
    all.push_back({stride[i], dilation[i], before, extra + before - behind});
  }
  return all;
}

void lower_conv_transpose(Lowering& at) {
  at.only({"auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape",
           "pads", "strides"});
  const Value x = at.x(0);
  const auto positions = positions_of(at, x);
  const std::vector<int64_t> kernel = kernel_of(at, x);
  const std::vector<Around> axes = around_of(at, kernel, positions);
  const Around& width = axes.back();
  ConvTransposeOp op{.groups = at.integer("group", 1)};
  op.stride = {1, width.stride}, op.padding = {0, width.padding};
  op.dilation = {1, width.dilation}, op.output_padding = {0, width.more};
  if (axes.size() >= 2) {
    const Around& height = axes[axes.size() - 2];
    op.stride.height = height.stride, op.padding.height = height.padding;
    op.dilation.height = height.dilation, op.output_padding.height = height.more;
  }
  if (axes.size() == 3) {
    op.depth.stride = axes[0].stride, op.depth.padding = axes[0].padding;
    op.depth.dilation = axes[0].dilation, op.depth_output_padding = axes[0].more;
  }
  at.set(at.append(op, with_weights(at, x)));
}

/// The block of an image whose channels and positions are exchanged.
int64_t block_of(Lowering& at, const Shape& image) {
  at.require(image.rank() == 4,
             "has an input of " + counted(image.rank(), "axis", "axes") + ", expected 4");
  return limited(at, "blocksize", at.integer("blocksize", 0), 1);
}

void lower_depth_to_space(Lowering& at) {
  at.only({"blocksize", "mode"});
  const Value x = at.x(0);
  const Shape shape = at.shape(x);
  const int64_t block = block_of(at, shape);
  const std::string_view mode = at.text("mode", "DCR");
  at.require(mode == "DCR" || mode == "CRD", "has mode " + std::string(mode));
  at.require(shape[1] % block == 0 && shape[1] / block % block == 0,
             "has " + std::to_string(shape[1]) + " channels, expected a multiple of the block's");
  DepthToSpaceOp op{.block = {block, block}};
  if (mode == "DCR") op.groups = 1;
  at.set(at.append(op, {{"x", x}}));
}

void lower_space_to_depth(Lowering& at) {
  at.only({"blocksize"});
  const Value x = at.x(0);
  const Shape shape = at.shape(x);
  const int64_t block = block_of(at, shape);
  at.require(shape[2] % block == 0 && shape[3] % block == 0,
             "has an image of " + std::to_string(shape[2]) + " x " + std::to_string(shape[3]) +
                 ", expected multiples of its blocksize " + std::to_string(block));
  const int64_t height = shape[2] / block, width = shape[3] / block;
  const Value parts = at.reshaped(x, {kBatch, shape[1] * height, block, width, block});
  const Value y = at.append(TransposeOp{{0, 2, 4, 1, 3}}, {{"x", parts}});
  at.set(at.reshaped(y, {kBatch, block * block * shape[1], height, width}));
}

/// Resize before its opset 11, and Upsample, which it replaced.
bool is_of_old(const Lowering& at) {
  return at.node().op == "Upsample" || at.opset() < 11;
}

std::string_view coordinates_of(Lowering& at) {
  return at.text("coordinate_transformation_mode", is_of_old(at) ? "asymmetric" : "half_pixel");
}

/// Which of x's positions is the nearest to one of y's, as ONNX's Resize has it.
class Nearest {
 public:
  explicit Nearest(Lowering& at)
      : where_(coordinates_of(at)),
        rounding_(at.text("nearest_mode", is_of_old(at) ? "floor" : "round_prefer_floor")) {
    static constexpr std::string_view kWhere[] = {"asymmetric", "half_pixel", "pytorch_half_pixel",
                                                  "align_corners", "tf_half_pixel_for_nn"};
    at.support(std::find(std::begin(kWhere), std::end(kWhere), where_) != std::end(kWhere),
               "has coordinate_transformation_mode " + std::string(where_));
    static constexpr std::string_view kRounding[] = {"floor", "ceil", "round_prefer_floor",
                                                     "round_prefer_ceil"};
    at.require(
        std::find(std::begin(kRounding), std::end(kRounding), rounding_) != std::end(kRounding),
        "has nearest_mode " + std::string(rounding_));
  }
  int64_t operator()(int64_t i, int64_t in, int64_t out, double scale) const {
    const auto at = static_cast<double>(i);
    double place = at / scale;
    if (where_ == "half_pixel") place = (at + 0.5) / scale - 0.5;
    if (where_ == "pytorch_half_pixel") place = out > 1 ? (at + 0.5) / scale - 0.5 : 0;
    if (where_ == "tf_half_pixel_for_nn") place = (at + 0.5) / scale;
    if (where_ == "align_corners")
      place = out > 1 ? at * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    const double rounded = rounding_ == "floor"                ? std::floor(place)
                           : rounding_ == "ceil"               ? std::ceil(place)
                           : rounding_ == "round_prefer_floor" ? std::ceil(place - 0.5)
                                                               : std::floor(place + 0.5);
    return std::clamp<int64_t>(static_cast<int64_t>(rounded), 0, in - 1);
  }

 private:
  std::string_view where_, rounding_;
};

/// `values`, one for each axis of x, with what a constant says of all, or of `axes`.
std::vector<double> said_of_axes(Lowering& at, size_t input, std::vector<double> values) {
  const Numbers& given = at.numbers(input);
  const int64_t rank = std::ssize(values);
  std::vector<int64_t> axes = at.integers("axes");
  if (axes.empty()) {
    axes.resize(values.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  at.require(given.values.size() == axes.size(), "has " + counted(given.values.size(), "number") +
                                                     " for its axes, expected " +
                                                     std::to_string(axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    at.require(axis >= 0 && axis < rank, "has an axis " + std::to_string(axes[i]));
    if (is_batch(given, i)) continue;  // as many as there are
    values[static_cast<size_t>(axis)] = static_cast<double>(given.values[i]);
  }
  return values;
}

/// What each axis of x is multiplied by, and then has.
struct Resized {
  std::vector<double> scale, size;
};
Resized resized(Lowering& at, const Shape& x) {
  const size_t scales = is_of_old(at) ? 1 : 2, sizes = 3;
  const bool has_sizes = at.has(sizes) && !at.numbers(sizes).values.empty();
  at.require(has_sizes || at.has(scales), "has neither scales nor sizes");
  std::vector<double> extents;
  for (const int64_t extent : x) extents.push_back(static_cast<double>(extent));
  extents[0] = static_cast<double>(at.batch());
  Resized all{std::vector<double>(extents.size(), 1), extents};
  if (has_sizes) {
    all.size = said_of_axes(at, sizes, extents);
    for (size_t i = 0; i < extents.size(); ++i) all.scale[i] = all.size[i] / extents[i];
  } else {
    all.scale = said_of_axes(at, scales, all.scale);
    for (size_t i = 0; i < extents.size(); ++i) all.size[i] = std::floor(extents[i] * all.scale[i]);
  }
  return all;
}

/// How many times each position is there. Only what repeats positions is an upsample.
int64_t factor_of(Lowering& at, const Nearest& nearest, int64_t in, double scale, double size) {
  constexpr double kMost = 1 << 20;  // each is looked at
  at.require(size >= 1, "makes no positions of " + std::to_string(in));
  at.support(size <= kMost, "makes more than 2^20 positions of " + std::to_string(in));
  const auto out = static_cast<int64_t>(size);
  at.support(out % in == 0, "resizes " + std::to_string(in) + " positions to " +
                                std::to_string(out) + ", expected a multiple");
  for (int64_t i = 0; i < out; ++i) {
    const int64_t from = nearest(i, in, out, scale);
    if (from == i / (out / in)) continue;
    at.unsupported("takes position " + std::to_string(from) + " for " + std::to_string(i) +
                   ", expected each one as often, in their order");
  }
  return out / in;
}

void set_nearest(Lowering& at, Value x, const Resized& to) {
  const Shape shape = at.shape(x);
  const Nearest nearest(at);
  std::vector<int64_t> factors;
  for (size_t i = 2; i < to.size.size(); ++i) {
    factors.push_back(factor_of(at, nearest, shape[static_cast<int>(i)], to.scale[i], to.size[i]));
  }
  UpsampleOp op{.factor = pair(factors, 1)};
  if (factors.size() == 3) op.depth_factor = factors[0];
  at.set(at.append(op, {{"x", x}}));
}

/// The outputs of an axis, and the scale by which their coordinates go where sizes do not say it.
std::pair<int64_t, float> linear_axis(Lowering& at, CoordinateMode mode, int64_t in, double scale,
                                      double size) {
  constexpr double kMost = 1 << 30;
  at.require(size >= 1, "makes no positions of " + std::to_string(in));
  at.support(size <= kMost, "makes more than 2^30 positions of " + std::to_string(in));
  const double exact = static_cast<double>(in) * scale;
  if (exact == size) return {static_cast<int64_t>(size), 0.0f};
  // To ONNX corners are those of a part of a position, to its runtime of whole ones.
  at.support(mode != CoordinateMode::align_corners,
             "makes " + text(exact) + " positions of " + std::to_string(in) +
                 " with corners aligned, expected a whole number");
  return {static_cast<int64_t>(size), static_cast<float>(scale)};
}

void set_linear(Lowering& at, Value x, const Resized& to) {
  const std::string_view where = coordinates_of(at);
  const std::optional<CoordinateMode> mode = parse_coordinate_mode(where);
  at.support(mode.has_value(), "has coordinate_transformation_mode " + std::string(where) +
                                   ", expected half_pixel, pytorch_half_pixel, align_corners or "
                                   "asymmetric of mode linear");
  for (const char* option : {"antialias", "exclude_outside"}) {
    const int64_t is_on = at.integer(option, 0);
    at.support(is_on == 0, "has " + text(option) + " " + std::to_string(is_on) + ", expected 0");
  }
  const Shape shape = at.shape(x);
  at.support(shape.rank() <= 4, "has an input of " + std::to_string(shape.rank()) +
                                    " axes, expected a signal or image of mode linear");
  InterpolateOp op{.coordinates = *mode};
  const auto axis = [&](int i) {
    const auto of = static_cast<size_t>(i);
    return linear_axis(at, *mode, shape[i], to.scale[of], to.size[of]);
  };
  std::tie(op.out_width, op.column_scale) = axis(shape.rank() - 1);
  if (shape.rank() == 4) std::tie(op.out_height, op.row_scale) = axis(2);
  at.set(at.append(op, {{"x", x}}));
}

void lower_resize(Lowering& at) {
  at.only({"antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a",
           "exclude_outside", "extrapolation_value", "keep_aspect_ratio_policy", "mode",
           "nearest_mode"});
  const std::string_view mode = at.text("mode", "nearest");
  at.support(mode == "nearest" || mode == "linear",
             "has mode " + std::string(mode) + ", expected nearest or linear");
  const std::string_view policy = at.text("keep_aspect_ratio_policy", "stretch");
  at.support(policy == "stretch", "has keep_aspect_ratio_policy " + std::string(policy));
  const Value x = at.x(0);
  (void)positions_of(at, x);
  const Resized to = resized(at, at.shape(x));
  at.support(to.scale[0] == 1 && to.scale[1] == 1, "resizes the batch or channels");
  return mode == "linear" ? set_linear(at, x, to) : set_nearest(at, x, to);
}

}  // namespace

void add_upsampling_operators(std::map<std::string_view, Lower>& table) {
  table["ConvTranspose"] = lower_conv_transpose;
  table["DepthToSpace"] = lower_depth_to_space;
  table["SpaceToDepth"] = lower_space_to_depth;
  table["Resize"] = lower_resize;
  table["Upsample"] = lower_resize;
}

}  // namespace wide::onnx
