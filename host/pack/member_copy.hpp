// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The copies behind pack and unpack, on one device: pairs of equal shape, dtype and strides.
#pragma once

#include <span>

#include "wide/tensor.hpp"

namespace wide {

struct MemberCopy {
  ConstTensorView source;
  TensorView destination;
};

void copy_members_cpu(std::span<const MemberCopy> copies);
void copy_members_cuda(std::span<const MemberCopy> copies, Stream stream);

}  // namespace wide
