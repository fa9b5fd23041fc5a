// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What host/core needs of the CUDA runtime, behind one seam with two implementations: with CUDA
// (runtime_cuda.cpp) and without (runtime_no_cuda.cpp), so that nothing else is conditional.
// Every call runs with `ordinal` as the current device and restores the caller's.
#pragma once

#include <cstdint>
#include <string>

#include "host/core/byte_rows.hpp"
#include "wide/context.hpp"
#include "wide/device.hpp"

namespace wide::runtime {

CudaAvailability query_devices();
DeviceInfo device_info(int ordinal);

void* allocate(int ordinal, int64_t bytes);
void deallocate(int ordinal, void* data) noexcept;
/// Page-locked memory of the host.
void* allocate_pinned(int ordinal, int64_t bytes);
void deallocate_pinned(int ordinal, void* data) noexcept;

enum class Direction : uint8_t { host_to_device, device_to_host, device_to_device };
void copy_async(int ordinal, void* destination, const void* source, int64_t bytes,
                Direction direction, Stream stream);
/// Copies a block's rows by one call, or by one each where they are too far apart for that;
/// source_step and destination_step are at least row_bytes.
void copy_rows_async(int ordinal, const RowBlock& block, Direction direction, Stream stream);
/// Writes `byte` to the rows at block.destination.
void fill_rows_async(int ordinal, const RowBlock& block, uint8_t byte, Stream stream);
void synchronize(int ordinal, Stream stream);
/// Whether a capture of the stream has begun; waiting for it would invalidate that.
bool is_capturing(int ordinal, Stream stream);

Stream create_stream(int ordinal);
void destroy_stream(int ordinal, Stream stream) noexcept;

/// A cublasHandle_t, or null and the reason.
void* create_cublas(int ordinal, std::string& reason);
void destroy_cublas(int ordinal, void* handle) noexcept;
/// A cublasLtHandle_t, likewise.
void* create_cublaslt(int ordinal, std::string& reason);
void destroy_cublaslt(int ordinal, void* handle) noexcept;

}  // namespace wide::runtime
