// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/model/channel_regions.hpp"

#include <algorithm>
#include <numeric>

#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_strategy.hpp"
#include "host/model/batch.hpp"
#include "host/model/broadcast.hpp"
#include "host/model/layout.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

using enum ChannelLayout;

constexpr int64_t kVectorBytes = 16;

template <class T>
size_t z(T index) {
  return static_cast<size_t>(index);
}

void add(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

}  // namespace

bool is_image(const Graph& graph, Value value) {
  const Shape& shape = graph.type(value).shape;
  return shape.rank() == 4 && is_batched(shape);
}

bool is_single_position(const Graph& graph, Value image) {
  const Shape& shape = graph.type(image).shape;
  return shape[2] == 1 && shape[3] == 1;
}

bool is_of_channels(const Graph& graph, Value parameter) {
  const Shape& shape = graph.type(parameter).shape;
  return shape.rank() == 3 && shape[1] == 1 && shape[2] == 1;
}

bool reads_in_place(const Graph& graph, const Node& node, const Operand& operand) {
  const ValueType& x = graph.type(operand.value);
  return std::holds_alternative<ConvOp>(node.operation) && operand.name == "x" &&
         x.shape[1] * dtype_bytes(x.dtype) % kVectorBytes != 0;
}

ChannelRegions::ChannelRegions(const DeviceInfo& device, std::span<const VerifiedStrategy> verified,
                               const Graph& graph, const ModelProblem& problem,
                               const ModelOptions& options)
    : device_(device),
      verified_(verified),
      graph_(graph),
      problem_(problem),
      options_(options),
      is_shared_(shared_values(graph, options.shared_parameters, options.drops_out)),
      region_of_(graph.nodes().size(), -1),
      writer_(z(graph.num_values()), -1) {
  join();
  for (size_t i = 0; i < region_of_.size(); ++i) {
    if (region_of_[i] >= 0) look_at(graph.nodes()[i], regions_[z(region_of_[i])]);
  }
  look_at_readers();
  for (Region& region : regions_) {
    const size_t copies = region.entering.size() + region.leaving.size();
    const bool is_wanted = options.channel_layout == channels_last || z(region.gains) > copies;
    region.moves = region.convolutions > 0 && is_wanted && (options.moves_data || copies == 0);
  }
}

bool ChannelRegions::any_moves() const {
  return std::any_of(regions_.begin(), regions_.end(),
                     [](const Region& region) { return region.moves; });
}

bool ChannelRegions::moves(size_t node) const {
  return region_of_[node] >= 0 && regions_[z(region_of_[node])].moves;
}

bool ChannelRegions::enters(Value operand) const {
  return is_image(graph_, operand) && region_of_writer(operand) < 0;
}

Notes ChannelRegions::notes() const {
  Notes notes;
  for (const Region& region : regions_) {
    if (!region.moves) continue;
    const std::string others = region.nodes == 1 ? "" : " to " + region.last;
    std::string note = region.first + others + ": channels last";
    for (const Value value : region.entering) note += "; " + graph_.name(value) + " is copied";
    for (const Value value : region.leaving) note += "; " + graph_.name(value) + " is copied back";
    notes.push_back(std::move(note));
  }
  return notes;
}

/// Whether a node computes the same with channels last, from operands that have them there.
bool ChannelRegions::can_move(const Node& node) const {
  const auto is_image_here = [&](Value value) { return is_image(graph_, value); };
  if (!is_image_here(node.outputs[0])) return false;
  if (const auto* conv = std::get_if<ConvOp>(&node.operation)) {
    return conv->layout == channels_first && !conv->x_layout.has_value();
  }
  if (const ChannelLayout* layout = own_layout(node.operation)) return *layout == channels_first;
  if (std::holds_alternative<PointwiseOp>(node.operation)) {
    const Value slope = node.operand("slope");
    return slope.is_absent() || graph_.type(slope).shape == Shape{1};
  }
  if (std::holds_alternative<BinaryOp>(node.operation)) {
    const Value x = node.operand("x"), other = node.operand("other");
    if (!is_image_here(x)) return false;
    if (is_image_here(other)) {
      return graph_.type(other) == graph_.type(x) ||
             repeats_channels(graph_.type(other).shape, graph_.type(x).shape);
    }
    return num_elements(graph_.type(other).shape) == 1 || is_of_channels(graph_, other);
  }
  // Which elements are dropped depends on their numbers.
  if (std::holds_alternative<DropoutOp>(node.operation)) return !options_.drops_out;
  const bool takes_any = std::holds_alternative<ConcatOp>(node.operation) ||
                         std::holds_alternative<SliceOp>(node.operation);
  return takes_any &&
         std::all_of(node.operands.begin(), node.operands.end(),
                     [&](const Operand& operand) { return is_image_here(operand.value); });
}

