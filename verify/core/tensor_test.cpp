// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "wide/tensor.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fstream>
#include <new>
#include <numeric>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "host/core/parallel.hpp"
#include "host/core/rows.hpp"
#include "host/core/verified.hpp"
#include "verify/support/devices.hpp"
#include "verify/support/refusals.hpp"
#include "verify/support/sanitizers.hpp"
#include "wide/concat.hpp"
#include "wide/error.hpp"
#include "wide/model_plan.hpp"
#include "wide/pack.hpp"
#include "wide/ragged_linear.hpp"
#include "wide/version.hpp"

using namespace wide;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Message;

/// Sanitizers, where there are any, would end the program at the allocation that is meant to fail.
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}

TEST_CASE("shapes count their elements and refuse what does not fit") {
  CHECK(num_elements({}) == 1);
  CHECK(num_elements({2, 3, 4}) == 24);
  CHECK(num_elements({2, 0, 4}) == 0);
  CHECK(to_string(Shape{4, 128, 64}) == "[4, 128, 64]");
  CHECK(contiguous_strides({2, 3, 4}) == Strides{12, 4, 1});
  CHECK(contiguous_strides({2, 0, 4}) == Strides{4, 4, 1});
  CHECK_THROWS_MATCHES(num_elements({-1}), Error,
                       Message("shape: [-1], expected no extent below 0"));
  const int64_t big = int64_t{1} << 40;
  CHECK_THROWS_AS(num_elements({big, big}), Error);
  CHECK_THROWS_AS(num_elements({big, 0, big}),
                  Error);  // the zero must not hide it: strides overflow
  CHECK_THROWS_AS(checked_bytes({int64_t{1} << 61}, 4), Error);
  CHECK_THROWS_AS((Shape{1, 2, 3, 4, 5, 6, 7}), Error);
}

TEST_CASE("views know their span, alignment and slices") {
  float data[24] = {};
  const TensorView view(data, Dtype::fp32, {2, 3, 4}, Device{});
  CHECK(view.is_contiguous());
  CHECK(view.span_bytes() == 96);
  const TensorView column = view.narrow(2, 1, 2);
  CHECK(column.data == data + 1);
  CHECK_FALSE(column.is_contiguous());
  CHECK(column.span_bytes() == (12 + 8 + 1 + 1) * 4);
  CHECK(view.narrow(0, 2, 0).span_bytes() == 0);
  CHECK(ConstTensorView(view).shape == view.shape);
  CHECK(TensorView().is_absent());
  CHECK_THROWS_MATCHES(
      view.narrow(2, 3, 2), Error,
      Message("tensor: elements [3, 3 + 2) of axis 2, expected some of [2, 3, 4]"));
  CHECK_THROWS_MATCHES(view.narrow(3, 0, 1), Error,
                       Message("tensor: axis is 3, expected one of [2, 3, 4]"));
  CHECK_THROWS_AS(view.narrow(0, -1, 1), Error);
  CHECK_THROWS_AS(TensorView(data, Dtype::fp32, {2, 3}, Strides{3}, Device{}), Error);
  CHECK_THROWS_AS(TensorView(data, Dtype::fp32, {2, 3}, Strides{-3, 1}, Device{}), Error);
  CHECK_THROWS_AS(
      TensorView(data, Dtype::fp32, {1 << 20, 2}, Strides{int64_t{1} << 50, 1}, Device{}), Error);
  CHECK_THROWS_AS(  // the zero must not hide it: strides are multiplied
      TensorView(data, Dtype::fp32, {0, 2, 2}, Strides{2, INT64_MAX, 1}, Device{}), Error);
  TensorView changed = view;
  changed.strides = Strides{};
  CHECK_THROWS_MATCHES(changed.span_bytes(), Error,
                       Message("tensor: strides [], expected one per axis of [2, 3, 4]"));
  changed.strides = Strides{12, -4, 1};
  CHECK_THROWS_MATCHES(changed.span_bytes(), Error,
                       Message("tensor: strides [12, -4, 1], expected none below 0"));
  CHECK(TensorView(reinterpret_cast<void*>(uintptr_t{4096 + 8}), Dtype::fp32, {1}, Device{})
            .alignment() == 8);
  CHECK(TensorView(reinterpret_cast<void*>(uintptr_t{4096}), Dtype::fp32, {1}, Device{})
            .alignment() == 256);
}

