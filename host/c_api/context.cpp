// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Contexts, streams and vendors' handles.
#include "host/c_api/handles.hpp"
#include "wide/pinned.hpp"

using namespace wide;
using namespace wide::c_api;

namespace {

class CallbackAllocator final : public Allocator {
 public:
  explicit CallbackAllocator(const wide_context_options& options) : options_(options) {}
  void* allocate(int64_t bytes) override { return options_.allocate(options_.user, bytes); }
  void deallocate(void* data, int64_t bytes) noexcept override {
    options_.deallocate(options_.user, data, bytes);
  }

 private:
  wide_context_options options_;
};

Context make_context(const wide_context_options& options) {
  WIDE_REQUIRE((options.allocate == nullptr) == (options.deallocate == nullptr),
               "options has one of allocate and deallocate, expected both or neither");
  std::shared_ptr<Allocator> allocator;
  if (options.allocate != nullptr) allocator = std::make_shared<CallbackAllocator>(options);
  if (options.device.type == WIDE_CUDA) {
    return Context::cuda(options.device.ordinal, {.allocator = allocator});
  }
  WIDE_REQUIRE(options.device.type == WIDE_CPU && options.device.ordinal == 0,
               "options.device is {" + std::to_string(options.device.type) + ", " +
                   std::to_string(options.device.ordinal) +
                   "}, expected {WIDE_CPU, 0} or {WIDE_CUDA, ordinal}");
  return Context::cpu({.num_threads = options.num_threads, .allocator = allocator});
}

}  // namespace

wide_status wide_num_cuda_devices(int32_t* out) {
  return guarded(__func__, [&] {
    int32_t& place = required(out, "out");
    place = query_cuda().num_devices;
  });
}

wide_status wide_context_create(const wide_context_options* options, wide_context** out) {
  return created(__func__, out, [&] {
    return wide_context{make_context(options_or_default(options, "options"))};
  });
}

wide_status wide_context_create_host(const wide_context* device, wide_context** out) {
  return created(__func__, out, [&] {
    const Context& context = required(device, "device").context;
    return wide_context{Context::cpu({.num_threads = 1, .allocator = pinned_allocator(context)})};
  });
}

wide_status wide_context_query(const wide_context* context, wide_context_info* out) {
  return guarded(__func__, [&] {
    const DeviceInfo& info = required(context, "context").context.info();
    const bool is_cpu = info.device.type == DeviceType::cpu;
    wide_context_info value{};
    value.name = info.name.c_str();
    value.device = {is_cpu ? WIDE_CPU : WIDE_CUDA, info.device.ordinal};
    value.compute_capability = info.compute_capability;
    value.num_threads = is_cpu ? info.num_multiprocessors : 0;
    value.num_multiprocessors = is_cpu ? 0 : info.num_multiprocessors;
    value.memory_bytes = info.memory_bytes;
    write(out, value);
  });
}

void wide_context_destroy(wide_context* context) {
  delete context;
}

wide_status wide_synchronize(const wide_context* context, void* stream) {
  return guarded(__func__, [&] {
    const Context& own = required(context, "context").context;
    own.synchronize(stream_of(own.device(), stream));
  });
}

wide_status wide_stream_create(const wide_context* context, wide_stream** out) {
  return created(__func__, out,
                 [&] { return wide_stream{OwnedStream(required(context, "context").context)}; });
}
void* wide_stream_native(const wide_stream* stream) {
  return stream == nullptr ? nullptr : stream->stream.get().native();
}
void wide_stream_destroy(wide_stream* stream) {
  delete stream;
}

wide_status wide_handles_create(const wide_context* context, wide_handles** out) {
  return created(__func__, out,
                 [&] { return wide_handles{VendorHandles(required(context, "context").context)}; });
}
wide_status wide_handles_borrow(void* cublas, void* cudnn, wide_handles** out) {
  return created(__func__, out, [&] { return wide_handles{VendorHandles::borrow(cublas, cudnn)}; });
}
void wide_handles_destroy(wide_handles* handles) {
  delete handles;
}
