// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Allocations, copies and fills. A copy reads its source when it is carried out; a pageable source
// is staged when it is enqueued, as the runtime does, and a pinned one is read late.
#include <cstring>

#include "verify/simcuda/device.hpp"
#include "verify/simcuda/device_model.hpp"

namespace wide::simcuda {

cudaError_t variable_of(Device& d, const void* shadow, ptx::Variable& variable);

namespace {

using simt::BufferInfo;
using simt::BufferKind;

uint64_t address(const void* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

cudaError_t allocate(Device& d, void** pointer, size_t bytes, BufferKind kind) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const char* what = kind == BufferKind::device   ? "device"
                     : kind == BufferKind::pinned ? "pinned"
                                                  : "managed";
  const std::string name = std::string(what) + "#" + std::to_string(++d.num_allocations) + "(" +
                           std::to_string(bytes) + ")";
  // The host's own writes are not seen: what it can write counts as written.
  const uint64_t at =
      d.memory.allocate(static_cast<int64_t>(bytes), name, kind, kind != BufferKind::device);
  if (at == 0) return cudaErrorMemoryAllocation;
  *pointer = reinterpret_cast<void*>(at);
  return cudaSuccess;
}

/// A call that no stream orders.
cudaError_t allocate_now(Device& d, void** pointer, size_t bytes, BufferKind kind) {
  if (const cudaError_t error = d.forbid_while_capturing(); error != cudaSuccess) return error;
  return allocate(d, pointer, bytes, kind);
}

cudaError_t deallocate(Device& d, void* pointer, bool is_host) {
  if (pointer == nullptr) return cudaSuccess;
  const std::optional<BufferInfo> buffer = d.memory.find(address(pointer));
  const bool fits = buffer && !buffer->is_freed && !buffer->is_module &&
                    buffer->address == address(pointer) &&
                    (buffer->kind == BufferKind::pinned) == is_host;
  if (!fits) {
    d.misuse("free of a pointer that is not the start of a live allocation of this kind");
    return cudaErrorInvalidValue;
  }
  d.memory.free(buffer->address);
  return cudaSuccess;
}

/// Waits for the device, as the real one does.
cudaError_t deallocate_now(Device& d, void* pointer, bool is_host) {
  if (pointer == nullptr) return cudaSuccess;
  if (const cudaError_t error = d.forbid_while_capturing(); error != cudaSuccess) return error;
  d.operations.wait_for_all();
  return deallocate(d, pointer, is_host);
}

/// One side of a copy: rows of bytes on the host or in a buffer.
struct Side {
  std::byte* host = nullptr;  ///< null: device memory
  uint64_t address = 0;
  size_t pitch = 0;
  bool is_buffer = false, is_pageable = false, is_managed = false;

