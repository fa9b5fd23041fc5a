// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// NumPy's files put together by hand.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "wide/tensor.hpp"

namespace wide::test {

/// What NumPy itself wrote or was seen to read: verify/import/npy/make.py.
inline std::string numpy_file(const std::string& name) {
  return WIDE_SOURCE_DIR "/verify/import/npy/" + name;
}

inline std::string npy_text(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
}

/// This dictionary and so many bytes behind it: 0, 1, 2, ...
inline std::string npy_of(const std::string& dictionary, size_t data_bytes, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i)
    file += static_cast<char>(dictionary.size() >> 8 * i & 0xff);
  file += dictionary;
  for (size_t i = 0; i < data_bytes; ++i) file += static_cast<char>(i);
  return file;
}

/// What a reader made of a dense view's bytes.
template <class T>
std::vector<T> values_of(const ConstTensorView& view) {
  std::vector<T> values(static_cast<size_t>(view.num_elements()));
  if (!values.empty()) std::memcpy(values.data(), view.data, values.size() * sizeof(T));
  return values;
}

}  // namespace wide::test
