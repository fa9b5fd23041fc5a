// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Operators that exporters spell out, found by their last node, which becomes the operator; nodes
// that are no longer needed are dropped later. A pattern is taken only where nothing else reads its
// inner values.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

constexpr int kFloat = 1;  ///< ONNX's number of the type

class Patterns {
 public:
  explicit Patterns(OnnxFile& file) : file_(file) {
    for (const Initializer& initializer : file.initializers)
      constants_[initializer.name] = &initializer;
    for (OnnxNode& node : file.nodes) {
      for (const std::string_view output : node.outputs) producers_[output] = &node;
      for (const std::string_view input : node.inputs) readers_[input].push_back(&node);
    }
    for (const ValueInfo& output : file.outputs)
      readers_[output.name].resize(readers_[output.name].size() + 2);
  }
  void join() {
    for (OnnxNode& node : file_.nodes) {
      if (!is_plain(node)) continue;
      rank_ = 0;
      if (node.op == "Erf") join_gelu(node);
      if (node.op == "Tanh") join_gelu_tanh(node);
      if (node.op == "Div") join_layernorm(node);
    }
  }

 private:
  /// Whether no attribute changes what an operator of the patterns means: before opset 7 one says
  /// along which axis two operands are combined.
  static bool is_plain(const OnnxNode& node) {
    return std::ranges::all_of(node.attributes, [&](const Attribute& a) {
      return node.op == "Constant" ||
             (node.op == "ReduceMean" && (a.name == "axes" || a.name == "keepdims"));
    });
  }
  OnnxNode* producer(std::string_view name, std::string_view op) const {
    const auto found = producers_.find(name);
    const bool fits = found != producers_.end() && found->second->op == op &&
                      found->second->outputs[0] == name && is_plain(*found->second);
    return fits ? found->second : nullptr;
  }
  /// The only reader.
  OnnxNode* reader(const OnnxNode& of, std::string_view op) const {
    const auto found = readers_.find(of.outputs[0]);
    const bool fits = found != readers_.end() && found->second.size() == 1 &&
                      found->second[0]->op == op && is_plain(*found->second[0]);
    return fits ? found->second[0] : nullptr;
  }
  const Initializer* constant(std::string_view name) {
    const auto found = constants_.find(name);
    if (found != constants_.end()) return found->second;
    const OnnxNode* node = producer(name, "Constant");
    std::optional<Initializer> made =
        node == nullptr || node->attributes.size() != 1 ? std::nullopt : value_of(*node);
    if (!made) return nullptr;
    made_.push_back(std::move(*made));
    return constants_[name] = &made_.back();
  }
  /// Of a Constant, where it is small: a tensor, or its short forms.
  std::optional<Initializer> value_of(const OnnxNode& node) {
    using Type = Attribute::Type;
    const Attribute& value = node.attributes[0];
    if (value.name == "value" && value.type == Type::tensor && value.tensor.size() <= 1024)
      return read_tensor(file_, value.tensor, "node");
    const std::string name(node.outputs[0]);
    if (value.name == "value_float" && value.type == Type::f)
      return to_initializer({{}, kFloat, {value.f}}, name);
    if (value.name == "value_int" && value.type == Type::i)
      return to_initializer({{}, kInt64, {static_cast<long double>(value.i)}}, name);
    if (value.name == "value_floats" && value.floats.size() == 1)
      return to_initializer({{1}, kFloat, {value.floats[0]}}, name);
    if (value.name == "value_ints" && value.ints.size() == 1)
      return to_initializer({{1}, kInt64, {static_cast<long double>(value.ints[0])}}, name);
    return {};
  }
  /// With the constant's few bits, or as few digits as exporters write.
  bool is_number(std::string_view name, double number) {
    const std::optional<double> value = scalar(name);
    if (!value) return false;
    rank_ = std::max(rank_, constant(name)->shape.rank());
    Numbers rounded{{}, constant(name)->type->number, {number}};
    round_to_type(rounded);
    const bool is_whole = std::trunc(2 * number) == 2 * number;  // as 0.5, and never rounded
    return *value == static_cast<double>(rounded.values[0]) ||
           (!is_whole && std::fabs(*value - number) <= 1e-4 * std::fabs(number));
  }
  std::optional<double> scalar(std::string_view name) {
    const Initializer* found = constant(name);
    if (found == nullptr || num_elements(found->shape) != 1) return {};
    const std::optional<Numbers> numbers = numbers_of(*found);
    return numbers ? std::optional(static_cast<double>(numbers->values[0])) : std::nullopt;
  }
  /// The operand that a node of two inputs combines with `known`; "" where it does not.
  static std::string_view other(const OnnxNode& node, std::string_view known) {
    if (node.inputs.size() != 2) return {};
    return node.inputs[0] == known ? node.inputs[1] : node.inputs[1] == known ? node.inputs[0] : "";
  }
  /// The operand that a node of two inputs combines with that number; "" where it does not.
  std::string_view beside(const OnnxNode& node, double number, bool commutes = true) {
    if (node.inputs.size() != 2) return {};
    if (is_number(node.inputs[1], number)) return node.inputs[0];
    return commutes && is_number(node.inputs[0], number) ? node.inputs[1] : std::string_view();
  }
  void become(OnnxNode& node, std::string op, std::vector<std::string_view> inputs,
              std::vector<Attribute> attributes) const {
    node.op = std::move(op);
    node.joined_rank = rank_;
    node.inputs = std::move(inputs);
    node.attributes = std::move(attributes);
  }

