// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// On the CPU a loop.
#include "host/pointwise/dropout_seeds.hpp"

namespace wide {

namespace {

/// change(seed, dropout, member) for each [2] of the first members.
template <class Change>
void for_each_seed(const DropoutSeeds& of, int64_t num_members, const Change& change) {
  for (int64_t dropout = 0; dropout < of.num_dropouts; ++dropout) {
    uint64_t* seeds = static_cast<uint64_t*>(of.values) + 2 * dropout * of.stored_members;
    for (int64_t member = 0; member < num_members; ++member) {
      change(seeds + 2 * member, dropout, member);
    }
  }
}

}  // namespace

void set_dropout_seeds(const Context& context, const DropoutSeeds& of,
                       std::span<const uint64_t> seeds, uint64_t sequence, Stream stream) {
  if (context.device().type == DeviceType::cuda) {
    return set_dropout_seeds_cuda(context, of, seeds, sequence, stream);
  }
  const auto count = static_cast<uint64_t>(of.num_dropouts);
  for_each_seed(of, std::ssize(seeds), [&](uint64_t* seed, int64_t dropout, int64_t member) {
    seed[0] = seeds[static_cast<size_t>(member)];
    seed[1] = sequence * count + static_cast<uint64_t>(dropout);
  });
}

void advance_dropout_seeds(const Context& context, const DropoutSeeds& of, int64_t num_members,
                           Stream stream) {
  if (context.device().type == DeviceType::cuda) {
    return advance_dropout_seeds_cuda(context, of, num_members, stream);
  }
  const auto count = static_cast<uint64_t>(of.num_dropouts);
  const uint64_t last = last_dropout_sequence(of.num_dropouts) * count;
  for_each_seed(of, num_members, [&](uint64_t* seed, int64_t dropout, int64_t) {
    seed[1] = seed[1] < last ? seed[1] + count : static_cast<uint64_t>(dropout);
  });
}

}  // namespace wide
