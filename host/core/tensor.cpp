// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Views, owners and copies.
#include "wide/tensor.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "host/core/byte_rows.hpp"
#include "host/core/check.hpp"
#include "host/core/context.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/runtime.hpp"
#include "wide/error.hpp"

namespace wide {

namespace {

/// Views are plain data: whoever changes one may break what its constructor has checked.
void require_strides(const Shape& shape, const Strides& strides) {
  WIDE_REQUIRE(
      shape.rank() == strides.rank(),
      "tensor: strides " + to_string(strides) + ", expected one per axis of " + to_string(shape));
  for (int axis = 0; axis < strides.rank(); ++axis) {
    WIDE_REQUIRE(shape[axis] >= 0, "tensor: shape " + to_string(shape) + ", expected none below 0");
    WIDE_REQUIRE(strides[axis] >= 0,
                 "tensor: strides " + to_string(strides) + ", expected none below 0");
  }
}

}  // namespace

template <class Pointer>
BasicTensorView<Pointer>::BasicTensorView(Pointer data_, Dtype dtype_, const Shape& shape_,
                                          const Strides& strides_, Device device_)
    : data(data_), dtype(dtype_), shape(shape_), strides(strides_), device(device_) {
  (void)checked_bytes(shape, dtype_bytes(dtype));
  (void)span_bytes();
}

template <class Pointer>
bool BasicTensorView<Pointer>::is_contiguous() const {
  int64_t step = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (shape[axis] == 0) return true;
    if (shape[axis] != 1 && strides[axis] != step) return false;
    step *= shape[axis];
  }
  return true;
}

template <class Pointer>
int64_t BasicTensorView<Pointer>::span_bytes() const {
  constexpr int64_t max = std::numeric_limits<int64_t>::max();
  require_strides(shape, strides);
  int64_t last = 0;
  bool is_empty = rank() == 0 && data == nullptr;
  for (int axis = 0; axis < rank(); ++axis) {
    // An extent of zero cannot hide what is beyond 64 bits: strides are multiplied all the same.
    is_empty = is_empty || shape[axis] == 0;
    const int64_t steps = std::max<int64_t>(shape[axis] - 1, 0);
    const bool fits = steps == 0 || strides[axis] <= (max / 16 - last) / steps;
    WIDE_REQUIRE(fits, "tensor: shape " + to_string(shape) + " with strides " + to_string(strides) +
                           ", expected an extent that fits in 64 bits");
    last += steps * strides[axis];
  }
  return is_empty ? 0 : (last + 1) * dtype_bytes(dtype);
}

template <class Pointer>
int64_t BasicTensorView<Pointer>::alignment() const {
  const auto address = reinterpret_cast<uintptr_t>(data) | 256u;
  return static_cast<int64_t>(address & (~address + 1));
}

template <class Pointer>
BasicTensorView<Pointer> BasicTensorView<Pointer>::narrow(int axis, int64_t start,
                                                          int64_t length) const {
  WIDE_REQUIRE(axis >= 0 && axis < rank(),
               "tensor: axis is " + std::to_string(axis) + ", expected one of " + to_string(shape));
  WIDE_REQUIRE(start >= 0 && length >= 0 && start <= shape[axis] && length <= shape[axis] - start,
               "tensor: elements [" + std::to_string(start) + ", " + std::to_string(start) + " + " +
                   std::to_string(length) + ") of axis " + std::to_string(axis) +
                   ", expected some of " + to_string(shape));
  BasicTensorView view = *this;
  view.shape[axis] = length;
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char, char>;
  if (data != nullptr && length > 0) {
    view.data = static_cast<Byte*>(data) + start * strides[axis] * dtype_bytes(dtype);
  }
  return view;
}

template struct BasicTensorView<void*>;
template struct BasicTensorView<const void*>;

namespace {

/// An engine's allocation is checked here, before a kernel faults on it.
void* checked_memory(Allocator& allocator, int64_t bytes) {
  void* const data = allocator.allocate(bytes);
  if (data == nullptr) {
    throw Error(ErrorCode::out_of_memory,
                "tensor: the allocator gave nothing for " + std::to_string(bytes) + " bytes");
  }
  const auto beyond = reinterpret_cast<uintptr_t>(data) % kWorkspaceAlignment;
  if (beyond == 0) return data;
  allocator.deallocate(data, bytes);
  throw_invalid_argument("tensor: the allocator gave an address " + std::to_string(beyond) +
                         " bytes past a multiple of " + std::to_string(kWorkspaceAlignment) +
                         ", expected such a multiple");
}

}  // namespace

