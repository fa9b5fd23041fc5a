// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The checks of shared memory. Every access asks the shadow: was this written, does somebody still
// own it, and do I know of whoever wrote or read it before? A plain write that knows of all earlier
// readers stands for them from then on; atomics do not, since they are not ordered with each other.
#include "verify/simt/shared_memory.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "verify/simt/global_memory.hpp"
#include "verify/simt/locations.hpp"
#include "verify/simt/shared_shadow.hpp"
#include "verify/simt/text.hpp"

namespace wide::simt {

namespace {

std::string place(uint32_t offset) {
  return " shared+" + hexadecimal(offset);
}

}  // namespace

struct SharedMemory::Shadow {
  Shadow(Block& owner, int64_t num_bytes)
      : block(owner),
        data(static_cast<size_t>(num_bytes), std::byte{0xff}),
        cells(num_bytes, static_cast<int>(owner.warps.size())) {}

  /// One access to one cell.
  struct Access {
    Thread& thread;
    SharedAccess kind;
    const Location& at;
    uint32_t location;
    uint32_t begin;  ///< offset of the access
    Epoch writer{};  ///< of write_as, else the thread's own
    bool is_atomic() const { return kind == SharedAccess::atomic; }
  };

  /// Threads of other blocks of the cluster come here, too, by their copies.
  bool knows(const Access& access, Epoch epoch) const { return access.thread.knows(block, epoch); }
  bool is_own(const Access& access, int slot) const {
    return slot == access.thread.index && access.thread.block == &block;
  }
  std::string name(const Access& access) const { return name_in(block, access.thread); }

  /// Calls function(cell, level, index, offset) for every cell of the range.
  template <class Function>
  void for_cells(uint32_t offset, int64_t bytes, const Function& function) {
    const uint32_t end = offset + static_cast<uint32_t>(bytes);
    constexpr uint32_t kChunkBytes = uint32_t{1} << SharedShadow::kChunk;
    while (offset < end) {
      const uint32_t stop = std::min(end, (offset / kChunkBytes + 1) * kChunkBytes);
      const int level = cells.level_for(offset, stop - offset);
      for (size_t i = offset >> level; i < stop >> level; ++i) {
        function(cells.cell(level, i), level, i);
      }
      offset = stop;
    }
  }

  /// `text` makes the words: out of line, since hardly any access is one to report, and of copies,
  /// so that what is checked for every access may stay in registers.
  template <class Text>
  [[gnu::cold, gnu::noinline]] void report(FindingKind kind, const Access& access, uint32_t against,
                                           const Text& text) const {
    block.launch.report(kind, block, text(), access.at, lines[against]);
  }
  static std::string where(const Access& access, int level, size_t index) {
    return place(std::max(access.begin, static_cast<uint32_t>(index << level)));
  }
  std::string slot_name(int slot) const {
    if (slot < block.num_threads()) return to_string(block.threads[static_cast<size_t>(slot)]);
    if (slot < block.warp_slot(0)) {
      return "an asynchronous copy on mbarrier " + std::to_string(slot - block.mbarrier_slot(0));
    }
    return "a wgmma of warp " + std::to_string(slot - block.warp_slot(0));
  }

  void check_mbarrier(const Access& access, const SharedCell& cell, int level, size_t index,
                      const char* does) const;

  // ---- reads
  void read(const Access& access, int64_t bytes);
  void check_read(const Access& access, SharedCell& cell, int level, size_t index);
  void check_proxy(const Access& access, const SharedCell& cell, int level, size_t index,
                   const char* does) const;
  void note_reader(const Access& access, SharedCell& cell, int level, size_t index);

  // ---- writes
  void check_write(const Access& access, const SharedCell& cell, int level, size_t index);
  void check_readers(const Access& access, const SharedCell& cell, int level, size_t index);
  void check_async_readers(const Access& access, int64_t bytes);
  void write(const Access& access, int64_t bytes);

