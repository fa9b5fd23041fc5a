// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Where a thread takes neighbouring windows, whose inputs are vectors, and that this changes no
// bit.
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "host/pooling/pooling_params.hpp"
#include "kernels/pooling/pooling_cut.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/run_plan.hpp"
#include "verify/support/tensors.hpp"
#include "wide/pooling.hpp"

using namespace wide;
using test::download, test::uniform, test::upload;

namespace {

/// Windows in rows of which a thread takes neighbours.
struct Neighbours {
  int64_t height, width, kernel, stride, padding;
  bool ceil, counts_padding;
  int fp32, half, mean;  ///< elements of a vector; of 16 bits: of maxima and means

  PoolingProblem problem(PoolingMode mode, Dtype dtype) const {
    PoolingProblem p{.num_members = 2, .batch = 2, .channels = 3};
    p.height = height, p.width = width, p.mode = mode, p.dtype = dtype;
    p.columns = {kernel, stride, padding, 1};
    if (height > 1) p.rows = p.columns;
    p.ceil_mode = ceil, p.counts_padding = counts_padding;
    return p;
  }
  int vector(PoolingMode mode, Dtype dtype) const {
    if (dtype == Dtype::fp32) return fp32;
    return mode == PoolingMode::average ? mean : half;
  }
};

/// The elements of a vector that the kernel chooses.
int chosen_vector(const PoolingProblem& completed, const void* x) {
  kernels::PoolingParams params = pooling_params(completed);
  params.x = x;
  const auto size = static_cast<int>(16 / dtype_bytes(completed.dtype));
  return kernels::Cutter(completed.mode, params, size).cut().vector;
}

/// Infinities, NaN and -0 among other numbers.
std::vector<double> awkward_values(int64_t count) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> values = uniform(count, -2, 2, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 23 == 3) values[i] = i % 3 == 0 ? -inf : i % 3 == 1 ? inf : -0.0;
    if (i % 97 == 5) values[i] = std::numeric_limits<double>::quiet_NaN();
    if (i / 40 % 5 == 1) values[i] = -0.0;
  }
  return values;
}

/// Of y by vectors, and by single windows: of x one element further on, where there are no vectors.
void check_neighbours(const Context& context, const Neighbours& n, PoolingMode mode, Dtype dtype) {
  INFO(to_string(context.device())
       << " " << pooling_mode_name(mode) << " " << dtype_name(dtype) << " " << n.height << " x "
       << n.width << " kernel " << n.kernel << " stride " << n.stride << " padding " << n.padding);
  const PoolingProblem p = n.problem(mode, dtype);
  const PoolingProblem full = make_pooling_plan(Context::cpu(), p).problem();
  const Shape in{p.batch, p.num_members * p.channels, n.height, n.width},
      out{p.batch, p.num_members * p.channels, full.out_height, full.out_width};
  std::vector<double> values = awkward_values(num_elements(in));
  Tensor x = upload(context, dtype, in, values), y(context, dtype, out), same(context, dtype, out);
  const auto run = [&](const PoolingArguments& arguments) {
    test::run_plan(context, make_pooling_plan(context, describe_pooling(arguments, p), {"wide"}),
                   arguments);
  };
  CHECK(chosen_vector(full, x.data()) == n.vector(mode, dtype));
  run({x, y});

  values.insert(values.begin(), 7.0);
  Tensor storage = upload(context, dtype, {static_cast<int64_t>(values.size())}, values);
  const TensorView shifted(static_cast<std::byte*>(storage.data()) + dtype_bytes(dtype), dtype, in,
                           context.device());
  CHECK(chosen_vector(full, shifted.data) == 0);
  run({shifted, same});
  const std::vector<double> got = download(context, y), want = download(context, same);
  int64_t differences = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool is_same = std::isnan(want[i])
                             ? std::isnan(got[i])
                             : got[i] == want[i] && std::signbit(got[i]) == std::signbit(want[i]);
    differences += is_same ? 0 : 1;
  }
  CHECK(differences == 0);
}

}  // namespace

TEST_CASE("pooling: neighbours whose inputs are vectors have the bits of single windows") {
  const std::vector<Neighbours> all{
      {6, 16, 2, 2, 0, false, true, 4, 8, 4},  {7, 12, 2, 2, 0, true, true, 4, 2, 4},
      {6, 14, 2, 2, 0, false, true, 2, 2, 2},  {9, 16, 3, 2, 1, false, true, 4, 8, 4},
      {6, 10, 3, 2, 1, false, false, 2, 2, 2}, {7, 16, 3, 2, 0, true, true, 4, 8, 4},
      {7, 6, 3, 2, 0, true, false, 2, 2, 2},   {5, 16, 3, 1, 1, false, false, 4, 8, 4},
      {5, 6, 3, 1, 1, false, true, 2, 2, 2},   {6, 16, 3, 1, 0, false, true, 0, 0, 0},
      {1, 24, 2, 2, 0, false, true, 4, 8, 4},  {1, 24, 3, 1, 1, false, true, 4, 8, 4},
      {5, 15, 2, 2, 0, false, true, 0, 0, 0},  {5, 16, 3, 3, 0, false, true, 0, 0, 0}};
  for (const Context& context : test::devices_at_hand()) {
    for (const Neighbours& n : all) {
      for (const PoolingMode mode : {PoolingMode::max, PoolingMode::average}) {
        for (const Dtype dtype : {Dtype::fp32, Dtype::fp16, Dtype::bf16}) {
          check_neighbours(context, n, mode, dtype);
        }
      }
    }
  }
}