TEST_CASE("a const tensor cannot be written through") {
  STATIC_CHECK(std::is_same_v<decltype(std::declval<Tensor&>().view()), TensorView>);
  STATIC_CHECK(std::is_same_v<decltype(std::declval<const Tensor&>().view()), ConstTensorView>);
  STATIC_CHECK(std::is_same_v<decltype(std::declval<const Tensor&>().data()), const void*>);
  STATIC_CHECK(std::is_convertible_v<Tensor&, TensorView>);
  STATIC_CHECK(std::is_convertible_v<const Tensor&, ConstTensorView>);
  STATIC_CHECK_FALSE(std::is_convertible_v<const Tensor&, TensorView>);
}

TEST_CASE("views of a part of a tensor may be written where the tensor may") {
  Tensor tensor(Context::cpu(), Dtype::fp32, {2, 6});
  const Tensor& fixed = tensor;
  const auto offset_in = [&](const TensorView& view) {
    return static_cast<float*>(view.data) - static_cast<float*>(tensor.data());
  };
  const auto is_const = [](const auto& view) {
    return std::is_same_v<decltype(view), const ConstTensorView&>;
  };
  const ModelOperand operand{
      .name = "x", .shape = {2, 6}, .member_axis = 1, .is_stacked = false, .num_members = 2};
  CHECK(offset_in(member_view(operand, tensor, 1)) == 3);
  CHECK(is_const(member_view(operand, fixed, 1)));
  CHECK(offset_in(member_view(operands::linear_x, tensor, 3, 2)) == 4);
  CHECK(is_const(member_view(operands::linear_x, fixed, 3, 2)));
  CHECK(offset_in(slice(operands::linear_x, tensor, 2, 1, 2)) == 1);
  CHECK(is_const(slice(operands::linear_x, fixed, 2, 1, 2)));
  CHECK(flatten(tensor, 2).data == tensor.data());
  CHECK(is_const(flatten(fixed, 2)));
  Tensor storage(Context::cpu(), Dtype::fp32, {12});
  const Tensor& fixed_storage = storage;
  const TensorView rows = ragged_rows(storage, {4, 2}, 2, 2);
  CHECK(static_cast<float*>(rows.data) == static_cast<float*>(storage.data()) + 4);
  CHECK(is_const(ragged_rows(fixed_storage, {4, 2}, 2, 2)));
}

TEST_CASE("tensors own, move and may be empty; copies reach every device") {
  for (const Context& context : test::devices_at_hand()) {
    for (const Dtype dtype : kAllDtypes) {
      Tensor tensor(context, dtype, {3, 5});
      CHECK(tensor.bytes() == 15 * dtype_bytes(dtype));
      CHECK(tensor.view().alignment() == 256);
      std::vector<uint8_t> in(static_cast<size_t>(tensor.bytes())), out(in.size());
      std::iota(in.begin(), in.end(), uint8_t{1});
      const OwnedStream stream(context);
      copy(ConstTensorView(in.data(), dtype, {3, 5}, Device{}), tensor, stream.get());
      Tensor second(context, dtype, {3, 5});
      copy(tensor, second, stream.get());
      copy(second, TensorView(out.data(), dtype, {3, 5}, Device{}), stream.get());
      context.synchronize(stream.get());
      CHECK(in == out);
      fill_bytes(second, 0xff, stream.get());
      copy(second, TensorView(out.data(), dtype, {3, 5}, Device{}), stream.get());
      context.synchronize(stream.get());
      CHECK(out == std::vector<uint8_t>(out.size(), 0xff));
      const void* data = tensor.data();
      Tensor moved = std::move(tensor);
      CHECK(moved.data() == data);
      moved = Tensor(context, dtype, {0, 7});
      CHECK(moved.data() == nullptr);
      CHECK(moved.num_elements() == 0);
      CHECK(tensor.num_elements() == 0);  // which was moved from
      CHECK(Tensor().num_elements() == 0);
      CHECK(Tensor().view().is_absent());
      CHECK(Tensor(context, dtype, {}).num_elements() == 1);
    }
  }
}

