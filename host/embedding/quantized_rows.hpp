// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Quantised rows of tables on the host: embedding.hpp says how they lie and how scales are chosen.
#pragma once

#include <span>

#include "wide/embedding.hpp"

namespace wide {

/// quantized_row_bytes(row.size()) bytes at `out`.
void encode_table_row(WeightFormat format, std::span<const float> row, uint8_t* out);
/// All `out.size()` elements, exactly.
void decode_table_row(WeightFormat format, const uint8_t* row, std::span<float> out);
/// Elements [first, first + out.size()) of a row of `dim`.
void decode_table_row(WeightFormat format, const uint8_t* row, int64_t dim, int64_t first,
                      std::span<float> out);

/// Members [V, D], any strides -> table [N, V, quantized_row_bytes(D)], and back. Done at return.
void quantize_tables(const Context& context, WeightFormat format,
                     std::span<const ConstTensorView> members, const TensorView& table,
                     Stream stream);
void dequantize_tables(const Context& context, WeightFormat format, const ConstTensorView& table,
                       std::span<const TensorView> members, Stream stream);

}  // namespace wide
