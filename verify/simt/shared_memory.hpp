// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A block's shared memory and its shadow: for every byte who wrote it last and when, who read it
// last in each warp, whether it was ever written, and whether an asynchronous operation owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "verify/simt/machine.hpp"

namespace wide::simt {

constexpr uint32_t kSharedBase = 0x400;  ///< first shared address a kernel sees, as on Hopper

enum class SharedAccess { generic, atomic, async_copy, async_proxy };
/// At the address of each lane of a warp.
enum class SharedUse { read, write, update };
struct Request;  // global_memory.hpp

class SharedMemory {
 public:
  /// Contents are NaN in every float format and count as not written.
  SharedMemory(Block& block, int64_t bytes);
  ~SharedMemory();

  int64_t bytes() const;
  /// The bytes at an address that is in range, unchecked.
  std::byte* at(uint32_t address) { return bytes_ + (address - kSharedBase); }
  /// Reports out_of_bounds, or misaligned where `alignment`, a power of two, is not met. On a
  /// device these are errors of the launch: throws Fault after reporting.
  void require(const Thread& thread, uint32_t address, int64_t bytes, int64_t alignment,
               const char* what, const Location& at);

  /// What a warp's instruction does, lane after lane: each in range and aligned to its bytes, as
  /// require() says, then as below.
  void access(Warp& warp, const Request& request, SharedUse use, SharedAccess kind,
              const Location& at);

  // Accesses in range. Each checks against the shadow and updates it. An atomic operation is a
  // read, then a write, both atomic.
  void read(Thread& thread, uint32_t address, int64_t bytes, SharedAccess kind, const Location& at);
  void write(Thread& thread, uint32_t address, int64_t bytes, SharedAccess kind,
             const Location& at);
  /// A write in the name of a slot that is no thread: an mbarrier's asynchronous copies. `issuer`
  /// is who began it, maybe in another block of the cluster: it must have known what was there.
  void write_as(Thread& issuer, Epoch writer, uint32_t address, int64_t bytes, const Location& at);
  /// The bytes of a cp.async of `thread` have landed: they are its own generic writes from now on.
  void land(Thread& thread, uint32_t address, int64_t bytes);
  /// From its init to its inval nobody else may read or write an mbarrier's 8 bytes.
  void set_mbarrier(uint32_t address, bool is_live);
  /// An asynchronous read begins (wgmma operand, bulk store source): writes are findings until the
  /// end.
  void begin_async_read(Thread& issuer, uint32_t address, int64_t bytes, const Location& at);
  /// It ended, for this warp: who knows `epoch` (of a warp's slot, or the thread's own) may write.
  void end_async_read(const Thread& issuer, uint32_t address, int64_t bytes, Epoch epoch);

 private:
  struct Shadow;
  [[noreturn]] void refuse(const Thread& thread, uint32_t address, int64_t bytes, int64_t alignment,
                           const char* what, const Location& at);
  std::unique_ptr<Shadow> shadow_;
  std::byte* bytes_;  ///< the shadow's
};

}  // namespace wide::simt
