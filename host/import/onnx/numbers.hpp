// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Small tensors whose numbers are known when a model is imported: shapes, axes, indices, scalars.
#pragma once

#include <cstdint>
#include <vector>

#include "host/import/onnx/file.hpp"

namespace wide::onnx {

/// More elements than any shape's arithmetic has.
inline constexpr int64_t kMaxNumbers = 4096;
/// Most numbers that a node may make of constants: masks of windows and the like.
inline constexpr int64_t kMaxComputed = int64_t{1} << 18;

/// ONNX's numbers of element types.
inline constexpr int kInt64 = 7, kBool = 9;
bool is_floating_type(int number);
bool is_signed_type(int number);  ///< of integers

struct Numbers {
  Shape shape;
  int type = kInt64;  ///< ONNX's number of an element type
  /// Exact for int64 and double alike (64 bits of mantissa, or more). A whole number beyond 64 bits
  /// is a multiple of the batch, whose number is not known.
  std::vector<long double> values;

  bool is_float() const { return is_floating_type(type); }
  bool has_batch() const;
};

/// The whole number for the batch, or a multiple of it.
long double batch_number(int64_t multiple = 1);
bool is_batch(long double whole);
bool is_batch(const Numbers& numbers, size_t i);
int64_t batch_multiple(const Numbers& numbers, size_t i);
/// Throws unsupported, without a node's name.
[[noreturn]] void refuse_batch();
/// Rounded to 64 bits, saturating. Throws unsupported for the batch.
int64_t to_integer(const Numbers& numbers, size_t i);
std::vector<int64_t> to_integers(const Numbers& numbers);

/// Whole numbers up to this one are exact in a dtype; differences of two have the right sign.
double most_whole(Dtype dtype);
/// The largest finite number of a dtype; of fp32 that of bf16, which both have.
double most_finite(Dtype dtype);
/// Whether a dtype has a number as exactly as any of usual size: it neither overflows nor comes so
/// close to 0 that bits are lost.
bool holds(Dtype dtype, double number);

/// The extents of a shape, with kBatch as the batch.
Numbers extents_of(const Shape& shape);
/// Whether its elements are numbers or Booleans that load_number() reads.
bool is_numeric(const Initializer& tensor);
long double load_number(const Initializer& tensor, int64_t i);
/// None where there are too many or they are not numbers.
std::optional<Numbers> numbers_of(const Initializer& tensor);
inline double element_of(const Initializer& tensor, int64_t i) {
  return static_cast<double>(load_number(tensor, i));
}
/// The lower bits of a whole number, as many as the type has. Throws unsupported for the batch
/// where they are few.
long double wrapped(long double whole, int type);
/// Rounds floats to the nearest of the type, as a device that computes in it does: whole numbers
/// may be made of them, and then the last bit counts. Of whole numbers the lower bits remain.
void round_to_type(Numbers& numbers);
/// Of the same type where it is FLOAT16 or BFLOAT16, else FLOAT.
Initializer to_initializer(const Numbers& numbers, const std::string& name);

/// The results of a node of numbers alone; none for unknown operators. Throws invalid_argument,
/// without the node's name, where it contradicts itself, and unsupported where it needs the batch's
/// number. `inputs` has nullptr where one is absent.
std::optional<std::vector<Numbers>> fold(const OnnxNode& node,
                                         const std::vector<const Numbers*>& inputs);

/// Throws unsupported, without the node's name, for attributes that folding does not know, like the
/// axis of additions before opset 7. Other operators may have any.
void check_attributes(const OnnxNode& node);

/// The shape of a constant after Reshape, Squeeze, Unsqueeze or Flatten, checked in the same way;
/// of `inputs` only those after the first are read.
std::vector<int64_t> changed_shape(const OnnxNode& node, const Shape& shape,
                                   const std::vector<const Numbers*>& inputs);

}  // namespace wide::onnx
