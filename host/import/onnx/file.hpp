// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file in memory: the needed parts of its messages, checked one by one. Texts and the bytes
// of large tensors stay in the file. Subgraphs, functions and sparse tensors are not read: a node
// that needs one is refused when it is lowered.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host/import/mapped_file.hpp"
#include "wide/tensor.hpp"

namespace wide::onnx {

/// The type of a TensorProto's elements. The names are ONNX's.
struct ElementType {
  int number;
  std::string_view name;
  int bits;
  std::optional<Dtype> dtype;  ///< none where tensors of wide have no such dtype
};
/// nullptr where there is none of that number.
const ElementType* find_element_type(int64_t number);

/// Densely packed, row-major.
struct Initializer {
  std::string name;
  const ElementType* type = nullptr;
  Shape shape;
  const std::byte* data = nullptr;
  int64_t bytes = 0;
  std::shared_ptr<const std::vector<std::byte>> storage;  ///< where the bytes are not in a file
  bool is_filled = false;  ///< `data` is one element, the value of all
};

struct Attribute {
  /// As of AttributeProto.
  enum class Type : uint8_t { none, f, i, s, tensor, graph, floats, ints, strings, other };
  std::string_view name;
  Type type = Type::none;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::string_view tensor;  ///< not yet read
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
};

struct OnnxNode {
  std::string name;  ///< of its own, or of its first output
  std::string op;    ///< preceded by its domain where that is not ONNX's own
  std::vector<std::string_view> inputs, outputs;  ///< "": absent
  std::vector<Attribute> attributes;
  /// Of a node that several became: the most axes of one of their constants, which x must not have
  /// fewer of, as their result had as many. Its axis is the only one, and so must be the last.
  std::optional<int> joined_rank;

  const Attribute* find(std::string_view attribute) const;
};

/// An input or output of the graph.
struct ValueInfo {
  std::string name;
  const ElementType* type = nullptr;  ///< nullptr: not a tensor, or not stated
  struct Extent {
    int64_t number = -1;
    std::string_view symbol;
  };
  std::vector<Extent> extents;
  bool has_shape = false;
};

struct OnnxFile {
  std::string where;  ///< its name in messages
  std::string name;   ///< the graph's
  int64_t opset = 0;
  std::vector<OnnxNode> nodes;
  std::vector<Initializer> initializers;
  std::vector<ValueInfo> inputs, outputs;
  bool has_sparse_initializer = false;

  /// The folder of tensors' files; empty for a file in memory, which then has no such tensors.
  std::string folder;
  std::vector<std::unique_ptr<MappedFile>> mapped;
  std::map<std::string, size_t, std::less<>> mapped_by_name;
};

/// Reads `bytes`, which must outlive the file. Throws invalid_argument, or io for a tensor's file.
void read_onnx(OnnxFile& file, std::string_view bytes);

/// Reads one TensorProto. `what` names it in messages.
Initializer read_tensor(OnnxFile& file, std::string_view message, const std::string& what);

}  // namespace wide::onnx
