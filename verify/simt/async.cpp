// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Who does what: copies, mbarriers, bulk copies and products are four parts; here is what concerns
// more than one of them.
#include "verify/simt/async.hpp"

#include "verify/simt/bulk.hpp"
#include "verify/simt/cp_async.hpp"
#include "verify/simt/mbarrier.hpp"
#include "verify/simt/wgmma.hpp"

namespace wide::simt {

namespace {

constexpr int kTestsBeforeLanding = 64;

}  // namespace

struct Async::State {
  explicit State(Block& owner)
      : block(owner),
        mbarriers(owner),
        copies(owner, mbarriers),
        bulk(owner, mbarriers),
        wgmma(owner) {}

  Block& block;
  Mbarriers mbarriers;
  CopyGroups copies;
  BulkCopies bulk;
  Wgmma wgmma;
  int num_failed_tests = 0;  ///< since somebody blocked on an mbarrier
};

Async::Async(Block& block) : state_(std::make_unique<State>(block)) {}
Async::~Async() = default;

// ---- cp.async

void Async::copy(Thread& thread, uint32_t shared, uint64_t global, int bytes, int source_bytes,
                 Location at) {
  state_->copies.copy(thread, shared, global, bytes, source_bytes, at);
}
void Async::commit(Thread& thread) {
  state_->copies.commit(thread);
}
void Async::wait_group(Thread& thread, int pending) {
  state_->copies.wait_group(thread, pending);
}
void Async::wait_all(Thread& thread) {
  state_->copies.wait_all(thread);
}
void Async::copy_arrive(Thread& thread, uint32_t mbarrier, bool is_counted, Location at) {
  state_->copies.copy_arrive(thread, mbarrier, is_counted, at);
}

// ---- mbarriers

void Async::init(Thread& thread, uint32_t mbarrier, uint32_t count, Location at) {
  state_->mbarriers.init(thread, mbarrier, count, at);
}
void Async::invalidate(Thread& thread, uint32_t mbarrier, Location at) {
  state_->mbarriers.invalidate(thread, mbarrier, at);
}
void Async::expect_bytes(Thread& thread, uint32_t mbarrier, uint32_t bytes, Location at) {
  state_->mbarriers.expect_bytes(thread, mbarrier, bytes, at);
}
uint64_t Async::arrive(Thread& thread, uint32_t mbarrier, uint32_t count, uint32_t expected_bytes,
                       Location at) {
  return state_->mbarriers.arrive(thread, mbarrier, count, expected_bytes, at);
}
bool Async::test_wait(Warp& warp, LaneMask lanes, uint32_t mbarrier, uint32_t parity, Location at) {
  if (state_->mbarriers.test_wait(warp, lanes, mbarrier, parity, at)) return true;
  // A loop that only tests never blocks: what it tests for must come all the same.
  if (++state_->num_failed_tests < kTestsBeforeLanding) return false;
  state_->num_failed_tests = 0;
  return progress() && state_->mbarriers.test_wait(warp, lanes, mbarrier, parity, at);
}
void Async::wait(Warp& warp, Path& path, uint32_t mbarrier, Location at) {
  state_->num_failed_tests = 0;
  state_->mbarriers.wait(warp, path, mbarrier, at);
}
bool Async::is_out_of_time(Path& path) {
  return state_->mbarriers.is_out_of_time(path);
}
bool Async::pass_time() {
  return state_->mbarriers.pass_time();
}
void Async::fence_mbarrier_init(Thread& thread) {
  state_->mbarriers.fence_init(thread);
  state_->mbarriers.fence_init_for_cluster(thread);
}
void Async::meet_cluster(const Thread& thread, uint32_t phase) {
  state_->mbarriers.meet_cluster(thread, phase);
}
void Async::fence_proxy(Thread& thread) {
  state_->mbarriers.fence_init(thread);
  thread.proxy_known = thread.known;
  thread.proxy_fences.push_back(thread.time);
  ++thread.time;  // what the thread writes from here on, the fence does not cover
}

// ---- bulk copies and tiles

void Async::load_tile(Thread& thread, uint32_t shared, uint64_t tensor_map,
                      std::span<const int32_t> coordinates, uint32_t mbarrier, Location at,
                      std::span<Block* const> targets) {
  state_->bulk.load_tile(thread, shared, tensor_map, coordinates, mbarrier, at, targets);
}
void Async::store_tile(Thread& thread, uint64_t tensor_map, std::span<const int32_t> coordinates,
                       uint32_t shared, Location at) {
  state_->bulk.store_tile(thread, tensor_map, coordinates, shared, at);
}
void Async::load_bulk(Thread& thread, uint32_t shared, uint64_t global, int64_t bytes,
                      uint32_t mbarrier, Location at, std::span<Block* const> targets) {
  state_->bulk.load_bulk(thread, shared, global, bytes, mbarrier, at, targets);
}
void Async::begin_load(Thread& thread, const BulkRegion& region, uint32_t mbarrier, Location at) {
  state_->bulk.begin_load(thread, region, mbarrier, at);
}
void Async::store_bulk(Thread& thread, uint64_t global, uint32_t shared, int64_t bytes,
                       Location at) {
  state_->bulk.store_bulk(thread, global, shared, bytes, at);
}
void Async::commit_stores(Thread& thread) {
  state_->bulk.commit_stores(thread);
}
void Async::wait_stores(Thread& thread, int pending, bool only_read) {
  state_->bulk.wait_stores(thread, pending, only_read);
}
void Async::prefetch_tile(Thread& thread, uint64_t tensor_map, std::span<const int32_t> coordinates,
                          Location at) {
  state_->bulk.prefetch_tile(thread, tensor_map, coordinates, at);
}
void Async::prefetch_bulk(Thread& thread, uint64_t global, int64_t bytes, Location at) {
  state_->bulk.prefetch_bulk(thread, global, bytes, at);
}

// ---- warpgroup matrix products

void Async::wgmma_fence(Warp& warp, Location) {
  state_->wgmma.fence(warp);
}
void Async::wgmma(Warp& warp, const WgmmaShape& shape, const WgmmaOperands& operands, Location at) {
  state_->wgmma.issue(warp, shape, operands, at);
}
void Async::wgmma_commit(Warp& warp, Location) {
  state_->wgmma.commit(warp);
}
void Async::wgmma_wait(Warp& warp, int pending, Location at) {
  state_->wgmma.wait(warp, pending, at);
}
bool Async::owns_register(const Warp& warp, const uint32_t* lanes) const {
  return state_->wgmma.owns_register(warp, lanes);
}

// ---- landing

bool Async::progress() {
  Launch& launch = state_->block.launch;
  // What somebody may wait for on an mbarrier; the rest is carried out by its own wait at the
  // latest.
  const bool has_loads = state_->bulk.has_loads(), has_arrivals = state_->copies.has_arrivals();
  if (launch.options.delivery == Delivery::random && launch.random() % 2 == 0) {
    if (state_->wgmma.is_under_way()) return state_->wgmma.progress(), true;
    if (state_->bulk.has_unread_stores()) return state_->bulk.progress_store(), true;
  }
  if (has_loads && (!has_arrivals || launch.options.seed == 0 || launch.random() % 2 == 0)) {
    state_->bulk.progress_load();
    return true;
  }
  if (has_arrivals) state_->copies.progress();
  return has_arrivals;
}

void Async::end_of_block() {
  state_->bulk.end_of_block();
  state_->copies.end_of_block();
  state_->mbarriers.end_of_block();
  state_->wgmma.end_of_block();
}

std::string Async::describe() const {
  return state_->mbarriers.describe();
}

}  // namespace wide::simt
