// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Rewriting of graphs before they are lowered. A pass takes a graph and gives one that computes the
// same, with a note for each node that it removed.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/core/verified.hpp"
#include "wide/model.hpp"

namespace wide {

using Notes = std::vector<std::string>;

/// The names that strategies may have for more than one node: "all", and the primitives that a
/// graph can be lowered to.
std::span<const std::string_view> strategy_groups();

/// What the options name for a node, else for its primitive, else for all; else "auto". A name of
/// strategy_groups() is no node's.
std::string strategy_of(const ModelOptions& options, std::string_view node,
                        std::string_view primitive);

/// Removes dead nodes and dropout, folds batchnorms and fuses epilogues, as the options ask for,
/// and replaces transposed convolutions; the two passes that depend on a device,
/// prefer_channels_last() and fuse_mlps(), come after it.
Graph run_passes(const Graph& graph, const ModelOptions& options, Notes& notes);

/// Removes nodes whose results are unread, and parameters that only they read.
Graph remove_dead_nodes(const Graph& graph, Notes& notes);

/// Removes dropout, which is the identity where nothing is dropped.
Graph remove_dropout(const Graph& graph, Notes& notes);

/// A batchnorm after a convolution or linear layer that only it reads becomes part of the layer's
/// weight and bias: w' = w gamma / sqrt(var + eps), b' = (b - mean) gamma / sqrt(var + eps) + beta,
/// in double, rounded once. Not where the layer is computed once for all members and the batchnorm
/// is not: here and below, only nodes that are shared alike are fused.
Graph fold_batchnorm(const Graph& graph, const ModelOptions& options, Notes& notes);

/// relu, gelu, gelu_tanh or silu, and the addition of a residual, after linear or conv layers that
/// only they read become part of the layer: one rounding instead of two or three. So does a
/// residual before a layernorm or rmsnorm.
Graph fuse_epilogues(const Graph& graph, const ModelOptions& options, Notes& notes);

/// Runs transposed convolutions as convolutions to the channels of all phases, whose weights are
/// computed when members are loaded, and a depth_to_space where there is more than one phase.
Graph replace_conv_transposes(const Graph& graph, Notes& notes);

/// Puts channels last in convolutions and pools of images, and the element-wise nodes, concats and
/// slices between them: regions that are transposed once where they begin and end, if at all. A
/// region moves where the options ask for channels last, or where they leave it open and more of
/// its convolutions would run by `wgmma`, by what is verified, than copies are needed.
Graph prefer_channels_last(const DeviceInfo& device, std::span<const VerifiedStrategy> verified,
                           const Graph& graph, const ModelProblem& problem,
                           const ModelOptions& options, Notes& notes);

/// Fuses consecutive linear layers, with one activation between them, into one launch: where the
/// options name a strategy for the primitive mlp, or where they name none for linear (or all) and
/// mlp would take its strategy `fused` on this device, by what is verified. Of routed rows these
/// are routed_mlp and routed_linear.
Graph fuse_mlps(const DeviceInfo& device, std::span<const VerifiedStrategy> verified,
                const Graph& graph, const ModelProblem& problem, const ModelOptions& options,
                Notes& notes);

}  // namespace wide
