// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX models as graphs: link wide_onnx.
//
// The first axis of every input is the batch, whatever its number or symbol is there. What computes
// shapes (Shape, Gather, Concat, ..) is evaluated here and is not part of the graph. Constants that
// nodes expand to the batch are one row, which is broadcast; what sums, counts or picks such rows
// is refused. Axes that nodes only regroup and reorder are tracked, and copied only where a
// primitive must have them in place; attention that is spelled out (q k^T scaled and masked,
// softmax, times v) becomes flash_attention, with fewer heads of keys and values where these are
// repeated, and without a dropout of its shares; products of two activations that are not attention
// are matmul. What has no member-wise equivalent is refused by the name of its node. Opsets up to
// 21; of those before 9, what they have in common with later ones.
//
// Masks: integer and boolean inputs that nodes compute with are inputs of the graph with the same
// numbers, 0 and 1 for booleans, in the floating-point type that the file casts them to, else fp32,
// or for booleans that are not cast the file's own where it has only one: integers, and what is
// computed from them, up to 2^24 in fp32, 2^11 in fp16 and 2^8 in bf16; sums and products of fewer
// bits do not wrap around, and casts that would discard bits are refused.
// What is computed from them and added to attention's scores, or selects among them, is
// flash_attention's bias, read in place. Minus infinity is the lowest number there. A query whose
// keys are all hidden by it, or by a float's lowest number, gives 0; where a computed condition
// replaces all of a query's scores by another number, like -10000, that number is added to them.
//
// Ids: Gather and Slice count indices below 0 from the end where the file has them. Ids of a table
// that is read at run time are embedding's: from 0 on, as tokenizers give them; one outside the
// table, also below 0, gives a row of NaN.
//
// Untrusted files may be opened: a file is checked as it is read, weights stay in the file, which
// is mapped, and what else is kept takes memory in proportion to it. Tensors' files must lie in the
// model's folder or below it; links are not followed.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "wide/graph.hpp"

namespace wide {

struct OnnxOptions {
  /// Values of symbolic extents after the batch: {"sequence", 128}, by the first file's names;
  /// other files may name them differently, one for one. Refused where no input has such a symbol.
  std::map<std::string, int64_t> extents{};
  /// Inputs that all members share; of the others each member has its own.
  std::vector<std::string> shared_inputs{};
  /// Inputs whose every element is one fixed number: {"attention_mask", 1} hides nothing. They are
  /// constants, not inputs of the graph.
  std::map<std::string, double> fixed_inputs{};
  /// The outputs to compute, with what they need; none: all.
  std::vector<std::string> outputs{};
};

/// A whole file in memory, which must outlive the models made from it.
struct OnnxBytes {
  std::span<const std::byte> file;
  std::string name;  ///< what errors call it
};

/// The members of one graph: a file each, or one file.
class OnnxModel {
 public:
  /// Throws io; invalid_argument for an invalid model, and where the files differ by more than
  /// names and weights, with the node; unsupported, with the node.
  static OnnxModel open(std::span<const std::string> paths, const OnnxOptions& options = {});
  static OnnxModel open(const std::string& path, const OnnxOptions& options = {});
  /// The same of files in memory; tensors in other files are refused.
  static OnnxModel parse(std::span<const OnnxBytes> files, const OnnxOptions& options = {});
  static OnnxModel parse(std::span<const std::byte> file, const std::string& name,
                         const OnnxOptions& options = {});

  /// With the names of the first file and of what is in it.
  const Graph& graph() const;
  int64_t num_members() const;  ///< files
  /// One member's, by their names in the graph, on the CPU, at any address; valid as long as a copy
  /// of this object lives. A constant that the file fills with one number is one element with
  /// strides of 0. The files must not be shortened or written to meanwhile.
  MemberParameters parameters(int64_t member) const;
  std::vector<MemberParameters> members() const;  ///< those of each, as Model takes them

 private:
  struct State;
  explicit OnnxModel(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace wide
