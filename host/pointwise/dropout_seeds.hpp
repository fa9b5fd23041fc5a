// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The seeds of a model's dropouts, on its device, and how they change within a stream: neither call
// waits or allocates; both may be captured.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "wide/context.hpp"

namespace wide {

/// int64 [num_dropouts, stored_members, 2]: each [N, 2] are one dropout's seeds.
struct DropoutSeeds {
  void* values = nullptr;
  int64_t num_dropouts = 0, stored_members = 0;
};

/// The last sequence for which no dropout has another's numbers.
constexpr uint64_t last_dropout_sequence(int64_t num_dropouts) {
  const auto count = static_cast<uint64_t>(num_dropouts);
  return (std::numeric_limits<uint64_t>::max() - (count - 1)) / count;
}

/// Gives the first members these seeds, and dropout k the sequence `sequence` num_dropouts + k.
void set_dropout_seeds(const Context& context, const DropoutSeeds& of,
                       std::span<const uint64_t> seeds, uint64_t sequence, Stream stream);
/// As set_dropout_seeds() with the same seeds and the next sequence, for the first `num_members`;
/// after the last sequence comes 0.
void advance_dropout_seeds(const Context& context, const DropoutSeeds& of, int64_t num_members,
                           Stream stream);

void set_dropout_seeds_cuda(const Context& context, const DropoutSeeds& of,
                            std::span<const uint64_t> seeds, uint64_t sequence, Stream stream);
void advance_dropout_seeds_cuda(const Context& context, const DropoutSeeds& of, int64_t num_members,
                                Stream stream);

}  // namespace wide