TEST_CASE("copy says what differs") {
  const Context cpu = Context::cpu();
  Tensor a(cpu, Dtype::fp32, {2, 3}), b(cpu, Dtype::fp16, {2, 3});
  CHECK_THROWS_MATCHES(
      copy(a, b, Stream::cpu()), Error,
      Message("copy: source is fp32 [2, 3], destination fp16 [2, 3], expected the same"));
  CHECK_THROWS_MATCHES(
      copy(ConstTensorView(nullptr, Dtype::fp32, {2, 3}, Device{}), a, Stream::cpu()), Error,
      Message("copy: source is a null pointer, expected [2, 3] elements"));
  CHECK_THROWS_AS(fill_bytes(TensorView(nullptr, Dtype::fp32, {2}, Device{}), 0, Stream::cpu()),
                  Error);
  const ConstTensorView repeated(a.data(), Dtype::fp32, {2, 3}, Strides{0, 1}, Device{});
  CHECK_THROWS_MATCHES(copy(repeated, a, Stream::cpu()), Error,
                       Message("copy: strides [0, 1] and [3, 1] of [2, 3], expected every element "
                               "at a place of its own"));
  CHECK_THROWS_MATCHES(
      fill_bytes(TensorView(a.data(), Dtype::fp32, {2, 3}, Strides{2, 1}, Device{}), 0,
                 Stream::cpu()),
      Error,
      Message(
          "fill_bytes: strides [2, 1] of [2, 3], expected every element at a place of its own"));
}

namespace {

/// Offset of an element of a view, in elements.
int64_t offset_of(const ConstTensorView& view, int64_t number) {
  int64_t offset = 0;
  for (int axis = view.rank() - 1; axis >= 0; --axis) {
    offset += number % view.shape[axis] * view.strides[axis];
    number /= view.shape[axis];
  }
  return offset;
}

/// Elements of int32 on a device, all 0x55 in each byte or numbered from `first`.
Tensor filled(const Context& context, int64_t count, int32_t first, Stream stream) {
  std::vector<int32_t> values(static_cast<size_t>(count), 0x55555555);
  if (first >= 0) std::iota(values.begin(), values.end(), first);
  Tensor tensor(context, Dtype::int32, {count});
  copy(ConstTensorView(values.data(), Dtype::int32, {count}, Device{}), tensor, stream);
  context.synchronize(stream);
  return tensor;
}

std::vector<int32_t> values_of(const Context& context, const Tensor& tensor, Stream stream) {
  std::vector<int32_t> values(static_cast<size_t>(tensor.num_elements()));
  copy(tensor, TensorView(values.data(), Dtype::int32, tensor.shape(), Device{}), stream);
  context.synchronize(stream);
  return values;
}

struct Strided {
  Shape shape;
  Strides source, destination;
};

/// A member among others on either side, rows of one element, three steps, transposed, dense.
const std::vector<Strided> kStrided{
    {{3, 4}, {12, 1}, {4, 1}},
    {{3, 4}, {4, 1}, {12, 1}},
    {{3, 4}, {12, 1}, {20, 1}},
    {{5, 1}, {3, 1}, {1, 1}},
    {{5}, {3}, {7}},
    {{2, 3, 2, 2}, {36, 12, 2, 1}, {12, 4, 2, 1}},
    {{2, 3, 2, 2}, {40, 12, 3, 1}, {60, 14, 4, 1}},
    {{3, 4}, {1, 3}, {4, 1}},
    {{2, 3}, {3, 1}, {3, 1}},
    {{1, 4}, {0, 1}, {9, 1}},
    {{}, {}, {}},
};

}  // namespace

