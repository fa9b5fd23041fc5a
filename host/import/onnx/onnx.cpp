// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Opening ONNX models: a file for each member, all of one architecture.
#include "wide/onnx.hpp"

#include <algorithm>
#include <map>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide {

struct OnnxModel::State {
  struct Member {
    std::unique_ptr<MappedFile> mapped;
    onnx::OnnxFile file;
    onnx::Lowered lowered;
  };
  std::vector<std::unique_ptr<Member>> members;

  Member& add(const std::string& name);
  void import(Member& member, std::span<const std::byte> bytes, const OnnxOptions& options);
};

namespace {

using onnx::Lowered;

std::string called(const Graph& graph, const Node& node) {
  std::string text = std::string(operation_name(graph, node)) + " (";
  for (const auto& [name, value] : operation_attributes(node.operation))
    text += name + " " + value + " ";
  if (text.back() == ' ') text.back() = ',';
  text += text.back() == ',' ? " of" : "of";
  for (const Operand& operand : node.operands) text += " " + to_string(graph.type(operand.value));
  return text + ")";
}

/// Requires that `other` equals `first` except for names: values are numbered in the order of the
/// nodes, so that equal numbers are equal places.
void require_same(const Lowered& first, const std::string& first_name, const Lowered& other,
                  const std::string& name) {
  const Graph &a = first.graph, &b = other.graph;
  const auto refuse = [&](const std::string& why) {
    throw_invalid_argument("onnx: " + name + " is no member of " + first_name + ": " + why);
  };
  const size_t common = std::min(a.nodes().size(), b.nodes().size());
  for (size_t i = 0; i < common; ++i) {
    const Node &x = a.nodes()[i], &y = b.nodes()[i];
    bool is_same = x.operation == y.operation && x.operands == y.operands && x.outputs == y.outputs;
    for (size_t k = 0; is_same && k < x.operands.size(); ++k)
      is_same = a.type(x.operands[k].value) == b.type(y.operands[k].value);
    if (!is_same) {
      refuse("node " + in_quotes(y.name) + " is " + called(b, y) + ", expected " + called(a, x) +
             " as node " + in_quotes(x.name));
    }
  }
  if (a.nodes().size() != b.nodes().size()) {
    refuse("it has " + counted(b.nodes().size(), "node") + ", expected " +
           std::to_string(a.nodes().size()));
  }
  bool is_same = a.num_values() == b.num_values() && std::ranges::equal(a.inputs(), b.inputs()) &&
                 std::ranges::equal(a.parameters(), b.parameters()) &&
                 a.outputs().size() == b.outputs().size();
  for (size_t i = 0; is_same && i < a.outputs().size(); ++i)
    is_same = a.outputs()[i].value == b.outputs()[i].value;
  if (!is_same) refuse("its inputs, parameters or outputs are others");
}

template <class File>
auto inputs_of(File& file) {
  std::vector<decltype(&file.inputs.front())> inputs;
  for (auto& input : file.inputs) {
    const bool is_weight = std::ranges::any_of(
        file.initializers, [&](const auto& weight) { return weight.name == input.name; });
    if (!is_weight) inputs.push_back(&input);
  }
  return inputs;
}

/// Gives the symbolic extents of `other` the names that `first` has at the same places: members
/// need not share names. Only after the batch, which has no name in a graph.
void take_symbols(const onnx::OnnxFile& first, onnx::OnnxFile& other) {
  const auto expected = inputs_of(first);
  const auto inputs = inputs_of(other);
  if (inputs.size() != expected.size()) return;  // cannot be members in any case
  std::map<std::string_view, std::string_view> theirs_of, own_of;
  const auto refuse = [&](const std::string& why) {
    throw_invalid_argument("onnx: " + other.where + " is no member of " + first.where + ": " + why);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto& extents = inputs[i]->extents;
    for (size_t k = 1; k < std::min(extents.size(), expected[i]->extents.size()); ++k) {
      const std::string_view own = extents[k].symbol, theirs = expected[i]->extents[k].symbol;
      if (own.empty() || theirs.empty()) continue;
      const std::string_view before = theirs_of.try_emplace(own, theirs).first->second;
      if (before != theirs)
        refuse("its extent " + in_quotes(own) + " is both " + in_quotes(before) + " and " +
               in_quotes(theirs) + " there, expected one");
      const std::string_view other_own = own_of.try_emplace(theirs, own).first->second;
      if (other_own != own)
        refuse("its extents " + in_quotes(other_own) + " and " + in_quotes(own) + " are both " +
               in_quotes(theirs) + " there, expected one name of it");
      extents[k].symbol = theirs;
    }
  }
}

/// A product of two activations is an attention's until something says that it is not. A file that
/// says so again and again has none.
onnx::Lowered lowered(onnx::OnnxFile& file, const OnnxOptions& options) {
  for (std::set<const onnx::OnnxNode*> plain;;) {
    try {
      return onnx::Lowering(file, options, plain).run();
    } catch (const onnx::NoAttention& found) {
      plain.insert(found.product);
      constexpr size_t kMostTries = 32;
      for (size_t i = 0; plain.size() >= kMostTries && i < file.nodes.size(); ++i)
        plain.insert(&file.nodes[i]);
    }
  }
}

void require_files(size_t count) {
  WIDE_REQUIRE(count > 0, "onnx: there is no file, expected one or one for each member");
}

}  // namespace

