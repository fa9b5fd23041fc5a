// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Launchers of embedding's kernels.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/embedding/embedding_params.hpp"
#include "wide/dtype.hpp"

namespace wide::kernels {

/// y[b, t, n, :] = table[n, ids[b, n, t], :], 0xFF bytes where the id is out of range. `is_gather`:
/// members share ids, and an id is read once for several of them.
cudaError_t launch_embedding_rows(Dtype dtype, const EmbeddingParams& params, bool is_gather,
                                  cudaStream_t stream);

/// y[b, n, :] = the sum or mean of table[n, id, :] over the ids of bag b of member n.
cudaError_t launch_embedding_bags(Dtype dtype, const EmbeddingParams& params, cudaStream_t stream);

/// Looks up the id at the report's place. Called after all launches of a checked call.
cudaError_t launch_embedding_report(const EmbeddingParams& params, cudaStream_t stream);

}  // namespace wide::kernels
