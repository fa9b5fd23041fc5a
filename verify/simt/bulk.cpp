// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The shadow of shared memory takes a load's writes when it is issued, in the name of the mbarrier
// at the end of its phase; the data come when it lands. A store's writes to global memory count
// from the wait for its results: before that nobody may rely on them.
#include "verify/simt/bulk.hpp"

#include <cstring>
#include <string>

#include "verify/simt/async.hpp"
#include "verify/simt/global_memory.hpp"
#include "verify/simt/mbarrier.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::simt {

namespace {

constexpr int64_t kTileAlignment = 128, kSectorBytes = 32;

int64_t sectors(uint64_t address, int64_t bytes) {
  return static_cast<int64_t>((address + static_cast<uint64_t>(bytes) - 1) / kSectorBytes -
                              address / kSectorBytes + 1);
}

[[noreturn]] void refuse(const Thread& thread, const std::string& text, Location at) {
  Block& block = *thread.block;
  block.launch.report(FindingKind::tma, block, text + ", by " + to_string(thread), at);
  throw Fault(Fault::Kind::illegal_instruction, text);
}

/// In a kernel's parameters, or in device memory.
TensorMap fetch_map(const Thread& thread, uint64_t address, const char* what, Location at) {
  Launch& launch = thread.block->launch;
  const auto first = reinterpret_cast<uint64_t>(launch.parameters.data());
  const std::byte* bytes = nullptr;
  if (address - first < launch.parameters.size() &&
      address - first + sizeof(TensorMap) <= launch.parameters.size()) {
    if ((address - first) % alignof(TensorMap) != 0) {
      refuse(thread,
             std::string(what) + ": the tensor map is at byte " + std::to_string(address - first) +
                 " of the parameters, expected a multiple of 64",
             at);
    }
    bytes = launch.parameters.data() + (address - first);
  } else {
    launch.memory.require(thread, address, sizeof(TensorMap), alignof(TensorMap), "tensor map", at);
    bytes = launch.memory.data(address);
  }
  TensorMap map;
  std::memcpy(&map, bytes, sizeof map);
  if (map.magic != TensorMap::kMagic) {
    refuse(thread, std::string(what) + ": its tensor map is none that the driver encoded", at);
  }
  return map;
}

void require_pieces(const Thread& thread, int64_t bytes, const char* what, Location at) {
  if (bytes > 0 && bytes % kPiece == 0) return;
  refuse(thread,
         std::string(what) + " of " + std::to_string(bytes) + " bytes, expected a multiple of 16",
         at);
}

/// A box of a tensor map, to or from `shared`.
BulkRegion box_of(const Thread& thread, uint32_t shared, uint64_t tensor_map,
                  std::span<const int32_t> coordinates, const char* what, Location at) {
  const TensorMap map = fetch_map(thread, tensor_map, what, at);
  if (map.rank != coordinates.size()) {
    refuse(thread,
           std::string(what) + " with " + std::to_string(coordinates.size()) +
               " coordinates of a tensor map of rank " + std::to_string(map.rank),
           at);
  }
  if (coordinates[0] * map.element_bytes % kPiece != 0) {
    refuse(thread,
           std::string(what) + " at coordinate " + std::to_string(coordinates[0]) + " of " +
               std::to_string(map.element_bytes) +
               "-byte elements, expected a box that begins at a "
               "multiple of 16 bytes",
           at);
  }
  const std::string error = tensor_map_error(map);
  if (!error.empty()) refuse(thread, std::string(what) + ": " + error, at);
  const int inner = map.box[0] * map.element_bytes;
  const int span = kPiece << static_cast<int>(map.swizzle);
  if (map.swizzle != Swizzle::none && inner != span) {
    throw Unsupported(std::string(what) + " at " + to_string(at) + ": an inner box of " +
                      std::to_string(inner) + " bytes under a swizzle of " + std::to_string(span));
  }
  return {shared, map, coordinates};
}

}  // namespace

BulkRegion BulkCopies::tile(const Thread& thread, uint32_t shared, uint64_t tensor_map,
                            std::span<const int32_t> coordinates, const char* what,
                            Location at) const {
  const BulkRegion region = box_of(thread, shared, tensor_map, coordinates, what, at);
  block_.shared->require(thread, shared, region.bytes(), kTileAlignment, what, at);
  return region;
}

bool BulkCopies::lands_at_once() {
  Launch& launch = block_.launch;
  return launch.options.delivery == Delivery::eager ||
         (launch.options.delivery == Delivery::random && launch.random() % 2 == 0);
}

// ---- loads

void BulkCopies::load_tile(Thread& thread, uint32_t shared, uint64_t tensor_map,
                           std::span<const int32_t> coordinates, uint32_t mbarrier, Location at,
                           std::span<Block* const> targets) {
  load(thread, tile(thread, shared, tensor_map, coordinates, "tile load", at), mbarrier, at,
       targets);
}