TEST_CASE("copies and fills of strided views touch their elements alone") {
  constexpr int64_t kCount = 128, kSkipped = 5;
  for (const Context& context : test::devices_at_hand()) {
    for (const Strided& s : kStrided) {
      CAPTURE(to_string(context.device()), to_string(s.shape), to_string(s.source),
              to_string(s.destination));
      const OwnedStream stream(context);
      const auto view_in = [&](Tensor& tensor, const Strides& strides) {
        return TensorView(static_cast<int32_t*>(tensor.data()) + kSkipped, Dtype::int32, s.shape,
                          strides, tensor.view().device);
      };
      // From the device, to the device, on it: the CPU is a device, too.
      const Context cpu = Context::cpu();
      for (const auto& [from, to] : {std::pair{context, context}, {cpu, context}, {context, cpu}}) {
        Tensor source = filled(from, kCount, 1000, stream.get());
        Tensor destination = filled(to, kCount, -1, stream.get());
        const TensorView read = view_in(source, s.source);
        const TensorView written = view_in(destination, s.destination);
        std::vector<int32_t> expected(kCount, 0x55555555);
        for (int64_t i = 0; i < read.num_elements(); ++i) {
          expected[static_cast<size_t>(kSkipped + offset_of(written, i))] =
              static_cast<int32_t>(1000 + kSkipped + offset_of(read, i));
        }
        copy(read, written, stream.get());
        context.synchronize(stream.get());
        CHECK(values_of(to, destination, stream.get()) == expected);
        for (int64_t i = 0; i < read.num_elements(); ++i) {
          expected[static_cast<size_t>(kSkipped + offset_of(written, i))] = 0x22222222;
        }
        fill_bytes(written, 0x22, stream.get());
        CHECK(values_of(to, destination, stream.get()) == expected);
      }
    }
  }
}

TEST_CASE("copies and fills of rows gigabytes apart, which are no pitch to CUDA") {
  constexpr int64_t kStep = int64_t{1} << 31, kBytes = 2 * kStep + 16;
  const Context context = test::require_cuda();
  const OwnedStream stream(context);
  Tensor far(context, Dtype::uint8, {kBytes});
  const TensorView rows(far.data(), Dtype::uint8, {3, 16}, Strides{kStep, 1}, far.view().device);
  const auto copied = [&](const ConstTensorView& source) {
    std::vector<uint8_t> out(48);
    copy(source, TensorView(out.data(), Dtype::uint8, {3, 16}, Device{}), stream.get());
    context.synchronize(stream.get());
    return out;
  };
  std::vector<uint8_t> in(48);
  std::iota(in.begin(), in.end(), uint8_t{1});
  copy(ConstTensorView(in.data(), Dtype::uint8, {3, 16}, Device{}), rows, stream.get());
  CHECK(copied(rows) == in);
  Tensor near(context, Dtype::uint8, {3, 16});
  copy(rows, near, stream.get());
  CHECK(copied(near) == in);
  fill_bytes(rows.narrow(1, 4, 8), 0, stream.get());
  for (size_t i = 0; i < in.size(); ++i) in[i] = i % 16 / 4 % 3 == 0 ? in[i] : uint8_t{0};
  CHECK(copied(rows) == in);
}

TEST_CASE("an allocation that cannot be is out_of_memory with the bytes asked for") {
  for (const Context& context : test::devices_at_hand()) {
    const auto allocate = [&] { const Tensor huge(context, Dtype::fp32, {int64_t{1} << 55}); };
    CHECK_THAT(test::message_of(ErrorCode::out_of_memory, allocate),
               ContainsSubstring("144115188075855872 bytes"));
  }
}

TEST_CASE("an engine's allocator is used") {
  struct Counting final : Allocator {
    int64_t live = 0, calls = 0;
    void* allocate(int64_t bytes) override {
      live += bytes, ++calls;
      return ::operator new (static_cast<size_t>(bytes), std::align_val_t{256});
    }
    void deallocate(void* data, int64_t bytes) noexcept override {
      live -= bytes;
      ::operator delete (data, std::align_val_t{256});
    }
  };
  const auto counting = std::make_shared<Counting>();
  {
    const Context context = Context::cpu({.num_threads = 1, .allocator = counting});
    const Tensor tensor(context, Dtype::fp32, {10});
    CHECK(counting->live == 40);
    Tensor first(context, Dtype::fp32, {5}), second(context, Dtype::fp32, {6});
    first = std::move(second);
    CHECK(counting->live == 40 + 24);  // what `first` owned is given back at once
  }
  CHECK(counting->live == 0);
  CHECK(counting->calls == 3);
}

