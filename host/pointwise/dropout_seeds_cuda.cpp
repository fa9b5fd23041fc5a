// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/pointwise/dropout_seeds.hpp"
#include "kernels/pointwise/dropout_seeds.hpp"

namespace wide {

namespace {

kernels::DropoutSeeds seeds_of(const DropoutSeeds& of, int64_t num_members) {
  return {static_cast<int64_t*>(of.values), of.num_dropouts, of.stored_members, num_members};
}

}  // namespace

void set_dropout_seeds_cuda(const Context& context, const DropoutSeeds& of,
                            std::span<const uint64_t> seeds, uint64_t sequence, Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  for (size_t first = 0; first < seeds.size(); first += kernels::kMaxSeedsOfLaunch) {
    const auto own =
        seeds.subspan(first, std::min<size_t>(kernels::kMaxSeedsOfLaunch, seeds.size() - first));
    WIDE_CHECK_CUDA(kernels::launch_set_dropout_seeds(
        seeds_of(of, std::ssize(seeds)), static_cast<int64_t>(first), own.data(),
        static_cast<int>(own.size()), sequence, native_stream(stream)));
  }
}

void advance_dropout_seeds_cuda(const Context& context, const DropoutSeeds& of, int64_t num_members,
                                Stream stream) {
  const CurrentDevice current(context.device().ordinal);
  WIDE_CHECK_CUDA(kernels::launch_advance_dropout_seeds(
      seeds_of(of, num_members), last_dropout_sequence(of.num_dropouts), native_stream(stream)));
}

}  // namespace wide
