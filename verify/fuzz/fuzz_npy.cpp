// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// NumPy's arrays and archives from anywhere: refused, or every byte of every array can be read.
#include "verify/fuzz/fuzz.hpp"
#include "wide/npy.hpp"

void wide::fuzz::one_input(std::string_view text) {
  const Npy file = Npy::parse(std::as_bytes(std::span(text)), "input");
  int64_t packed_bytes = 0;
  unsigned sum = 0;
  for (const NpyEntry& entry : file.entries()) {
    expect(file.find(entry.name) == &entry, "an array is not found by its name");
    packed_bytes += entry.is_deflated ? entry.bytes / 1032 : entry.bytes;
    if (!entry.dtype) continue;
    const ConstTensorView view = file.view(entry.name);
    expect(view.span_bytes() == entry.bytes, "a view's bytes");
    const auto* data = static_cast<const unsigned char*>(view.data);
    for (int64_t i = 0; i < entry.bytes; ++i) sum += data[i];
  }
  expect(packed_bytes <= std::ssize(text), "more bytes than the file can have");
  static volatile unsigned seen;
  seen = sum;
}
