// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Memory of one operand as a test sees it: what was put there, NaN everywhere else, and whether it
// still is.
#pragma once

#include <vector>

#include "verify/linear/placed_linear.hpp"

namespace wide::test {

class PlacedStorage {
 public:
  PlacedStorage() = default;
  /// Begins `misalign` elements behind an aligned address.
  PlacedStorage(const TestDevice& bench, Dtype dtype, int64_t elements, int64_t misalign)
      : dtype_(dtype), elements_(elements), misalign_(misalign) {
    constexpr int64_t kBehind = 32;
    const int64_t all = misalign + elements + kBehind;
    contents_.assign(static_cast<size_t>(all * dtype_bytes(dtype)), std::byte{0xff});
    buffer_ = Tensor(bench.context(), dtype, {all});
  }

  Dtype dtype() const { return dtype_; }
  /// As it was put there, what lies around it included.
  const std::vector<std::byte>& contents() const { return contents_; }
  void put(int64_t element, double value) { put(contents_, element, value); }
  /// Into a copy of the contents.
  void put(std::vector<std::byte>& contents, int64_t element, double value) const {
    store_element(contents.data(), dtype_, misalign_ + element, value);
  }
  /// An element of the contents into a copy of them.
  void restore(std::vector<std::byte>& copy, int64_t element) const {
    const auto size = static_cast<size_t>(dtype_bytes(dtype_));
    const auto at = static_cast<size_t>(misalign_ + element) * size;
    std::copy_n(contents_.begin() + static_cast<std::ptrdiff_t>(at), size,
                copy.begin() + static_cast<std::ptrdiff_t>(at));
  }

  TensorView view() { return view(Shape{elements_}); }
  TensorView view(const Shape& shape) {
    TensorView view = buffer_;
    view.data = static_cast<std::byte*>(view.data) + misalign_ * dtype_bytes(dtype_);
    view.shape = shape;
    view.strides = contiguous_strides(shape);
    return view;
  }
  TensorView view(const Shape& shape, const Strides& strides) {
    TensorView strided = view(shape);
    strided.strides = strides;
    return strided;
  }

  void upload(const TestDevice& bench) {
    copy(ConstTensorView(contents_.data(), dtype_, buffer_.shape(), Device{}), buffer_,
         bench.stream());
    bench.context().synchronize(bench.stream());
  }
  std::vector<std::byte> download(const TestDevice& bench) const {
    std::vector<std::byte> bytes(static_cast<size_t>(buffer_.bytes()));
    copy(buffer_, TensorView(bytes.data(), dtype_, buffer_.shape(), Device{}), bench.stream());
    bench.context().synchronize(bench.stream());
    return bytes;
  }
  void require_unchanged(const TestDevice& bench) const { require(bench, contents_); }
  /// Names the first element that differs.
  void require(const TestDevice& bench, const std::vector<std::byte>& expected) const {
    const std::vector<std::byte> got = download(bench);
    const int64_t size = dtype_bytes(dtype_);
    for (int64_t i = 0; i < static_cast<int64_t>(got.size()) / size; ++i) {
      const auto at = static_cast<size_t>(i * size), bytes = static_cast<size_t>(size);
      if (std::memcmp(got.data() + at, expected.data() + at, bytes) == 0) continue;
      INFO("element " << i - misalign_ << ": got " << load_element(got.data(), dtype_, i)
                      << ", expected " << load_element(expected.data(), dtype_, i));
      REQUIRE(false);
    }
  }

 private:
  Dtype dtype_ = Dtype::fp32;
  int64_t elements_ = 0, misalign_ = 0;
  std::vector<std::byte> contents_;
  Tensor buffer_;
};

}  // namespace wide::test