TEST_CASE("an allocator that gives nothing, or what is not aligned, is found out") {
  struct Careless final : Allocator {
    int64_t offset = 0, live = 0;
    alignas(256) std::byte memory[512];
    void* allocate(int64_t) override {
      if (offset < 0) return nullptr;
      ++live;
      return memory + offset;
    }
    void deallocate(void*, int64_t) noexcept override { --live; }
  };
  const auto careless = std::make_shared<Careless>();
  const Context context = Context::cpu({.num_threads = 1, .allocator = careless});
  const auto error_at = [&](int64_t offset) -> std::string {
    careless->offset = offset;
    try {
      const Tensor tensor(context, Dtype::fp32, {10});
      return "";
    } catch (const Error& error) {
      CHECK((error.code() == ErrorCode::out_of_memory) == (offset < 0));
      return error.what();
    }
  };
  CHECK(error_at(0) == "");
  CHECK(error_at(-1) == "tensor: the allocator gave nothing for 40 bytes");
  CHECK(error_at(16) ==
        "tensor: the allocator gave an address 16 bytes past a multiple of 256, expected such a "
        "multiple");
  CHECK(careless->live == 0);
}

TEST_CASE("without a usable CUDA device the reason is given, and nothing is left behind") {
  const CudaAvailability first = query_cuda(), second = query_cuda();
  CHECK(first.num_devices == second.num_devices);
  CHECK(first.reason.empty() == (first.num_devices > 0));
  if (first.num_devices > 0) return;
  CHECK(test::message_of(ErrorCode::cuda, [] { (void)Context::cuda(0); }) ==
        "cuda: " + first.reason);
}

TEST_CASE("devices describe themselves") {
  const DeviceInfo info = Context::cpu({.num_threads = 3, .allocator = {}}).info();
  CHECK(info.num_multiprocessors == 3);
  CHECK_FALSE(info.name.empty());
  CHECK(info.memory_bytes > 0);
  CHECK_THROWS_AS(Context::cpu({.num_threads = -1, .allocator = {}}), Error);
  CHECK(to_string(Device{DeviceType::cuda, 2}) == "cuda:2");
  CHECK(std::string(version()) == "0.1.0");
}

TEST_CASE("handles that were moved from say so") {
  for (const Context& context : test::devices_at_hand()) {
    VendorHandles first(context);
    const VendorHandles second = std::move(first);
    CHECK((first.cublas() == nullptr && first.cudnn() == nullptr && !first.device()));
    CHECK(first.cublas_unavailable_reason() == "moved from");
    CHECK(first.cudnn_unavailable_reason() == "moved from");
    CHECK(second.device() == context.device());
  }
}

TEST_CASE("parallel_for runs every task once, rethrows, and may be nested") {
  const Context context = Context::cpu({.num_threads = 4, .allocator = {}});
  for (const int64_t tasks : {0, 1, 3, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<size_t>(tasks));
    parallel_for(context, tasks, [&](int64_t task) { ++runs[static_cast<size_t>(task)]; });
    for (const auto& count : runs) CHECK(count == 1);
  }
  std::atomic<int> inner = 0;
  parallel_for(context, 8, [&](int64_t) { parallel_for(context, 8, [&](int64_t) { ++inner; }); });
  CHECK(inner == 64);
  CHECK_THROWS_AS(parallel_for(context, 100,
                               [](int64_t task) {
                                 if (task == 57) throw Error(ErrorCode::io, "x");
                               }),
                  Error);
  std::atomic<int> after = 0;
  parallel_for(context, 10, [&](int64_t) { ++after; });
  CHECK(after == 10);
}