void BulkCopies::load_bulk(Thread& thread, uint32_t shared, uint64_t global, int64_t bytes,
                           uint32_t mbarrier, Location at, std::span<Block* const> targets) {
  require_pieces(thread, bytes, "bulk load", at);
  block_.shared->require(thread, shared, bytes, kPiece, "bulk load", at);
  block_.launch.memory.require(thread, global, bytes, kPiece, "bulk load", at);
  load(thread, BulkRegion(shared, global, bytes), mbarrier, at, targets);
}

/// What several blocks get is read once.
void BulkCopies::load(Thread& thread, const BulkRegion& region, uint32_t mbarrier, Location at,
                      std::span<Block* const> targets) {
  Launch& launch = block_.launch;
  region.for_rows([&](const BulkRegion::Row& row) {
    const int64_t bytes = row.end - row.begin;
    if (bytes == 0) return;
    launch.memory.require(thread, row.global, bytes, 1, "tile load", at);
    launch.memory.read(thread, row.global, bytes, GlobalAccess::weak, at);
    launch.memory.count_request(row.global, sectors(row.global, bytes), false);
    launch.counters.bulk_load_bytes += bytes;
  });
  if (targets.empty()) begin_load(thread, region, mbarrier, at);
  for (Block* target : targets) target->async->begin_load(thread, region, mbarrier, at);
}

void BulkCopies::begin_load(Thread& thread, const BulkRegion& region, uint32_t mbarrier,
                            Location at) {
  const int index = mbarriers_.find(thread, mbarrier, "bulk load", at);
  if (index < 0) return;
  mbarriers_.require_visible(thread, index, "bulk load", at);
  const Epoch epoch = mbarriers_.phase_end(index);
  block_.shared->write_as(thread, epoch, region.shared(), region.bytes(), at);
  loads_.push_back({region, &thread, index, epoch, at});
  if (lands_at_once()) {
    land(loads_.size() - 1);
  } else {
    std::memset(block_.shared->at(region.shared()), 0xff, static_cast<size_t>(region.bytes()));
  }
}

void BulkCopies::land(size_t load) {
  const Load done = loads_[load];
  loads_.erase(loads_.begin() + static_cast<std::ptrdiff_t>(load));
  const BulkRegion& region = done.region;
  const Epoch now = mbarriers_.phase_end(done.mbarrier);
  if (now.time != done.epoch.time) {
    Thread& thread = *done.thread;
    block_.launch.report(FindingKind::mbarrier, block_,
                         "a bulk load of " + name_in(block_, thread) +
                             " lands after its mbarrier's phase was complete: the phase was told "
                             "to expect fewer bytes",
                         done.at);
    block_.shared->write_as(thread, now, region.shared(), region.bytes(), done.at);
  }
  std::byte* to = block_.shared->at(region.shared());
  std::vector<std::byte> partial(static_cast<size_t>(region.row_bytes()));
  region.for_rows([&](const BulkRegion::Row& row) {
    const auto bytes = static_cast<size_t>(row.end - row.begin);
    const std::byte* from = partial.data();
    if (row.end - row.begin == region.row_bytes()) {
      from = block_.launch.memory.data(row.global);
    } else {
      region.fill(partial.data(), region.row_bytes());
      if (bytes > 0) {
        std::memcpy(partial.data() + row.begin, block_.launch.memory.data(row.global), bytes);
      }
    }
    region.scatter(to, row.index, from);
  });
  mbarriers_.complete_bytes(done.mbarrier, region.bytes());
}

void BulkCopies::progress_load() {
  Launch& launch = block_.launch;
  land(launch.options.seed != 0 ? launch.random() % loads_.size() : 0);
}

// ---- prefetches into L2: nobody's values depend on them, but their addresses must be right. They
// may come before the wait for the kernel before, since every write goes through L2.

void BulkCopies::prefetch(const Thread& thread, const BulkRegion& region, const char* what,
                          Location at) {
  region.for_rows([&](const BulkRegion::Row& row) {
    const int64_t bytes = row.end - row.begin;
    if (bytes > 0) block_.launch.memory.require(thread, row.global, bytes, 1, what, at);
    block_.launch.counters.bulk_prefetch_bytes += bytes;
  });
}

void BulkCopies::prefetch_tile(const Thread& thread, uint64_t tensor_map,
                               std::span<const int32_t> coordinates, Location at) {
  constexpr const char* kWhat = "tile prefetch";
  prefetch(thread, box_of(thread, 0, tensor_map, coordinates, kWhat, at), kWhat, at);
}

void BulkCopies::prefetch_bulk(const Thread& thread, uint64_t global, int64_t bytes, Location at) {
  constexpr const char* kWhat = "bulk prefetch";
  require_pieces(thread, bytes, kWhat, at);
  block_.launch.memory.require(thread, global, bytes, kPiece, kWhat, at);
  prefetch(thread, BulkRegion(0, global, bytes), kWhat, at);
}

