// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Which nodes of a graph get channels last: connected regions of nodes that can, by what their
// convolutions gain and what copies at the borders cost.
#pragma once

#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "host/model/passes.hpp"

namespace wide {

/// [B, C, H, W], or with channels last.
bool is_image(const Graph& graph, Value value);
/// An image whose layout makes no difference.
bool is_single_position(const Graph& graph, Value image);
/// A parameter [C, 1, 1], one number for each channel of an image.
bool is_of_channels(const Graph& graph, Value parameter);
/// Whether a convolution reads an operand of another region in place: images of a few channels.
/// Copies would not be whole vectors, either.
bool reads_in_place(const Graph& graph, const Node& node, const Operand& operand);

/// The layout of an operation, const or not, that has one for all of its images; else null: those
/// of convolutions may differ, and most operations take any.
template <class Any>
auto own_layout(Any& operation) {
  using Layout = std::conditional_t<std::is_const_v<Any>, const ChannelLayout, ChannelLayout>;
  return std::visit(
      [](auto& op) -> Layout* {
        using Op = std::remove_cvref_t<decltype(op)>;
        if constexpr (requires { op.layout; } && !std::is_same_v<Op, ConvOp>) return &op.layout;
        return nullptr;
      },
      operation);
}

class ChannelRegions {
 public:
  ChannelRegions(const DeviceInfo& device, std::span<const VerifiedStrategy> verified,
                 const Graph& graph, const ModelProblem& problem, const ModelOptions& options);

  bool any_moves() const;
  /// Whether a node moves, by its number.
  bool moves(size_t node) const;
  /// Whether a node's operand is an image written by a node that does not move.
  bool enters(Value operand) const;
  /// A line for each region that moves.
  Notes notes() const;

 private:
  struct Region {
    int nodes = 0, convolutions = 0, gains = 0;
    std::string first, last;               ///< nodes
    std::vector<Value> entering, leaving;  ///< values that would have to be copied
    bool moves = false;
  };

  bool can_move(const Node& node) const;
  void join();
  int region_of_writer(Value value) const;
  ConvProblem problem_of(const Node& node) const;
  bool gains(const Node& node) const;
  void look_at(const Node& node, Region& region);
  void look_at_readers();

  const DeviceInfo& device_;
  std::span<const VerifiedStrategy> verified_;
  const Graph& graph_;
  const ModelProblem& problem_;
  const ModelOptions& options_;
  std::vector<bool> is_shared_;
  std::vector<int> region_of_;  ///< of nodes; -1: none
  std::vector<int> writer_;     ///< of values: the node's number; -1: none
  std::vector<Region> regions_;
};

}  // namespace wide
