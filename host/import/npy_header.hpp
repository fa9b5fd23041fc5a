// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The header of a NumPy array, with everything checked that does not need the array.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wide/dtype.hpp"
#include "wide/shape.hpp"

namespace wide {

/// A magic, a version, a length of four bytes, and the longest text accepted.
inline constexpr int64_t kMaxNpyHeaderBytes = 6 + 2 + 4 + 65535;

struct NpyHeader {
  std::string type;
  std::optional<Dtype> dtype;
  Shape shape;
  bool is_fortran_order = false;
  int64_t header_bytes = 0;
  int64_t data_bytes = 0;
};

/// `start`: the array's first bytes, up to kMaxNpyHeaderBytes; `total_bytes`: the size of the
/// array, which header and elements must fill. `what` is its name in messages. Throws
/// invalid_argument.
NpyHeader parse_npy_header(std::span<const std::byte> start, int64_t total_bytes,
                           const std::string& what);

/// The header of an array with `bytes_in_front` other bytes before it, such that its elements lie
/// at a multiple of 64. Throws invalid_argument for a dtype that NumPy lacks.
std::string npy_header(Dtype dtype, const Shape& shape, int64_t bytes_in_front);

/// What the names of an archive's arrays end in.
inline constexpr std::string_view kNpySuffix = ".npy";
/// Requires that an entry of an archive is an array's. Names become names of tensors here, but
/// files elsewhere, so names that lead out of a folder are refused. Throws invalid_argument.
void require_npz_name(std::string_view name, const std::string& what);

[[noreturn]] void refuse_npy(const std::string& what, const std::string& why);

}  // namespace wide
