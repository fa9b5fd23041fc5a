// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a warp's request costs the memory: 32-byte sectors of global memory, passes over the 32
// four-byte banks of shared memory. Requests of 8 and 16 bytes a lane are served a half and a
// quarter of the warp at a time.
#include <algorithm>
#include <array>
#include <bit>

#include "verify/simt/global_memory.hpp"

namespace wide::simt {

namespace {

constexpr uint64_t kSectorBytes = 32, kBankBytes = 4;
constexpr size_t kBanks = 32;

/// Sorted ascending; most requests are.
struct Lanes {
  explicit Lanes(const Request& request) {
    for (LaneMask lanes = request.lanes; lanes != 0; lanes &= lanes - 1) {
      address[count++] = request.address[static_cast<size_t>(std::countr_zero(lanes))];
    }
    const auto end = address.begin() + static_cast<std::ptrdiff_t>(count);
    if (!std::is_sorted(address.begin(), end)) std::sort(address.begin(), end);
  }
  std::array<uint64_t, kLanes> address;
  size_t count = 0;
};

struct SectorCount {
  int64_t sectors = 0, ideal = 0;
};

SectorCount count_sectors(const Lanes& lanes, uint64_t bytes) {
  SectorCount result;
  uint64_t next_sector = 0, covered_to = 0, distinct_bytes = 0;
  for (size_t i = 0; i < lanes.count; ++i) {
    const uint64_t begin = lanes.address[i], end = begin + bytes;
    const uint64_t first = std::max(begin / kSectorBytes, next_sector);
    const uint64_t last = (end - 1) / kSectorBytes;
    if (last >= first) {
      result.sectors += static_cast<int64_t>(last - first + 1);
      next_sector = last + 1;
    }
    distinct_bytes += end - std::clamp(covered_to, begin, end);
    covered_to = std::max(covered_to, end);
  }
  result.ideal = static_cast<int64_t>((distinct_bytes + kSectorBytes - 1) / kSectorBytes);
  return result;
}

/// Whether no two of these lanes touch the same bank, but for neighbours that ask for the same
/// words, which is what most requests come to.
bool is_conflict_free(const Request& request, LaneMask lanes) {
  const uint32_t words = static_cast<uint32_t>(request.bytes + 3) / kBankBytes;
  const uint32_t banks_of_one = (uint32_t{1} << words) - 1;
  uint32_t seen = 0;
  uint64_t before = ~uint64_t{0};
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t address = request.address[static_cast<size_t>(std::countr_zero(lanes))];
    if (address == before) continue;
    before = address;
    // Aligned, so that one lane's banks do not wrap round.
    const uint32_t banks = banks_of_one << (address / kBankBytes % kBanks);
    if ((seen & banks) != 0) return false;
    seen |= banks;
  }
  return true;
}

/// Passes for lanes that are served together: the most different words that one bank must give.
int64_t count_passes(const Request& request, LaneMask lanes) {
  if (is_conflict_free(request, lanes)) return 1;
  std::array<std::array<uint64_t, kLanes>, kBanks> words;
  std::array<uint8_t, kBanks> count{};
  size_t most = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t address = request.address[static_cast<size_t>(std::countr_zero(lanes))];
    const uint64_t last = (address + static_cast<uint64_t>(request.bytes) - 1) / kBankBytes;
    for (uint64_t word = address / kBankBytes; word <= last; ++word) {
      const size_t bank = word % kBanks;
      const auto begin = words[bank].begin(), end = begin + count[bank];
      if (std::find(begin, end, word) != end) continue;
      words[bank][count[bank]++] = word;
      most = std::max<size_t>(most, count[bank]);
    }
  }
  return static_cast<int64_t>(most);
}

}  // namespace

void count_global(Launch& launch, GlobalRequest kind, const Request& request) {
  if (request.lanes == 0 || request.bytes <= 0) return;
  const Lanes lanes(request);
  const SectorCount count = count_sectors(lanes, static_cast<uint64_t>(request.bytes));
  Counters& counters = launch.counters;
  switch (kind) {
    case GlobalRequest::load:
      ++counters.load_requests;
      counters.load_sectors += count.sectors;
      counters.load_ideal_sectors += count.ideal;
      break;
    case GlobalRequest::store:
      ++counters.store_requests;
      counters.store_sectors += count.sectors;
      counters.store_ideal_sectors += count.ideal;
      break;
    case GlobalRequest::atomic:
      ++counters.atomic_requests;
      counters.atomic_sectors += count.sectors;
      break;
    case GlobalRequest::async_copy:
      counters.async_copy_sectors += count.sectors;
      counters.async_copy_ideal_sectors += count.ideal;
      break;
  }
  const bool is_write = kind == GlobalRequest::store || kind == GlobalRequest::atomic;
  launch.memory.count_request(lanes.address[0], count.sectors, is_write);
}

void count_shared(Counters& counters, bool is_store, const Request& request) {
  const int together = request.bytes <= 4 ? kLanes : request.bytes == 8 ? kLanes / 2 : kLanes / 4;
  const LaneMask first = together == kLanes ? kAllLanes : (LaneMask{1} << together) - 1;
  for (int lane = 0; lane < kLanes; lane += together) {
    const LaneMask lanes = request.lanes & first << lane;
    if (lanes == 0) continue;
    const int64_t passes = count_passes(request, lanes);
    (is_store ? counters.shared_store_passes : counters.shared_load_passes) += passes;
    (is_store ? counters.shared_store_extra : counters.shared_load_extra) += passes - 1;
  }
}

}  // namespace wide::simt
