// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, d] = activation(function(x[r, n, d], other[r, n, d])), traversed by packed_runs.cuh. One
// instantiation per activation; the function is a switch that is uniform over the grid, once per
// unit, at negligible cost.
#include "kernels/arch/grid.cuh"
#include "kernels/common/activation.cuh"
#include "kernels/common/dispatch.hpp"
#include "kernels/common/launch.hpp"
#include "kernels/pointwise/binary_wide.hpp"
#include "kernels/pointwise/packed_runs.cuh"

namespace wide::kernels {

namespace {

template <int kSize, class F>
__device__ void replace_each(float (&values)[kSize], const float (&others)[kSize], F f) {
#pragma unroll
  for (int e = 0; e < kSize; ++e) values[e] = f(values[e], others[e]);
}

template <int kSize>
__device__ void apply_binary(BinaryFunction function, float (&values)[kSize],
                             const float (&others)[kSize]) {
  switch (function) {
    case BinaryFunction::add:
      return replace_each(values, others, [](float x, float other) { return x + other; });
    case BinaryFunction::subtract:
      return replace_each(values, others, [](float x, float other) { return x - other; });
    case BinaryFunction::multiply:
      return replace_each(values, others, [](float x, float other) { return x * other; });
    case BinaryFunction::divide:
      return replace_each(values, others, [](float x, float other) { return x / other; });
  }
}

template <Activation kActivation, class T>
__global__ void __launch_bounds__(kPackedThreads)
    binary_kernel(const __grid_constant__ PackedParams p, const __grid_constant__ PackedCut cut,
                  BinaryFunction function) {
  const auto apply = [=]<int kSize>(float(&values)[kSize], const float(&others)[kSize],
                                    const PackedPlace&) {
    apply_binary(function, values, others);
#pragma unroll
    for (int e = 0; e < kSize; ++e) values[e] = activate<kActivation>(values[e]);
  };
  arch::follow_grid();
  apply_packed<true, T>(p, cut, apply);
}

template <Activation kActivation, class T>
cudaError_t launch(BinaryFunction function, const PackedParams& p, cudaStream_t stream) {
  const PackedParams joined = joined_runs<T>(p);
  const PackedCut cut = cut_runs<T>(joined, p);
  return launch_packed(joined, cut, [&](unsigned blocks) {
    return launch_kernel(binary_kernel<kActivation, T>, blocks, kPackedThreads, 0, stream, joined,
                         cut, function);
  });
}

}  // namespace

cudaError_t launch_binary_wide(BinaryFunction function, Activation activation, Dtype dtype,
                               const PackedParams& p, cudaStream_t stream) {
  if (p.num_members * p.rows * p.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    switch (activation) {
      case Activation::none:
        return launch<Activation::none, T>(function, p, stream);
      case Activation::relu:
        return launch<Activation::relu, T>(function, p, stream);
      case Activation::gelu:
        return launch<Activation::gelu, T>(function, p, stream);
      case Activation::gelu_tanh:
        return launch<Activation::gelu_tanh, T>(function, p, stream);
      case Activation::silu:
        return launch<Activation::silu, T>(function, p, stream);
    }
    return cudaErrorInvalidValue;
  });
}

}  // namespace wide::kernels