  std::byte* row(Device& d, size_t y) const {
    return is_buffer ? d.memory.data(address + y * pitch) : host + y * pitch;
  }
};

Side side_of(Device& d, const void* pointer, size_t pitch) {
  Side side;
  side.address = address(pointer);
  side.pitch = pitch;
  const std::optional<BufferInfo> buffer = d.memory.find(side.address);
  side.is_buffer = buffer.has_value();
  side.is_managed = buffer && buffer->kind == BufferKind::managed;
  const bool is_device =
      buffer && (buffer->kind == BufferKind::device || buffer->kind == BufferKind::constant);
  side.is_pageable = !buffer;
  if (!is_device) side.host = static_cast<std::byte*>(const_cast<void*>(pointer));
  return side;
}

struct Extent {
  size_t width = 0, height = 1;
};

bool is_inside(Device& d, const Side& side, Extent extent) {
  if (!side.is_buffer) return side.address != 0;
  const std::optional<BufferInfo> buffer = d.memory.find(side.address);
  const uint64_t last = side.address + (extent.height - 1) * side.pitch + extent.width;
  return !buffer->is_freed && last <= buffer->address + static_cast<uint64_t>(buffer->bytes);
}

bool fits_kind(const Side& to, const Side& from, cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return true;
  const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return (to.is_managed || wants_to == (to.host == nullptr)) &&
         (from.is_managed || wants_from == (from.host == nullptr));
}

cudaError_t carry_out(const Operation& operation, const Side& to, const Side& from, Extent extent) {
  Device& d = device();
  using Access = simt::GlobalMemory::HostAccess;
  const auto is_ordered = [&](uint32_t earlier) {
    return d.operations.is_ordered(earlier, operation);
  };
  const auto bytes = static_cast<int64_t>(extent.width);
  bool is_right = true;
  for (size_t y = 0; y < extent.height; ++y) {
    const uint64_t source = from.address + y * from.pitch, target = to.address + y * to.pitch;
    const bool can_read =
        !from.is_buffer || d.memory.host_access(source, bytes, Access::read, "copy from",
                                                operation.id, is_ordered, d.findings);
    const bool can_write =
        !to.is_buffer || d.memory.host_access(target, bytes, Access::write, "copy to", operation.id,
                                              is_ordered, d.findings);
    is_right = is_right && can_read && can_write;
    if (!can_read || !can_write) continue;
    std::memmove(to.row(d, y), from.row(d, y), extent.width);
    if (to.is_buffer && from.is_buffer) d.memory.copy_initialised(target, source, bytes);
  }
  return is_right ? cudaSuccess : cudaErrorIllegalAddress;
}

struct CopyRequest {
  void* to;
  size_t to_pitch;
  const void* from;
  size_t from_pitch;
  Extent extent;
  cudaMemcpyKind kind;
  cudaStream_t stream = nullptr;
  bool is_async = false;
};

cudaError_t copy(Device& d, const CopyRequest& r) {
  if (r.extent.width == 0 || r.extent.height == 0) return cudaSuccess;
  const Side to = side_of(d, r.to, r.to_pitch);
  Side from = side_of(d, r.from, r.from_pitch);
  if (!fits_kind(to, from, r.kind)) {
    d.misuse("copy whose direction does not fit its pointers");
    return cudaErrorInvalidValue;
  }
  if (!is_inside(d, to, r.extent) || !is_inside(d, from, r.extent)) {
    d.misuse("copy of " + std::to_string(r.extent.width) + " x " + std::to_string(r.extent.height) +
             " bytes outside its buffers");
    return cudaErrorInvalidValue;
  }
  CUstream_st* stream = d.stream(r.stream);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (!r.is_async) {
    if (const cudaError_t error = d.forbid_while_capturing(); error != cudaSuccess) return error;
  }
  std::shared_ptr<std::vector<std::byte>> staged;
  if (r.is_async && from.is_pageable && stream->capture == nullptr) {
    staged = std::make_shared<std::vector<std::byte>>(r.extent.width * r.extent.height);
    for (size_t y = 0; y < r.extent.height; ++y)
      std::memcpy(staged->data() + y * r.extent.width, from.row(d, y), r.extent.width);
    from.host = staged->data();
    from.pitch = r.extent.width;
  }
  const cudaError_t error = d.enqueue(r.stream, [=, extent = r.extent](const Operation& operation) {
    (void)staged;  // kept until it is read
    return carry_out(operation, to, from, extent);
  });
  const bool is_waited_for = !r.is_async || (to.is_pageable && from.host == nullptr);
  if (error != cudaSuccess || stream->capture != nullptr || !is_waited_for) return error;
  d.wait_for(*stream);
  return d.sticky;
}

cudaError_t fill(Device& d, void* pointer, size_t pitch, int value, Extent extent,
                 cudaStream_t stream) {
  if (extent.width == 0 || extent.height == 0) return cudaSuccess;
  const Side to = side_of(d, pointer, pitch);
  if (!to.is_buffer || !is_inside(d, to, extent)) {
    d.misuse("memset of " + std::to_string(extent.width) + " x " + std::to_string(extent.height) +
             " bytes outside its buffer");
    return cudaErrorInvalidValue;
  }
  return d.enqueue(stream, [=](const Operation& operation) {
    Device& target = device();
    const auto is_ordered = [&](uint32_t earlier) {
      return target.operations.is_ordered(earlier, operation);
    };
    for (size_t y = 0; y < extent.height; ++y) {
      const bool is_right =
          target.memory.host_access(to.address + y * pitch, static_cast<int64_t>(extent.width),
                                    simt::GlobalMemory::HostAccess::write, "memset", operation.id,
                                    is_ordered, target.findings);
      if (!is_right) return cudaErrorIllegalAddress;
      std::memset(to.row(target, y), value, extent.width);
    }
    return cudaSuccess;
  });
}

/// Rows too far apart for one copy are refused, whatever lies there.
cudaError_t copy_rows(Device& d, const CopyRequest& r) {
  const bool fits = r.to_pitch <= kMaxPitch && r.from_pitch <= kMaxPitch;
  return fits ? copy(d, r) : cudaErrorInvalidPitchValue;
}

/// Freed in the order of the stream.
cudaError_t free_later(Device& d, void* pointer, cudaStream_t stream) {
  return d.enqueue(stream,
                   [pointer](const Operation&) { return deallocate(device(), pointer, false); });
}

}  // namespace

}  // namespace wide::simcuda

