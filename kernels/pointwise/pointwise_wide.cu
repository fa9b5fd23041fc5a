// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// y[r, n, d] = function(x[r, n, d])
//
// Plan: the time is that of moving the bytes. Where members and rows lie side by side in both
// tensors they are one run of elements, so that a packed tensor of any D is moved in whole vectors
// but for its last; else a run is what is contiguous. Runs are cut into units, of 16 bytes where
// all addresses and strides allow it and of one element elsewhere; neighbouring threads take
// neighbouring units, so that every warp's loads and stores are whole sectors, and each thread
// starts the loads of all its four before it uses one. Where a unit lies is two divisions for a
// thread's first; the others follow by adding what a block's threads advance, with a carry. One
// instantiation a function: one kernel with a switch would be as large as all, and take the
// registers of the hungriest.
#include "kernels/common/dispatch.hpp"
#include "kernels/common/divisor.hpp"
#include "kernels/common/numeric.cuh"
#include "kernels/pointwise/pointwise_function.cuh"
#include "kernels/pointwise/pointwise_wide.hpp"

namespace wide::kernels {

namespace {

constexpr int kThreads = 128;
constexpr int kUnits = 4;  // of a thread, all under way at once

/// A number of units as whole rows of members, members and units.
struct Step {
  int64_t rows, members, units;
};

/// How runs are cut.
struct Cut {
  int64_t units_per_run = 0;
  Divisor by_units, by_members;
  Step block{};  ///< kThreads units
  // Of prelu: which members, of how many features, a run goes through, over and over.
  int64_t features = 0, joined_members = 1;
  Divisor by_features, by_joined;
};

/// Where a thread's unit lies; walks on by a block's threads.
struct Walk {
  int64_t row, member, unit;

  __device__ Walk(const Cut& cut, int64_t index) {
    row = cut.by_members.divide(cut.by_units.divide(index, unit), member);
  }
  __device__ void advance(const PointwiseParams& p, const Cut& cut) {
    unit += cut.block.units;
    member += cut.block.members;
    row += cut.block.rows;
    if (unit >= cut.units_per_run) {
      unit -= cut.units_per_run;
      ++member;
    }
    if (member >= p.num_members) {
      member -= p.num_members;
      ++row;
    }
  }
  __device__ bool exists(const PointwiseParams& p) const { return row < p.rows; }
  /// Of the run, in elements.
  __device__ int64_t x(const PointwiseParams& p) const {
    return row * p.x_row_stride + member * p.x_member_stride;
  }
  __device__ int64_t y(const PointwiseParams& p) const {
    return row * p.y_row_stride + member * p.y_member_stride;
  }
};

/// kSize neighbours of x and what the function needs to know of each.
template <class T, int kSize>
struct Unit {
  T x[kSize];
  T slope[kSize];
};

template <class T, int kSize>
__device__ void load(T (&values)[kSize], const T* address) {
  if constexpr (kSize == 1) {
    values[0] = *address;
  } else {
    *reinterpret_cast<Vec16<T>*>(values) = load_vec16(address);
  }
}

/// The slopes of elements [first, first + kSize) of the walk's run.
template <class T, int kSize>
__device__ void load_slopes(T (&slopes)[kSize], const PointwiseParams& p, const Cut& cut,
                            const Walk& walk, int64_t first) {
  int64_t feature, member;
  (void)cut.by_joined.divide(cut.by_features.divide(first, feature), member);
  const T* slope = static_cast<const T*>(p.slope) + walk.member * p.slope_member_stride;
  if (p.has_slope_per_feature) {  // one element, or slopes of one member
    return load(slopes, slope + member * p.slope_member_stride + feature);
  }
  T own = slope[member * p.slope_member_stride];
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    slopes[e] = own;
    if (++feature == cut.features) {
      feature = 0;
      if (++member == cut.joined_members) member = 0;
      own = slope[member * p.slope_member_stride];
    }
  }
}

template <PointwiseFunction kFunction, class T, int kSize>
__device__ void load_unit(Unit<T, kSize>& unit, const PointwiseParams& p, const Cut& cut,
                          const Walk& walk, int64_t first) {
  load(unit.x, static_cast<const T*>(p.x) + walk.x(p) + first);
  if constexpr (kFunction == PointwiseFunction::prelu) {
    load_slopes(unit.slope, p, cut, walk, first);
  }
}

template <PointwiseFunction kFunction, class T, int kSize>
__device__ void store_unit(T* y, const Unit<T, kSize>& unit, const PointwiseParams& p) {
  Vec16<T> out;
#pragma unroll
  for (int e = 0; e < kSize; ++e) {
    const float a = kFunction == PointwiseFunction::prelu ? to_float(unit.slope[e]) : p.a;
    out.v[e] = from_float<T>(apply_pointwise<kFunction>(to_float(unit.x[e]), a, p.b));
  }
  if constexpr (kSize == 1) {
    *y = out.v[0];
  } else {
    store_vec16(y, out);
  }
}

/// The thread's units from `start` on, but those that a run's end cuts short.
template <PointwiseFunction kFunction, class T, int kSize>
__device__ void apply_units(const PointwiseParams& p, const Cut& cut, const Walk& start) {
  Unit<T, kSize> units[kUnits] = {};
  T* targets[kUnits];
  Walk walk = start;
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    const int64_t first = walk.unit * kSize;
    const bool is_whole = walk.exists(p) && first + kSize <= p.features;
    targets[u] = is_whole ? static_cast<T*>(p.y) + walk.y(p) + first : nullptr;
    if (is_whole) load_unit<kFunction>(units[u], p, cut, walk, first);
    walk.advance(p, cut);
  }
#pragma unroll
  for (int u = 0; u < kUnits; ++u) {
    if (targets[u] != nullptr) store_unit<kFunction>(targets[u], units[u], p);
  }
}