  /// x/2 * (1 + erf(x / sqrt 2)), its factors in any order.
  void join_gelu(OnnxNode& erf) {
    if (erf.inputs.size() != 1) return;
    std::string_view x;
    if (OnnxNode* divide = producer(erf.inputs[0], "Div"))
      x = beside(*divide, std::sqrt(2.0), false);
    if (OnnxNode* multiply = producer(erf.inputs[0], "Mul")) x = beside(*multiply, std::sqrt(0.5));
    join_gelu_tail(erf, x, {});
  }

  /// x/2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
  void join_gelu_tanh(OnnxNode& tanh) {
    const OnnxNode* scaled = tanh.inputs.size() == 1 ? producer(tanh.inputs[0], "Mul") : nullptr;
    if (scaled == nullptr) return;
    const OnnxNode* sum = producer(beside(*scaled, std::sqrt(2 / std::numbers::pi)), "Add");
    if (sum == nullptr || sum->inputs.size() != 2) return;
    for (const size_t place : {size_t{0}, size_t{1}}) {
      const OnnxNode* cubic = producer(sum->inputs[place], "Mul");
      const std::string_view x = sum->inputs[1 - place];
      if (cubic == nullptr || !is_cube(beside(*cubic, 0.044715), x)) continue;
      Attribute mode;
      mode.name = "approximate";
      mode.type = Attribute::Type::s;
      mode.s = "tanh";
      return join_gelu_tail(tanh, x, {mode});
    }
  }
  bool is_cube(std::string_view name, std::string_view x) {
    const OnnxNode* power = producer(name, "Pow");
    if (power != nullptr) return beside(*power, 3, false) == x;
    const OnnxNode* product = producer(name, "Mul");
    const OnnxNode* square = product == nullptr ? nullptr : producer(other(*product, x), "Mul");
    return square != nullptr && square->inputs == std::vector<std::string_view>{x, x};
  }

  /// x/2 * (1 + function), its factors in any order, whose last node becomes Gelu.
  void join_gelu_tail(const OnnxNode& function, std::string_view x,
                      const std::vector<Attribute>& attributes) {
    const OnnxNode* add = reader(function, "Add");
    if (x.empty() || add == nullptr || beside(*add, 1) != function.outputs[0]) return;
    OnnxNode* first = reader(*add, "Mul");
    if (first == nullptr) return;
    const std::string_view factor = other(*first, add->outputs[0]);
    if (factor.empty()) return;
    if (OnnxNode* half = producer(factor, "Mul"); half != nullptr && beside(*half, 0.5) == x)
      return become(*first, "Gelu", {x}, attributes);
    OnnxNode* second = reader(*first, "Mul");
    if (second == nullptr) return;
    const std::string_view rest = other(*second, first->outputs[0]);
    const bool is_gelu =
        (factor == x && is_number(rest, 0.5)) || (rest == x && is_number(factor, 0.5));
    if (is_gelu) become(*second, "Gelu", {x}, attributes);
  }

