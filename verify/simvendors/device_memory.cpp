// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simvendors/device_memory.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

namespace wide::simvendors {

namespace {

using Work = std::function<void()>;

/// Of an access that the simulated GPU has reported.
struct BadAccess : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Function>
Function* symbol(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

cudaError_t carry_out(void* work) {
  try {
    (*static_cast<Work*>(work))();
    return cudaSuccess;
  } catch (const BadAccess&) {
    return cudaErrorIllegalAddress;
  }
}

void drop(void* work) {
  delete static_cast<Work*>(work);
}

/// As the simulated runtime counts them.
enum class How { read, write, leave };

std::byte* access(const void* address, int64_t bytes, How how, const char* what) {
  static auto* const access =
      symbol<void*(const void*, int64_t, int, const char*)>("wide_simcuda_access");
  void* const host = access(address, bytes, static_cast<int>(how), what);
  if (host == nullptr) refuse_access(what);
  return static_cast<std::byte*>(host);
}

}  // namespace

bool is_simulated() {
  return symbol<void()>("wide_simcuda_enqueue") != nullptr;
}

bool has_context() {
  static auto* const has = symbol<int()>("wide_simcuda_has_context");
  return has() != 0;
}

KeptMemory keep_memory() {
  static auto* const allocate = symbol<cudaError_t(void**, size_t)>("cudaMalloc");
  static auto* const give_back = symbol<void(void*)>("wide_simcuda_give_back");
  void* data = nullptr;
  if (allocate(&data, 1) != cudaSuccess) data = nullptr;
  return {data, [](void* kept) { give_back(kept); }};
}

cudaError_t enqueue(cudaStream_t stream, Work work) {
  static auto* const enqueue =
      symbol<cudaError_t(cudaStream_t, cudaError_t(*)(void*), void (*)(void*), void*)>(
          "wide_simcuda_enqueue");
  return enqueue(stream, carry_out, drop, std::make_unique<Work>(std::move(work)).release());
}

test::Access device_access(const char* what) {
  return [what](const void* address, int64_t bytes, bool is_write) {
    return access(address, bytes, is_write ? How::write : How::read, what);
  };
}

void leave_anything(void* workspace, int64_t bytes) {
  if (workspace == nullptr || bytes == 0) return;
  std::byte* const at = access(workspace, bytes, How::leave, "a library's workspace");
  // What is read all the same is reported, and where it lies here, wrong as well. To overwrite all
  // would take most of a test's time: of large workspaces every page that is touched is a copy.
  constexpr int64_t kBytes = 4096, kPlaces = 32;
  const int64_t step = std::max<int64_t>(int64_t{1} << 16, bytes / kPlaces);
  for (int64_t i = 0; i < bytes; i += step) {
    std::fill_n(at + i, std::min(kBytes, bytes - i), std::byte{0xff});
  }
  std::fill_n(at + std::max<int64_t>(0, bytes - kBytes), std::min(kBytes, bytes), std::byte{0xff});
}

void refuse_access(const char* what) {
  throw BadAccess(what);
}

}  // namespace wide::simvendors
