// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What the header of a NumPy array says, with all that can be checked without the array checked.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "wide/dtype.hpp"
#include "wide/shape.hpp"

namespace wide {

/// A magic, a version, a length of four bytes, and the longest text that is taken.
inline constexpr int64_t kMaxNpyHeaderBytes = 6 + 2 + 4 + 65535;

struct NpyHeader {
  std::string type;
  std::optional<Dtype> dtype;
  Shape shape;
  bool is_fortran_order = false;
  int64_t header_bytes = 0;
  int64_t data_bytes = 0;
};

/// `start`: the array's first bytes, kMaxNpyHeaderBytes where it has so many; `total_bytes`: all of
/// them, which header and elements must fill. `what` is its name in messages. Throws
/// invalid_argument.
NpyHeader parse_npy_header(std::span<const std::byte> start, int64_t total_bytes,
                           const std::string& what);

/// The header of an array that has no other bytes in front, or `bytes_in_front` of them, such that
/// its elements lie at a multiple of 64. Throws invalid_argument for a dtype that NumPy has not.
std::string npy_header(Dtype dtype, const Shape& shape, int64_t bytes_in_front);

/// What the names of an archive's arrays end in.
inline constexpr std::string_view kNpySuffix = ".npy";
/// That an entry of an archive is an array's. Names become names of tensors here; elsewhere they
/// become files, so that what leads out of a folder is refused. Throws invalid_argument.
void require_npz_name(std::string_view name, const std::string& what);

[[noreturn]] void refuse_npy(const std::string& what, const std::string& why);

}  // namespace wide