  struct Mean {
    std::string_view x;  ///< "": it is no mean over one axis that is kept
    int64_t axis = -1;
    friend bool operator==(const Mean&, const Mean&) = default;
  };
  Mean mean_of(std::string_view name) {
    const OnnxNode* mean = producer(name, "ReduceMean");
    if (mean == nullptr || mean->inputs.empty()) return {};
    const Attribute* keep = mean->find("keepdims");
    const Attribute* axes = mean->find("axes");
    std::optional<double> axis;
    if (mean->inputs.size() > 1)
      axis = scalar(mean->inputs[1]);
    else if (axes != nullptr && axes->ints.size() == 1)
      axis = static_cast<double>(axes->ints[0]);
    const bool is_axis = axis && std::abs(*axis) <= 2 * kMaxRank && std::trunc(*axis) == *axis;
    if (!is_axis || (keep != nullptr && keep->i != 1)) return {};
    return {mean->inputs[0], static_cast<int64_t>(*axis)};
  }
  /// The mean of x where it is x - mean(x).
  Mean centred(std::string_view name) {
    const OnnxNode* subtract = producer(name, "Sub");
    if (subtract == nullptr || subtract->inputs.size() != 2) return {};
    const Mean mean = mean_of(subtract->inputs[1]);
    return mean.x == subtract->inputs[0] ? mean : Mean{};
  }

  /// (x - mean(x)) / sqrt(mean((x - mean(x))^2) + epsilon), followed by gamma and beta.
  void join_layernorm(OnnxNode& divide) {
    if (divide.inputs.size() != 2) return;
    const Mean own = centred(divide.inputs[0]);
    const OnnxNode* root = producer(divide.inputs[1], "Sqrt");
    const OnnxNode* add =
        root == nullptr || root->inputs.size() != 1 ? nullptr : producer(root->inputs[0], "Add");
    if (own.x.empty() || add == nullptr || add->inputs.size() != 2) return;
    const size_t place = scalar(add->inputs[1]) ? 1 : 0;
    const std::optional<double> epsilon = scalar(add->inputs[place]);
    const Mean square = mean_of(add->inputs[1 - place]);
    const OnnxNode* power = producer(square.x, "Pow");
    const OnnxNode* product = producer(square.x, "Mul");
    const bool is_power = power != nullptr && power->inputs.size() == 2 &&
                          is_number(power->inputs[1], 2) && centred(power->inputs[0]) == own;
    const bool is_product = product != nullptr && product->inputs.size() == 2 &&
                            product->inputs[0] == product->inputs[1] &&
                            centred(product->inputs[0]) == own;
    if (!epsilon || square.axis != own.axis || !(is_power || is_product)) return;
    rank_ = std::max(rank_, constant(add->inputs[place])->shape.rank());
    Attribute axis, small;
    axis.name = "axis";
    axis.type = Attribute::Type::i;
    axis.i = own.axis;
    small.name = "epsilon";
    small.type = Attribute::Type::f;
    small.f = static_cast<float>(*epsilon);
    OnnxNode* last = &divide;
    std::vector<std::string_view> inputs{own.x};
    for (const char* op : {"Mul", "Add"}) {
      OnnxNode* next = reader(*last, op);
      const std::string_view parameter =
          next == nullptr ? std::string_view() : other(*next, last->outputs[0]);
      const auto found = constants_.find(parameter);
      if (parameter.empty() || found == constants_.end() || found->second->shape.rank() != 1 ||
          found->second->shape[0] == 1)
        break;
      inputs.push_back(parameter);
      last = next;
    }
    become(*last, "LayerNormalization", inputs, {axis, small});
  }

  OnnxFile& file_;
  std::map<std::string_view, const Initializer*> constants_;
  std::map<std::string_view, OnnxNode*> producers_;
  std::map<std::string_view, std::vector<OnnxNode*>> readers_;
  std::deque<Initializer> made_;
  int rank_ = 0;  ///< the most axes of a number of the pattern that is looked at
};

}  // namespace

void join_patterns(OnnxFile& file) {
  Patterns(file).join();
}

}  // namespace wide::onnx
