// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// safetensors from anywhere: refused, or every byte of every tensor is in the file.
#include "verify/fuzz/fuzz.hpp"
#include "wide/safetensors.hpp"

void wide::fuzz::one_input(std::string_view text) {
  const Safetensors file = Safetensors::parse(std::as_bytes(std::span(text)), "input");
  int64_t bytes = 0;
  unsigned sum = 0;
  for (const SafetensorsEntry& entry : file.entries()) {
    expect(file.find(entry.name) == &entry, "a tensor is not found by its name");
    const auto* data = static_cast<const unsigned char*>(entry.data);
    for (int64_t i = 0; i < entry.bytes; ++i) sum += data[i];
    bytes += entry.bytes;
    if (entry.dtype) expect(file.view(entry.name).span_bytes() == entry.bytes, "a view's bytes");
  }
  expect(bytes + 8 <= std::ssize(text), "more bytes than the file has");
  static volatile unsigned seen;
  seen = sum;
}