using namespace wide::simcuda;
using wide::simt::BufferKind;

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return call("cudaMalloc",
              [&](Device& d) { return allocate_now(d, pointer, bytes, BufferKind::device); });
}
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t) {
  return call("cudaMallocAsync",
              [&](Device& d) { return allocate(d, pointer, bytes, BufferKind::device); });
}
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  return call("cudaMallocManaged",
              [&](Device& d) { return allocate_now(d, pointer, bytes, BufferKind::managed); });
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return call("cudaMallocHost",
              [&](Device& d) { return allocate_now(d, pointer, bytes, BufferKind::pinned); });
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return call("cudaHostAlloc",
              [&](Device& d) { return allocate_now(d, pointer, bytes, BufferKind::pinned); });
}
cudaError_t cudaFree(void* pointer) {
  return release("cudaFree", [&](Device& d) { return deallocate_now(d, pointer, false); });
}
cudaError_t cudaFreeHost(void* pointer) {
  return release("cudaFreeHost", [&](Device& d) { return deallocate_now(d, pointer, true); });
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return release("cudaFreeAsync", [&](Device& d) { return free_later(d, pointer, stream); });
}
cudaError_t cudaHostGetDevicePointer(void** target, void* pointer, unsigned) {
  return call("cudaHostGetDevicePointer", [&](Device&) { return *target = pointer, cudaSuccess; });
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&](Device& d) {
    return copy(d, {to, bytes, from, bytes, {bytes, 1}, kind});
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&](Device& d) {
    return copy(d, {to, bytes, from, bytes, {bytes, 1}, kind, stream, true});
  });
}
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return call("cudaMemcpy2D", [&](Device& d) {
    return copy_rows(d, {to, to_pitch, from, from_pitch, {width, height}, kind});
  });
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return call("cudaMemcpy2DAsync", [&](Device& d) {
    return copy_rows(d, {to, to_pitch, from, from_pitch, {width, height}, kind, stream, true});
  });
}
cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return call("cudaMemset", [&](Device& d) {
    if (const cudaError_t error = d.forbid_while_capturing(); error != cudaSuccess) return error;
    return fill(d, pointer, bytes, value, {bytes, 1}, nullptr);
  });
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&](Device& d) {
    return fill(d, pointer, bytes, value, {bytes, 1}, stream);
  });
}
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return call("cudaMemset2DAsync", [&](Device& d) {
    if (height > 1 && pitch > kMaxPitch) return cudaErrorInvalidValue;
    return fill(d, pointer, pitch, value, {width, height}, stream);
  });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return call("cudaMemcpyToSymbol", [&](Device& d) {
    wide::ptx::Variable variable;
    if (const cudaError_t error = variable_of(d, symbol, variable); error != cudaSuccess)
      return error;
    return copy(
        d,
        {reinterpret_cast<void*>(variable.address + offset), bytes, from, bytes, {bytes, 1}, kind});
  });
}
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return call("cudaMemcpyFromSymbol", [&](Device& d) {
    wide::ptx::Variable variable;
    if (const cudaError_t error = variable_of(d, symbol, variable); error != cudaSuccess)
      return error;
    return copy(d, {to,
                    bytes,
                    reinterpret_cast<const void*>(variable.address + offset),
                    bytes,
                    {bytes, 1},
                    kind});
  });
}
cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return call("cudaGetSymbolAddress", [&](Device& d) {
    wide::ptx::Variable variable;
    if (const cudaError_t error = variable_of(d, symbol, variable); error != cudaSuccess)
      return error;
    *pointer = reinterpret_cast<void*>(variable.address);
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return call("cudaMemGetInfo", [&](Device& d) {
    *total_bytes = static_cast<size_t>(d.memory.capacity_bytes());
    *free_bytes = *total_bytes - static_cast<size_t>(d.memory.used_bytes());
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call("cudaPointerGetAttributes", [&](Device& d) {
    *attributes = cudaPointerAttributes{};
    const auto buffer = d.memory.find(reinterpret_cast<uint64_t>(pointer));
    if (!buffer || buffer->is_freed)
      return attributes->hostPointer = const_cast<void*>(pointer), cudaSuccess;
    attributes->type = buffer->kind == BufferKind::pinned    ? cudaMemoryTypeHost
                       : buffer->kind == BufferKind::managed ? cudaMemoryTypeManaged
                                                             : cudaMemoryTypeDevice;
    attributes->devicePointer = const_cast<void*>(pointer);
    if (attributes->type != cudaMemoryTypeDevice)
      attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  });
}

}  // extern "C"
