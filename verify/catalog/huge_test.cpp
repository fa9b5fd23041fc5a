// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Tensors of more than 2^31 elements, and of more than 2^32 bytes: fill, copy, pack, unpack and an
// operation. An index of 32 bits would come back to rows that hold something else.
#include <catch2/catch_test_macros.hpp>
#include <cstring>
#include <vector>

#include "host/core/cpu_device.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/dice.hpp"
#include "verify/support/simulation.hpp"
#include "wide/convert.hpp"
#include "wide/error.hpp"
#include "wide/pack.hpp"
#include "wide/pointwise.hpp"
#include "wide/tensor.hpp"

namespace wide::test {
namespace {

constexpr int64_t kRows = int64_t{1} << 18, kFeatures = 4099, kMembers = 2;
static_assert(kRows * kFeatures * kMembers > int64_t{1} << 31);
constexpr int64_t kGibibyte = int64_t{1} << 30;

void require_memory() {
  const int64_t available = available_memory_bytes();
  if (available >= 8 * kGibibyte) return;
  SKIP("needs 8 GiB of memory, " << available / kGibibyte << " are available");
}

Context require_real_cuda() {
  const Context context = require_cuda();
  if (Simulation::is_present()) SKIP("2^31 elements would take the simulated GPU hours");
  return context;
}

/// Of the device as much as a case ever has there, at once.
void require_device_memory(const Context& context) {
  try {
    const Tensor probe(context, Dtype::fp8_e4m3, {5, kGibibyte});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    SKIP("needs 5 GiB of the device's memory: " << error.what());
  }
}

/// Rows of random bytes: no two are equal whose numbers differ by less than kPatterns, or by a
/// power of two.
class Patterns {
 public:
  Patterns() {
    Dice dice(1);
    for (auto& byte : bytes_) byte = static_cast<uint8_t>(dice.between(0, 255));
  }
  const uint8_t* row(int64_t number) const { return bytes_.data() + number % kPatterns; }

