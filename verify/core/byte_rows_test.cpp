// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Copies between views of any strides, against element after element.
#include "host/core/byte_rows.hpp"

#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <vector>

#include "wide/strides.hpp"

namespace wide::test {
namespace {

/// The strides of a packed tensor whose axes lie in this order, the last one innermost.
Strides packed_in(const Shape& shape, const std::array<int, 4>& order) {
  Strides strides = contiguous_strides(shape);
  int64_t step = 1;
  for (size_t i = 4; i-- > 0;) {
    strides[order[i]] = step;
    step *= shape[order[i]];
  }
  return strides;
}

std::vector<char> copied_one_by_one(const ConstTensorView& view) {
  const int64_t bytes = dtype_bytes(view.dtype), count = view.num_elements();
  std::vector<char> out(static_cast<size_t>(count * bytes));
  for (int64_t i = 0; i < count; ++i) {
    int64_t left = i, place = 0;
    for (int axis = view.rank() - 1; axis >= 0; --axis) {
      place += left % view.shape[axis] * view.strides[axis];
      left /= view.shape[axis];
    }
    std::memcpy(out.data() + i * bytes, static_cast<const char*>(view.data) + place * bytes,
                static_cast<size_t>(bytes));
  }
  return out;
}

}  // namespace

TEST_CASE("rows of bytes: axes in any order, of any extents and sizes of elements") {
  for (const Shape& shape : {Shape{3, 17, 2, 40}, {1, 33, 1, 16}, {5, 1, 19, 3}, {2, 3, 4, 1}}) {
    for (const Dtype dtype : {Dtype::uint8, Dtype::bf16, Dtype::fp32, Dtype::int64}) {
      std::vector<char> from(static_cast<size_t>(num_elements(shape) * dtype_bytes(dtype)));
      for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i % 251);
      std::array<int, 4> order{0, 1, 2, 3};
      do {
        const ConstTensorView view(from.data(), dtype, shape, packed_in(shape, order), Device{});
        std::vector<char> to(from.size(), 'x');
        copy_rows(byte_rows(view, contiguous_strides(shape)), from.data(), to.data());
        CHECK(to == copied_one_by_one(view));
      } while (std::next_permutation(order.begin(), order.end()));
      const ConstTensorView repeated(from.data(), dtype, shape, Strides{0, 1, 0, 2}, Device{});
      std::vector<char> to(from.size(), 'x');
      copy_rows(byte_rows(repeated, contiguous_strides(shape)), from.data(), to.data());
      CHECK(to == copied_one_by_one(repeated));
    }
  }
}

}  // namespace wide::test
