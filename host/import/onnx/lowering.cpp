// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Lowering node by node: needed nodes, known values, and the nodes of the graph.
#include "host/import/onnx/lowering.hpp"

#include <algorithm>
#include <cmath>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "wide/error.hpp"

namespace wide::onnx {

namespace {

/// Limit on folded numbers in all: far beyond any model's shapes, and done in a second.
constexpr int64_t kMaxFolded = 10'000'000;

}  // namespace

Lowering::Lowering(OnnxFile& file, const OnnxOptions& options,
                   const std::set<const OnnxNode*>& plain)
    : file_(file),
      options_(options),
      plain_(plain),
      builder_(file.name.empty() ? "onnx" : file.name) {}

void Lowering::refuse(const std::string& why) const {
  throw_invalid_argument("onnx: " + file_.where + ": node " + in_quotes(node_->name) + " (" +
                         node_->op + ") " + why);
}
void Lowering::unsupported(const std::string& why) const {
  throw_unsupported("onnx: " + file_.where + ": node " + in_quotes(node_->name) + " (" + node_->op +
                    ") " + why);
}

void Lowering::spend(int64_t numbers) {
  spent_ += numbers;
  if (spent_ > kMaxFolded) refuse("is one of more constants than any model computes");
}

void Lowering::only(std::initializer_list<std::string_view> attributes) const {
  for (const Attribute& a : node_->attributes) {
    const bool is_known =
        std::find(attributes.begin(), attributes.end(), a.name) != attributes.end();
    support(is_known, "has attribute " + in_quotes(a.name) + ", which is not supported");
  }
}

int64_t Lowering::integer(std::string_view attribute, int64_t usual) const {
  const Attribute* a = node_->find(attribute);
  if (a == nullptr) return usual;
  require(a->type == Attribute::Type::i,
          "has attribute " + in_quotes(attribute) + ", expected an integer");
  return a->i;
}
float Lowering::number(std::string_view attribute, float usual) const {
  const Attribute* a = node_->find(attribute);
  if (a == nullptr) return usual;
  require(a->type == Attribute::Type::f && std::isfinite(a->f),
          "has attribute " + in_quotes(attribute) + ", expected a finite number");
  return a->f;
}
std::string_view Lowering::text(std::string_view attribute, std::string_view usual) const {
  const Attribute* a = node_->find(attribute);
  if (a == nullptr) return usual;
  require(a->type == Attribute::Type::s,
          "has attribute " + in_quotes(attribute) + ", expected a text");
  return a->s;
}
std::vector<int64_t> Lowering::integers(std::string_view attribute) const {
  const Attribute* a = node_->find(attribute);
  if (a == nullptr) return {};
  require(a->type == Attribute::Type::ints,
          "has attribute " + in_quotes(attribute) + ", expected integers");
  return a->ints;
}
std::vector<std::string_view> Lowering::texts(std::string_view attribute) const {
  const Attribute* a = node_->find(attribute);
  if (a == nullptr) return {};
  require(a->type == Attribute::Type::strings,
          "has attribute " + in_quotes(attribute) + ", expected texts");
  return a->strings;
}
std::vector<int64_t> Lowering::integers(size_t input, std::string_view attribute) {
  return has(input) ? to_integers(numbers(input)) : integers(attribute);
}

const Term& Lowering::term(std::string_view name) const {
  const auto found = terms_.find(name);
  if (found == terms_.end()) refuse("reads " + in_quotes(name) + ", which was not computed");
  return found->second;
}

bool Lowering::is_constant(std::string_view name) const {
  const auto found = terms_.find(name);
  return found != terms_.end() && found->second.is_constant();
}

bool Lowering::has(size_t input) const {
  return input < node_->inputs.size() && !node_->inputs[input].empty();
}
std::string Lowering::shown(size_t input) const {
  return has(input) ? in_quotes(node_->inputs[input]) : "nothing";
}

bool Lowering::is_computed(size_t input) {
  require(has(input), "has no input " + std::to_string(input));
  return !term(node_->inputs[input]).is_constant();
}
const Numbers& Lowering::numbers(size_t input) {
  support(!is_computed(input),
          "reads " + shown(input) + " as input " + std::to_string(input) + ", expected a constant");
  Term& found = terms_[node_->inputs[input]];
  if (!found.numbers) {
    found.numbers = numbers_of(*found.tensor);
    support(found.numbers.has_value(), "reads " + shown(input) + ", expected few numbers: it is " +
                                           std::string(found.tensor->type->name) + " " +
                                           to_string(found.tensor->shape));
  }
  spend(std::ssize(found.numbers->values));
  return *found.numbers;
}

const Shape& Lowering::constant_shape(size_t input) {
  support(!is_computed(input), "computes with " + shown(input) + " as input " +
                                   std::to_string(input) + ", expected a constant");
  const Term& found = term(node_->inputs[input]);
  return found.tensor != nullptr ? found.tensor->shape : found.numbers->shape;
}

double Lowering::scalar(size_t input) {
  const Numbers& one = numbers(input);
  support(one.values.size() == 1 && !one.has_batch(), "has " + to_string(one.shape) + " as input " +
                                                          std::to_string(input) +
                                                          ", expected one number");
  return static_cast<double>(one.values[0]);
}

void Lowering::support_rank(size_t input, int most) {
  const Shape& shape = constant_shape(input);
  support(shape.rank() <= most, "combines " + counted(most, "axis", "axes") + " and the constant " +
                                    to_string(shape) +
                                    ", which has more: the batch would not stay in front");
}

void Lowering::support_joined_rank() {
  const int own = view(moved(0)).rank();
  const int joined = node_->joined_rank.value_or(0);
  support(joined <= own, "combines " + counted(own, "axis", "axes") + " and a constant of " +
                             std::to_string(joined) +
                             ", which has more: the batch would not stay in front");
}

double Lowering::uniform(size_t input) {
  const int64_t size = num_elements(constant_shape(input));
  const auto number = reader(input);
  const Term& found = term(node_->inputs[input]);
  if (found.tensor != nullptr && found.tensor->is_filled) return number(0);
  bool is_one = size >= 1;
  for (int64_t i = 1; is_one && i < size; ++i) is_one = number(i) == number(0);
  support(is_one, "has " + shown(input) + " as input " + std::to_string(input) +
                      ", expected one number in all of it");
  return number(0);
}

double Lowering::uniform(size_t input, const Moved& of) {
  const Shape& shape = constant_shape(input);
  const View seen = view(of);
  const auto extent_of = [&](int axis) {
    int64_t extent = 1;
    for (const View::Part& part : seen.axis(axis))
      extent *= part.extent == kBatch ? batch_ : part.extent;
    return extent;
  };
  const int skipped = seen.rank() - shape.rank();
  bool fits = skipped >= 0;
  for (int i = 0; fits && i < shape.rank(); ++i)
    fits = shape[i] == 1 || shape[i] == extent_of(i + skipped);
  support(fits, "repeats elements, by a constant " + to_string(shape) + " as input " +
                    std::to_string(input) + ", for which there is no primitive");
  return uniform(input);
}

bool Lowering::repeats_rows(size_t input) {
  const Shape& shape = constant_shape(input);
  if (shape.rank() == 0 || shape[0] != batch_ || num_elements(shape) < 1) return false;
  const Term& found = term(node_->inputs[input]);
  if (found.tensor != nullptr && found.tensor->is_filled) return true;
  const auto number = reader(input);
  const int64_t row = num_elements(shape) / shape[0];
  for (int64_t i = row; i < num_elements(shape); ++i) {
    if (number(i) != number(i % row)) return false;
  }
  return true;
}

Range Lowering::range(size_t input, Dtype dtype) {
  if (is_computed(input)) return moved(input).range;
  if (num_elements(constant_shape(input)) != 1) return Range::any;
  const double number = uniform(input);
  const bool is_whole = std::isfinite(number) && std::fabs(number) <= most_whole(dtype) &&
                        std::trunc(number) == number;
  return is_whole ? Range::whole : std::isfinite(number) ? Range::finite : Range::any;
}

void Lowering::claim(Range range) {
  terms_[node_->outputs.at(0)].activation.range = range;
}

std::function<double(int64_t)> Lowering::reader(size_t input) {
  (void)constant_shape(input);  // that it is one
  const Term& found = term(node_->inputs[input]);
  if (found.numbers)
    return [&found](int64_t i) {
      return static_cast<double>(found.numbers->values[static_cast<size_t>(i)]);
    };
  support(is_numeric(*found.tensor), "reads " + shown(input) + ", which is " +
                                         std::string(found.tensor->type->name) +
                                         ", expected numbers");
  return [&found](int64_t i) { return static_cast<double>(load_number(*found.tensor, i)); };
}

std::string Lowering::free_name(const std::string& wanted) {
  const auto known = taken_.find(wanted);
  if (known == taken_.end()) return taken_.emplace(wanted, 1), wanted;
  std::string name;
  do {
    name = wanted + "." + std::to_string(known->second++);
  } while (!taken_.emplace(name, 1).second);
  return name;
}

/// Lets the builder append under a name of its own; errors name the node.
template <class Append>
auto Lowering::built(const Append& append) {
  try {
    return append(free_name(node_->name));
  } catch (const Error& error) {
    throw Error(ErrorCode::unsupported, "onnx: " + file_.where + ": node " +
                                            in_quotes(node_->name) + " (" + node_->op +
                                            "): " + error.what());
  }
}

Value Lowering::checked(Value value) const {
  support(is_small(shape(value)),
          "computes " + to_string(shape(value)) + ", which no device holds");
  return value;
}

Value Lowering::append(const Operation& operation, std::vector<Operand> operands) {
  return checked(built([&](const std::string& name) {
    return builder_.append(name, operation, std::move(operands));
  }));
}
std::pair<Value, Value> Lowering::append_two(const Operation& operation,
                                             std::vector<Operand> operands) {
  const auto [y, other] = built([&](const std::string& name) {
    return builder_.append_two(name, operation, std::move(operands));
  });
  return {checked(y), checked(other)};
}

Value Lowering::reshaped(Value value, const Shape& to) {
  return shape(value) == to ? value : append(ReshapeOp{to}, {{"x", value}});
}
Value Lowering::transposed(Value parameter) {
  return append(TransposeOp{{1, 0}}, {{"x", parameter}});
}

void Lowering::set(size_t output, Value value) {
  if (output < node_->outputs.size() && !node_->outputs[output].empty())
    terms_[node_->outputs[output]] = {.activation = {value}};
}
void Lowering::set_numbers(size_t output, Numbers numbers) {
  spend(std::ssize(numbers.values) + 1);
  if (output < node_->outputs.size() && !node_->outputs[output].empty())
    terms_[node_->outputs[output]] = {.numbers = std::move(numbers)};
}

void Lowering::set_tensor(size_t output, const Initializer& tensor) {
  terms_[node_->outputs[output]] = {.tensor = &tensor};
}

bool Lowering::is_used(size_t output) const {
  if (output >= node_->outputs.size() || node_->outputs[output].empty()) return false;
  const std::string_view name = node_->outputs[output];
  const auto readers = readers_.find(name);
  return (readers != readers_.end() && !readers->second.empty()) ||
         std::find(outputs_.begin(), outputs_.end(), name) != outputs_.end();
}

const OnnxNode* Lowering::only_reader() const {
  const auto readers = readers_.find(node_->outputs.at(0));
  const bool is_output =
      std::find(outputs_.begin(), outputs_.end(), node_->outputs[0]) != outputs_.end();
  return is_output || readers == readers_.end() || readers->second.size() != 1 ? nullptr
                                                                               : readers->second[0];
}

/// Finds the nodes that the wanted outputs need, and the readers of values.
void Lowering::find_needed() {
  std::map<std::string_view, size_t> producers;
  for (size_t i = 0; i < file_.nodes.size(); ++i) {
    for (const std::string_view output : file_.nodes[i].outputs) {
      if (!output.empty()) producers[output] = i;
    }
  }
  needed_.resize(file_.nodes.size());
  for (const std::string_view output : outputs_) {
    const auto producer = producers.find(output);
    if (producer != producers.end()) needed_[producer->second] = true;
  }
  for (size_t i = file_.nodes.size(); i-- > 0;) {  // each after those that it reads from
    if (!needed_[i]) continue;
    for (const std::string_view input : file_.nodes[i].inputs) {
      if (input.empty()) continue;
      readers_[input].push_back(&file_.nodes[i]);
      const auto producer = producers.find(input);
      if (producer != producers.end()) needed_[producer->second] = true;
    }
  }
}

void Lowering::lower_node(const OnnxNode& node) {
  node_ = &node;
  note_integers(node);
  if (absorbed_.contains(&node)) return;
  try {
    if (fold_reshaped_rows()) return;
    const std::optional<Rows> rows = rows_of_result();
    if (fold_node()) {
      for (const std::string_view output : node.outputs) {
        if (rows && terms_.contains(output)) terms_[output].rows = rows;
      }
      return;
    }
    const Lower lower = find_lower(node.op);
    support(lower != nullptr, "is not supported");
    lower(*this);
  } catch (const Error& error) {
    const std::string_view what = error.what();
    if (what.starts_with("onnx: ")) throw;
    if (error.code() == ErrorCode::unsupported) unsupported(std::string(what));
    refuse(std::string(what));
  }
}

Lowered Lowering::run() && {
  const auto refuse_file = [&](const std::string& why) {
    throw_invalid_argument("onnx: " + file_.where + ": " + why);
  };
  if (file_.has_sparse_initializer)
    throw_unsupported("onnx: " + file_.where + ": it has sparse initializers, expected dense ones");
  for (const ValueInfo& output : file_.outputs) {
    const auto& wanted = options_.outputs;
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), output.name) != wanted.end())
      outputs_.push_back(output.name);
  }
  for (const std::string& wanted : options_.outputs) {
    if (std::find(outputs_.begin(), outputs_.end(), wanted) == outputs_.end())
      refuse_file("it has no output " + in_quotes(wanted));
  }
  if (outputs_.empty()) refuse_file("it has no output, expected at least one");
  const auto require_input = [&](const std::string& name) {
    const bool is_there = std::any_of(file_.inputs.begin(), file_.inputs.end(),
                                      [&](const ValueInfo& input) { return input.name == name; });
    if (!is_there) refuse_file("it has no input " + in_quotes(name));
    const bool is_weight = std::any_of(file_.initializers.begin(), file_.initializers.end(),
                                       [&](const Initializer& own) { return own.name == name; });
    if (is_weight)
      refuse_file("its input " + in_quotes(name) +
                  " is a weight, which the file has itself, expected one that is given");
  };
  for (const std::string& name : options_.shared_inputs) require_input(name);
  for (const auto& [name, number] : options_.fixed_inputs) {
    require_input(name);
    const bool is_sound = std::fabs(number) < 0x1p53;
    if (!is_sound)
      refuse_file("input " + in_quotes(name) + " is fixed to " + wide::text(number) +
                  ", expected a number below 2^53");
  }
  check_extents();
  find_needed();
  declare_inputs();
  for (size_t i = 0; i < file_.nodes.size(); ++i) {
    if (needed_[i]) lower_node(file_.nodes[i]);
  }
  for (const std::string_view output : outputs_) {
    const auto found = terms_.find(output);
    if (found == terms_.end() || found->second.is_constant()) {
      throw_unsupported("onnx: " + file_.where + ": output " + in_quotes(output) +
                        " is a constant, expected what depends on an input");
    }
    Value value = settle(found->second, "onnx: " + file_.where + ": output " + in_quotes(output));
    if (builder_.graph().kind(value) != ValueKind::computed) {  // an input, passed through
      value =
          builder_.append(free_name(std::string(output)), ReshapeOp{shape(value)}, {{"x", value}});
    }
    builder_.output(std::string(output), value);
  }
  lowered_.graph = std::move(builder_).build();
  return std::move(lowered_);
}

}  // namespace wide::onnx
