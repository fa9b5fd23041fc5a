// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "wide/weight_format.hpp"

namespace wide::kernels {

/// Result of a checked call; in global memory, all bits set where every id was in range.
struct EmbeddingReport {
  static constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t place = kNone;  ///< position * total_members + member of the first id out of range
  int64_t id = 0;
};

/// Strides in elements; ids [batch, member, position], table [member, vocab, dim].
struct EmbeddingParams {
  const void* ids = nullptr;
  const void* offsets = nullptr;  ///< of bags [member, batch + 1]
  const char* table = nullptr;
  char* y = nullptr;
  EmbeddingReport* report = nullptr;  ///< null: unchecked
  int64_t num_members = 0, batch = 0, seq = 0, vocab = 0, dim = 0;
  int64_t padding_id = -1;
  int64_t ids_batch_stride = 0, ids_member_stride = 0, offsets_member_stride = 0;
  int64_t table_member_stride = 0, table_row_stride = 0;
  int64_t y_row_stride = 0, y_member_stride = 0;
  int64_t first_member = 0, total_members = 0;  ///< how the report counts members
  WeightFormat format = WeightFormat::packed;
  bool is_mean = false;
  int element_bytes = 4;  ///< of y
  int table_bytes = 4;    ///< per element of the table; 1 if quantised
  int id_bytes = 8;       ///< 4 or 8, signed
};

}  // namespace wide::kernels
