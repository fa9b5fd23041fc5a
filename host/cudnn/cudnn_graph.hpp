// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What cuDNN is asked to compute: tensors and operations between them, as plain data. A family
// describes its problem so, in every build; only the *_cuda.cpp files beside it know cuDNN's own
// types. So what a graph means is tested where cuDNN cannot run.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "wide/dtype.hpp"
#include "wide/shape.hpp"

namespace wide {

enum class CudnnType : uint8_t { fp32, fp16, bf16, int32, boolean };
CudnnType cudnn_type(Dtype dtype);

/// A tensor by its place in the graph.
using CudnnTensorId = int;
inline constexpr CudnnTensorId kNoCudnnTensor = -1;

struct CudnnTensor {
  enum class Place : uint8_t {
    memory,  ///< bound to an address when the plan runs
    inside,  ///< between two operations, never in memory
    number,  ///< one number, fixed in the plan
  };
  CudnnType type = CudnnType::fp32;
  Shape shape;
  Strides strides;
  Place place = Place::memory;
  double number = 0;  ///< rounded to the type
  friend bool operator==(const CudnnTensor&, const CudnnTensor&) = default;
};

enum class CudnnFunction : uint8_t {
  add,
  subtract,
  multiply,
  divide,
  exp,
  log,
  rsqrt,
  relu,  ///< of NaN: NaN
  gelu,  ///< by erf
  gelu_tanh,
  silu,
  index,     ///< the place along `axis`, an int32
  at_least,  ///< a boolean
  less,      ///< a boolean
  select,    ///< a where the third operand is true, else b
};

/// y = function(a, b, c), element by element; b and c are broadcast along extents of 1.
struct CudnnPointwise {
  CudnnFunction function = CudnnFunction::add;
  CudnnTensorId a = kNoCudnnTensor, b = kNoCudnnTensor, c = kNoCudnnTensor, y = kNoCudnnTensor;
  int64_t axis = 0;
  friend bool operator==(const CudnnPointwise&, const CudnnPointwise&) = default;
};

/// y = x * weight (cross-correlation); groups are x's channels over weight's.
struct CudnnConvolution {
  CudnnTensorId x = kNoCudnnTensor, weight = kNoCudnnTensor, y = kNoCudnnTensor;
  std::vector<int64_t> padding, stride, dilation;  ///< per spatial axis
  friend bool operator==(const CudnnConvolution&, const CudnnConvolution&) = default;
};

/// y = a b, batched over the leading axes. The counts, int32 [B, 1, 1, 1], say how many rows of y
/// and of the sum are there; beyond them nothing is read.
struct CudnnMatmul {
  CudnnTensorId a = kNoCudnnTensor, b = kNoCudnnTensor, y = kNoCudnnTensor;
  CudnnTensorId rows = kNoCudnnTensor, columns = kNoCudnnTensor, depth = kNoCudnnTensor;
  friend bool operator==(const CudnnMatmul&, const CudnnMatmul&) = default;
};

/// Along the axes whose extent in y is 1.
struct CudnnReduction {
  enum class Of : uint8_t { sum, maximum };
  Of of = Of::sum;
  CudnnTensorId x = kNoCudnnTensor, y = kNoCudnnTensor;
  friend bool operator==(const CudnnReduction&, const CudnnReduction&) = default;
};

/// Batch normalisation in training: y by the batch's statistics, biased; the running ones move by
/// `momentum` towards the batch's, the variance unbiased.
struct CudnnBatchnorm {
  CudnnTensorId x = kNoCudnnTensor, scale = kNoCudnnTensor, bias = kNoCudnnTensor;
  CudnnTensorId epsilon = kNoCudnnTensor, momentum = kNoCudnnTensor;
  CudnnTensorId running_mean = kNoCudnnTensor, running_variance = kNoCudnnTensor;
  CudnnTensorId next_mean = kNoCudnnTensor, next_variance = kNoCudnnTensor;
  CudnnTensorId saved_mean = kNoCudnnTensor, saved_inv_std = kNoCudnnTensor;
  CudnnTensorId y = kNoCudnnTensor;
  friend bool operator==(const CudnnBatchnorm&, const CudnnBatchnorm&) = default;
};

/// Every image of every channel by its own mean and biased variance.
struct CudnnInstancenorm {
  CudnnTensorId x = kNoCudnnTensor, scale = kNoCudnnTensor, bias = kNoCudnnTensor;
  CudnnTensorId epsilon = kNoCudnnTensor, y = kNoCudnnTensor;
  friend bool operator==(const CudnnInstancenorm&, const CudnnInstancenorm&) = default;
};

/// Every row of x [rows, features, 1, 1], dense, over its mean square, biased variance where the
/// mean is subtracted first; scale and bias [1, features, 1, 1], or none.
struct CudnnRowNorm {
  bool has_mean = true;  ///< layer normalisation; else root mean square
  CudnnTensorId x = kNoCudnnTensor, scale = kNoCudnnTensor, bias = kNoCudnnTensor;
  CudnnTensorId epsilon = kNoCudnnTensor, y = kNoCudnnTensor;
  friend bool operator==(const CudnnRowNorm&, const CudnnRowNorm&) = default;
};

/// The largest value, or the mean, of every window of x [B, C, positions..]; NaN where one is in
/// it.
struct CudnnPooling {
  enum class Of : uint8_t {
    maximum,
    mean,         ///< of the positions inside x
    padded_mean,  ///< of all the window's positions, zeros outside x
  };
  Of of = Of::maximum;
  CudnnTensorId x = kNoCudnnTensor, y = kNoCudnnTensor;
  std::vector<int64_t> window, stride, padding_before, padding_after;  ///< per spatial axis
  friend bool operator==(const CudnnPooling&, const CudnnPooling&) = default;
};

using CudnnOperation = std::variant<CudnnPointwise, CudnnConvolution, CudnnMatmul, CudnnReduction,
                                    CudnnBatchnorm, CudnnInstancenorm, CudnnRowNorm, CudnnPooling>;

class CudnnGraph {
 public:
  /// A tensor in memory.
  CudnnTensorId bind(CudnnType type, const Shape& shape, const Strides& strides);
  /// An intermediate, as dense as its shape.
  CudnnTensorId inside(CudnnType type, const Shape& shape);
  CudnnTensorId inside(CudnnType type, const Shape& shape, const Strides& strides);
  /// A number, of as many axes as the graph's other tensors.
  CudnnTensorId number(double value, int rank, CudnnType type = CudnnType::fp32);

