// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The device's memory, shared by all launches and by the runtime: buffers between red zones, each
// byte with a shadow of who wrote and read it last. Device addresses cannot be touched by the host:
// the pages behind them are reserved without access, and the bytes lie elsewhere (data()). Pinned
// and managed buffers are at the same address for both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verify/simt/machine.hpp"

namespace wide::simt {

enum class BufferKind { device, pinned, managed, constant };

struct BufferInfo {
  uint64_t address = 0;
  int64_t bytes = 0;
  std::string name;
  BufferKind kind = BufferKind::device;
  bool is_freed = false;
  bool is_module = false;  ///< a variable of a module: not a leak
};

/// How a kernel touches global memory. Strong: .relaxed, .acquire, .release, .volatile and atomics,
/// which do not race with each other. Read_only: ld.global.nc, of what no thread of the grid
/// writes.
enum class GlobalAccess { weak, strong, read_only };

class GlobalMemory {
 public:
  explicit GlobalMemory(int64_t capacity_bytes = int64_t{1} << 34);
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;
  GlobalMemory& operator=(const GlobalMemory&) = delete;

  /// 256-byte aligned; 0 where there is no room. Not initialised: NaN, and a finding when read.
  uint64_t allocate(int64_t bytes, std::string name, BufferKind kind, bool is_initialised = false,
                    bool is_read_only = false, bool is_module = false);
  /// The address is never given out again, so that a later use is found; pages and shadow go back.
  void free(uint64_t address);
  int64_t capacity_bytes() const;
  int64_t used_bytes() const;  ///< of device and constant buffers; the host's have their own limit

  /// Where the simulator finds the bytes of a device address inside a buffer. Unchecked.
  std::byte* data(uint64_t address) const;
  std::byte* data(const void* address) const { return data(reinterpret_cast<uint64_t>(address)); }
  /// The buffer that holds the address (or that ends at it), freed ones included.
  std::optional<BufferInfo> find(uint64_t address) const;
  std::vector<BufferInfo> live() const;

  // ---- kernels. Out of bounds, use after free and misalignment are reported, then thrown as
  // Fault.
  void require(const Thread& thread, uint64_t address, int64_t bytes, int64_t alignment,
               const char* what, Location at);
  /// In range. Check against the shadow, and update it. An atomic operation is a strong read, then
  /// a strong write.
  void read(Thread& thread, uint64_t address, int64_t bytes, GlobalAccess access, Location at);
  void write(Thread& thread, uint64_t address, int64_t bytes, GlobalAccess access, Location at);
  /// Synchronisation variables: what a release there publishes, what an acquire there learns.
  void publish(const Thread& thread, uint64_t address, const Knowledge& released);
  /// Null: nothing was published there in this launch.
  const Knowledge* published(uint64_t address) const;

  // ---- the host, in the name of operation `id` of a stream (copies, fills).
  enum class HostAccess { read, write, leave };  ///< leave: written with what nobody may read
  /// Checks and marks a range; false: not wholly inside one live buffer, reported as `what`.
  bool host_access(uint64_t address, int64_t bytes, HostAccess access, const char* what,
                   uint32_t id, const std::function<bool(uint32_t)>& is_ordered_after,
                   Findings& findings);
  /// What was not initialised in the source is not in the destination.
  void copy_initialised(uint64_t destination, uint64_t source, int64_t bytes);

  // ---- a launch begins and ends: counters per buffer, forgotten synchronisation variables.
  void begin_launch(Launch& launch);
  void end_launch();
  /// One request of a warp, already checked: sectors for the buffers' traffic.
  void count_request(uint64_t address, int64_t sectors, bool is_write);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Requests of a warp (requests.cpp): how many sectors or passes the hardware needs for them.

struct Request {
  LaneMask lanes = 0;
  int bytes = 0;                         ///< of each lane
  std::array<uint64_t, kLanes> address;  ///< of these lanes; the others' are not set
};
enum class GlobalRequest { load, store, atomic, async_copy };
void count_global(Launch& launch, GlobalRequest kind, const Request& request);
void count_shared(Counters& counters, bool is_store, const Request& request);

}  // namespace wide::simt
