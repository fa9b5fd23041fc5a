// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A plain write that knows of all earlier readers and writers stands for them from then on; strong
// ones do not, since they are not ordered with each other. Of readers, and of strong writers, that
// do not know of each other two are kept, as far apart as can be: what does not know of all of them
// hardly knows of both.
#include "verify/simt/global_check.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "verify/simt/text.hpp"

namespace wide::simt {

namespace {

std::string thread_name(int thread) {
  return "thread " + std::to_string(thread) + " (warp " + std::to_string(thread / kLanes) +
         " lane " + std::to_string(thread % kLanes) + ")";
}

std::string place_in(const Buffer& buffer, int64_t offset) {
  return " " + buffer.info.name + "+" + hexadecimal(static_cast<uint64_t>(offset));
}

}  // namespace

int GlobalChecks::Access::distance(const GlobalToucher& other) const {
  if (other.block != toucher.block) return 3;
  const auto index = static_cast<int>(other.thread);
  if (index / kLanes != thread.warp) return 2;
  return index != thread.index ? 1 : 0;
}

std::string GlobalChecks::Access::place(int64_t offset) const {
  return place_in(buffer, std::max(offset, begin));
}

void GlobalChecks::begin(Launch& launch) {
  launch_ = &launch;
  operation_ = operations.current();
}

GlobalChecks::Access GlobalChecks::access(Buffer& buffer, Thread& thread, int64_t offset,
                                          GlobalAccess kind, Location at) {
  return {buffer,
          thread,
          at,
          offset,
          GlobalToucher{.block = static_cast<uint32_t>(thread.block->linear_index),
                        .time = thread.time,
                        .thread = static_cast<uint32_t>(thread.index) & 0x3ffu,
                        .is_strong = kind == GlobalAccess::strong,
                        .location = lines_.number(at) & ((1u << Locations::kBits) - 1)},
          kind == GlobalAccess::read_only};
}

void GlobalChecks::read(Buffer& buffer, Thread& thread, int64_t offset, int64_t bytes,
                        GlobalAccess kind, Location at) {
  const Access reader = access(buffer, thread, offset, kind, at);
  check_programmatic(reader, "reads", offset);
  buffer.shadow->for_cells(offset, bytes, [&](GlobalCell& cell, int64_t place, int64_t size) {
    read_cell(reader, cell, place, size);
  });
}

void GlobalChecks::write(Buffer& buffer, Thread& thread, int64_t offset, int64_t bytes,
                         GlobalAccess kind, Location at) {
  const Access writer = access(buffer, thread, offset, kind, at);
  check_programmatic(writer, "writes", offset);
  if (buffer.is_read_only) {
    report(FindingKind::read_only_write, writer,
           to_string(thread) + " writes" + writer.place(offset) + ", which may only be read");
  }
  buffer.shadow->for_cells(offset, bytes, [&](GlobalCell& cell, int64_t place, int64_t size) {
    write_cell(writer, cell, place, size);
  });
}

void GlobalChecks::read_cell(const Access& access, GlobalCell& cell, int64_t offset,
                             int64_t bytes) {
  if (cell.is_initialised == 0) {
    report(
        FindingKind::uninitialised_read, access,
        to_string(access.thread) + " reads" + access.place(offset) + ", which nothing has written");
    cell.is_initialised = 1;  // said once
  }
  if (cell.writer_operation == operation_) {
    for (const GlobalToucher& writer : cell.write) check(access, writer, "reads", "wrote", offset);
    if (access.is_read_only) {
      report_read_only(access, "reads", "writes", offset, cell.write[0].location);
    }
  }
  if (cell.reader_operation != operation_) {
    begin_reading(access, cell, offset, bytes);
  } else if (cell.first_block != access.toucher.block) {
    const GlobalToucher& last = cell.read[0];
    // Lanes of one request read the same bytes once.
    const bool is_same_request = access.distance(last) <= 1 && last.time == access.toucher.time &&
                                 last.location == access.toucher.location;
    if (!is_same_request) access.buffer.traffic.reread_bytes += bytes;
  }
  cell.is_read_only |= access.is_read_only ? 1u : 0u;
  note(access, cell.read);
}

void GlobalChecks::begin_reading(const Access& access, GlobalCell& cell, int64_t offset,
                                 int64_t bytes) {
  if (!operations.is_ordered(cell.writer_operation)) {
    report_unordered(access, cell.writer_operation, "reads", "writes", offset,
                     cell.write[0].location);
  }
  note_earlier_reader(cell);
  cell.reader_operation = operation_;
  cell.is_read_only = 0;
  cell.first_block = access.toucher.block;
  cell.read = {};
  launch_->counters.unique_read_bytes += bytes;
  access.buffer.traffic.unique_read_bytes += bytes;
}

void GlobalChecks::note_earlier_reader(GlobalCell& cell) {
  if (cell.reader_operation == 0) return;
  cell.earlier_readers =
      operations.add_reader(cell.earlier_readers, cell.reader_operation) & 0x3fffffffu;
}

void GlobalChecks::write_cell(const Access& access, GlobalCell& cell, int64_t offset,
                              int64_t bytes) {
  if (cell.reader_operation == operation_) {
    for (const GlobalToucher& reader : cell.read) check(access, reader, "writes", "read", offset);
    if (cell.is_read_only != 0) {
      report_read_only(access, "writes", "reads", offset, cell.read[0].location);
    }
  }
  if (cell.writer_operation == operation_) {
    for (const GlobalToucher& writer : cell.write) check(access, writer, "writes", "wrote", offset);
  } else {
    begin_writing(access, cell, offset, bytes);
  }
  if (access.is_strong()) {
    note(access, cell.write);
  } else {
    cell.write = {access.toucher, GlobalToucher{}};
    cell.read = {};
  }
}

void GlobalChecks::begin_writing(const Access& access, GlobalCell& cell, int64_t offset,
                                 int64_t bytes) {
  if (!operations.is_ordered(cell.writer_operation)) {
    report_unordered(access, cell.writer_operation, "writes", "writes", offset,
                     cell.write[0].location);
  }
  if (!operations.is_ordered(cell.reader_operation)) {
    report_unordered(access, cell.reader_operation, "writes", "reads", offset,
                     cell.read[0].location);
  }
  if (cell.earlier_readers != 0) {
    const uint32_t reader = operations.unordered_reader(cell.earlier_readers);
    if (reader != 0) report_unordered(access, reader, "writes", "reads", offset, 0);
    cell.earlier_readers = 0;
  }
  if (cell.reader_operation != operation_) cell.reader_operation = 0;
  cell.writer_operation = operation_;
  cell.write = {};
  cell.is_initialised = 1;
  launch_->counters.unique_write_bytes += bytes;
  access.buffer.traffic.unique_write_bytes += bytes;
}

void GlobalChecks::check_programmatic(const Access& access, const char* verb, int64_t offset) {
  const bool has_waited = access.thread.waited_for_grid;
  if (!launch_->config.is_programmatic || (has_waited && !access.is_read_only)) return;
  report(FindingKind::programmatic_launch, access,
         to_string(access.thread) + " " + verb + access.place(offset) +
             (has_waited ? " by ld.global.nc, which griddepcontrol.wait does not order"
                         : " before griddepcontrol.wait, while the kernel before may still run"));
}

void GlobalChecks::report_race(const Access& access, const GlobalToucher& earlier, const char* verb,
                               const char* earlier_verb, int64_t offset) {
  std::string other = thread_name(static_cast<int>(earlier.thread));
  if (earlier.block != access.toucher.block) {
    const Dim3& grid = launch_->config.grid;
    other += " of block (" + std::to_string(earlier.block % grid.x) + "," +
             std::to_string(earlier.block / grid.x % grid.y) + "," +
             std::to_string(earlier.block / grid.x / grid.y) + ")";
  }
  const bool is_over = verb[0] == 'w';
  report(FindingKind::race, access,
         to_string(access.thread) + " " + verb + (is_over ? " over" : "") + access.place(offset) +
             " that " + other + " " + earlier_verb + kUnsynchronised,
         earlier.location);
}

void GlobalChecks::report_read_only(const Access& access, const char* verb, const char* other_verb,
                                    int64_t offset, uint32_t against) {
  report(FindingKind::race, access,
         to_string(access.thread) + " " + verb + access.place(offset) + ", which its kernel " +
             other_verb + ": ld.global.nc is for what no thread of the grid writes",
         against);
}

void GlobalChecks::report_unordered(const Access& access, uint32_t operation, const char* verb,
                                    const char* earlier_verb, int64_t offset, uint32_t location) {
  report(FindingKind::stream_race, access,
         to_string(access.thread) + " " + verb + access.place(offset) + ", which operation " +
             std::to_string(operations.id(operation)) + " " + earlier_verb +
             ", of another stream and not ordered before this launch",
         location);
}

void GlobalChecks::report(FindingKind kind, const Access& access, const std::string& text,
                          uint32_t against) {
  launch_->report(kind, *access.thread.block, text, access.at, lines_[against]);
}

void GlobalChecks::note(const Access& access, std::array<GlobalToucher, 2>& kept) {
  auto& [last, other] = kept;
  const GlobalToucher& now = access.toucher;
  const bool is_same = last.time == 0 || (last.block == now.block && last.thread == now.thread &&
                                          last.is_strong == now.is_strong);
  if (!is_same &&
      (other.time == 0 || access.distance(last) >= access.distance(other) || access.knows(other))) {
    other = last;
  }
  last = now;
}

void GlobalChecks::host_access(Buffer& buffer, int64_t offset, int64_t bytes, bool is_write,
                               const char* what, Findings& findings) {
  std::set<std::pair<uint32_t, std::string>> reported;  // once each, for all of the range
  const auto unordered = [&](uint32_t operation, const char* verb, int64_t at, uint32_t location) {
    if (!reported.emplace(operation, verb).second) return;
    findings.report(FindingKind::stream_race,
                    std::string(what) + (is_write ? " writes" : " reads") +
                        place_in(buffer, std::max(at, offset)) + ", which operation " +
                        std::to_string(operations.id(operation)) + " " + verb +
                        ", of another stream and not ordered before it",
                    {}, lines_[location]);
  };
  const auto write = [&](GlobalCell& cell, int64_t at) {
    if (!operations.is_ordered(cell.reader_operation)) {
      unordered(cell.reader_operation, "reads", at, cell.read[0].location);
    }
    const uint32_t reader = operations.unordered_reader(cell.earlier_readers);
    if (reader != 0) unordered(reader, "reads", at, 0);
    cell = {};
    cell.writer_operation = operations.current();
    cell.is_initialised = 1;
  };
  buffer.shadow->for_range(offset, bytes, is_write, [&](GlobalCell& cell, int64_t at, int64_t) {
    if (!operations.is_ordered(cell.writer_operation)) {
      unordered(cell.writer_operation, "writes", at, cell.write[0].location);
    }
    if (is_write) {
      write(cell, at);
      return;
    }
    note_earlier_reader(cell);
    cell.reader_operation = operations.current();
    cell.read = {};
  });
}

}  // namespace wide::simt
