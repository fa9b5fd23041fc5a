// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operations as text: their names, and the attributes that differ from the defaults.
#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "wide/graph.hpp"

namespace wide {

namespace {

/// Collects attributes; a value equal to the default is left out.
class Attributes {
 public:
  template <class T>
  void add(const char* name, const T& value, const T& usual) {
    if (value == usual) return;
    if constexpr (std::is_same_v<T, bool>) {
      list_.emplace_back(name, "true");
    } else if constexpr (std::is_same_v<T, PerAxis>) {
      list_.emplace_back(name, std::to_string(value.height) + "x" + std::to_string(value.width));
    } else if constexpr (std::is_arithmetic_v<T>) {
      list_.emplace_back(name, text(value));
    } else {
      list_.emplace_back(name, std::string(value));
    }
  }
  void window(const std::string& prefix, const PoolingWindow& w) {
    add((prefix + "kernel").c_str(), w.kernel, int64_t{1});
    add((prefix + "stride").c_str(), w.stride, int64_t{0});
    add((prefix + "padding").c_str(), w.padding, int64_t{0});
    add((prefix + "dilation").c_str(), w.dilation, int64_t{1});
  }
  std::vector<std::pair<std::string, std::string>> take() { return std::move(list_); }

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

std::string_view layout_name(ChannelLayout layout) {
  return layout == ChannelLayout::channels_last ? "channels_last" : "channels_first";
}
void list(const LinearOp& op, Attributes& a) {
  a.add("activation", activation_name(op.activation), activation_name(Activation::none));
  a.add("residual", residual_name(op.residual), residual_name(Residual::none));
  a.add("weights", weight_format_name(op.weight_format), weight_format_name(WeightFormat::packed));
  a.add("group_size", op.group_size, int64_t{128});
}
void list(const ConvOp& op, Attributes& a) {
  a.add("groups", op.groups, int64_t{1});
  a.add("stride", op.stride, PerAxis{});
  a.add("padding", op.padding, PerAxis{0, 0});
  a.add("dilation", op.dilation, PerAxis{});
  a.add("depth_stride", op.depth.stride, int64_t{1});
  a.add("depth_padding", op.depth.padding, int64_t{0});
  a.add("depth_dilation", op.depth.dilation, int64_t{1});
  a.add("layout", layout_name(op.layout), layout_name(ChannelLayout::channels_first));
  a.add("x_layout", layout_name(op.x_layout.value_or(op.layout)), layout_name(op.layout));
  a.add("activation", activation_name(op.activation), activation_name(Activation::none));
  a.add("residual", residual_name(op.residual), residual_name(Residual::none));
}
void list(const MatmulOp& op, Attributes& a) {
  a.add("alpha", op.alpha, 1.0f);
  a.add("activation", activation_name(op.activation), activation_name(Activation::none));
  a.add("residual", residual_name(op.residual), residual_name(Residual::none));
}
void list(const ConvTransposeOp& op, Attributes& a) {
  a.add("groups", op.groups, int64_t{1});
  a.add("stride", op.stride, PerAxis{});
  a.add("padding", op.padding, PerAxis{0, 0});
  a.add("dilation", op.dilation, PerAxis{});
  a.add("output_padding", op.output_padding, PerAxis{0, 0});
  a.add("depth_stride", op.depth.stride, int64_t{1});
  a.add("depth_padding", op.depth.padding, int64_t{0});
  a.add("depth_dilation", op.depth.dilation, int64_t{1});
  a.add("depth_output_padding", op.depth_output_padding, int64_t{0});
  a.add("activation", activation_name(op.activation), activation_name(Activation::none));
}
void list(const DepthToSpaceOp& op, Attributes& a) {
  a.add("block", op.block, PerAxis{0, 0});
  a.add("first", op.first, PerAxis{0, 0});
  a.add("size", op.size, PerAxis{0, 0});
  a.add("depth_block", op.depth_block, int64_t{1});
  a.add("depth_first", op.depth_first, int64_t{0});
  a.add("depth_size", op.depth_size, int64_t{0});
  a.add("groups", op.groups, int64_t{0});
  a.add("layout", layout_name(op.layout), layout_name(ChannelLayout::channels_first));
}
void list(const UpsampleOp& op, Attributes& a) {
  a.add("factor", op.factor, PerAxis{0, 0});
  a.add("depth_factor", op.depth_factor, int64_t{1});
  a.add("layout", layout_name(op.layout), layout_name(ChannelLayout::channels_first));
}
void list(const AttentionOp& op, Attributes& a) {
  a.add("heads", op.heads, int64_t{0});
  a.add("causal", op.is_causal, false);
}
void list(const FlashAttentionOp& op, Attributes& a) {
  a.add("heads", op.heads, int64_t{0});
  a.add("kv_heads", op.kv_heads, int64_t{0});
  a.add("causal", op.is_causal, false);
  if (op.scale) a.add("scale", *op.scale, 0.0f);
  a.add("window", op.window, int64_t{0});
  a.add("soft_cap", op.soft_cap, 0.0f);
  a.add("aligns_to_lengths", op.aligns_to_lengths, false);
}
void list(const RecurrentOp& op, Attributes& a) {
  a.add<std::string_view>("cell", recurrent_cell_name(op.cell), "");
  a.add("reversed", op.is_reversed, false);
  a.add("writes_cell", op.writes_cell, false);
}
void list(const EmbeddingOp& op, Attributes& a) {
  a.add("padding_id", op.padding_id, int64_t{-1});
}
void list(const LayernormOp& op, Attributes& a) {
  a.add("epsilon", op.epsilon, 1e-5f);
  a.add("writes_sum", op.writes_sum, false);
}
void list(const RmsnormOp& op, Attributes& a) {
  a.add("epsilon", op.epsilon, 1e-5f);
  a.add("writes_sum", op.writes_sum, false);
}
void list(const ChainOp& op, Attributes& a) {
  a.add("activation", activation_name(op.activation), activation_name(Activation::none));
  a.add("norm", chain_norm_name(op.norm), chain_norm_name(ChainNorm::none));
  a.add("epsilon", op.epsilon, 1e-5f);
  a.add("writes_sum", op.writes_sum, false);
}
void list(const BatchnormOp& op, Attributes& a) {
  a.add("epsilon", op.epsilon, 1e-5f);
}
void list(const GroupnormOp& op, Attributes& a) {
  a.add("groups", op.groups, int64_t{0});
  a.add("epsilon", op.epsilon, 1e-5f);
}
void list(const InstancenormOp& op, Attributes& a) {
  a.add("epsilon", op.epsilon, 1e-5f);
}
void list(const PointwiseOp& op, Attributes& a) {
  const PointwiseOp usual;
  a.add<std::string_view>("function", pointwise_function_name(op.function), "");
  a.add("slope", op.slope, usual.slope);
  a.add("alpha", op.alpha, usual.alpha);
  a.add("beta", op.beta, usual.beta);
  a.add("low", op.low, usual.low);
  a.add("high", op.high, usual.high);
}
void list(const BinaryOp& op, Attributes& a) {
  a.add<std::string_view>("function", binary_function_name(op.function), "");
  a.add("activation", activation_name(op.activation), activation_name(Activation::none));
}
void list(const PoolingOp& op, Attributes& a) {
  a.add<std::string_view>("mode", pooling_mode_name(op.mode), "");
  if (op.mode == PoolingMode::adaptive_average) {
    a.add("out_height", op.out_height, int64_t{0});
    a.add("out_width", op.out_width, int64_t{0});
  } else if (op.rows == op.columns) {
    a.window("", op.columns);
  } else {
    a.window("row_", op.rows);
    a.window("column_", op.columns);
  }
  a.add("ceil_mode", op.ceil_mode, false);
  a.add("layout", layout_name(op.layout), layout_name(ChannelLayout::channels_first));
  if (!op.counts_padding) a.add<std::string_view>("counts_padding", "false", "");
}
void list(const InterpolateOp& op, Attributes& a) {
  a.add("out_height", op.out_height, int64_t{0});
  a.add("out_width", op.out_width, int64_t{0});
  a.add<std::string_view>("coordinates", coordinate_mode_name(op.coordinates), "");
  a.add("row_scale", op.row_scale, 0.0f);
  a.add("column_scale", op.column_scale, 0.0f);
  a.add("layout", layout_name(op.layout), layout_name(ChannelLayout::channels_first));
}
void list(const SoftmaxOp& op, Attributes& a) {
  a.add("log", op.is_log, false);
}
void list(const DropoutOp& op, Attributes& a) {
  a.add("probability", op.probability, 0.0f);  // 0 where members have their own
}
void list(const ConcatOp& op, Attributes& a) {
  a.add("axis", op.axis, -1);
}
void list(const SliceOp& op, Attributes& a) {
  a.add("axis", op.axis, -1);
  a.add("first", op.first, int64_t{-1});
  a.add("count", op.count, int64_t{-1});
}
void list(const ReshapeOp&, Attributes&) {}  // its type shows it
void list(const TransposeOp& op, Attributes& a) {
  a.add<std::string>("order", to_string(op.order), "");
}
void list(const FoldBatchnormOp& op, Attributes& a) {
  a.add("epsilon", op.epsilon, 1e-5f);
}
void list(const ConvPhasesOp& op, Attributes& a) {
  a.add("groups", op.groups, int64_t{1});
  a.add("stride", op.stride, PerAxis{});
  a.add("dilation", op.dilation, PerAxis{});
  a.add("depth_stride", op.depth_stride, int64_t{1});
  a.add("depth_dilation", op.depth_dilation, int64_t{1});
}
std::string widths_text(const std::vector<int64_t>& widths) {
  std::string text;
  for (const int64_t width : widths) text += (text.empty() ? "" : "-") + std::to_string(width);
  return text;
}
void list(const MlpOp& op, Attributes& a) {
  a.add<std::string>("widths", widths_text(op.widths), "");
  a.add("activation", activation_name(op.activation), activation_name(Activation::none));
  a.add("last_activation", activation_name(op.last_activation), activation_name(Activation::none));
}
void list(const PackMlpOp& op, Attributes& a) {
  a.add<std::string>("widths", widths_text(op.widths), "");
}
void list(const QuantizeOp& op, Attributes& a) {
  a.add<std::string_view>("format", weight_format_name(op.format), "");
  a.add("group_size", op.group_size, int64_t{128});
}
void list(const EnsembleOp& op, Attributes& a) {
  a.add<std::string_view>("of", ensemble_function_name(op.ensemble), "");
}

struct Namer {
  int rank;  ///< of x
  std::string_view operator()(const LinearOp&) const { return "linear"; }
  std::string_view operator()(const MatmulOp&) const { return "matmul"; }
  std::string_view operator()(const ConvOp&) const {
    return rank == 3 ? "conv1d" : rank == 4 ? "conv2d" : "conv3d";
  }
  std::string_view operator()(const ConvTransposeOp&) const {
    return rank == 3 ? "conv_transpose1d" : rank == 4 ? "conv_transpose2d" : "conv_transpose3d";
  }
  std::string_view operator()(const DepthToSpaceOp&) const { return "depth_to_space"; }
  std::string_view operator()(const UpsampleOp&) const { return "upsample"; }
  std::string_view operator()(const AttentionOp&) const { return "attention"; }
  std::string_view operator()(const FlashAttentionOp&) const { return "flash_attention"; }
  std::string_view operator()(const RecurrentOp&) const { return "recurrent"; }
  std::string_view operator()(const EmbeddingOp&) const { return "embedding"; }
  std::string_view operator()(const LayernormOp&) const { return "layernorm"; }
  std::string_view operator()(const RmsnormOp&) const { return "rmsnorm"; }
  std::string_view operator()(const ChainOp&) const { return "chain"; }
  std::string_view operator()(const BatchnormOp&) const {
    return rank <= 3 ? "batchnorm1d" : "batchnorm2d";
  }
  std::string_view operator()(const GroupnormOp&) const { return "groupnorm"; }
  std::string_view operator()(const InstancenormOp&) const {
    return rank == 3 ? "instancenorm1d" : "instancenorm2d";
  }
  std::string_view operator()(const PointwiseOp&) const { return "pointwise"; }
  std::string_view operator()(const BinaryOp&) const { return "binary"; }
  std::string_view operator()(const PoolingOp&) const { return "pooling"; }
  std::string_view operator()(const InterpolateOp&) const { return "interpolate"; }
  std::string_view operator()(const SoftmaxOp&) const { return "softmax"; }
  std::string_view operator()(const DropoutOp&) const { return "dropout"; }
  std::string_view operator()(const ConcatOp&) const { return "concat"; }
  std::string_view operator()(const SliceOp&) const { return "slice"; }
  std::string_view operator()(const ReshapeOp&) const { return "reshape"; }
  std::string_view operator()(const TransposeOp&) const { return "transpose"; }
  std::string_view operator()(const FoldBatchnormOp&) const { return "fold_batchnorm"; }
  std::string_view operator()(const ConvPhasesOp&) const { return "conv_phases"; }
  std::string_view operator()(const MlpOp&) const { return "mlp"; }
  std::string_view operator()(const PackMlpOp&) const { return "pack_mlp"; }
  std::string_view operator()(const QuantizeOp&) const { return "quantize"; }
  std::string_view operator()(const EnsembleOp&) const { return "ensemble"; }
};

}  // namespace

std::vector<std::pair<std::string, std::string>> operation_attributes(const Operation& operation) {
  Attributes attributes;
  std::visit([&](const auto& op) { list(op, attributes); }, operation);
  return attributes.take();
}

std::string_view operation_name(const Graph& graph, const Node& node) {
  const Value x = node.operand("x");
  return std::visit(Namer{x.is_absent() ? 0 : graph.type(x).shape.rank()}, node.operation);
}

}  // namespace wide
