// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of global memory, against a buffer's shadow: of threads of a launch, and of the host's
// copies and fills. Within a launch, an access must know of whoever touched the byte before; blocks
// are ordered only by what they released to each other. Between operations, the streams' order
// decides.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "verify/simt/global_memory.hpp"
#include "verify/simt/global_shadow.hpp"
#include "verify/simt/operations.hpp"

namespace wide::simt {

struct Buffer {
  BufferInfo info;
  bool is_read_only = false;
  std::unique_ptr<GlobalShadow> shadow;  ///< null once freed
  BufferTraffic traffic;                 ///< of the running launch
  bool is_used = false;                  ///< by the running launch

  uint64_t end() const { return info.address + static_cast<uint64_t>(info.bytes); }
};

class GlobalChecks {
 public:
  /// A launch begins; the operation is the current one.
  void begin(Launch& launch);
  Launch* launch() const { return launch_; }

  // Accesses of a thread, inside a live buffer.
  void read(Buffer& buffer, Thread& thread, int64_t offset, int64_t bytes, GlobalAccess access,
            Location at);
  void write(Buffer& buffer, Thread& thread, int64_t offset, int64_t bytes, GlobalAccess access,
             Location at);
  /// A host's access to a range of a live buffer, in the name of the current operation.
  void host_access(Buffer& buffer, int64_t offset, int64_t bytes, bool is_write, const char* what,
                   Findings& findings);

  Operations operations;

 private:
  struct Access {
    Buffer& buffer;
    Thread& thread;
    Location at;
    int64_t begin;
    GlobalToucher toucher;
    bool is_read_only;

    bool is_strong() const { return toucher.is_strong != 0; }
    bool knows(const GlobalToucher& other) const {
      const Epoch epoch{static_cast<int32_t>(other.thread), other.time};
      return other.block == toucher.block ? thread.knows(epoch)
                                          : thread.known.includes(int64_t{other.block}, epoch);
    }
    int distance(const GlobalToucher& other) const;
    std::string place(int64_t offset) const;
  };
  Access access(Buffer& buffer, Thread& thread, int64_t offset, GlobalAccess kind, Location at);

  void read_cell(const Access& access, GlobalCell& cell, int64_t offset, int64_t bytes);
  void begin_reading(const Access& access, GlobalCell& cell, int64_t offset, int64_t bytes);
  void write_cell(const Access& access, GlobalCell& cell, int64_t offset, int64_t bytes);
  void begin_writing(const Access& access, GlobalCell& cell, int64_t offset, int64_t bytes);
  void note_earlier_reader(GlobalCell& cell);
  /// What the kernel before uses is not known in a launch that is used in many places: nothing may
  /// be touched before the wait, and behind it nothing be read past the memory model.
  void check_programmatic(const Access& access, const char* verb, int64_t offset);
  /// Two touchers of one cell in this launch, the earlier of which this thread may not know of.
  void check(const Access& access, const GlobalToucher& earlier, const char* verb,
             const char* earlier_verb, int64_t offset) {
    if (earlier.time == 0 || (access.is_strong() && earlier.is_strong != 0)) return;
    if (!access.knows(earlier)) report_race(access, earlier, verb, earlier_verb, offset);
  }
  void report_race(const Access& access, const GlobalToucher& earlier, const char* verb,
                   const char* earlier_verb, int64_t offset);
  /// What a kernel reads by ld.global.nc and writes; caches may keep what was there before.
  void report_read_only(const Access& access, const char* verb, const char* other_verb,
                        int64_t offset, uint32_t against);
  void report_unordered(const Access& access, uint32_t operation, const char* verb,
                        const char* earlier_verb, int64_t offset, uint32_t location);
  void report(FindingKind kind, const Access& access, const std::string& text,
              uint32_t against = 0);
  static void note(const Access& access, std::array<GlobalToucher, 2>& kept);

  Locations& lines_ = locations();
  Launch* launch_ = nullptr;
  uint32_t operation_ = 0;
};

}  // namespace wide::simt
