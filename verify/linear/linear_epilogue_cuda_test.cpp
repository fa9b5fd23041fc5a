// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The kernels around cuBLAS's calls, alone: the epilogue behind them, and the addresses that a call
// by pointers reads. They need a device, but no cuBLAS.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include "kernels/linear/linear_epilogue.hpp"
#include "kernels/linear/linear_pointers.hpp"
#include "verify/linear/linear_case.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/tensors.hpp"

namespace wide::test {
namespace {

Tensor upload(TestDevice& device, Dtype dtype, const std::vector<double>& values) {
  return test::upload(device.context(), dtype, {static_cast<int64_t>(values.size())}, values);
}

/// Rows of `members` members of `features`, padded by `gap` behind every member.
void check_epilogue(TestDevice& device, Dtype dtype, int64_t features, int64_t gap, bool has_bias) {
  constexpr int64_t rows = 7, members = 5;
  const RowStrides strides{members * (features + gap), features + gap};
  const auto cast = static_cast<cudaStream_t>(device.stream().native());
  std::vector<double> sums(static_cast<size_t>(rows * strides.row)), bias, nan(sums.size(), NAN);
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>(i % 41) / 8 - 2.5;
  for (int64_t i = 0; i < members * features; ++i) bias.push_back(static_cast<double>(i % 5) / 4);
  const Tensor sums_there = upload(device, Dtype::fp32, sums);
  Tensor bias_there = upload(device, dtype, bias), y = upload(device, dtype, nan);

  kernels::LinearEpilogueParams params{};
  params.sums = static_cast<const float*>(sums_there.data());
  params.y = y.data();
  params.rows = rows, params.num_members = members, params.features = features;
  params.sums_strides = params.y_strides = strides;
  params.epilogue.bias = has_bias ? bias_there.data() : nullptr;
  params.epilogue.bias_member_stride = features;
  params.epilogue.activation = Activation::relu;
  params.epilogue.alpha = 2;
  REQUIRE(kernels::launch_linear_epilogue(params, dtype, cast) == cudaSuccess);

  std::vector<std::byte> got(static_cast<size_t>(y.bytes()));
  copy(y, TensorView(got.data(), dtype, y.shape(), Device{}), device.stream());
  device.context().synchronize(device.stream());
  for (int64_t at = 0; at < y.num_elements(); ++at) {
    const int64_t member = at % strides.row / strides.member, feature = at % strides.member;
    const double value = load_element(got.data(), dtype, at);
    if (feature >= features) {
      REQUIRE(std::isnan(value));  // a gap
      continue;
    }
    double expected = 2 * sums[static_cast<size_t>(at)];
    if (has_bias) expected += bias[static_cast<size_t>(member * features + feature)];
    REQUIRE(value == std::max(expected, 0.0));
  }
}

TEST_CASE("linear epilogue: bias of its own member, every alignment") {
  TestDevice device(require_cuda());
  const Dtype dtype = GENERATE(Dtype::fp32, Dtype::fp16, Dtype::bf16);
  const int64_t features = GENERATE(1, 3, 4, 64, 129, 1030);
  const int64_t gap = GENERATE(0, 1, 4);
  const bool has_bias = GENERATE(false, true);
  INFO(dtype_name(dtype) << ", " << features << " features, gap " << gap << ", bias " << has_bias);
  check_epilogue(device, dtype, features, gap, has_bias);
}

TEST_CASE("linear epilogue: refuses what its 32-bit places cannot hold") {
  kernels::LinearEpilogueParams params{};
  params.rows = params.features = 1;
  params.num_members = int64_t{1} << 31;
  CHECK(kernels::launch_linear_epilogue(params, Dtype::fp32, nullptr) ==
        cudaErrorInvalidConfiguration);
  params.num_members = 1;
  params.rows = int64_t{1} << 40;
  CHECK(kernels::launch_linear_epilogue(params, Dtype::fp32, nullptr) ==
        cudaErrorInvalidConfiguration);
  params.rows = 1;
  CHECK(kernels::launch_linear_epilogue(params, Dtype::int32, nullptr) == cudaErrorInvalidValue);
}

TEST_CASE("linear pointers: every member's addresses, and nothing behind them") {
  TestDevice device(require_cuda());
  const int64_t num_members = GENERATE(0, 1, 5, 256, 257);
  constexpr int64_t kGuard = 4;
  const int64_t count = 3 * num_members + kGuard;
  Tensor there(device.context(), Dtype::int64, {count});
  std::vector<int64_t> before(static_cast<size_t>(count), -7), after(before);
  const auto host = [&](std::vector<int64_t>& values) {
    return TensorView(values.data(), Dtype::int64, {count}, Device{});
  };
  copy(host(before), there, device.stream());
  kernels::LinearPointersParams params{};
  params.weight = reinterpret_cast<const void*>(uintptr_t{1} << 40);
  params.x = reinterpret_cast<const void*>(uintptr_t{3} << 33);
  params.y = reinterpret_cast<void*>(uintptr_t{4096});
  params.weight_member_bytes = int64_t{5} << 32;  // beyond 32 bits
  params.x_member_bytes = 0;                      // shared
  params.y_member_bytes = 14;
  params.num_members = num_members;
  params.pointers = static_cast<void**>(there.data());
  REQUIRE(kernels::launch_linear_pointers(
              params, static_cast<cudaStream_t>(device.stream().native())) == cudaSuccess);
  copy(there, host(after), device.stream());
  device.context().synchronize(device.stream());
  for (int64_t i = 0; i < num_members; ++i) {
    const auto at = static_cast<size_t>(i), n = static_cast<size_t>(num_members);
    REQUIRE(after[at] == (int64_t{1} << 40) + i * (int64_t{5} << 32));
    REQUIRE(after[n + at] == int64_t{3} << 33);
    REQUIRE(after[2 * n + at] == 4096 + i * 14);
  }
  for (int64_t i = 3 * num_members; i < count; ++i) REQUIRE(after[static_cast<size_t>(i)] == -7);
}

TEST_CASE("linear pointers: refuses more blocks than a grid has") {
  kernels::LinearPointersParams params{};
  params.num_members = int64_t{1} << 40;
  CHECK(kernels::launch_linear_pointers(params, nullptr) == cudaErrorInvalidConfiguration);
}

}  // namespace
}  // namespace wide::test
