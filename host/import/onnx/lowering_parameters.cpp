// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Constants of a file as parameters of the graph: as they are, or changed copies.
#include <algorithm>
#include <cmath>

#include "host/core/text.hpp"
#include "host/import/messages.hpp"
#include "host/import/onnx/lowering.hpp"
#include "wide/convert.hpp"

namespace wide::onnx {

namespace {

constexpr int64_t kMaxCopied = int64_t{1} << 26;  ///< bytes

bool is_floating_point(Dtype dtype) {
  return dtype == Dtype::fp32 || dtype == Dtype::fp16 || dtype == Dtype::bf16;
}

const ElementType* element_type(Dtype dtype) {
  return find_element_type(dtype == Dtype::fp32 ? 1 : dtype == Dtype::fp16 ? 10 : 16);
}

}  // namespace

/// Limits copies of constants: to a few times the file's size.
void Lowering::allow(int64_t bytes) {
  made_bytes_ += bytes;
  int64_t own = 0;
  if (made_bytes_ > kMaxCopied) {
    for (const Initializer& initializer : file_.initializers) own += initializer.bytes;
  }
  support(made_bytes_ <= std::max(kMaxCopied, 4 * own),
          "copies constants that are too large in all");
}

/// Whether a constant of whole numbers is combined with an activation that has such in the file, of
/// the same type. Differences without a sign are not: theirs wrap around.
bool Lowering::counts_with(size_t input) const {
  const std::string& op = node_->op;
  const int own = integer_type(input);
  const bool is_counted = op == "Add" || op == "Mul" || (op == "Sub" && is_signed_type(own));
  return own != 0 && is_counted && num_inputs() == 2 && integer_type(1 - input) == own &&
         !is_constant(node_->inputs[1 - input]);
}

const Initializer& Lowering::whole_numbers(size_t input, Dtype dtype) {
  const Shape& shape = constant_shape(input);
  const auto number = reader(input);
  const int64_t bytes = checked_bytes(shape, dtype_bytes(dtype));
  allow(bytes);
  auto storage = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < num_elements(shape); ++i) {
    support(std::fabs(number(i)) <= most_whole(dtype),
            "reads " + shown(input) + ", which has " + wide::text(number(i)) +
                ", expected whole numbers up to " + wide::text(most_whole(dtype)));
    store_element(storage->data(), dtype, i, number(i));
  }
  lowered_.made.push_back({std::string(node_->inputs[input]), element_type(dtype), shape,
                           storage->data(), std::ssize(*storage), storage});
  return lowered_.made.back();
}

/// The file's tensor, or the known numbers as one.
const Initializer& Lowering::tensor(size_t input, Dtype dtype) {
  const Shape& shape = constant_shape(input);  // also that it is one
  if (is_floating_point(dtype) && counts_with(input)) return whole_numbers(input, dtype);
  Term& found = terms_[node_->inputs[input]];
  if (found.tensor == nullptr) {
    support(found.numbers->is_float(), "reads " + shown(input) +
                                           ", which are whole numbers, expected " +
                                           std::string(dtype_name(dtype)));
    lowered_.made.push_back(to_initializer(*found.numbers, std::string(node_->inputs[input])));
    found.tensor = &lowered_.made.back();
  }
  const bool is_number = found.tensor->type->dtype && is_floating_point(*found.tensor->type->dtype);
  support(is_number, "reads " + in_quotes(found.tensor->name) + ", which is " +
                         std::string(found.tensor->type->name) + " " + to_string(shape) +
                         ", expected " + std::string(dtype_name(dtype)));
  return *found.tensor;
}

Value Lowering::declare(const Initializer& tensor, Dtype dtype, const std::string& name) {
  const auto known = declared_.find(&tensor);
  if (known != declared_.end()) return known->second;
  support(tensor.shape.rank() < kMaxRank, "reads " + in_quotes(tensor.name) + " of " +
                                              counted(tensor.shape.rank(), "axis", "axes") +
                                              ", expected at most " + std::to_string(kMaxRank - 1));
  for (const int64_t extent : tensor.shape)
    support(extent > 0,
            "reads " + in_quotes(tensor.name) + ", which has no elements, expected some");
  const Value value = builder_.parameter(free_name(name), tensor.shape, dtype);
  lowered_.parameters.push_back(&tensor);
  declared_.emplace(&tensor, value);
  return value;
}

Dtype Lowering::constant_dtype(size_t input) {
  (void)constant_shape(input);  // that it is one
  const Term& found = term(node_->inputs[input]);
  const int type = found.tensor != nullptr ? found.tensor->type->number : found.numbers->type;
  const bool is_known = is_floating_type(type) && find_element_type(type)->dtype;
  return is_known ? *find_element_type(type)->dtype : Dtype::fp32;
}

Value Lowering::parameter(size_t input, Dtype dtype) {
  const Initializer& found = tensor(input, dtype);
  if (*found.type->dtype == dtype) return declare(found, dtype, found.name);
  return changed(input, dtype, found.shape,
                 [](const Initializer& t, int64_t i) { return element_of(t, i); });
}

Value Lowering::changed(size_t input, Dtype dtype, const Shape& shape,
                        const std::function<double(const Initializer&, int64_t)>& change) {
  const Initializer& found = tensor(input, dtype);
  const int64_t size = num_elements(shape);
  support(
      size <= num_elements(found.shape) || size <= int64_t{1} << 20,
      "broadcasts " + in_quotes(found.name) + " to " + to_string(shape) + ", which is too large");
  allow(checked_bytes(shape, dtype_bytes(dtype)));
  auto storage = std::make_shared<std::vector<std::byte>>(
      static_cast<size_t>(checked_bytes(shape, dtype_bytes(dtype))));
  for (int64_t i = 0; i < size; ++i) store_element(storage->data(), dtype, i, change(found, i));
  lowered_.made.push_back(
      {found.name, element_type(dtype), shape, storage->data(), std::ssize(*storage), storage});
  return declare(lowered_.made.back(), dtype, found.name + "." + node_->name);
}

Value Lowering::scaled(size_t input, Dtype dtype, double factor) {
  if (factor == 1) return parameter(input, dtype);
  return changed(input, dtype, constant_shape(input),
                 [factor](const Initializer& t, int64_t i) { return factor * element_of(t, i); });
}

Value Lowering::constant(double number, Dtype dtype) {
  return constants({1}, dtype, [=](int64_t) { return number; });
}

Value Lowering::constants(const Shape& shape, Dtype dtype,
                          const std::function<double(int64_t)>& number) {
  const int64_t bytes = checked_bytes(shape, dtype_bytes(dtype));
  allow(bytes);
  auto storage = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(bytes));
  for (int64_t i = 0; i < num_elements(shape); ++i)
    store_element(storage->data(), dtype, i, number(i));
  lowered_.made.push_back({node_->name + ".constant", element_type(dtype), shape, storage->data(),
                           std::ssize(*storage), storage});
  return declare(lowered_.made.back(), dtype, node_->name + ".constant");
}

}  // namespace wide::onnx
