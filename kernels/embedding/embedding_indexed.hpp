// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launchers of the embedding gather.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::kernels {

/// What a checked call found; in global memory, all bits set where every id was in range.
struct EmbeddingReport {
  uint64_t place;  ///< position * total_members + member of the first id out of range
  int64_t id;
};

/// Strides in elements; ids [batch, member, position], table [member, vocab, dim].
struct EmbeddingParams {
  const void* ids = nullptr;
  const char* table = nullptr;
  char* y = nullptr;
  EmbeddingReport* report = nullptr;  ///< null: unchecked
  int64_t num_members = 0, batch = 0, seq = 0, vocab = 0, dim = 0;
  int64_t ids_batch_stride = 0, ids_member_stride = 0;
  int64_t table_member_stride = 0, table_row_stride = 0;
  int64_t y_row_stride = 0, y_member_stride = 0;
  int64_t first_member = 0, total_members = 0;  ///< how the report counts members
  int element_bytes = 4;
  int id_bytes = 8;  ///< 4 or 8, signed
};

/// y[b, t, n, :] = table[n, ids[b, n, t], :], 0xFF bytes where the id is out of range.
cudaError_t launch_embedding_indexed(const EmbeddingParams& params, cudaStream_t stream);

/// Looks up the id at the report's place. After all launches of one checked call.
cudaError_t launch_embedding_report(const EmbeddingParams& params, cudaStream_t stream);

}  // namespace wide::kernels
