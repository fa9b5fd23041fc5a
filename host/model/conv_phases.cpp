// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Weights of transposed convolutions as those of convolutions: elements are moved, nothing is
// computed.
#include <array>
#include <cstring>

#include "host/model/conv_transpose.hpp"
#include "host/model/member_values.hpp"

namespace wide {

namespace {

/// Where a convolution's weight for a phase and a tap lies in the transposed one's: the offset in
/// its kernel; -1 where that has none.
class TapOffsets {
 public:
  TapOffsets(const ConvPhasesOp& op, const Shape& weight) {
    ConvTransposeOp like{.stride = op.stride, .dilation = op.dilation};
    like.depth.stride = op.depth_stride;
    like.depth.dilation = op.depth_dilation;
    axes_ = transposed_axes(like, weight, weight);
    for (const TransposedAxis& axis : axes_) {
      phases_ *= axis.stride;
      taps_ *= axis.taps();
      kernel_ *= axis.kernel;
    }
  }
  int64_t phases() const { return phases_; }
  int64_t taps() const { return taps_; }
  int64_t kernel() const { return kernel_; }

  int64_t at(int64_t phase, int64_t tap) const {
    int64_t offset = 0, step = 1;
    for (size_t i = axes_.size(); i-- > 0;) {
      const TransposedAxis& axis = axes_[i];
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

 private:
  std::vector<TransposedAxis> axes_;
  int64_t phases_ = 1, taps_ = 1, kernel_ = 1;
};

/// [channels] -> [channels, phases]
void repeat(const HostValue& from, int64_t element, HostValue& to) {
  const auto size = static_cast<size_t>(element);
  const size_t phases = from.bytes.empty() ? 0 : to.bytes.size() / from.bytes.size();
  for (size_t i = 0; i < to.bytes.size() / size; ++i) {
    std::memcpy(to.bytes.data() + i * size, from.bytes.data() + i / phases * size, size);
  }
}

}  // namespace

HostValue conv_phases(const ConvPhasesOp& op, const HostValue& from, const ValueType& type) {
  const int64_t element = dtype_bytes(type.dtype);
  HostValue to{type,
               std::vector<std::byte>(static_cast<size_t>(num_elements(type.shape) * element))};
  const Shape& shape = from.type.shape;
  if (shape.rank() == 1) {
    repeat(from, element, to);
    return to;
  }
  const TapOffsets offsets(op, shape);
  const int64_t inputs = type.shape[1], channels = shape[1];
  std::byte* next = to.bytes.data();
  for (int64_t out = 0; out < op.groups * channels; ++out) {
    for (int64_t phase = 0; phase < offsets.phases(); ++phase) {
      for (int64_t in = 0; in < inputs; ++in) {
        const int64_t row = (out / channels * inputs + in) * channels + out % channels;
        for (int64_t tap = 0; tap < offsets.taps(); ++tap, next += element) {
          const int64_t at = offsets.at(phase, tap);
          if (at < 0) continue;  // bytes of 0 are zeros of every dtype
          std::memcpy(next, from.bytes.data() + (row * offsets.kernel() + at) * element,
                      static_cast<size_t>(element));
        }
      }
    }
  }
  return to;
}

}  // namespace wide
