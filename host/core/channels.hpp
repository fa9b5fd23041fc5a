// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Reads operands with channels as the kernels see them: [batch, members, channels, height, width],
// the layout's last axis contiguous.
//
// Strides that nothing steps along are given their packed value, so that equal layouts compare
// equal.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "host/core/extent.hpp"
#include "wide/channels.hpp"
#include "wide/tensor.hpp"

namespace wide {

/// The channels' axis of so many, and the first one of positions.
constexpr int channel_axis(ChannelLayout layout, int rank) {
  return layout == ChannelLayout::channels_last ? rank - 1 : 1;
}
constexpr int position_axis(ChannelLayout layout) {
  return layout == ChannelLayout::channels_last ? 1 : 2;
}

struct MemberChannels {
  int64_t batch = 0, members = 1, channels = 0;  ///< channels of one member
  int64_t height = 1, width = 0;
  ChannelStrides strides{};
  ChannelLayout layout = ChannelLayout::channels_first;
};

/// A view [B, N*C, .., H, W] of any number of position axes, whose leading ones fold into one row
/// stride. Throws unsupported where its strides are those of channels last.
MemberChannels member_channels(std::string_view primitive, std::string_view argument,
                               const ConstTensorView& view, int64_t num_members);
/// The same for a view [B, .., H, W, N*C].
MemberChannels member_channels_last(std::string_view primitive, std::string_view argument,
                                    const ConstTensorView& view, int64_t num_members);

/// Signals or images, [B, N*C, L] or [B, N*C, H, W], or with channels last.
MemberChannels member_images(std::string_view primitive, std::string_view argument,
                             const ConstTensorView& view, ChannelLayout layout,
                             int64_t num_members);

/// For outputs: no two elements may share an address. In any order of the axes.
void require_disjoint(std::string_view primitive, std::string_view argument,
                      std::span<const SteppedAxis> axes);
void require_disjoint_channels(std::string_view primitive, std::string_view argument,
                               const MemberChannels& channels);

/// The strides of these extents packed, where `strides` is all 0; else `strides`, as above. Throws
/// where one is below 0, the last axis is not contiguous or the extent does not fit in 64 bits.
ChannelStrides complete_strides(std::string_view primitive, std::string_view argument,
                                const MemberChannels& extents, const ChannelStrides& strides);

/// Parameters [N, C] or [N*C] as [N, C].
ConstTensorView member_parameters(std::string_view primitive, std::string_view argument,
                                  const ConstTensorView& view, int64_t num_members,
                                  int64_t channels);

}  // namespace wide
