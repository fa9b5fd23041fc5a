// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/simvendors/device_memory.hpp"

#include <dlfcn.h>

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
  static auto* const access =
      symbol<void*(const void*, int64_t, int, const char*)>("wide_simcuda_access");
  return [what](const void* address, int64_t bytes, bool is_write) {
    void* const host = access(address, bytes, is_write ? 1 : 0, what);
    if (host == nullptr) refuse_access(what);
    return static_cast<std::byte*>(host);
  };
}

void refuse_access(const char* what) {
  throw BadAccess(what);
}

}  // namespace wide::simvendors
