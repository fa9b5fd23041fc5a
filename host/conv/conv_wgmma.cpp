// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/conv/conv_wgmma.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "host/conv/conv_implicit_gemm.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/core/hopper.hpp"

namespace wide {

namespace {

using kernels::ConvRectangle;
using kernels::ConvWgmmaTile;

constexpr int64_t kMaxCoordinate = std::numeric_limits<int32_t>::max();
constexpr int32_t kHaloColumns = kernels::kConvWgmmaStorePixels / kernels::kConvHaloBatch;
constexpr int64_t kMaxBox = 256;                       // elements of a tensor map's box
constexpr int64_t kMaxStrideBytes = int64_t{1} << 40;  // of a tensor map, one too many

int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// A dimension of a tensor map.
struct Step {
  const char* name;
  int64_t extent, stride;
};

/// Whether something steps along it, by a stride that tensor maps do not take.
bool is_no_tile_stride(const Step& step, int64_t bytes) {
  const int64_t vector = 16 / bytes;
  return step.extent > 1 &&
         (step.stride == 0 || step.stride % vector != 0 || step.stride >= kMaxStrideBytes / bytes);
}

std::string stride_reason(const char* what, std::span<const Step> steps, int64_t bytes) {
  for (const Step& step : steps) {
    if (!is_no_tile_stride(step, bytes)) continue;
    return std::string(what) + " has a " + step.name + " stride of " + std::to_string(step.stride) +
           ", tensor maps need multiples of " + std::to_string(16 / bytes) +
           " elements below 2^40 bytes; implicit_gemm takes any";
  }
  return "";
}

std::array<Step, 5> steps_of(const ConvProblem& p, const ChannelStrides& strides,
                             const PerAxis& size, const Step& plane, bool is_shared) {
  // In volumes members are channels, which are contiguous.
  return {{{"member", is_shared || is_volume(p) ? 1 : p.num_members, strides.member},
           plane,
           {"column", size.width, strides.column},
           {"row", size.height, strides.row},
           {"batch", p.batch, strides.batch}}};
}

std::string strides_reason(const ConvProblem& p) {
  const int64_t bytes = dtype_bytes(p.dtype);
  const Step planes{"plane", p.depth.input, p.depth.x_stride};
  const std::string x =
      stride_reason("x", steps_of(p, p.x, p.input, planes, p.x.member == 0), bytes);
  if (!x.empty()) return x;
  const std::array<Step, 5> weight{{{"member", p.num_members, p.weight.member},
                                    {"plane", p.depth.kernel, p.depth.weight_stride},
                                    {"out_channel", p.out_channels, p.weight.out_channel},
                                    {"row", p.kernel.height, p.weight.row},
                                    {"column", p.kernel.width, p.weight.column}}};
  return stride_reason("weight", weight, bytes);
}

/// For volumes, which have one axis more than tensor maps: members are channels there, and a box
/// that extends past a member's channels would load its neighbour's, for which weights have no
/// zeros. Empty halves of a box are not multiplied.
std::string volume_reason(const ConvProblem& p) {
  if (!is_volume(p) || p.num_members == 1) return "";
  const int64_t half = kernels::kConvWgmmaTileBytes / dtype_bytes(p.dtype) / 2;
  const bool is_shared = p.x.member == 0;
  if (!is_shared && (p.x.member != p.in_channels || p.in_channels % half != 0)) {
    return "of volumes it takes members side by side, of a multiple of " + std::to_string(half) +
           " channels each, x's have " + std::to_string(p.in_channels) + " and lie " +
           std::to_string(p.x.member) + " apart; implicit_gemm takes any";
  }
  if (p.weight.member != p.out_channels * p.weight.out_channel) {
    return "of volumes it takes members' weights one after another; implicit_gemm takes any";
  }
  return "";
}

/// As double: for problems of any size.
double tiles_of(const ConvProblem& p, ConvWgmmaTile tile) {
  const ConvRectangle of = conv_wgmma_rectangle(p, tile);
  const PerAxis output = conv_output_size(p);
  return static_cast<double>(ceil_div(output.width, of.columns)) *
         static_cast<double>(ceil_div(output.height, of.rows)) *
         static_cast<double>(conv_output_depth(p)) *
         static_cast<double>(ceil_div(p.batch, of.batch)) *
         static_cast<double>(ceil_div(p.out_channels, tile_channels(tile))) *
         static_cast<double>(p.num_members);
}

double taps_of_plane(const ConvProblem& p) {
  return static_cast<double>(p.kernel.height) * static_cast<double>(p.kernel.width);
}
double taps_of(const ConvProblem& p) {
  return static_cast<double>(p.depth.kernel) * taps_of_plane(p);
}

/// Stages of 128 bytes of channels, and half of one where that suffices for the rest.
double chunks_of(const ConvProblem& p) {
  const int64_t half = kernels::kConvWgmmaTileBytes / dtype_bytes(p.dtype) / 2;
  return static_cast<double>(ceil_div(p.in_channels, half)) / 2;
}

/// Positions of x that taps of a rectangle reach, along one axis.
int64_t reach(int64_t count, int64_t step, int64_t dilation, int64_t taps) {
  return (count - 1) * step + (taps - 1) * dilation + 1;
}

PerAxis reach_of(const ConvProblem& p, const ConvRectangle& of) {
  return {reach(of.rows, p.stride.height, p.dilation.height, p.kernel.height),
          reach(of.columns, p.stride.width, p.dilation.width, p.kernel.width)};
}

/// Whether x's box of a tile with a halo is as large as shared memory holds, and steps by groups.
bool fits_halo(const ConvProblem& p, const ConvRectangle& of) {
  const PerAxis box = reach_of(p, of);
  return conv_wgmma_steps(p) == PerAxis{1, 1} && box.width <= kernels::kConvHaloPositions &&
         box.height <= kernels::kConvHaloPositions / box.width;
}

/// A multiprocessor's clocks for one of a tile's steps: to load both operands from the L2 cache,
/// or to multiply them.
double step_clocks(const ConvProblem& p, ConvWgmmaTile tile) {
  constexpr double kBytesPerClock = 38;  // of 5120 for all: A100 whitepaper, taken for Hopper's
  constexpr double kPairsPerClock = 32;  // pixels by channels, of 128 bytes of terms
  constexpr double kSharedLimit = 1.25;  // 64 channels: an operation's operands take too long
  constexpr double kRow = kernels::kConvWgmmaTileBytes;
  const double pixels = tile_pixels(tile), channels = tile_channels(tile);
  double rows = pixels;  // of x
  if (has_halo(tile)) {
    const PerAxis box = reach_of(p, conv_wgmma_rectangle(p, tile));
    rows = static_cast<double>(box.height * box.width * kernels::kConvHaloBatch) / taps_of_plane(p);
  }
  const double multiply = pixels * channels / kPairsPerClock * (channels > 64 ? 1 : kSharedLimit);
  return std::max((rows + channels) * kRow / kBytesPerClock, multiply);
}

}  // namespace

PerAxis conv_wgmma_steps(const ConvProblem& p) {
  const PerAxis output = conv_output_size(p);
  return {output.height > 1 ? p.stride.height : 1, output.width > 1 ? p.stride.width : 1};
}

std::string conv_wgmma_unsupported_reason(const ConvProblem& p, const DeviceInfo& device) {
  std::string reason = wgmma_device_reason(device);
  if (!reason.empty()) return reason;
  if (p.layout != ChannelLayout::channels_last) {
    return "it takes channels_last, the problem has " + std::string(conv_layout_name(p.layout));
  }
  if (p.x_layout.has_value()) return "it takes channels_last, x has channels_first";
  if (p.groups != 1)
    return "it takes one group of channels, the problem has " + std::to_string(p.groups);
  reason = volume_reason(p);
  if (!reason.empty()) return reason;
  const PerAxis steps = conv_wgmma_steps(p);
  if (std::max(steps.height, steps.width) > kernels::kConvWgmmaMostStride) {
    return "tensor maps step over at most " + std::to_string(kernels::kConvWgmmaMostStride) +
           " positions, stride is {height " + std::to_string(p.stride.height) + ", width " +
           std::to_string(p.stride.width) + "}; implicit_gemm takes any";
  }
  reason = strides_reason(p);
  if (reason.empty()) reason = conv_implicit_gemm_unsupported_reason(p, device);  // it stands in
  if (!reason.empty()) return reason;
  // Positions past the end of the last tile have coordinates, too.
  const ConvWgmmaTile tile = choose_conv_wgmma_tile(p, device);
  const auto whole = [](int64_t extent, int64_t step) {
    return static_cast<double>(ceil_div(extent, step)) * static_cast<double>(step);
  };
  const double members = is_volume(p) ? static_cast<double>(p.num_members) : 1;  // are channels
  if (std::max({tiles_of(p, tile), taps_of(p) * std::ceil(chunks_of(p)),
                static_cast<double>(p.num_members),
                members * whole(p.out_channels, tile_channels(tile)),
                members * whole(p.in_channels, kernels::kConvWgmmaTileBytes / dtype_bytes(p.dtype)),
                whole(p.batch, conv_wgmma_rectangle(p, tile).batch)}) >
      static_cast<double>(kMaxCoordinate)) {
    return "it numbers members, tiles, steps and coordinates with 32 bits, the problem has more";
  }
  return "";
}

bool conv_wgmma_is_expected_to_win(const ConvProblem& p, const DeviceInfo&) {
  // The share of wgmma's rate that mma.sync reaches on Hopper: Luo et al., arXiv 2402.13499.
  constexpr double kShareOfMma = 0.63;
  constexpr int64_t kOutputs = 64;  // of the narrowest tile
  const double channels = static_cast<double>(kernels::kConvWgmmaTileBytes) * chunks_of(p) /
                          static_cast<double>(dtype_bytes(p.dtype));
  const auto outputs = static_cast<double>(ceil_div(p.out_channels, kOutputs) * kOutputs);
  return static_cast<double>(p.in_channels) * static_cast<double>(p.out_channels) >=
         kShareOfMma * channels * outputs;
}

kernels::ConvRectangle conv_wgmma_rectangle(const ConvProblem& p, ConvWgmmaTile tile) {
  const PerAxis output = conv_output_size(p), steps = conv_wgmma_steps(p);
  const int32_t pixels = tile_pixels(tile);
  ConvRectangle best{};
  double fewest = std::numeric_limits<double>::infinity(), least = fewest;
  for (int32_t columns = pixels; columns >= 1; columns /= 2) {
    for (int32_t rows = pixels / columns; rows >= 1; rows /= 2) {
      const ConvRectangle of{pixels / columns / rows, columns, rows};
      const bool is_whole = of.batch == kernels::kConvHaloBatch && columns >= kHaloColumns;
      if ((columns - 1) * steps.width >= kMaxBox || (rows - 1) * steps.height >= kMaxBox ||
          (has_halo(tile) && !(is_whole && fits_halo(p, of)))) {
        continue;
      }
      const PerAxis box = reach_of(p, of);
      const double tiles = static_cast<double>(ceil_div(output.width, columns)) *
                           static_cast<double>(ceil_div(output.height, rows)) *
                           static_cast<double>(ceil_div(p.batch, of.batch));
      const double positions =
          static_cast<double>(box.height) * static_cast<double>(box.width) * of.batch;
      if (tiles > fewest || (tiles == fewest && positions >= least)) continue;
      best = of, fewest = tiles, least = positions;
    }
  }
  return best;
}

kernels::ConvWgmmaTile choose_conv_wgmma_tile(const ConvProblem& p, const DeviceInfo& device) {
  using enum ConvWgmmaTile;
  // Where warpgroups multiply together, their stores are not hidden behind the other's products.
  struct Candidate {
    ConvWgmmaTile tile;
    double store_clocks;
  };
  constexpr Candidate kCandidates[] = {{p128c64, 0},     {p256c64, 800}, {p128c128, 0},
                                       {p256c128, 1600}, {h256c64, 800}, {h256c128, 1600}};
  const auto blocks = static_cast<double>(std::max(device.num_multiprocessors, 1));
  ConvWgmmaTile best = p128c64;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate& one : kCandidates) {
    if (conv_wgmma_rectangle(p, one.tile) == ConvRectangle{}) continue;
    const double rounds = std::ceil(tiles_of(p, one.tile) / blocks);
    const double time =
        rounds * (step_clocks(p, one.tile) * taps_of(p) * chunks_of(p) + one.store_clocks);
    if (time < least) least = time, best = one.tile;
  }
  return best;
}

bool conv_wgmma_stores_boxes(const ConvProblem& p) {
  const int64_t bytes = dtype_bytes(p.dtype);
  const Step planes{"plane", conv_output_depth(p), p.depth.y_stride};
  const auto steps = steps_of(p, p.y, conv_output_size(p), planes, false);
  // Only the map cuts off a box that extends past a member's channels, at 16 bytes.
  const bool are_cut_off =
      p.out_channels % (16 / bytes) == 0 &&
      (!is_volume(p) || p.num_members == 1 ||
       (p.y.member == p.out_channels && p.out_channels % kernels::kConvWgmmaStoreChannels == 0));
  return bytes == 2 && are_cut_off &&
         std::none_of(steps.begin(), steps.end(),
                      [&](const Step& step) { return is_no_tile_stride(step, bytes); });
}

}  // namespace wide
