// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reading an ONNX file, message by message. Field numbers are those of onnx.proto.
#include "host/import/onnx/file.hpp"

#include <algorithm>
#include <set>

#include "host/core/check.hpp"
#include "host/import/messages.hpp"
#include "host/import/onnx/wire.hpp"

namespace wide::onnx {

namespace {

/// Far beyond any model, to bound the memory for malicious files: an empty message takes two bytes
/// there and hundreds here.
constexpr size_t kMaxNodes = 100'000, kMaxTensors = 100'000, kMaxValues = 1'000,
                 kMaxNodeValues = 1'000, kMaxAttributes = 100, kMaxAttributeNumbers = 10'000,
                 kMaxTotal = 1'000'000;
constexpr int64_t kMinOpset = 1, kMaxOpset = 21;

class Reader {
 public:
  explicit Reader(OnnxFile& file) : file_(file) {}
  void model(std::string_view message);

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw_invalid_argument("onnx: " + file_.where + ": " + why);
  }
  void count(size_t number, size_t most, const std::string& what) {
    if (number > most || ++total_ > kMaxTotal)
      refuse("it has more " + what + " than any model, expected at most " +
             std::to_string(std::min(most, kMaxTotal)));
  }
  std::string in_node() const {
    return file_.where + ": node " + std::to_string(file_.nodes.size());
  }

  void opset(std::string_view message);
  void graph(std::string_view message);
  void node(std::string_view message);
  Attribute attribute(std::string_view message, const std::string& where);
  ValueInfo value(std::string_view message);
  void tensor_type(ValueInfo& info, std::string_view message);
  void require_graph();

  OnnxFile& file_;
  size_t total_ = 0;
  std::set<std::string_view> domains_;
  bool has_graph_ = false;
};

void Reader::opset(std::string_view message) {
  std::string_view domain;
  int64_t version = 0;
  for (Wire wire(message, file_.where); wire.next();) {
    if (wire.field() == 1) domain = wire.text();
    if (wire.field() == 2) version = wire.integer();
  }
  if (domain == "ai.onnx") domain = "";
  count(domains_.size(), 1000, "opsets");
  if (!domains_.insert(domain).second)
    refuse("opset " + in_quotes(domain) + " is there twice, expected once");
  if (!domain.empty()) return;
  file_.opset = version;
  if (version < kMinOpset || version > kMaxOpset) {
    refuse("its opset is " + std::to_string(version) + ", expected " + std::to_string(kMinOpset) +
           " to " + std::to_string(kMaxOpset));
  }
}

Attribute Reader::attribute(std::string_view message, const std::string& where) {
  Attribute a;
  int64_t type = 0;
  bool is_reference = false;
  for (Wire wire(message, where); wire.next();) {
    switch (wire.field()) {
      case 1:
        a.name = wire.text();
        break;
      case 2:
        a.f = wire.single();
        break;
      case 3:
        a.i = wire.integer();
        break;
      case 4:
        a.s = wire.text();
        break;
      case 5:
        a.tensor = wire.text();
        break;
      case 7:
        wire.singles(a.floats, kMaxAttributeNumbers);
        break;
      case 8:
        wire.integers(a.ints, kMaxAttributeNumbers);
        break;
      case 9:
        a.strings.push_back(wire.text());
        count(a.strings.size(), kMaxAttributeNumbers, "texts of an attribute");
        break;
      case 20:
        type = wire.integer();
        break;
      case 21:
        is_reference = true;
        break;
    }
  }
  total_ += a.floats.size() + a.ints.size();
  using Type = Attribute::Type;
  constexpr Type kTypes[] = {Type::none,  Type::f,      Type::i,    Type::s,      Type::tensor,
                             Type::graph, Type::floats, Type::ints, Type::strings};
  if (a.name.empty())
    refuse(where.substr(file_.where.size() + 2) + " has an attribute without a name");
  if (type < 0 || type > 14 || is_reference)
    refuse(where.substr(file_.where.size() + 2) + ": attribute " + in_quotes(a.name) +
           (is_reference ? " refers to a function's"
                         : " is of type " + std::to_string(type) + ", which is unknown"));
  a.type = type == 0 ? Type::none : type <= 8 ? kTypes[type] : Type::other;
  if (type == 0)
    refuse(where.substr(file_.where.size() + 2) + ": attribute " + in_quotes(a.name) +
           " has no type");
  return a;
}

void Reader::node(std::string_view message) {
  OnnxNode node;
  std::string_view op, domain;
  const std::string where = in_node();
  for (Wire wire(message, where); wire.next();) {
    switch (wire.field()) {
      case 1:
        node.inputs.push_back(wire.text());
        count(node.inputs.size(), kMaxNodeValues, "inputs of a node");
        break;
      case 2:
        node.outputs.push_back(wire.text());
        count(node.outputs.size(), kMaxNodeValues, "outputs of a node");
        break;
      case 3:
        node.name = std::string(wire.text());
        break;
      case 4:
        op = wire.text();
        break;
      case 5:
        node.attributes.push_back(attribute(wire.text(), where));
        count(node.attributes.size(), kMaxAttributes, "attributes of a node");
        break;
      case 7:
        domain = wire.text();
        break;
    }
  }
  const bool is_own = domain.empty() || domain == "ai.onnx";
  node.op = (is_own ? "" : std::string(domain) + ".") + std::string(op);
  const bool has_output = std::any_of(node.outputs.begin(), node.outputs.end(),
                                      [](std::string_view name) { return !name.empty(); });
  const std::string called =
      "node " + std::to_string(file_.nodes.size()) + " " + in_quotes(node.name);
  if (op.empty()) refuse(called + " has no operator");
  if (!has_output) refuse(called + " (" + node.op + ") has no output");
  for (size_t i = 0; i < node.attributes.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (node.attributes[i].name == node.attributes[j].name)
        refuse(called + " has attribute " + in_quotes(node.attributes[i].name) + " twice");
    }
  }
  if (node.name.empty()) {
    node.name = *std::find_if(node.outputs.begin(), node.outputs.end(),
                              [](std::string_view name) { return !name.empty(); });
  }
  file_.nodes.push_back(std::move(node));
  count(file_.nodes.size(), kMaxNodes, "nodes");
}

