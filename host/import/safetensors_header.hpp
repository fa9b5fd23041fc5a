// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A safetensors header, with everything checked that does not need the tensors' bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wide/dtype.hpp"
#include "wide/shape.hpp"

namespace wide {

/// A dtype of the format.
struct SafetensorsType {
  std::string_view name;
  int bits;
  std::optional<Dtype> dtype;
};

/// nullptr where the format has none of that name.
const SafetensorsType* find_safetensors_type(std::string_view name);
const SafetensorsType& safetensors_type(Dtype dtype);

struct SafetensorsHeader {
  struct Tensor {
    std::string name;
    const SafetensorsType* type = nullptr;
    Shape shape;
    int64_t begin = 0, end = 0;  ///< after the header
  };
  std::vector<Tensor> tensors;  ///< by offset
  std::map<std::string, std::string> metadata;
};

/// `data_bytes`: the bytes after the header, which tensors must fill without a gap. `file` is its
/// name in messages. Throws invalid_argument.
SafetensorsHeader parse_safetensors_header(std::string_view text, int64_t data_bytes,
                                           const std::string& file);

[[noreturn]] void refuse_safetensors(const std::string& file, const std::string& why);

}  // namespace wide
