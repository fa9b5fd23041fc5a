// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Weights of transposed convolutions as those of convolutions: elements are moved, nothing is
// computed.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "host/model/conv_transpose.hpp"
#include "host/model/member_values.hpp"

namespace wide {

namespace {

/// Where a convolution's weights for a phase and a tap lie in the transposed one's: offsets in its
/// kernel, [phases, taps]; -1 where that has none.
struct TapOffsets {
  int64_t phases = 1, taps = 1, kernel = 1;
  std::vector<int64_t> offsets;

  TapOffsets(const ConvPhasesOp& op, const Shape& weight) {
    const TransposedAxes axes = transposed_axes(op, weight);
    for (const TransposedAxis& axis : axes) {
      phases *= axis.stride;
      taps *= axis.taps();
      kernel *= axis.kernel;
    }
    for (int64_t phase = 0; phase < phases; ++phase) {
      for (int64_t tap = 0; tap < taps; ++tap) offsets.push_back(offset(axes, phase, tap));
    }
  }

 private:
  static int64_t offset(const TransposedAxes& axes, int64_t phase, int64_t tap) {
    int64_t offset = 0, step = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      const TransposedAxis& axis = axes[i];
      const int64_t reversed = axis.taps() - 1 - tap % axis.taps();
      const int64_t place = reversed * axis.stride + phase % axis.stride;
      if (place % axis.dilation != 0 || place >= axis.reach()) return -1;
      offset += place / axis.dilation * step;
      step *= axis.kernel;
      tap /= axis.taps();
      phase /= axis.stride;
    }
    return offset;
  }
};

/// Of as many bytes as the dtype has.
template <class Element>
void move_weights(const ConvPhasesOp& op, const HostValue& from, HostValue& to) {
  const TapOffsets all(op, from.type.shape);
  const int64_t inputs = to.type.shape[1], channels = from.type.shape[1];
  const auto* source = reinterpret_cast<const Element*>(from.bytes.data());
  auto* next = reinterpret_cast<Element*>(to.bytes.data());
  for (int64_t i = 0; i < op.groups * all.phases * channels; ++i) {
    const int64_t group = i / channels / all.phases, phase = i / channels % all.phases;
    const int64_t* offsets = all.offsets.data() + phase * all.taps;
    for (int64_t in = 0; in < inputs; ++in, next += all.taps) {
      const int64_t row = (group * inputs + in) * channels + i % channels;
      for (int64_t tap = 0; tap < all.taps; ++tap) {
        // All bytes of 0 are a zero of every dtype.
        next[tap] = offsets[tap] < 0 ? Element{0} : source[row * all.kernel + offsets[tap]];
      }
    }
  }
}

/// [groups, channels] -> [groups, phases, channels]
template <class Element>
void repeat_bias(const ConvPhasesOp& op, const HostValue& from, HostValue& to) {
  const int64_t all = from.type.shape[0], channels = all / op.groups,
                phases = to.type.shape[0] / std::max<int64_t>(all, 1);
  const auto* source = reinterpret_cast<const Element*>(from.bytes.data());
  auto* next = reinterpret_cast<Element*>(to.bytes.data());
  for (int64_t group = 0; group < op.groups; ++group, source += channels) {
    for (int64_t phase = 0; phase < phases; ++phase) next = std::copy_n(source, channels, next);
  }
}

template <class Element>
void move(const ConvPhasesOp& op, const HostValue& from, HostValue& to) {
  return from.type.shape.rank() == 1 ? repeat_bias<Element>(op, from, to)
                                     : move_weights<Element>(op, from, to);
}

}  // namespace

HostValue conv_phases(const ConvPhasesOp& op, const HostValue& from, const ValueType& type) {
  const int64_t element = dtype_bytes(type.dtype);
  HostValue to{type,
               std::vector<std::byte>(static_cast<size_t>(num_elements(type.shape) * element))};
  element == 4 ? move<uint32_t>(op, from, to) : move<uint16_t>(op, from, to);
  return to;
}

}  // namespace wide
