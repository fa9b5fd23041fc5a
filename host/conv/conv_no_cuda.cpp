// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for conv's *_cuda.cpp where there is no CUDA.
#include "host/conv/conv_run.hpp"
#include "host/core/check.hpp"

namespace wide {

ConvRunner make_conv_direct(const Context&, const ConvProblem&) {
  no_cuda("conv");
}
ConvRunner make_conv_implicit_gemm(const Context&, const ConvProblem&) {
  no_cuda("conv");
}
ConvRunner make_conv_wgmma(const Context&, const ConvProblem&) {
  no_cuda("conv");
}
ConvRunner make_conv_cuda_sequential(const Context&, const ConvProblem&) {
  no_cuda("conv");
}

}  // namespace wide
