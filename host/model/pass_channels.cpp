// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Convolutions with channels last. Matrix units need the terms of a sum contiguous, as a pixel's
// channels are there; tensor maps take nothing else. A network's images are transposed once: its
// first layer reads them as given, and where the last one pools them to a single position nothing
// needs transposing back.
#include "host/model/channel_regions.hpp"
#include "host/model/rewrite.hpp"

namespace wide {

namespace {

using enum ChannelLayout;

/// A node's operation on images with channels last.
Operation with_channels_last(Operation operation, bool reads_first) {
  constexpr int kMoved[] = {0, 3, 1, 2};  // new places of axes
  if (auto* conv = std::get_if<ConvOp>(&operation)) {
    conv->layout = channels_last;
    if (reads_first) conv->x_layout = channels_first;
  } else if (ChannelLayout* layout = own_layout(operation)) {
    *layout = channels_last;
  } else if (auto* concat = std::get_if<ConcatOp>(&operation)) {
    concat->axis = kMoved[concat->axis];
  } else if (auto* slice = std::get_if<SliceOp>(&operation)) {
    slice->axis = kMoved[slice->axis];
  }
  return operation;
}

class ChannelMover {
 public:
  ChannelMover(const Graph& graph, const ChannelRegions& regions)
      : graph_(graph),
        regions_(regions),
        rewrite_(graph),
        last_(static_cast<size_t>(graph.num_values())),
        is_last_only_(last_.size(), false) {}

  Graph run() {
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      const Node& node = graph_.nodes()[i];
      if (regions_.moves(i)) {
        move(node);
        continue;
      }
      for (const Operand& operand : node.operands) restore(operand.value);
      rewrite_.copy(node);
    }
    for (const Operand& output : graph_.outputs()) restore(output.value);
    return rewrite_.finish();
  }

 private:
  Value& last_of(Value old) { return last_[static_cast<size_t>(old.index)]; }

  /// An image `x` of the new graph, `old` of the old one, with its axes in another order. A single
  /// position is not moved.
  Value turned(const char* suffix, Value x, Value old, const Dims& order, const Shape& shape) {
    const std::string name = rewrite_.free_name(graph_.name(old) + suffix);
    if (is_single_position(graph_, old)) {
      return rewrite_.builder().append(name, ReshapeOp{shape}, {{"x", x}});
    }
    return rewrite_.builder().append(name, TransposeOp{order}, {{"x", x}});
  }

  Value with_channels_last_of(Value old) {
    Value& value = last_of(old);
    if (value.is_absent()) {
      value = turned(".channels_last", rewrite_(old), old, {0, 2, 3, 1},
                     {kBatch, 1, 1, graph_.type(old).shape[1]});
    }
    return value;
  }

  /// For readers that do not move: moved values with channels first again.
  void restore(Value old) {
    const auto index = static_cast<size_t>(old.index);
    if (!is_last_only_[index]) return;
    is_last_only_[index] = false;
    rewrite_.replace(old, turned(".channels_first", last_of(old), old, {0, 3, 1, 2},
                                 {kBatch, graph_.type(old).shape[1], 1, 1}));
  }

  /// A parameter of a node that moves: one number per channel lies along the last axis.
  Value parameter(const Node& node, const Operand& operand) {
    const Value own = rewrite_(operand.value);
    const bool is_factor =
        std::holds_alternative<BinaryOp>(node.operation) && is_of_channels(graph_, operand.value);
    if (!is_factor) return own;
    return rewrite_.builder().append(rewrite_.free_name(node.name + "." + operand.name),
                                     ReshapeOp{{graph_.type(operand.value).shape[0]}},
                                     {{"x", own}});
  }

  void move(const Node& node) {
    bool reads_first = false;
    std::vector<Operand> operands;
    for (const Operand& operand : node.operands) {
      const bool is_read_in_place =
          regions_.enters(operand.value) && reads_in_place(graph_, node, operand);
      reads_first = reads_first || is_read_in_place;
      const Value value = !is_image(graph_, operand.value) ? parameter(node, operand)
                          : is_read_in_place               ? rewrite_(operand.value)
                                                           : with_channels_last_of(operand.value);
      operands.push_back({operand.name, value});
    }
    rewrite_.append(node.name, with_channels_last(node.operation, reads_first), std::move(operands),
                    node.outputs);
    for (const Value y : node.outputs) {
      last_of(y) = rewrite_(y);
      is_last_only_[static_cast<size_t>(y.index)] = true;
    }
  }

  const Graph& graph_;
  const ChannelRegions& regions_;
  Rewrite rewrite_;
  std::vector<Value> last_;         ///< values of the new graph, by those of the old one
  std::vector<bool> is_last_only_;  ///< those that exist with channels last only
};

}  // namespace

Graph prefer_channels_last(const DeviceInfo& device, std::span<const VerifiedStrategy> verified,
                           const Graph& graph, const ModelProblem& problem,
                           const ModelOptions& options, Notes& notes) {
  if (options.channel_layout == channels_first) return graph;
  const ChannelRegions regions(device, verified, graph, problem, options);
  if (!regions.any_moves()) return graph;
  const Notes own = regions.notes();
  notes.insert(notes.end(), own.begin(), own.end());
  return ChannelMover(graph, regions).run();
}

}  // namespace wide
