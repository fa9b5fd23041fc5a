// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX models as graphs: link wide_onnx.
//
// The first axis of every input is the batch, whatever its number or symbol is there. Shapes are
// computed here, with what computes them (Shape, Gather, Concat, ..): a graph has none of it. Axes
// that nodes only regroup and reorder are followed, and copied where a primitive must have them in
// place; attention that is spelled out (q k^T scaled and masked, softmax, times v) becomes
// flash_attention, with fewer heads of keys and values where these are repeated. What has no
// member-wise equivalent is refused by the name of its node. Opsets up to 21; of those before 9
// what later ones have in common with them.
//
// Masks: inputs of whole numbers or truths that nodes compute with are inputs of the graph that
// have the same numbers, 0 and 1 for truths, in the floating-point type that the file casts them
// to, else fp32: whole numbers up to 2^24. What is computed of them and added to attention's
// scores, or chooses among them, is flash_attention's bias, read where it lies. Minus infinity is
// the least number there. A query whose keys are all hidden by it, or by a float's least number,
// gives 0.
//
// A file from anywhere may be opened: it is checked as it is read, weights stay in the file, which
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
  /// Numbers of symbolic extents behind the batch: {"sequence", 128}, by the first file's names;
  /// other files may have others, each one for one. Refused where no input has such a symbol.
  std::map<std::string, int64_t> extents{};
  /// Inputs that all members read one of; the others are each member's own.
  std::vector<std::string> shared_inputs{};
  /// Inputs of which every element is one number, whoever runs the model: {"attention_mask", 1}
  /// hides nothing. They are constants, no inputs of the graph.
  std::map<std::string, double> fixed_inputs{};
  /// The outputs that are wanted, with what they need; none: all.
  std::vector<std::string> outputs{};
};

/// A whole file in memory, which must outlive the models made of it.
struct OnnxBytes {
  std::span<const std::byte> file;
  std::string name;  ///< what errors call it
};

/// The members of one graph: a file each, or one file.
class OnnxModel {
 public:
  /// Throws io; invalid_argument for what is no sound model, and where the files differ by more
  /// than names and weights, with the node; unsupported, with the node.
  static OnnxModel open(std::span<const std::string> paths, const OnnxOptions& options = {});
  static OnnxModel open(const std::string& path, const OnnxOptions& options = {});
  /// The same of files in memory; tensors in other files are refused.
  static OnnxModel parse(std::span<const OnnxBytes> files, const OnnxOptions& options = {});
  static OnnxModel parse(std::span<const std::byte> file, const std::string& name,
                         const OnnxOptions& options = {});

  /// Named as the first file is and what is in it.
  const Graph& graph() const;
  int64_t num_members() const;  ///< files
  /// One member's, by their names in the graph, on the CPU, at any address; valid as long as a copy
  /// of this object lives. A constant that the file fills with one number is one element with
  /// strides of 0. Nobody may shorten or write to the files meanwhile.
  MemberParameters parameters(int64_t member) const;

 private:
  struct State;
  explicit OnnxModel(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace wide