TEST_CASE("threads that the system does not start are said to be too many") {
  if (test::is_watched()) SKIP("sanitizers live in the address space that is to be short");
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  const rlim_t room = 256 << 20;  // for a few stacks
  const rlimit small{static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + room, before.rlim_max};
  std::string message;
  ErrorCode code = ErrorCode::io;
  setrlimit(RLIMIT_AS, &small);
  try {
    (void)Context::cpu({.num_threads = 4096, .allocator = {}});
  } catch (const Error& error) {
    code = error.code();
    message = error.what();
  }
  setrlimit(RLIMIT_AS, &before);
  CHECK(code == ErrorCode::out_of_memory);
  CHECK_THAT(message, ContainsSubstring(" of 4096 could not be started: ") &&
                          ContainsSubstring("or a smaller num_threads"));
  CHECK(Context::cpu({.num_threads = 3, .allocator = {}}).info().num_multiprocessors == 3);
}

TEST_CASE("two threads may share a context's threads") {
  const Context context = Context::cpu({.num_threads = 3, .allocator = {}});
  std::atomic<int64_t> sum = 0;
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) parallel_for(context, 20, [&](int64_t task) { sum += task; });
  };
  std::jthread other(work);
  work();
  other.join();
  CHECK(sum == 2 * 200 * 190);
}

TEST_CASE("rows fold where one stride covers the leading axes") {
  float data[4096] = {};
  const auto view = [&](const Shape& shape, const Strides& strides) {
    return ConstTensorView(data, Dtype::fp32, shape, strides, Device{});
  };
  const MemberRows packed = member_rows("op", "x", view({4, 5, 6}, {30, 6, 1}), 2, 3);
  CHECK(packed.rows == 20);
  CHECK(packed.strides == RowStrides{6, 3});
  const MemberRows in_members = member_rows("op", "x", view({4, 2, 3}, {7, 3, 1}), 2, 3);
  CHECK(in_members.strides == RowStrides{7, 3});
  CHECK(shared_rows("op", "x", view({4, 3}, {5, 1}), 3).strides == RowStrides{5, 0});
  CHECK_THROWS_MATCHES(member_rows("op", "x", view({4, 5, 6}, {31, 6, 1}), 2, 3), Error,
                       Message("op: x has shape [4, 5, 6] and strides [31, 6, 1], expected leading "
                               "axes that fold into rows of one stride"));
  CHECK_THROWS_MATCHES(member_rows("op", "x", view({4, 7}, {7, 1}), 2, 3), Error,
                       Message("op: x is [4, 7], expected [.., num_members * features] = [.., 6] "
                               "or [.., num_members, features] = [.., 2, 3]"));
  CHECK_THROWS_AS(require_disjoint_rows("op", "y", {4, {2, 1}}, 2, 3), Error);
  CHECK_NOTHROW(require_disjoint_rows("op", "y", {4, {3, 12}}, 2, 3));  // members outside rows
}

TEST_CASE("a strategy is verified on the compute capability that proved it") {
  const VerifiedStrategy table[] = {{"linear", "simt", 90}};
  CHECK(is_verified_in(table, "linear", "simt", 90));
  CHECK_FALSE(is_verified_in(table, "linear", "simt", 80));
  CHECK_FALSE(is_verified_in(table, "linear", "tensor_core", 90));
  CHECK_FALSE(is_verified_in(table, "layernorm", "simt", 90));
  CHECK_FALSE(is_verified_in({}, "linear", "simt", 90));
}

TEST_CASE("tensor: sizes that do not fit are told as what they are") {
  const Context cpu = Context::cpu({.num_threads = 1, .allocator = nullptr});
  CHECK_THROWS_WITH(Tensor(cpu, Dtype::fp32, {int64_t{1} << 62, 8}),
                    ContainsSubstring("[4611686018427387904, 8] has more elements than fit"));
  CHECK_THROWS_WITH(Tensor(cpu, Dtype::fp32, {int64_t{1} << 61, 2}),
                    ContainsSubstring("[2305843009213693952, 2] of 4-byte elements does not fit"));
}
