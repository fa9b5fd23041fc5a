// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Small tensors whose numbers are known when a model is imported.
#include "host/import/onnx/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "host/core/check.hpp"
#include "wide/convert.hpp"
#include "wide/graph.hpp"

namespace wide::onnx {

namespace {

/// So far above 64 bits that its multiples are no other numbers.
constexpr long double kBatchUnit = 0x1p100L;

template <class T>
long double load(const std::byte* from, int64_t i) {
  T value;
  std::memcpy(&value, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return static_cast<long double>(value);
}

}  // namespace

bool is_floating_type(int number) {
  return number == 1 || number == 10 || number == 11 || number >= 16;
}

long double batch_number(int64_t multiple) {
  return static_cast<long double>(multiple) * kBatchUnit;
}

bool is_batch(long double whole) {
  return std::fabs(whole) >= kBatchUnit;
}

bool is_batch(const Numbers& numbers, size_t i) {
  return !numbers.is_float() && is_batch(numbers.values[i]);
}

int64_t batch_multiple(const Numbers& numbers, size_t i) {
  return static_cast<int64_t>(numbers.values[i] / kBatchUnit);
}

bool Numbers::has_batch() const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (is_batch(*this, i)) return true;
  }
  return false;
}

void refuse_batch() {
  throw_unsupported("computes with the batch, whose number is not known");
}

int64_t to_integer(const Numbers& numbers, size_t i) {
  if (is_batch(numbers, i)) refuse_batch();
  const long double value = numbers.values[i];
  if (!(value > -0x1p63L)) return INT64_MIN;
  return value >= 0x1p63L ? INT64_MAX : static_cast<int64_t>(value);
}

std::vector<int64_t> to_integers(const Numbers& numbers) {
  std::vector<int64_t> out;
  for (size_t i = 0; i < numbers.values.size(); ++i) out.push_back(to_integer(numbers, i));
  return out;
}

double most_whole(Dtype dtype) {
  return 1 / unit_roundoff(dtype);
}

double most_finite(Dtype dtype) {
  return dtype == Dtype::fp16 ? 65504.0 : 0x1.fep127;
}
bool holds(Dtype dtype, double number) {
  const double least = dtype == Dtype::fp16 ? 0x1p-14 : 0x1p-126, size = std::fabs(number);
  return number == 0 || (size >= least && size <= most_finite(dtype));
}

Numbers extents_of(const Shape& shape) {
  Numbers out{{shape.rank()}, kInt64, {}};
  for (const int64_t value : shape)
    out.values.push_back(value == kBatch ? batch_number() : static_cast<long double>(value));
  return out;
}

long double load_number(const Initializer& tensor, int64_t i) {
  if (tensor.is_filled) i = 0;
  switch (tensor.type->number) {
    case 1:
      return load<float>(tensor.data, i);
    case 2:
    case 9:
      return load<uint8_t>(tensor.data, i);
    case 3:
      return load<int8_t>(tensor.data, i);
    case 4:
      return load<uint16_t>(tensor.data, i);
    case 5:
      return load<int16_t>(tensor.data, i);
    case 6:
      return load<int32_t>(tensor.data, i);
    case 7:
      return load<int64_t>(tensor.data, i);
    case 11:
      return load<double>(tensor.data, i);
    case 12:
      return load<uint32_t>(tensor.data, i);
    case 13:
      return load<uint64_t>(tensor.data, i);
    default:
      return load_element(tensor.data, *tensor.type->dtype, i);
  }
}

bool is_numeric(const Initializer& tensor) {
  const int number = tensor.type->number;
  return tensor.type->bits >= 8 && number != 14 && number != 15 &&
         (number <= 13 || tensor.type->dtype.has_value());
}

std::optional<Numbers> numbers_of(const Initializer& tensor) {
  const int64_t size = num_elements(tensor.shape);
  if (!is_numeric(tensor) || size > kMaxNumbers) return {};
  const int type = tensor.type->number;
  Numbers out{tensor.shape, type, {}};
  for (int64_t i = 0; i < size; ++i) out.values.push_back(load_number(tensor, i));
  return out;
}

bool is_signed_type(int number) {
  return number == 3 || (number >= 5 && number <= 7);
}

long double wrapped(long double whole, int type) {
  if (type == kBool) return whole;
  const int bits = find_element_type(type)->bits;
  if (is_batch(whole)) {  // as long as it is a number of the type, which many rows may exceed
    if (bits < 32) refuse_batch();
    return whole;
  }
  const long double all = std::ldexp(1.0L, bits);
  long double rest = std::fmod(whole, all);
  if (rest < 0) rest += all;
  return is_signed_type(type) && rest >= all / 2 ? rest - all : rest;
}

void round_to_type(Numbers& numbers) {
  if (!numbers.is_float()) {
    for (long double& value : numbers.values) value = wrapped(value, numbers.type);
    return;
  }
  const std::optional<Dtype> dtype = find_element_type(numbers.type)->dtype;
  for (long double& value : numbers.values) {
    const auto wide = static_cast<double>(value);
    uint64_t place = 0;
    if (dtype) store_element(&place, *dtype, 0, wide);
    value = static_cast<long double>(dtype ? load_element(&place, *dtype, 0) : wide);
  }
}

Initializer to_initializer(const Numbers& numbers, const std::string& name) {
  const int own = numbers.type;
  const ElementType* type = find_element_type(own == 10 || own == 16 ? own : 1);
  auto storage = std::make_shared<std::vector<std::byte>>(
      numbers.values.size() * static_cast<size_t>(dtype_bytes(*type->dtype)));
  for (size_t i = 0; i < numbers.values.size(); ++i)
    store_element(storage->data(), *type->dtype, static_cast<int64_t>(i),
                  static_cast<double>(numbers.values[i]));
  Initializer out{name, type, numbers.shape, storage->data(), std::ssize(*storage), {}};
  out.storage = std::move(storage);
  return out;
}

}  // namespace wide::onnx
