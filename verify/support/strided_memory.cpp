// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/support/strided_memory.hpp"

#include "wide/convert.hpp"

namespace wide::test {

namespace {

/// The axis along which most elements lie one behind the other.
int axis_of_runs(const StridedTensor& t) {
  int best = t.shape.rank() - 1;
  for (int axis = 0; axis < t.shape.rank(); ++axis) {
    const bool is_dense = t.strides[axis] == 1;
    if (is_dense && (t.strides[best] != 1 || t.shape[axis] > t.shape[best])) best = axis;
  }
  return best;
}

/// Calls body(first element's offset in memory, its place row-major) for each run along `axis`.
template <class Body>
void for_each_run(const StridedTensor& t, int axis, const Body& body) {
  if (num_elements(t.shape) == 0) return;
  const Strides dense = contiguous_strides(t.shape);
  std::vector<int64_t> index(static_cast<size_t>(t.shape.rank()), 0);
  for (;;) {
    int64_t offset = 0, place = 0;
    for (int a = 0; a < t.shape.rank(); ++a) {
      offset += index[static_cast<size_t>(a)] * t.strides[a];
      place += index[static_cast<size_t>(a)] * dense[a];
    }
    body(offset, place);
    int a = t.shape.rank() - 1;
    for (; a >= 0; --a) {
      if (a == axis) continue;
      if (++index[static_cast<size_t>(a)] < t.shape[a]) break;
      index[static_cast<size_t>(a)] = 0;
    }
    if (a < 0) return;
  }
}

/// Calls each(memory, i, place) for every element: element i of `memory` is the one at `place`.
template <class Each>
void for_each_element(const StridedTensor& t, const Access& access, bool is_write,
                      const Each& each) {
  const int axis = axis_of_runs(t);
  const int64_t count = t.shape[axis], step = contiguous_strides(t.shape)[axis];
  const int64_t bytes = dtype_bytes(t.dtype);
  const bool is_dense = t.strides[axis] == 1;
  for_each_run(t, axis, [&](int64_t offset, int64_t place) {
    const auto* const first = static_cast<const std::byte*>(t.data) + offset * bytes;
    if (is_dense) {
      std::byte* const memory = access(first, count * bytes, is_write);
      for (int64_t i = 0; i < count; ++i) each(memory, i, place + i * step);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        each(access(first + i * t.strides[axis] * bytes, bytes, is_write), 0, place + i * step);
      }
    }
  });
}

}  // namespace

std::vector<double> load(const StridedTensor& t, const Access& access) {
  std::vector<double> values(static_cast<size_t>(num_elements(t.shape)));
  for_each_element(t, access, false, [&](const std::byte* memory, int64_t i, int64_t place) {
    values[static_cast<size_t>(place)] = load_element(memory, t.dtype, i);
  });
  return values;
}

void store(const StridedTensor& t, const std::vector<double>& values, const Access& access) {
  for_each_element(t, access, true, [&](std::byte* memory, int64_t i, int64_t place) {
    store_element(memory, t.dtype, i, values[static_cast<size_t>(place)]);
  });
}

}  // namespace wide::test