static Dtype checked_dtype(Dtype dtype) {
  require_enumerator("tensor", "dtype", dtype, kAllDtypes.back());
  return dtype;
}

Tensor::Tensor(const Context& context, Dtype dtype, const Shape& shape)
    : state_(context.shared_state()),
      view_(nullptr, checked_dtype(dtype), shape, context.device()),
      bytes_(checked_bytes(shape, dtype_bytes(dtype))) {
  if (bytes_ > 0) view_.data = checked_memory(context.allocator(), bytes_);
}

Tensor::~Tensor() {
  if (view_.data != nullptr) state_->allocator->deallocate(view_.data, bytes_);
}

Tensor::Tensor(Tensor&& other) noexcept
    : state_(std::move(other.state_)),
      view_(std::exchange(other.view_, {})),
      bytes_(std::exchange(other.bytes_, 0)) {}

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  // Through a third tensor, so that this one's memory is freed now, not with `other`.
  Tensor taken(std::move(other));
  std::swap(state_, taken.state_);
  std::swap(view_, taken.view_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}

namespace {

/// Of views of one shape: whether their elements lie alike, apart from where they begin.
bool has_same_steps(const ConstTensorView& a, const ConstTensorView& b) {
  for (int axis = 0; axis < a.rank(); ++axis) {
    if (a.shape[axis] > 1 && a.strides[axis] != b.strides[axis]) return false;
  }
  return true;
}

}  // namespace

void copy(const ConstTensorView& source, const TensorView& destination, Stream stream) {
  WIDE_REQUIRE(source.shape == destination.shape && source.dtype == destination.dtype,
               "copy: source is " + std::string(dtype_name(source.dtype)) + " " +
                   to_string(source.shape) + ", destination " +
                   std::string(dtype_name(destination.dtype)) + " " + to_string(destination.shape) +
                   ", expected the same");
  WIDE_REQUIRE(lies_apart(source) && lies_apart(destination),
               "copy: strides " + to_string(source.strides) + " and " +
                   to_string(destination.strides) + " of " + to_string(source.shape) +
                   ", expected every element at a place of its own");
  if (source.span_bytes() == 0) return;
  WIDE_REQUIRE(source.data != nullptr && destination.data != nullptr,
               std::string("copy: ") + (source.data == nullptr ? "source" : "destination") +
                   " is a null pointer, expected " + to_string(source.shape) + " elements");
  if (source.device == destination.device && has_same_steps(source, destination)) {
    if (source.data == destination.data) return;
    WIDE_REQUIRE(!share_elements(source, destination),
                 "copy: source and destination share elements of " + to_string(source.shape) +
                     ", expected memory of their own");
  }
  const ByteRows rows = byte_rows(source, destination.strides);
  const bool from_device = source.device.type == DeviceType::cuda;
  const bool to_device = destination.device.type == DeviceType::cuda;
  if (!from_device && !to_device) {
    return for_each_block(rows, source.data, destination.data, copy_block);
  }
  using enum runtime::Direction;
  const auto direction = !from_device ? host_to_device
                         : to_device  ? device_to_device
                                      : device_to_host;
  const int ordinal = to_device ? destination.device.ordinal : source.device.ordinal;
  for_each_block(rows, source.data, destination.data, [&](const RowBlock& block) {
    runtime::copy_rows_async(ordinal, block, direction, stream);
  });
}

void fill_bytes(const TensorView& view, uint8_t byte, Stream stream) {
  if (view.span_bytes() == 0) return;
  WIDE_REQUIRE(view.data != nullptr, "fill_bytes: view is a null pointer, expected " +
                                         to_string(view.shape) + " elements");
  WIDE_REQUIRE(lies_apart(view), "fill_bytes: strides " + to_string(view.strides) + " of " +
                                     to_string(view.shape) +
                                     ", expected every element at a place of its own");
  for_each_block(byte_rows(view, view.strides), view.data, view.data, [&](const RowBlock& block) {
    if (view.device.type == DeviceType::cuda) {
      return runtime::fill_rows_async(view.device.ordinal, block, byte, stream);
    }
    for (int64_t i = 0; i < block.num_rows; ++i) {
      std::memset(block.destination + i * block.destination_step, byte,
                  static_cast<size_t>(block.row_bytes));
    }
  });
}

}  // namespace wide