/// Those, element by element.
template <PointwiseFunction kFunction, class T, int kSize>
__device__ void apply_ends(const PointwiseParams& p, const Cut& cut, Walk walk) {
#pragma unroll 1
  for (int u = 0; u < kUnits; ++u) {
    const int64_t first = walk.unit * kSize;
    if (walk.exists(p) && first + kSize > p.features) {
#pragma unroll 1
      for (int64_t d = first; d < p.features; ++d) {
        Unit<T, 1> unit;
        load_unit<kFunction>(unit, p, cut, walk, d);
        store_unit<kFunction>(static_cast<T*>(p.y) + walk.y(p) + d, unit, p);
      }
    }
    walk.advance(p, cut);
  }
}

template <PointwiseFunction kFunction, class T>
__global__ void __launch_bounds__(kThreads)
    pointwise_kernel(const __grid_constant__ PointwiseParams p, const __grid_constant__ Cut cut,
                     bool is_aligned) {
  const Walk start(cut, int64_t{blockIdx.x} * (kThreads * kUnits) + threadIdx.x);
  if (!is_aligned) return apply_units<kFunction, T, 1>(p, cut, start);
  constexpr int kSize = Vec16<T>::kSize;
  apply_units<kFunction, T, kSize>(p, cut, start);
  if (p.features % kSize != 0) apply_ends<kFunction, T, kSize>(p, cut, start);
}

/// Members, then rows, that lie side by side become one run of features.
void join_runs(PointwiseParams& p) {
  if (p.x_member_stride == p.features && p.y_member_stride == p.features) {
    p.features *= p.num_members;
    p.num_members = 1;
  }
  if (p.num_members == 1 && p.x_row_stride == p.features && p.y_row_stride == p.features) {
    p.features *= p.rows;
    p.rows = 1;
  }
}

template <class T>
bool is_aligned16(const PointwiseParams& p) {
  int64_t strides = 0;
  if (p.num_members > 1) strides |= p.x_member_stride | p.y_member_stride;
  if (p.rows > 1) strides |= p.x_row_stride | p.y_row_stride;
  const auto addresses = reinterpret_cast<uintptr_t>(p.x) | reinterpret_cast<uintptr_t>(p.y);
  return strides % Vec16<T>::kSize == 0 && addresses % 16 == 0;
}

/// Whether a vector of features has slopes of one member, in one vector.
template <class T>
bool are_slopes_aligned16(const PointwiseParams& p) {
  return (p.features | p.slope_member_stride) % Vec16<T>::kSize == 0 &&
         reinterpret_cast<uintptr_t>(p.slope) % 16 == 0;
}

template <PointwiseFunction kFunction, class T>
cudaError_t launch(PointwiseParams p, cudaStream_t stream) {
  Cut cut;
  cut.features = p.features;
  cut.by_features = Divisor(p.features);
  bool is_aligned = !p.has_slope_per_feature || are_slopes_aligned16<T>(p);
  const int64_t num_members = p.num_members;
  join_runs(p);
  cut.joined_members = num_members / p.num_members;
  cut.by_joined = Divisor(cut.joined_members);

  is_aligned = is_aligned && is_aligned16<T>(p);
  const int64_t unit = is_aligned ? Vec16<T>::kSize : 1;
  cut.units_per_run = (p.features + unit - 1) / unit;
  cut.by_units = Divisor(cut.units_per_run);
  cut.by_members = Divisor(p.num_members);
  const int64_t runs = kThreads / cut.units_per_run;
  cut.block = {runs / p.num_members, runs % p.num_members, kThreads % cut.units_per_run};
  constexpr int64_t kBlockUnits = kThreads * kUnits;
  const int64_t units = p.rows * p.num_members * cut.units_per_run;
  const int64_t blocks = (units + kBlockUnits - 1) / kBlockUnits;
  if (blocks > 0x7fffffff) return cudaErrorInvalidConfiguration;
  pointwise_kernel<kFunction, T>
      <<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(p, cut, is_aligned);
  return cudaGetLastError();
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
  if (p.num_members * p.rows * p.features == 0) return cudaSuccess;
  return dispatch_float(dtype, [&]<class T>(std::type_identity<T>) {
    return dispatch_function(
        function, [&]<PointwiseFunction kFunction>() { return launch<kFunction, T>(p, stream); });
  });
}

}  // namespace wide::kernels