 private:
  static constexpr int64_t kPatterns = 251;  // prime
  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(kFeatures + kPatterns);
};

/// Rows number `first`, `first` + kMembers, ...: a member.
Tensor make_member(const Context& context, const Patterns& patterns, int64_t first, Stream stream) {
  Tensor host(Context::cpu(), Dtype::fp8_e4m3, {kRows, kFeatures});
  auto* bytes = static_cast<uint8_t*>(host.data());
  for (int64_t r = 0; r < kRows; ++r) {
    std::memcpy(bytes + r * kFeatures, patterns.row(r * kMembers + first), kFeatures);
  }
  if (context.device().type == DeviceType::cpu) return host;
  Tensor tensor(context, Dtype::fp8_e4m3, host.shape());
  copy(host.view(), tensor.view(), stream);
  context.synchronize(stream);
  return tensor;
}

Tensor downloaded(const Context& context, const Tensor& tensor, Stream stream) {
  Tensor host(Context::cpu(), tensor.dtype(), tensor.shape());
  copy(tensor.view(), host.view(), stream);
  context.synchronize(stream);
  return host;
}

/// Of rows number `first`, `first` + `step`, ...
int64_t num_wrong_rows(const Context& context, const Patterns& patterns, const Tensor& tensor,
                       int64_t first, int64_t step, Stream stream) {
  const bool is_cpu = context.device().type == DeviceType::cpu;
  const Tensor copied = is_cpu ? Tensor() : downloaded(context, tensor, stream);
  const auto* bytes = static_cast<const uint8_t*>(is_cpu ? tensor.data() : copied.data());
  int64_t wrong = 0;
  for (int64_t r = 0; r < tensor.num_elements() / kFeatures; ++r) {
    const auto* expected = patterns.row(first + r * step);
    wrong += std::memcmp(bytes + r * kFeatures, expected, kFeatures) != 0 ? 1 : 0;
  }
  return wrong;
}

void move_huge_tensors(const Context& context) {
  const OwnedStream owned(context);
  const Stream stream = owned.get();
  const Patterns patterns;
  Tensor packed(context, Dtype::fp8_e4m3, {kRows, kMembers * kFeatures});
  fill_bytes(packed.view(), 0xff, stream);
  {
    const Tensor a = make_member(context, patterns, 0, stream),
                 b = make_member(context, patterns, 1, stream);
    const ConstTensorView members[] = {a.view(), b.view()};
    pack(operands::linear_x, members, packed.view(), stream);
    CHECK(num_wrong_rows(context, patterns, packed, 0, 1, stream) == 0);
  }
  {
    Tensor copied(context, Dtype::fp8_e4m3, packed.shape());
    copy(packed.view(), copied.view(), stream);
    CHECK(num_wrong_rows(context, patterns, copied, 0, 1, stream) == 0);
  }
  Tensor a(context, Dtype::fp8_e4m3, {kRows, kFeatures}), b(context, Dtype::fp8_e4m3, a.shape());
  const TensorView members[] = {a.view(), b.view()};
  unpack(operands::linear_x, packed.view(), members, stream);
  CHECK(num_wrong_rows(context, patterns, a, 0, kMembers, stream) == 0);
  CHECK(num_wrong_rows(context, patterns, b, 1, kMembers, stream) == 0);
}

/// relu, in place, of values below 0 but for four at the ends of what 31 bits count.
void apply_to_huge_tensor(const Context& context) {
  constexpr int64_t kCount = kRows * kMembers * kFeatures, kBytes = 2;
  const OwnedStream owned(context);
  const Stream stream = owned.get();
  Tensor x(context, Dtype::bf16, {kRows, kMembers * kFeatures});
  fill_bytes(x.view(), 0xc0, stream);  // -6.02
  const uint16_t seven = float_to_bf16(7);
  const int64_t places[] = {0, (int64_t{1} << 31) - 1, int64_t{1} << 31, kCount - 1};
  const auto at = [&](int64_t place) {
    return TensorView(static_cast<std::byte*>(x.data()) + place * kBytes, Dtype::bf16, {1},
                      context.device());
  };
  for (const int64_t place : places) {
    copy(ConstTensorView(&seven, Dtype::bf16, {1}, Device{}), at(place), stream);
  }
  const PointwiseArguments arguments{.x = x, .slope = {}, .y = x};
  const PointwiseProblem problem = describe_pointwise(arguments, {.num_members = kMembers});
  make_pointwise_plan(context, problem, {.strategy = "wide"}).run(arguments, {stream});
  for (const int64_t place : places) {
    uint16_t code = 0;
    copy(at(place), TensorView(&code, Dtype::bf16, {1}, Device{}), stream);
    context.synchronize(stream);
    CHECK(code == seven);
    fill_bytes(at(place), 0, stream);
  }
  context.synchronize(stream);
  const bool is_cpu = context.device().type == DeviceType::cpu;
  const Tensor copied = is_cpu ? Tensor() : downloaded(context, x, stream);
  const auto* bytes = static_cast<const uint8_t*>(is_cpu ? x.data() : copied.data());
  // All are 0 where the first is, and each equals the one before.
  CHECK((bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size_t{kCount * kBytes - 1}) == 0));
}

}  // namespace

TEST_CASE("tensors of more than 2^31 elements are moved whole on the CPU") {
  require_memory();
  move_huge_tensors(Context::cpu());
}
TEST_CASE("tensors of more than 2^31 elements are moved whole on CUDA", "[gpu]") {
  const Context context = require_real_cuda();
  require_memory();
  require_device_memory(context);
  move_huge_tensors(context);
}
TEST_CASE("a function of more than 2^31 elements reaches all of them on the CPU") {
  require_memory();
  apply_to_huge_tensor(Context::cpu());
}
TEST_CASE("a function of more than 2^31 elements reaches all of them on CUDA", "[gpu]") {
  const Context context = require_real_cuda();
  require_memory();
  require_device_memory(context);
  apply_to_huge_tensor(context);
}

}  // namespace wide::test