  Block& block;
  Locations& lines = locations();
  std::vector<std::byte> data;
  SharedShadow cells;
};

void SharedMemory::Shadow::check_mbarrier(const Access& access, const SharedCell& cell, int level,
                                          size_t index, const char* does) const {
  if ((cell.flags & SharedCell::kMbarrier) == 0) return;
  report(FindingKind::mbarrier, access, cell.location, [=, this] {
    return name(access) + " " + does + where(access, level, index) +
           ", which is an mbarrier's until its mbarrier.inval";
  });
}

void SharedMemory::Shadow::check_read(const Access& access, SharedCell& cell, int level,
                                      size_t index) {
  check_mbarrier(access, cell, level, index, "reads");
  if ((cell.flags & SharedCell::kInitialised) == 0) {
    report(FindingKind::uninitialised_read, access, 0, [=, this] {
      return name(access) + " reads" + where(access, level, index) +
             ", which nothing has written in this block";
    });
    cell.flags |= SharedCell::kInitialised;  // said once
  }
  if (cell.writer == SharedCell::kNobody) return;
  const Epoch written{cell.writer, cell.time};
  if ((cell.flags & SharedCell::kInFlight) != 0) {
    report(FindingKind::in_flight, access, cell.location, [=, this] {
      return name(access) + " reads" + where(access, level, index) + " while a cp.async of " +
             slot_name(written.slot) + " to it has not been waited for";
    });
  } else if (!is_own(access, written.slot) && !knows(access, written) &&
             !(access.is_atomic() && (cell.flags & SharedCell::kAtomic) != 0)) {
    report(FindingKind::race, access, cell.location, [=, this] {
      return name(access) + " reads" + where(access, level, index) + " that " +
             slot_name(written.slot) + " wrote" + kUnsynchronised;
    });
  }
  if (access.kind == SharedAccess::async_proxy) check_proxy(access, cell, level, index, "reads");
}

void SharedMemory::Shadow::read(const Access& access, int64_t bytes) {
  for_cells(access.begin, bytes, [&](SharedCell& cell, int level, size_t index) {
    check_read(access, cell, level, index);
    note_reader(access, cell, level, index);
  });
}

void SharedMemory::Shadow::check_proxy(const Access& access, const SharedCell& cell, int level,
                                       size_t index, const char* does) const {
  if ((cell.flags & SharedCell::kGeneric) == 0 || cell.writer >= block.num_threads()) return;
  // Either side may have fenced: the writer after it wrote and before the reader learnt of that, or
  // the reader afterwards.
  const Thread& writer = block.threads[cell.writer];
  if (access.thread.knows_proxy_fence(writer, cell.time) ||
      access.thread.knew_at_proxy_fence(block, {cell.writer, cell.time})) {
    return;
  }
  report(FindingKind::proxy, access, cell.location, [&] {
    return "the async proxy, for " + name(access) + ", " + does + where(access, level, index) +
           " that " + to_string(writer) +
           " wrote through the generic proxy, without fence.proxy.async in between";
  });
}

void SharedMemory::Shadow::note_reader(const Access& access, SharedCell& cell, int level,
                                       size_t index) {
  const Thread& thread = access.thread;
  WarpReaders& readers = cells.readers(level, index, thread.warp);
  const LaneMask warp = LaneMask{1} << thread.warp;
  if ((cell.readers & warp) == 0) {
    cell.readers |= warp;
    readers.other.time = 0;
  } else if (readers.last.lane != static_cast<uint32_t>(thread.lane)) {
    readers.other = readers.last;
  }
  readers.last.time = thread.time;
  readers.last.lane = static_cast<uint32_t>(thread.lane) & 31u;
  readers.last.is_atomic = access.is_atomic();
  readers.last.location = access.location & ((1u << 26) - 1);
}

void SharedMemory::Shadow::check_write(const Access& access, const SharedCell& cell, int level,
                                       size_t index) {
  check_mbarrier(access, cell, level, index, "writes");
  if (cell.writer != SharedCell::kNobody) {
    const Epoch written{cell.writer, cell.time};
    if ((cell.flags & SharedCell::kInFlight) != 0) {
      report(FindingKind::in_flight, access, cell.location, [=, this] {
        return name(access) + " writes" + where(access, level, index) + " while a cp.async of " +
               slot_name(written.slot) + " to it has not been waited for";
      });
    } else if (!is_own(access, written.slot) && !knows(access, written) &&
               !(access.is_atomic() && (cell.flags & SharedCell::kAtomic) != 0)) {
      report(FindingKind::race, access, cell.location, [=, this] {
        return name(access) + " writes" + where(access, level, index) + " over what " +
               slot_name(written.slot) + " wrote" + kUnsynchronised;
      });
    } else if (access.kind == SharedAccess::async_proxy) {
      // A generic write may come last all the same; generic reads are over where threads say so.
      check_proxy(access, cell, level, index, "writes");
    }
  }
  if (cell.readers != 0) check_readers(access, cell, level, index);
}

void SharedMemory::Shadow::check_readers(const Access& access, const SharedCell& cell, int level,
                                         size_t index) {
  for (LaneMask warps = cell.readers; warps != 0; warps &= warps - 1) {
    const int warp = std::countr_zero(warps);
    const WarpReaders& readers = cells.readers(level, index, warp);
    for (const SharedReader& reader : {readers.last, readers.other}) {
      if (reader.time == 0 || (access.is_atomic() && reader.is_atomic)) continue;
      const int slot = warp * kLanes + static_cast<int>(reader.lane);
      if (is_own(access, slot) || knows(access, {slot, reader.time})) continue;
      report(FindingKind::race, access, reader.location, [=, this] {
        return name(access) + " writes" + where(access, level, index) + " over what " +
               slot_name(slot) + " read" + kUnsynchronised;
      });
      break;
    }
  }
}

void SharedMemory::Shadow::check_async_readers(const Access& access, int64_t bytes) {
  const uint32_t end = access.begin + static_cast<uint32_t>(bytes);
  for (size_t unit = access.begin >> SharedShadow::kCoarsest; unit << SharedShadow::kCoarsest < end;
       ++unit) {
    for (LaneMask warps = cells.async_warps(unit); warps != 0; warps &= warps - 1) {
      const AsyncReads& reads = cells.async_reads(unit, std::countr_zero(warps));
      const auto writes = [&] {
        return name(access) + " writes" + where(access, SharedShadow::kCoarsest, unit);
      };
      if (reads.under_way > 0) {
        report(FindingKind::in_flight, access, reads.location, [&] {
          return writes() + " while an asynchronous operation of " + slot_name(reads.issuer) +
                 " may still be reading it";
        });
      } else if (!knows(access, {reads.slot, reads.time})) {
        report(FindingKind::race, access, reads.location, [&] {
          const bool is_thread = reads.slot < block.num_threads();
          return writes() + " over what " + (is_thread ? "an asynchronous operation of " : "") +
                 slot_name(reads.slot) + " read" + kUnsynchronised;
        });
      }
    }
  }
}

void SharedMemory::Shadow::write(const Access& access, int64_t bytes) {
  const bool is_own = access.writer.slot < block.num_threads();
  uint8_t flags = SharedCell::kInitialised;
  if (access.kind == SharedAccess::async_copy) flags |= SharedCell::kInFlight;
  if (access.is_atomic()) flags |= SharedCell::kAtomic;
  if (access.kind != SharedAccess::async_proxy) flags |= SharedCell::kGeneric;
  if (cells.has_async_reads()) check_async_readers(access, bytes);
  for_cells(access.begin, bytes, [&](SharedCell& cell, int level, size_t index) {
    check_write(access, cell, level, index);
    cell.writer = static_cast<uint16_t>(access.writer.slot);
    cell.time = access.writer.time;
    cell.location = access.location;
    cell.flags = flags | (cell.flags & SharedCell::kMbarrier);
    if (is_own && !access.is_atomic()) cell.readers = 0;
  });
}

SharedMemory::SharedMemory(Block& block, int64_t bytes)
    : shadow_(std::make_unique<Shadow>(block, bytes)), bytes_(shadow_->data.data()) {}
SharedMemory::~SharedMemory() = default;

int64_t SharedMemory::bytes() const {
  return static_cast<int64_t>(shadow_->data.size());
}

void SharedMemory::require(const Thread& thread, uint32_t address, int64_t bytes, int64_t alignment,
                           const char* what, const Location& at) {
  const int64_t offset = int64_t{address} - kSharedBase;
  const bool is_inside = offset >= 0 && offset + bytes <= this->bytes();
  // Alignments are powers of two: a division a lane would be most of what this costs.
  if (!is_inside || (address & (alignment - 1)) != 0) {
    refuse(thread, address, bytes, alignment, what, at);
  }
}

void SharedMemory::refuse(const Thread& thread, uint32_t address, int64_t bytes, int64_t alignment,
                          const char* what, const Location& at) {
  const int64_t offset = int64_t{address} - kSharedBase;
  const bool is_inside = offset >= 0 && offset + bytes <= this->bytes();
  std::string text = std::string(what) + " of " + std::to_string(bytes) + " bytes at ";
  text += offset >= 0 ? place(static_cast<uint32_t>(offset)).substr(1)
                      : "shared address " + hexadecimal(address);
  if (!is_inside) {
    const int64_t past = offset + bytes - this->bytes();
    text += offset < 0 ? ", " + std::to_string(-offset) + " bytes before the"
                       : ", " + std::to_string(past) + " bytes past the end of the";
    text += " block's " + std::to_string(this->bytes()) + " bytes of shared memory";
  } else {
    text += ", expected a multiple of " + std::to_string(alignment);
  }
  text += ", by " + to_string(thread);
  Launch& launch = shadow_->block.launch;
  launch.report(is_inside ? FindingKind::misaligned : FindingKind::out_of_bounds, shadow_->block,
                text, at);
  throw Fault(is_inside ? Fault::Kind::misaligned : Fault::Kind::illegal_address, text);
}

void SharedMemory::access(Warp& warp, const Request& request, SharedUse use, SharedAccess kind,
                          const Location& at) {
  const char* what = use == SharedUse::read ? "read" : use == SharedUse::write ? "write" : "atomic";
  const uint32_t location = shadow_->lines.number(at);
  for (LaneMask lanes = request.lanes; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    Thread& thread = warp.thread(lane);
    const auto address = static_cast<uint32_t>(request.address[static_cast<size_t>(lane)]);
    require(thread, address, request.bytes, request.bytes, what, at);
    const Shadow::Access one{thread, kind, at, location, address - kSharedBase, thread.now()};
    if (use != SharedUse::write) shadow_->read(one, request.bytes);
    if (use != SharedUse::read) shadow_->write(one, request.bytes);
  }
}

void SharedMemory::read(Thread& thread, uint32_t address, int64_t bytes, SharedAccess kind,
                        const Location& at) {
  shadow_->read({thread, kind, at, shadow_->lines.number(at), address - kSharedBase}, bytes);
}

void SharedMemory::write(Thread& thread, uint32_t address, int64_t bytes, SharedAccess kind,
                         const Location& at) {
  shadow_->write({thread, kind, at, shadow_->lines.number(at), address - kSharedBase, thread.now()},
                 bytes);
}

void SharedMemory::write_as(Thread& issuer, Epoch writer, uint32_t address, int64_t bytes,
                            const Location& at) {
  shadow_->write({issuer, SharedAccess::async_proxy, at, shadow_->lines.number(at),
                  address - kSharedBase, writer},
                 bytes);
}

void SharedMemory::land(Thread& thread, uint32_t address, int64_t bytes) {
  shadow_->for_cells(address - kSharedBase, bytes, [&](SharedCell& cell, int, size_t) {
    constexpr uint8_t kOwn = SharedCell::kInitialised | SharedCell::kGeneric;
    cell.flags = kOwn | (cell.flags & SharedCell::kMbarrier);
    cell.writer = static_cast<uint16_t>(thread.index);
    cell.time = thread.time;
  });
}

void SharedMemory::set_mbarrier(uint32_t address, bool is_live) {
  constexpr int64_t kBytes = 8;
  shadow_->for_cells(address - kSharedBase, kBytes, [&](SharedCell& cell, int, size_t) {
    const unsigned others = cell.flags & ~unsigned{SharedCell::kMbarrier};
    cell.flags = static_cast<uint8_t>(is_live ? others | SharedCell::kMbarrier : others);
  });
}

void SharedMemory::begin_async_read(Thread& issuer, uint32_t address, int64_t bytes,
                                    const Location& at) {
  const Shadow::Access access{issuer, SharedAccess::async_proxy, at, shadow_->lines.number(at),
                              address - kSharedBase};
  shadow_->for_cells(access.begin, bytes, [&](SharedCell& cell, int level, size_t index) {
    shadow_->check_read(access, cell, level, index);
  });
  const size_t end = (access.begin + static_cast<uint32_t>(bytes) + 15) >> SharedShadow::kCoarsest;
  for (size_t unit = access.begin >> SharedShadow::kCoarsest; unit < end; ++unit) {
    AsyncReads& reads = shadow_->cells.async_reads(unit, issuer.warp);
    ++reads.under_way;
    reads.issuer = issuer.index;
    reads.location = access.location;
  }
}

void SharedMemory::end_async_read(const Thread& issuer, uint32_t address, int64_t bytes,
                                  Epoch epoch) {
  const uint32_t offset = address - kSharedBase;
  const size_t end = (offset + static_cast<uint32_t>(bytes) + 15) >> SharedShadow::kCoarsest;
  for (size_t unit = offset >> SharedShadow::kCoarsest; unit < end; ++unit) {
    AsyncReads& reads = shadow_->cells.async_reads(unit, issuer.warp);
    --reads.under_way;
    reads.slot = epoch.slot;
    reads.time = epoch.time;
  }
}

}  // namespace wide::simt