void Reader::tensor_type(ValueInfo& info, std::string_view message) {
  for (Wire wire(message, file_.where); wire.next();) {
    if (wire.field() == 1) info.type = find_element_type(wire.integer());
    if (wire.field() != 2) continue;
    info.has_shape = true;
    info.extents.clear();
    for (Wire shape(wire.text(), file_.where); shape.next();) {
      if (shape.field() != 1) continue;
      count(info.extents.size(), 1000, "axes");
      ValueInfo::Extent extent;
      for (Wire dim(shape.text(), file_.where); dim.next();) {
        if (dim.field() == 1) {
          extent.number = dim.integer();
          if (extent.number < 0)
            refuse(in_quotes(info.name) + " has an extent " + std::to_string(extent.number) +
                   ", expected at least 0");
        }
        if (dim.field() == 2) extent.symbol = dim.text();
      }
      info.extents.push_back(extent);
    }
  }
}

ValueInfo Reader::value(std::string_view message) {
  ValueInfo info;
  for (Wire wire(message, file_.where); wire.next();) {
    if (wire.field() == 1) info.name = std::string(wire.text());
    if (wire.field() != 2) continue;
    for (Wire type(wire.text(), file_.where); type.next();) {
      if (type.field() == 1) tensor_type(info, type.text());
    }
  }
  if (info.name.empty()) refuse("an input or output has no name");
  return info;
}

void Reader::graph(std::string_view message) {
  has_graph_ = true;
  for (Wire wire(message, file_.where); wire.next();) {
    switch (wire.field()) {
      case 1:
        node(wire.text());
        break;
      case 2:
        file_.name = std::string(wire.text());
        break;
      case 5: {
        const std::string what = "initializer " + std::to_string(file_.initializers.size());
        file_.initializers.push_back(read_tensor(file_, wire.text(), what));
        count(file_.initializers.size(), kMaxTensors, "initializers");
        break;
      }
      case 11:
        file_.inputs.push_back(value(wire.text()));
        count(file_.inputs.size(), kMaxTensors, "inputs");
        break;
      case 12:
        file_.outputs.push_back(value(wire.text()));
        count(file_.outputs.size(), kMaxValues, "outputs");
        break;
      case 15:
        file_.has_sparse_initializer = true;
        break;
    }
  }
}

/// Requires that each name has one meaning: an input (perhaps with an initializer), an initializer,
/// or the result of one node; and that each exists before it is read.
void Reader::require_graph() {
  std::set<std::string_view> inputs, initializers, known{""};
  for (const ValueInfo& input : file_.inputs) {
    if (!inputs.insert(input.name).second)
      refuse("input " + in_quotes(input.name) + " is there twice, expected once");
    known.insert(input.name);
  }
  for (const Initializer& initializer : file_.initializers) {
    if (initializer.name.empty()) refuse("an initializer has no name");
    if (!initializers.insert(initializer.name).second)
      refuse("initializer " + in_quotes(initializer.name) + " is there twice, expected once");
    known.insert(initializer.name);
  }
  for (const OnnxNode& node : file_.nodes) {
    const std::string called = "node " + in_quotes(node.name) + " (" + node.op + ")";
    for (const std::string_view input : node.inputs) {
      if (!known.contains(input)) {
        refuse(called + " reads " + in_quotes(input) +
               ", expected an input, an initializer or what a node in front of it computes");
      }
    }
    for (const std::string_view output : node.outputs) {
      if (!output.empty() && !known.insert(output).second)
        refuse(called + " computes " + in_quotes(output) + ", expected a name that is not taken");
    }
  }
  std::set<std::string_view> outputs;
  for (const ValueInfo& output : file_.outputs) {
    if (!known.contains(output.name)) refuse("nothing computes output " + in_quotes(output.name));
    if (!outputs.insert(output.name).second)
      refuse("output " + in_quotes(output.name) + " is there twice, expected once");
  }
}

void Reader::model(std::string_view message) {
  for (Wire wire(message, file_.where); wire.next();) {
    if (wire.field() == 7) graph(wire.text());
    if (wire.field() == 8) opset(wire.text());
  }
  if (!has_graph_) refuse("it has no graph: it is empty, or no ONNX file");
  if (!domains_.contains("")) {
    throw_unsupported("onnx: " + file_.where + ": it has no opset of ONNX's own, expected " +
                      std::to_string(kMinOpset) + " to " + std::to_string(kMaxOpset));
  }
  require_graph();
}

}  // namespace

const Attribute* OnnxNode::find(std::string_view attribute) const {
  for (const Attribute& a : attributes) {
    if (a.name == attribute) return &a;
  }
  return nullptr;
}

void read_onnx(OnnxFile& file, std::string_view bytes) {
  Reader(file).model(bytes);
}

}  // namespace wide::onnx
