// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace wide::kernels {

/// Ids first_id, .., first_id + num_ids - 1 are routed, the others are nobody's.
struct RoutingParams {
  const void* ids = nullptr;       ///< [num_rows]
  int32_t* counts = nullptr;       ///< [num_members + 1, chunks]: workspace; unused for one chunk
  int32_t* first_rows = nullptr;   ///< [num_members + 1]; null: not wanted
  int32_t* order = nullptr;        ///< [num_rows]
  const int32_t* begin = nullptr;  ///< where in order the first row goes, first_rows[0]; null: at 0
  int64_t first_id = 0, num_ids = 0, num_rows = 0;
  int64_t num_members = 0;  ///< num_ids, or 1 where nobody's rows are
  int id_bytes = 8;         ///< 4 or 8, signed
  bool is_rest = false;     ///< nobody's rows are the one member's
  bool places_rest = true;  ///< rows that are not routed are placed behind all others
};

/// order = the rows of member 0, ascending, then those of member 1, ..; first_rows[i] is where
/// member i's begin.
cudaError_t launch_routing(const RoutingParams& params, cudaStream_t stream);

}  // namespace wide::kernels
