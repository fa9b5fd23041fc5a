// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Encoding tensor maps is host arithmetic: it is done at every call, and nothing is allocated or
// uploaded; the maps are passed as kernel parameters.
#include "host/conv/conv_wgmma_cuda.hpp"

#include <utility>

#include "host/conv/conv_params.hpp"
#include "host/conv/conv_problem.hpp"
#include "host/conv/conv_run.hpp"
#include "host/conv/conv_wgmma.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "host/core/tensor_map.hpp"
#include "kernels/conv/conv_wgmma.hpp"

namespace wide {

namespace {

/// A map of boxes of whole swizzled rows; strides that nothing steps along are made valid.
void encode(TileMap map, CUtensorMap& encoded) {
  map.rank = 5;
  map.swizzle = TileSwizzle::bytes_128;
  map.stride[0] = 1;
  for (size_t i = 1; i < map.stride.size(); ++i) {
    if (map.extent[i] == 1) map.stride[i] = 16 / dtype_bytes(map.dtype);
  }
  encode_tile_map(map, encoded);
}

/// x or y: {channels, batch, columns, rows, members}, or of volumes {members * channels, batch,
/// columns, rows, planes}.
TileMap map_of(const void* data, const ConvProblem& p, int64_t channels, const PerAxis& size,
               const ChannelStrides& strides, int64_t planes, int64_t plane_stride) {
  const int64_t members = strides.member == 0 ? 1 : p.num_members;
  TileMap map{.data = data,
              .dtype = p.dtype,
              .extent = {channels, p.batch, size.width, size.height, members},
              .stride = {1, strides.batch, strides.column, strides.row, strides.member}};
  if (!is_volume(p)) return map;
  map.extent[0] = members * channels;
  map.extent[4] = planes;
  map.stride[4] = plane_stride;
  return map;
}

/// {channels, columns, rows, output channels, members}, or of volumes {channels, columns, rows,
/// planes, members * output channels}.
TileMap weight_map(const void* data, const ConvProblem& p, int64_t channels,
                   kernels::ConvWgmmaTile tile) {
  const ConvWeightStrides& s = p.weight;
  TileMap map{
      .data = data,
      .dtype = p.dtype,
      .extent = {p.in_channels, p.kernel.width, p.kernel.height, p.out_channels, p.num_members},
      .stride = {1, s.column, s.row, s.out_channel, s.member},
      .box = {channels, 1, 1, tile_channels(tile), 1}};
  if (!is_volume(p)) return map;
  map.extent[3] = p.depth.kernel;
  map.extent[4] = p.num_members * p.out_channels;
  map.stride[3] = p.depth.weight_stride;
  map.stride[4] = s.out_channel;
  std::swap(map.box[3], map.box[4]);
  return map;
}

}  // namespace

bool has_conv_maps(const ConvArguments& arguments) {
  return is_on_16_bytes(arguments.x.data) && is_on_16_bytes(arguments.weight.data);
}

void run_conv_wgmma(const DeviceInfo& device, kernels::ConvWgmmaTile tile, const ConvProblem& p,
                    const ConvArguments& a, cudaStream_t stream) {
  kernels::ConvWgmmaParams params{};
  params.conv = conv_params(p, a);
  params.rectangle = conv_wgmma_rectangle(p, tile);
  params.num_multiprocessors = device.num_multiprocessors;
  const int64_t channels = kernels::kConvWgmmaTileBytes / dtype_bytes(p.dtype);
  const kernels::ConvRectangle& of = params.rectangle;
  const PerAxis steps = conv_wgmma_steps(p);
  params.box = {of.rows, of.columns};
  if (has_halo(tile)) {
    params.box.height += (params.conv.kernel.height - 1) * params.conv.dilation.height;
    params.box.width += (params.conv.kernel.width - 1) * params.conv.dilation.width;
  }
  TileMap x = map_of(a.x.data, p, p.in_channels, p.input, p.x, p.depth.input, p.depth.x_stride);
  x.step = {1, 1, steps.width, steps.height, 1};
  x.box = {channels, of.batch, (params.box.width - 1) * steps.width + 1,
           (params.box.height - 1) * steps.height + 1, 1};
  encode(x, params.x);
  encode(weight_map(a.weight.data, p, channels, tile), params.weight);
  params.are_volumes = is_volume(p);
  params.stores_boxes = conv_wgmma_stores_boxes(p) && is_on_16_bytes(a.y.data);
  if (params.stores_boxes) {
    const kernels::ConvRectangle block = first_pixels(of, kernels::kConvWgmmaStorePixels);
    TileMap y = map_of(a.y.data, p, p.out_channels, conv_output_size(p), p.y, conv_output_depth(p),
                       p.depth.y_stride);
    y.box = {kernels::kConvWgmmaStoreChannels, block.batch, block.columns, block.rows, 1};
    encode(y, params.y);
  }
  WIDE_CHECK_CUDA(kernels::launch_conv_wgmma(params, p.dtype, tile, stream));
}

ConvRunner make_conv_wgmma(const Context& context, const ConvProblem& problem) {
  const kernels::ConvWgmmaTile tile = choose_conv_wgmma_tile(problem, context.info());
  const ConvRunner other = make_conv_implicit_gemm(context, problem);
  ConvRunner runner;
  runner.run = [problem, tile, other, device = context.info()](const ConvArguments& arguments,
                                                               const Execution& execution) {
    if (!has_conv_maps(arguments)) return other.run(arguments, execution);
    const CurrentDevice current(device.device.ordinal);
    run_conv_wgmma(device, tile, problem, arguments, native_stream(execution.stream));
  };
  runner.note = "tile " + std::string(tile_name(tile)) +
                "; by implicit_gemm where x or weight is not aligned to 16 bytes";
  return runner;
}

}  // namespace wide
