// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tensors: views (pointer, dtype, shape, strides, device) and an owner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "wide/context.hpp"
#include "wide/dtype.hpp"
#include "wide/shape.hpp"

namespace wide {

/// A view of a tensor, not owning. Strides are in elements, at least zero; an absent optional
/// operand is a default-constructed view.
template <class Pointer>
struct BasicTensorView {
  Pointer data = nullptr;
  Dtype dtype = Dtype::fp32;
  Shape shape;
  Strides strides;
  Device device;

  BasicTensorView() = default;
  /// Densely packed, row-major.
  BasicTensorView(Pointer data_, Dtype dtype_, const Shape& shape_, Device device_)
      : BasicTensorView(data_, dtype_, shape_, contiguous_strides(shape_), device_) {}
  /// Throws invalid_argument where shape and strides differ in rank or a stride is negative.
  BasicTensorView(Pointer data_, Dtype dtype_, const Shape& shape_, const Strides& strides_,
                  Device device_);
  /// A mutable view is a const view.
  template <class Other>
  requires(std::is_convertible_v<Other, Pointer> && !std::is_same_v<Other, Pointer>)
      BasicTensorView(const BasicTensorView<Other>& other)
      : data(other.data),
        dtype(other.dtype),
        shape(other.shape),
        strides(other.strides),
        device(other.device) {}

  int rank() const { return shape.rank(); }
  bool is_absent() const { return data == nullptr && shape.rank() == 0; }
  bool is_contiguous() const;
  /// 1 of rank 0, as a scalar has, and so of an absent view as well.
  int64_t num_elements() const { return wide::num_elements(shape); }
  /// Bytes from the first element to the end of the last, gaps included; 0 where there is no
  /// element.
  int64_t span_bytes() const;
  /// Largest power of two, up to 256, that divides the address.
  int64_t alignment() const;
  /// Elements [start, start + length) of one axis. Throws invalid_argument outside the axis.
  BasicTensorView narrow(int axis, int64_t start, int64_t length) const;
};

using TensorView = BasicTensorView<void*>;
using ConstTensorView = BasicTensorView<const void*>;

extern template struct BasicTensorView<void*>;
extern template struct BasicTensorView<const void*>;

/// A densely packed tensor that owns its memory, 256-byte aligned, uninitialised. A const tensor
/// hands out const views only. Zero elements are legal and own nothing; a default-constructed or
/// moved-from tensor has none, and hands out absent views. The memory is freed when the tensor
/// dies: on CUDA the caller makes sure that no queued work still uses it (cudaFree waits for the
/// device; an engine's own allocator may not).
class Tensor {
 public:
  Tensor() = default;
  Tensor(const Context& context, Dtype dtype, const Shape& shape);
  ~Tensor();
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  Tensor(const Tensor&) = delete;  // a copy needs a stream: see copy()

  TensorView view() { return view_; }
  ConstTensorView view() const { return view_; }
  operator TensorView() { return view_; }
  operator ConstTensorView() const { return view_; }
  operator Workspace() & { return {view_.data, bytes_}; }
  void* data() { return view_.data; }
  const void* data() const { return view_.data; }
  Dtype dtype() const { return view_.dtype; }
  const Shape& shape() const { return view_.shape; }
  int64_t num_elements() const { return bytes_ == 0 ? 0 : view_.num_elements(); }
  int64_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<const Context::State> state_;
  TensorView view_;
  int64_t bytes_ = 0;
};

/// Copies between any two places (host, device), on `stream`; both views have the same shape and
/// dtype, and any strides by which no two elements share a place, such as one member's among others
/// (member_view). On CUDA equidistant rows are copied by one call, fast where the last axis is
/// contiguous in both. Does not allocate, nor wait, unless the host's memory is pageable: CUDA then
/// stages the copy, and may wait for the stream (pinned.hpp). May be captured: host memory must
/// stay valid. Views of the same strides share no element, which is checked: members side by side
/// may be copied to each other, and a view onto itself is left alone. Others must not overlap.
/// Errors: invalid_argument, cuda.
void copy(const ConstTensorView& source, const TensorView& destination, Stream stream);

/// Sets every byte of the view's elements to `byte`, on `stream`, and none between them. Strides
/// and errors as copy's.
void fill_bytes(const TensorView& view, uint8_t byte, Stream stream);

}  // namespace wide