// ---- stores

void BulkCopies::store_tile(Thread& thread, uint64_t tensor_map,
                            std::span<const int32_t> coordinates, uint32_t shared, Location at) {
  begin_store(thread, tile(thread, shared, tensor_map, coordinates, "tile store", at).as_store(),
              at);
}

void BulkCopies::store_bulk(Thread& thread, uint64_t global, uint32_t shared, int64_t bytes,
                            Location at) {
  require_pieces(thread, bytes, "bulk store", at);
  block_.shared->require(thread, shared, bytes, kPiece, "bulk store", at);
  block_.launch.memory.require(thread, global, bytes, kPiece, "bulk store", at);
  begin_store(thread, BulkRegion(shared, global, bytes), at);
}

int64_t& BulkCopies::num_committed(const Thread& thread) {
  if (num_committed_.empty()) num_committed_.resize(block_.threads.size());
  return num_committed_[static_cast<size_t>(thread.index)];
}

void BulkCopies::begin_store(Thread& thread, const BulkRegion& region, Location at) {
  region.for_rows([&](const BulkRegion::Row& row) {
    if (row.begin == row.end) return;
    block_.launch.memory.require(thread, row.global, row.end - row.begin, 1, "tile store", at);
  });
  block_.shared->begin_async_read(thread, region.shared(), region.bytes(), at);
  stores_.push_back({region, thread.index, num_committed(thread), at});
  ++num_unread_;
  if (lands_at_once()) read_source(stores_.back());
}

void BulkCopies::commit_stores(Thread& thread) {
  ++num_committed(thread);
}

void BulkCopies::read_source(Store& store) {
  if (store.state != StoreState::begun) return;
  const BulkRegion& region = store.region;
  const std::byte* from = block_.shared->at(region.shared());
  store.data.resize(static_cast<size_t>(region.bytes()));
  for (int64_t i = 0; i < region.num_rows(); ++i) {
    region.gather(from, i, store.data.data() + i * region.row_bytes());
  }
  store.state = StoreState::has_read;
  --num_unread_;
}

/// The issuing thread has waited: whoever learns from it may write there again.
void BulkCopies::release_source(Store& store) {
  if (store.state == StoreState::is_released) return;
  read_source(store);
  const Thread& thread = block_.threads[static_cast<size_t>(store.thread)];
  block_.shared->end_async_read(thread, store.region.shared(), store.region.bytes(), thread.now());
  store.state = StoreState::is_released;
}

void BulkCopies::write_results(Store& store) {
  Launch& launch = block_.launch;
  Thread& thread = block_.threads[static_cast<size_t>(store.thread)];
  store.region.for_rows([&](const BulkRegion::Row& row) {
    const int64_t bytes = row.end - row.begin;
    if (bytes == 0) return;
    const std::byte* from = store.data.data() + row.index * store.region.row_bytes() + row.begin;
    launch.memory.write(thread, row.global, bytes, GlobalAccess::weak, store.at);
    launch.memory.count_request(row.global, sectors(row.global, bytes), true);
    launch.counters.bulk_store_bytes += bytes;
    std::memcpy(launch.memory.data(row.global), from, static_cast<size_t>(bytes));
  });
}

void BulkCopies::wait_stores(Thread& thread, int pending, bool only_read) {
  if (stores_.empty()) return;
  const int64_t end = num_committed(thread) - pending;
  const auto is_due = [&](const Store& store) {
    return store.thread == thread.index && store.group < end;
  };
  for (Store& store : stores_) {
    if (!is_due(store)) continue;
    release_source(store);
    if (!only_read) write_results(store);
  }
  if (!only_read) std::erase_if(stores_, is_due);
}

void BulkCopies::progress_store() {
  auto skip = static_cast<int64_t>(block_.launch.random() % static_cast<uint64_t>(num_unread_));
  for (Store& store : stores_) {
    if (store.state != StoreState::begun || skip-- > 0) continue;
    read_source(store);
    return;
  }
}

void BulkCopies::end_of_block() {
  for (const Load& load : loads_) {
    block_.launch.report(
        FindingKind::unfinished, block_,
        "ends while a bulk load of " + name_in(block_, *load.thread) + " is under way", load.at);
    mbarriers_.complete_bytes(load.mbarrier, load.region.bytes());  // said of the load
  }
  for (Store& store : stores_) {
    if (store.state != StoreState::is_released) {
      const Thread& thread = block_.threads[static_cast<size_t>(store.thread)];
      const bool is_committed = store.group < num_committed(thread);
      block_.launch.report(FindingKind::unfinished, block_,
                           "ends while a bulk store of " + to_string(thread) +
                               " may still read shared memory, which was never " +
                               (is_committed ? "waited for" : "committed to a group"),
                           store.at);
      release_source(store);
    }
    write_results(store);  // the end of the grid waits for what needs no shared memory
  }
  loads_.clear();
  stores_.clear();
}

}  // namespace wide::simt
