// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Offsets by element into untyped operands, for code that runs a single member.
#pragma once

#include <cstdint>

namespace wide {

/// `pointer` moved by this many elements; null stays null.
template <class Pointer>
Pointer advanced(Pointer pointer, int64_t elements, int64_t element_bytes) {
  if (pointer == nullptr) return pointer;
  const auto bytes = static_cast<uintptr_t>(elements * element_bytes);
  return reinterpret_cast<Pointer>(reinterpret_cast<uintptr_t>(pointer) + bytes);
}

}  // namespace wide
