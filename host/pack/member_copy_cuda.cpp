// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/pack/member_copy.hpp"
#include "kernels/pack/strided_copy.hpp"

namespace wide {

void copy_members_cuda(std::span<const MemberCopy> copies, Stream stream) {
  if (copies.empty()) return;
  const MemberCopy& like = copies.front();
  const CurrentDevice current(like.source.device.ordinal);
  kernels::StridedCopy launch;
  launch.rank = like.source.rank();
  launch.element_bytes = static_cast<int>(dtype_bytes(like.source.dtype));
  std::copy(like.source.shape.begin(), like.source.shape.end(), launch.extents);
  std::copy(like.source.strides.begin(), like.source.strides.end(), launch.source_strides);
  std::copy(like.destination.strides.begin(), like.destination.strides.end(),
            launch.destination_strides);
  for (size_t first = 0; first < copies.size(); first += kernels::kMaxCopyPairs) {
    const auto chunk =
        copies.subspan(first, std::min<size_t>(kernels::kMaxCopyPairs, copies.size() - first));
    launch.num_pairs = static_cast<int>(chunk.size());
    for (size_t pair = 0; pair < chunk.size(); ++pair) {
      launch.sources[pair] = chunk[pair].source.data;
      launch.destinations[pair] = chunk[pair].destination.data;
    }
    WIDE_CHECK_CUDA(kernels::launch_strided_copy(launch, native_stream(stream)));
  }
}

}  // namespace wide