/// Numbers the regions, in the order of their first nodes.
void ChannelRegions::join() {
  const auto nodes = graph_.nodes();
  std::vector<int> parent(nodes.size());
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](int node) {
    while (parent[z(node)] != node) node = parent[z(node)];
    return node;
  };
  std::vector<bool> can(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto number = static_cast<int>(i);
    for (const Value y : nodes[i].outputs) writer_[z(y.index)] = number;
    can[i] = can_move(nodes[i]);
    if (!can[i]) continue;
    for (const Operand& operand : nodes[i].operands) {
      const int writer = writer_[z(operand.value.index)];
      if (writer >= 0 && can[z(writer)]) parent[z(root(writer))] = root(number);
    }
  }
  std::vector<int> numbers(nodes.size(), -1);  // of roots
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!can[i]) continue;
    int& number = numbers[z(root(static_cast<int>(i)))];
    if (number < 0) {
      number = static_cast<int>(regions_.size());
      regions_.emplace_back();
    }
    region_of_[i] = number;
  }
}

int ChannelRegions::region_of_writer(Value value) const {
  const int writer = writer_[z(value.index)];
  return writer < 0 ? -1 : region_of_[z(writer)];
}

/// A convolution's problem with channels last, x's too: where it reads them first, wgmma takes
/// neither.
ConvProblem ChannelRegions::problem_of(const Node& node) const {
  const auto& op = std::get<ConvOp>(node.operation);
  const ValueType& type = graph_.type(node.operand("x"));
  const Shape& weight = graph_.type(node.operand("weight")).shape;
  ConvProblem p;
  p.num_members = is_shared_[z(node.outputs[0].index)] ? 1 : problem_.num_members;
  p.batch = problem_.batch;
  p.in_channels = type.shape[1];
  p.out_channels = weight[0];
  p.groups = op.groups;
  p.input = {type.shape[2], type.shape[3]};
  p.kernel = {weight[2], weight[3]};
  p.stride = op.stride, p.padding = op.padding, p.dilation = op.dilation;
  p.layout = channels_last;
  p.dtype = type.dtype;
  p.allow_tf32 = options_.allows_tf32;
  p.epilogue.has_bias = !node.operand("bias").is_absent();
  p.epilogue.activation = op.activation;
  p.epilogue.residual = op.residual;
  return p;
}

/// Whether a convolution would run by a strategy for channels last only; vendors take either.
bool ChannelRegions::gains(const Node& node) const {
  try {
    const ConvChoice choice = choose_conv_strategy(
        complete_conv_problem(problem_of(node)), device_, strategy_of(options_, node.name, "conv"),
        verified_, [](const ConvStrategy&, std::string_view) { return std::string(); });
    return choice.strategy->name == "wgmma";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unsupported) throw;
    return false;  // the node's plan says why
  }
}

void ChannelRegions::look_at(const Node& node, Region& region) {
  if (region.nodes++ == 0) region.first = node.name;
  region.last = node.name;
  if (std::holds_alternative<ConvOp>(node.operation)) {
    ++region.convolutions;
    if (gains(node)) ++region.gains;
  }
  for (const Operand& operand : node.operands) {
    const bool is_copied = enters(operand.value) && !reads_in_place(graph_, node, operand) &&
                           !is_single_position(graph_, operand.value);
    if (is_copied) add(region.entering, operand.value);
  }
}

void ChannelRegions::look_at_readers() {
  const auto leave = [&](Value value, int reader) {
    const int region = region_of_writer(value);
    const bool is_copied = region >= 0 && region != reader && !is_single_position(graph_, value);
    if (is_copied) add(regions_[z(region)].leaving, value);
  };
  for (size_t i = 0; i < region_of_.size(); ++i) {
    for (const Operand& operand : graph_.nodes()[i].operands) leave(operand.value, region_of_[i]);
  }
  for (const Operand& output : graph_.outputs()) leave(output.value, -1);
}

}  // namespace wide
