// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A file's inputs as a graph's: their batch, their extents, and the type of masks; and which values
// have integers.
#include <algorithm>
#include <cmath>
#include <set>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "host/import/onnx/lowering.hpp"

namespace wide::onnx {

namespace {

/// Elements of one row of the batch: no device holds more, and products of two such sizes with a
/// small number still fit in 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 40;

/// Limit on readers followed from an input: far beyond those that compute a mask.
constexpr int kMaxFollowed = 4096;

/// One number everywhere, as an element type has it.
Numbers filled(const Shape& shape, int type, double number) {
  Numbers numbers{shape, type, {}};
  numbers.values.assign(static_cast<size_t>(num_elements(shape)),
                        numbers.is_float() ? number : std::trunc(number));
  round_to_type(numbers);
  return numbers;
}

}  // namespace

bool Lowering::is_small(const Shape& shape) {
  int64_t size = 1;
  for (const int64_t extent : shape) {
    if (extent == kBatch) continue;
    if (extent > kMaxElements / size) return false;
    size *= std::max<int64_t>(extent, 1);
  }
  return true;
}

/// For an input of whole numbers or Booleans that nodes compute with, like a mask: a graph has it
/// as numbers of the type that they are cast to. None for others, such as the indices of a table.
std::optional<Dtype> Lowering::mask_dtype(const ValueInfo& input) const {
  if (input.type->bits < 8 || is_floating_type(input.type->number) || input.type->number == 8)
    return {};
  std::optional<Dtype> cast;
  const bool is_truth = input.type->number == kBool;
  bool is_mask = is_truth, counts = !is_truth;
  int followed = 0;
  std::set<std::string_view> seen{input.name};
  for (std::vector<std::string_view> open{input.name}; !open.empty();) {
    const std::string_view name = open.back();
    open.pop_back();
    const auto readers = readers_.find(name);
    if (readers == readers_.end()) continue;
    for (const OnnxNode* reader : readers->second) {
      if (++followed > kMaxFollowed) return cast;
      const std::string& op = reader->op;
      if (op == "Gather" && reader->inputs.size() > 1 && reader->inputs[1] == name) return {};
      const ElementType* to = nullptr;
      if (op == "Cast" && reader->find("to") != nullptr)
        to = find_element_type(reader->find("to")->i);
      if (to != nullptr && to->dtype && is_floating_type(to->number)) {
        cast = cast ? cast : to->dtype;
        continue;
      }
      static const std::set<std::string_view> kMoves{
          "Identity", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose",
          "Slice",    "Gather",  "Split",   "Expand",    "Cast"};
      static const std::set<std::string_view> kComputes{
          "Not",  "And",         "Or",    "Equal", "Greater", "GreaterOrEqual",
          "Less", "LessOrEqual", "Where", "Add",   "Sub",     "Mul"};
      is_mask = is_mask || to != nullptr || kComputes.contains(op);
      counts = counts || (to != nullptr && to->number != kBool);
      if (!kMoves.contains(op) && !kComputes.contains(op)) continue;
      for (const std::string_view output : reader->outputs) {
        if (!output.empty() && seen.insert(output).second) open.push_back(output);
      }
    }
  }
  if (cast) return cast;
  // Truths that only choose have the type of what they choose among.
  if (!counts) return only_float().value_or(Dtype::fp32);
  return is_mask ? std::optional(Dtype::fp32) : std::nullopt;
}

/// The floating-point type of all inputs and weights that have one.
std::optional<Dtype> Lowering::only_float() const {
  std::optional<Dtype> only;
  bool is_one = true;
  const auto add = [&](const ElementType* type) {
    if (type == nullptr || !is_floating_type(type->number)) return;
    is_one = is_one && type->bits >= 16 && type->dtype && (!only || only == type->dtype);
    only = type->dtype;
  };
  for (const ValueInfo& input : file_.inputs) add(input.type);
  for (const Initializer& initializer : file_.initializers) add(initializer.type);
  return is_one ? only : std::nullopt;
}

/// By ONNX's types: an operator's results have its first operand's type, with a few exceptions.
void Lowering::note_integers(const OnnxNode& node) {
  const size_t operand = node.op == "Where" ? 1 : 0;
  if (node.inputs.size() <= operand) return;
  int type = integer_type(node.inputs[operand]);
  const auto* to = node.find("to");
  if (node.op == "Cast" && to != nullptr) {
    const ElementType* found = find_element_type(to->i);
    type = found == nullptr || is_floating_type(found->number) || found->number == kBool
               ? 0
               : found->number;
  }
  if (type == 0) return;
  for (const std::string_view output : node.outputs) integers_[output] = type;
}

int Lowering::integer_type(std::string_view name) const {
  if (!is_constant(name)) {
    const auto found = integers_.find(name);
    return found == integers_.end() ? 0 : found->second;
  }
  const Term& constant = term(name);
  const int type = constant.tensor ? constant.tensor->type->number : constant.numbers->type;
  return is_floating_type(type) || type == kBool ? 0 : type;
}
int Lowering::integer_type(size_t input) const {
  return has(input) ? integer_type(node_->inputs[input]) : 0;
}

/// Extents set by the options must be inputs' extents after the batch, of legal sizes.
void Lowering::check_extents() const {
  std::set<std::string_view> symbols;
  for (const ValueInfo& input : file_.inputs) {
    for (size_t i = 1; i < input.extents.size(); ++i) {
      if (!input.extents[i].symbol.empty()) symbols.insert(input.extents[i].symbol);
    }
  }
  std::string list;
  for (const std::string_view symbol : symbols) {
    list += (list.empty() ? "expected one of " : ", ") + in_quotes(symbol);
  }
  for (const auto& [name, extent] : options_.extents) {
    const std::string where = "onnx: " + file_.where + ": ";
    WIDE_REQUIRE(symbols.contains(name),
                 where + "no input has an extent " + in_quotes(name) + " after the batch, " +
                     (list.empty() ? "expected none: there are no symbols" : list));
    WIDE_REQUIRE(extent >= 1 && extent <= kMaxElements,
                 where + "extent " + in_quotes(name) + " is " + std::to_string(extent) +
                     ", expected 1 to " + std::to_string(kMaxElements));
  }
}

void Lowering::refuse_input(const ValueInfo& input, const std::string& why) const {
  throw_unsupported("onnx: " + file_.where + ": input " + in_quotes(input.name) + " " + why);
}

/// Its extents, the batch in front.
Shape Lowering::shape_of_input(const ValueInfo& input) const {
  std::vector<int64_t> extents{kBatch};
  for (size_t i = 1; i < input.extents.size(); ++i) {
    int64_t extent = input.extents[i].number;
    const std::string_view symbol = input.extents[i].symbol;
    const auto known = options_.extents.find(std::string(symbol));
    if (extent < 0 && known != options_.extents.end()) extent = known->second;
    if (extent < 1) {
      refuse_input(input,
                   "has extent " + (extent < 0 ? in_quotes(symbol) : std::to_string(extent)) +
                       " on axis " + std::to_string(i) +
                       ", expected a number of at least 1: the options' extents say those of "
                       "symbols");
    }
    extents.push_back(extent);
  }
  const Shape shape(extents);
  if (!is_small(shape)) refuse_input(input, "has more elements than any device holds");
  return shape;
}

/// One row of an input that is `number` everywhere.
Numbers Lowering::fixed_input(const ValueInfo& input, Shape row, double number) const {
  row[0] = 1;
  if (num_elements(row) > kMaxNumbers) {
    refuse_input(input, "has more than " + std::to_string(kMaxNumbers) +
                            " elements, expected fewer of an input that is fixed");
  }
  Numbers numbers = filled(row, input.type->number, number);
  const double wanted = std::trunc(number), got = static_cast<double>(numbers.values.at(0));
  const bool is_there =
      numbers.is_float() || (got == wanted && (numbers.type != kBool || got == 0 || got == 1));
  if (!is_there) {
    refuse_input(input, "is fixed to " + wide::text(number) + ", which " +
                            std::string(input.type->name) + " does not have");
  }
  return numbers;
}

void Lowering::declare_inputs() {
  const ValueInfo::Extent* batch = nullptr;
  for (const Initializer& initializer : file_.initializers) {
    terms_[initializer.name] = {.tensor = &initializer};
  }
  for (const ValueInfo& input : file_.inputs) {
    const bool is_read = readers_.contains(input.name) ||
                         std::find(outputs_.begin(), outputs_.end(), input.name) != outputs_.end();
    if (terms_.contains(input.name) || !is_read) continue;
    const auto fixed = options_.fixed_inputs.find(input.name);
    const bool is_fixed = fixed != options_.fixed_inputs.end();
    const std::optional<Dtype> mask =
        input.type == nullptr || is_fixed ? std::nullopt : mask_dtype(input);
    if (input.type == nullptr || (!input.type->dtype && !mask && !is_fixed)) {
      refuse_input(input, input.type == nullptr ? "is no tensor, or of a type that it does not say"
                                                : "is " + std::string(input.type->name) +
                                                      ", which no tensor of wide can be");
    }
    if (!input.has_shape || input.extents.empty() || input.extents.size() >= kMaxRank) {
      refuse_input(input, "has no shape or " + counted(input.extents.size(), "axis", "axes") +
                              ", expected 1 to 5, the batch in front");
    }
    const ValueInfo::Extent& first = input.extents[0];
    if (batch != nullptr && (first.number != batch->number || first.symbol != batch->symbol)) {
      refuse_input(input, "does not begin as another input does, expected one batch of all");
    }
    batch = &first;
    batch_ = first.number;
    const Shape shape = shape_of_input(input);
    if (is_fixed) {
      terms_[input.name] = {.numbers = fixed_input(input, shape, fixed->second),
                            .rows = Rows{0, batch_number()}};
      continue;
    }
    const auto& shared = options_.shared_inputs;
    const bool is_shared = std::find(shared.begin(), shared.end(), input.name) != shared.end();
    taken_[input.name] = 1;
    const Dtype dtype = mask ? *mask : *input.type->dtype;
    Moved& activation = terms_[input.name].activation;
    activation.value = is_shared ? builder_.shared_input(input.name, shape, dtype)
                                 : builder_.input(input.name, shape, dtype);
    if (mask) activation.range = input.type->number == kBool ? Range::truth : Range::whole;
    if (mask && input.type->number != kBool) integers_[input.name] = input.type->number;
  }
}

}  // namespace wide::onnx
