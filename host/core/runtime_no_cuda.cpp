// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The runtime of a build without CUDA: there is no device, and nothing can be asked of one.
#include "host/core/runtime.hpp"
#include "wide/error.hpp"

namespace wide::runtime {

namespace {

constexpr const char* kReason = "this build of wide has no CUDA (WIDE_CUDA)";

[[noreturn]] void refuse() {
  throw Error(ErrorCode::cuda, std::string("cuda: ") + kReason);
}

}  // namespace

CudaAvailability query_devices() {
  return {0, kReason};
}
DeviceInfo device_info(int) {
  refuse();
}
void* allocate(int, int64_t) {
  refuse();
}
void deallocate(int, void*) noexcept {}
void* allocate_pinned(int, int64_t) {
  refuse();
}
void deallocate_pinned(int, void*) noexcept {}
void copy_async(int, void*, const void*, int64_t, Direction, Stream) {
  refuse();
}
void copy_rows_async(int, const RowBlock&, Direction, Stream) {
  refuse();
}
void fill_rows_async(int, const RowBlock&, uint8_t, Stream) {
  refuse();
}
void synchronize(int, Stream) {
  refuse();
}
bool is_capturing(int, Stream) {
  refuse();
}
Stream create_stream(int) {
  refuse();
}
void destroy_stream(int, Stream) noexcept {}
void* create_cublas(int, std::string& reason) {
  reason = kReason;
  return nullptr;
}
void destroy_cublas(int, void*) noexcept {}
void* create_cublaslt(int ordinal, std::string& reason) {
  return create_cublas(ordinal, reason);
}
void destroy_cublaslt(int, void*) noexcept {}

}  // namespace wide::runtime
