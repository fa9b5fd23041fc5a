// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, d] = function(x[r, n, d]), traversed by packed_runs.cuh. One instantiation per
// function: one kernel with a switch would be as large as all together, and take the most
// registers of any.
#include "kernels/arch/grid.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/pointwise/packed_runs.cuh"
#include "kernels/pointwise/pointwise_function.cuh"
#include "kernels/pointwise/pointwise_wide.hpp"

namespace wide::kernels {

namespace {

template <PointwiseFunction kFunction, class T>
__global__ void __launch_bounds__(kPackedThreads)
    pointwise_kernel(const __grid_constant__ PackedParams p, const __grid_constant__ PackedCut cut,
                     float a, float b) {
  constexpr bool kHasSlopes = kFunction == PointwiseFunction::prelu;
  const auto apply = [=]<int kSize>(float(&values)[kSize], const float(&slopes)[kSize],
                                    const PackedPlace&) {
#pragma unroll
    for (int e = 0; e < kSize; ++e) {
      values[e] = apply_pointwise<kFunction>(values[e], kHasSlopes ? slopes[e] : a, b);
    }
  };
  arch::follow_grid();
  apply_packed<kHasSlopes, T>(p, cut, apply);
}

template <PointwiseFunction kFunction, class T>
cudaError_t launch(const PointwiseParams& p, cudaStream_t stream) {
  const PackedParams joined = joined_runs<T>(p.packed);
  const PackedCut cut = cut_runs<T>(joined, p.packed);
  return launch_packed(joined, cut, [&](unsigned blocks) {
    return launch_kernel(pointwise_kernel<kFunction, T>, blocks, kPackedThreads, 0, stream, joined,
                         cut, p.a, p.b);
  });
}

/// Calls f.template operator()<kFunction>() for the runtime value.
template <class F>
cudaError_t dispatch_function(PointwiseFunction function, F f) {
  using enum PointwiseFunction;
  switch (function) {
    case relu:
      return f.template operator()<relu>();
    case gelu:
      return f.template operator()<gelu>();
    case gelu_tanh:
      return f.template operator()<gelu_tanh>();
    case silu:
      return f.template operator()<silu>();
    case sigmoid:
      return f.template operator()<sigmoid>();
    case tanh:
      return f.template operator()<tanh>();
    case elu:
      return f.template operator()<elu>();
    case leaky_relu:
      return f.template operator()<leaky_relu>();
    case prelu:
      return f.template operator()<prelu>();
    case hardswish:
      return f.template operator()<hardswish>();
    case softplus:
      return f.template operator()<softplus>();
    case clamp:
      return f.template operator()<clamp>();
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t launch_pointwise_wide(PointwiseFunction function, Dtype dtype, const PointwiseParams& p,
                                  cudaStream_t stream) {
  if (p.packed.num_members * p.packed.rows * p.packed.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    return dispatch_function(
        function, [&]<PointwiseFunction kFunction>() { return launch<kFunction, T>(p, stream); });
  });
}

}  // namespace wide::kernels
