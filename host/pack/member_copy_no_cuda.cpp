// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/core/check.hpp"
#include "host/pack/member_copy.hpp"

namespace wide {

void copy_members_cuda(std::span<const MemberCopy>, Stream) {
  throw_unsupported("pack: tensors are on a CUDA device, but this build of wide has no CUDA");
}

}  // namespace wide