  /// Appends function(a, b) into a new intermediate of a's shape, an fp32 but for indices and
  /// comparisons.
  CudnnTensorId apply(CudnnFunction function, CudnnTensorId a, CudnnTensorId b = kNoCudnnTensor,
                      CudnnTensorId c = kNoCudnnTensor, int64_t axis = 0);
  void append(CudnnOperation operation) { operations_.push_back(std::move(operation)); }

  const std::vector<CudnnTensor>& tensors() const { return tensors_; }
  const CudnnTensor& tensor(CudnnTensorId id) const { return tensors_[static_cast<size_t>(id)]; }
  const std::vector<CudnnOperation>& operations() const { return operations_; }
  friend bool operator==(const CudnnGraph&, const CudnnGraph&) = default;

 private:
  CudnnTensorId add(CudnnTensor tensor);
  std::vector<CudnnTensor> tensors_;
  std::vector<CudnnOperation> operations_;
};

/// What an engine may do to numbers. Engines by Winograd or Fourier transforms, that round inputs
/// or partial sums to fewer bits, or whose results differ from run to run are never taken.
struct CudnnNumerics {
  bool allows_tensor_cores = false;  ///< of fp32 tensors: products in tf32
  friend bool operator==(const CudnnNumerics&, const CudnnNumerics&) = default;
};

}  // namespace wide