OnnxModel::State::Member& OnnxModel::State::add(const std::string& name) {
  members.push_back(std::make_unique<Member>());
  members.back()->file.where = name;
  return *members.back();
}

void OnnxModel::State::import(Member& member, std::span<const std::byte> bytes,
                              const OnnxOptions& options) {
  onnx::read_onnx(member.file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const Member& first = *members.front();
  if (&first != &member) take_symbols(first.file, member.file);
  onnx::join_patterns(member.file);
  member.lowered = lowered(member.file, options);
  require_same(first.lowered, first.file.where, member.lowered, member.file.where);
}

OnnxModel OnnxModel::open(std::span<const std::string> paths, const OnnxOptions& options) {
  require_files(paths.size());
  auto state = std::make_shared<State>();
  for (const std::string& path : paths) {
    State::Member& member = state->add(path);
    member.mapped = std::make_unique<MappedFile>(path);
    member.file.folder =
        path.find('/') == std::string::npos ? "./" : path.substr(0, path.rfind('/') + 1);
    state->import(member, member.mapped->bytes(), options);
  }
  return OnnxModel(std::move(state));
}

OnnxModel OnnxModel::open(const std::string& path, const OnnxOptions& options) {
  return open(std::span(&path, 1), options);
}

OnnxModel OnnxModel::parse(std::span<const OnnxBytes> files, const OnnxOptions& options) {
  require_files(files.size());
  auto state = std::make_shared<State>();
  for (const OnnxBytes& each : files) state->import(state->add(each.name), each.file, options);
  return OnnxModel(std::move(state));
}

OnnxModel OnnxModel::parse(std::span<const std::byte> file, const std::string& name,
                           const OnnxOptions& options) {
  const OnnxBytes only{file, name};
  return parse(std::span(&only, 1), options);
}

const Graph& OnnxModel::graph() const {
  return state_->members.front()->lowered.graph;
}
int64_t OnnxModel::num_members() const {
  return std::ssize(state_->members);
}

MemberParameters OnnxModel::parameters(int64_t member) const {
  WIDE_REQUIRE(member >= 0 && member < num_members(), "onnx: member is " + std::to_string(member) +
                                                          ", expected one of " +
                                                          std::to_string(num_members()));
  const Lowered& own = state_->members[static_cast<size_t>(member)]->lowered;
  MemberParameters parameters;
  for (size_t i = 0; i < own.parameters.size(); ++i) {
    const onnx::Initializer& tensor = *own.parameters[i];
    ConstTensorView view(tensor.data, *tensor.type->dtype, tensor.shape, Device{});
    for (int axis = 0; tensor.is_filled && axis < view.rank(); ++axis) view.strides[axis] = 0;
    parameters.emplace(graph().name(graph().parameters()[i]), view);
  }
  return parameters;
}
std::vector<MemberParameters> OnnxModel::members() const {
  std::vector<MemberParameters> members;
  for (int64_t i = 0; i < num_members(); ++i) members.push_back(parameters(i));
  return members;
}

}  // namespace wide
