// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a graph computes for one member, in double, by plain loops over its definition: the judge of
// models. Shares no code with the library but the graph itself.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "wide/graph.hpp"

namespace wide::catalog {

/// A dense tensor of doubles.
struct Doubles {
  std::vector<int64_t> shape;
  std::vector<double> values;
};

Doubles to_doubles(const ConstTensorView& view);

/// Random rounding errors, to see their effect: each operand of a sum of K products times
/// 1 +- sum_error sqrt(K), each result times 1 +- result_error. Parker, "Monte Carlo Arithmetic",
/// 1997: the spread of such evaluations is how far a computation in that precision may be
/// off.
struct RoundingNoise {
  double sum_error = 0, result_error = 0;
  uint64_t seed = 1;
};

/// The values of the graph's outputs from those of its inputs (a member's own) and parameters.
/// Values of other members are not known here: an ensemble gives the member's own.
/// Throws std::logic_error for operations that it does not know.
std::map<std::string, Doubles> evaluate_graph(const Graph& graph,
                                              const std::map<std::string, Doubles>& inputs,
                                              const std::map<std::string, Doubles>& parameters,
                                              RoundingNoise noise = {});

/// An ensemble of members' values, features last.
Doubles joined_members(EnsembleFunction function, const std::vector<Doubles>& members);

/// Multiplications and additions of one member for one row of the batch; moving or comparing an
/// element counts as one. Attention whose key lengths come with the inputs counts all keys.
double graph_flops(const Graph& graph);
/// Those that every input takes: no key that lengths may hide.
double least_graph_flops(const Graph& graph);
/// One member's parameters that only embeddings gather rows of: few of them may be read.
double embedding_table_bytes(const Graph& graph);

// Parts of graph_reference.cpp in separate files.
Doubles conv_of(const ConvOp& op, const Doubles& x, const Doubles& weight);
Doubles conv_transpose_of(const ConvTransposeOp& op, const Doubles& x, const Doubles& weight);
/// `outputs`: y's positions along each axis.
Doubles depth_to_space_of(const DepthToSpaceOp& op, const Doubles& x,
                          const std::vector<int64_t>& outputs);
Doubles upsample_of(const UpsampleOp& op, const Doubles& x);
Doubles interpolate_of(const InterpolateOp& op, const Doubles& x,
                       const std::vector<int64_t>& outputs);
Doubles pooling_of(const PoolingOp& op, const Doubles& x, const std::vector<int64_t>& outputs);
Doubles transpose_of(const TransposeOp& op, const Doubles& x);
/// The weight that a blob encodes, by the library: linear's own tests check that.
Doubles decoded_weight(const Doubles& blob, const QuantizedWeight& how);

/// Operands of attention without projections; absent ones have no values.
struct AttentionDoubles {
  Doubles q, k, v, key_lengths, bias, slopes;
};
Doubles attention_of(const FlashAttentionOp& op, const AttentionDoubles& operands);

/// Operands of recurrent layers; absent ones have no values.
struct RecurrentDoubles {
  Doubles x, input_weight, hidden_weight, input_bias, hidden_bias;
  Doubles hidden, cell;  ///< first states, which become the last ones
};
/// y. `noisy` is for operands of sums of that many products, `rounded` for results.
Doubles recurrent_of(const RecurrentOp& op, RecurrentDoubles& operands,
                     const std::function<Doubles(Doubles, int64_t)>& noisy,
                     const std::function<Doubles(Doubles)>& rounded);

}  // namespace wide::catalog
