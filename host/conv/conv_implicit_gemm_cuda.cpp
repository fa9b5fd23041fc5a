// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/conv/conv_implicit_gemm.hpp"
#include "host/conv/conv_params.hpp"
#include "host/conv/conv_run.hpp"
#include "host/core/current_device.hpp"
#include "host/core/native_stream.hpp"
#include "kernels/conv/conv_implicit_gemm.hpp"

namespace wide {

ConvRunner make_conv_implicit_gemm(const Context& context, const ConvProblem& given) {
  const ConvProblem problem = as_conv_gemm(given);
  const kernels::ConvGemmTiles tiles = choose_conv_gemm_tiles(problem, context.info());
  const int ordinal = context.device().ordinal;
  ConvRunner runner;
  runner.run = [problem, tiles, ordinal](const ConvArguments& arguments,
                                         const Execution& execution) {
    const CurrentDevice current(ordinal);
    WIDE_CHECK_CUDA(kernels::launch_conv_implicit_gemm(
        conv_params(problem, arguments), problem.dtype, tiles, native_stream(execution.stream)));
  };
  runner.note = "tiles " + std::string(tile_name(tiles.vector)) +
                " or, where pixels are gathered, " + std::string(tile_name(tiles.gather));
  return runner;
}

}  // namespace wide
