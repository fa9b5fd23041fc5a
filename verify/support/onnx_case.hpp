// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ONNX files put together by hand: Protocol Buffers' bytes, so that files can be made that no
// library would write.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wide::test::onnx {

inline std::string varint(uint64_t value) {
  std::string out;
  do {
    out += static_cast<char>((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
    value >>= 7;
  } while (value != 0);
  return out;
}
inline std::string integer(uint64_t field, int64_t value) {
  return varint(field << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string bytes(uint64_t field, std::string_view value) {
  return varint(field << 3 | 2) + varint(value.size()) + std::string(value);
}
template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}
inline std::string single(uint64_t field, float value) {
  return varint(field << 3 | 5) + raw(std::vector<float>{value});
}

using Extents = std::vector<int64_t>;

/// TensorProto, without its elements.
inline std::string tensor_head(const std::string& name, int type, const Extents& dims) {
  std::string out;
  for (const int64_t extent : dims) out += integer(1, extent);
  return out + integer(2, type) + (name.empty() ? "" : bytes(8, name));
}
inline std::string floats(const std::string& name, const Extents& dims,
                          const std::vector<float>& values) {
  return tensor_head(name, 1, dims) + bytes(9, raw(values));
}
inline std::string ints(const std::string& name, const Extents& dims,
                        const std::vector<int64_t>& values) {
  return tensor_head(name, 7, dims) + bytes(9, raw(values));
}
/// Every element the same.
inline std::string filled(const std::string& name, const Extents& dims, float value = 1) {
  int64_t size = 1;
  for (const int64_t extent : dims) size *= extent;
  return floats(name, dims, std::vector<float>(static_cast<size_t>(size), value));
}

inline std::string int_attribute(const std::string& name, int64_t value) {
  return bytes(5, bytes(1, name) + integer(3, value) + integer(20, 2));
}
inline std::string float_attribute(const std::string& name, float value) {
  return bytes(5, bytes(1, name) + single(2, value) + integer(20, 1));
}
inline std::string ints_attribute(const std::string& name, const std::vector<int64_t>& values) {
  std::string all;
  for (const int64_t value : values) all += integer(8, value);
  return bytes(5, bytes(1, name) + all + integer(20, 7));
}
inline std::string text_attribute(const std::string& name, const std::string& value) {
  return bytes(5, bytes(1, name) + bytes(4, value) + integer(20, 3));
}
inline std::string tensor_attribute(const std::string& name, const std::string& tensor) {
  return bytes(5, bytes(1, name) + bytes(5, tensor) + integer(20, 4));
}

/// NodeProto, named after its first output.
inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::string& attributes = "") {
  std::string out;
  for (const std::string& input : inputs) out += bytes(1, input);
  for (const std::string& output : outputs) out += bytes(2, output);
  return out + bytes(3, "node_" + outputs.at(0)) + bytes(4, op) + attributes;
}

/// ValueInfoProto; -1 is an extent "batch", any other negative one a symbol "s".
inline std::string value(const std::string& name, const Extents& dims, int type = 1) {
  std::string shape;
  for (const int64_t extent : dims) {
    shape += bytes(1, extent >= 0 ? integer(1, extent) : bytes(2, extent == -1 ? "batch" : "s"));
  }
  return bytes(1, name) + bytes(2, bytes(1, integer(1, type) + bytes(2, shape)));
}

struct File {
  std::vector<std::string> nodes, initializers, inputs, outputs;
  int64_t opset = 17;
  std::string extra;  ///< of the graph
  std::string model_extra;

  std::string graph() const {
    std::string out = bytes(2, "network");
    for (const std::string& n : nodes) out += bytes(1, n);
    for (const std::string& t : initializers) out += bytes(5, t);
    for (const std::string& v : inputs) out += bytes(11, v);
    for (const std::string& v : outputs) out += bytes(12, v);
    return out + extra;
  }
  std::string bytes_of() const {
    return integer(1, 8) + bytes(7, graph()) + bytes(8, integer(2, opset)) + model_extra;
  }
};

/// x [batch, dims..] through nodes to y.
inline File network(const Extents& dims, const std::vector<std::string>& nodes,
                    const std::vector<std::string>& initializers = {}) {
  Extents shape{-1};
  shape.insert(shape.end(), dims.begin(), dims.end());
  return {nodes, initializers, {value("x", shape)}, {value("y", {})}, 17, "", ""};
}

}  // namespace wide::test::onnx
