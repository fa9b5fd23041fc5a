// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Sums of counters over launches.
#include "verify/simt/counters.hpp"

#include <algorithm>

namespace wide::simt {

namespace {

// Every plain number of Counters: a new one is added here too.
constexpr int64_t Counters::*kNumbers[] = {
    &Counters::load_requests,       &Counters::load_sectors,
    &Counters::load_ideal_sectors,  &Counters::store_requests,
    &Counters::store_sectors,       &Counters::store_ideal_sectors,
    &Counters::atomic_requests,     &Counters::atomic_sectors,
    &Counters::async_copy_sectors,  &Counters::async_copy_ideal_sectors,
    &Counters::async_copy_bytes,    &Counters::bulk_load_bytes,
    &Counters::bulk_store_bytes,    &Counters::bulk_prefetch_bytes,
    &Counters::unique_read_bytes,   &Counters::unique_write_bytes,
    &Counters::shared_load_passes,  &Counters::shared_load_extra,
    &Counters::shared_store_passes, &Counters::shared_store_extra,
    &Counters::matrix_passes,       &Counters::matrix_extra,
    &Counters::mma_flops,           &Counters::wgmma_flops,
    &Counters::block_barriers,      &Counters::register_reallocations,
};
static_assert(sizeof(Counters) == sizeof(Counters::instructions) +
                                      sizeof(kNumbers) / sizeof(kNumbers[0]) * sizeof(int64_t) +
                                      sizeof(Counters::buffers),
              "a number of Counters is missing in kNumbers");

}  // namespace

const char* name(InstructionClass c) {
  constexpr const char* kNames[kInstructionClasses] = {"integer", "fp32",        "fp64",  "half",
                                                       "special", "convert",     "move",  "memory",
                                                       "control", "synchronise", "tensor"};
  return kNames[static_cast<size_t>(c)];
}

void Counters::add(const Counters& other) {
  for (size_t i = 0; i < instructions.size(); ++i) instructions[i] += other.instructions[i];
  for (int64_t Counters::*number : kNumbers) this->*number += other.*number;
  for (const BufferTraffic& traffic : other.buffers) {
    const auto same = std::find_if(buffers.begin(), buffers.end(), [&](const BufferTraffic& mine) {
      return mine.name == traffic.name;
    });
    if (same == buffers.end()) {
      buffers.push_back(traffic);
      continue;
    }
    same->unique_read_bytes += traffic.unique_read_bytes;
    same->unique_write_bytes += traffic.unique_write_bytes;
    same->read_sectors += traffic.read_sectors;
    same->write_sectors += traffic.write_sectors;
    same->reread_bytes += traffic.reread_bytes;
  }
}

}  // namespace wide::simt
