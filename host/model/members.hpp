// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What all copies of a Model share: its members' parameters and masks.
#pragma once

#include <vector>

#include "host/model/member_values.hpp"
#include "wide/model.hpp"

namespace wide {

struct Model::State {
  State(const Context& own, int64_t weights_bytes, size_t num_members)
      : context(own),
        weights(own, Dtype::uint8, {weights_bytes}),
        kept(num_members),
        is_masked(num_members, false) {}

  Context context;
  Tensor weights;
  /// Of each member: parameters that are not in the weights as they were given.
  std::vector<HostValues> kept;
  std::vector<bool> is_masked;
};

}  // namespace wide
