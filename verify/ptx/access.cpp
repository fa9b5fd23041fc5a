// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "verify/ptx/access.hpp"

namespace wide::ptx {

namespace {

[[noreturn]] void out_of_window(Step& step, int lane, const char* what, int64_t bytes) {
  const std::string text = std::string(what) + " of " + std::to_string(bytes) + " bytes outside, " +
                           to_string(step.warp.thread(lane));
  step.launch().report(simt::FindingKind::out_of_bounds, step.block(), text, step.in.at);
  throw simt::Fault(simt::Fault::Kind::illegal_address, text);
}

void check_shared(Step& step, const Access& access, Purpose purpose, int64_t order) {
  const auto use = purpose == Purpose::load    ? simt::SharedUse::read
                   : purpose == Purpose::store ? simt::SharedUse::write
                                               : simt::SharedUse::update;
  const bool is_strong = purpose == Purpose::atomic || (order & kStrong) != 0;
  const auto kind = is_strong ? simt::SharedAccess::atomic : simt::SharedAccess::generic;
  step.block().shared->access(step.warp, access, use, kind, step.in.at);
  if (purpose != Purpose::atomic)
    simt::count_shared(step.launch().counters, purpose == Purpose::store, access);
}

void check_global(Step& step, const Access& access, Purpose purpose, int64_t order) {
  simt::GlobalMemory& memory = step.launch().memory;
  const bool is_strong = (order & kStrong) != 0;
  const auto strength = is_strong                  ? simt::GlobalAccess::strong
                        : (order & kReadOnly) != 0 ? simt::GlobalAccess::read_only
                                                   : simt::GlobalAccess::weak;
  const char* what = purpose == Purpose::load    ? "read"
                     : purpose == Purpose::store ? "write"
                                                 : "atomic";
  for_lanes(access.lanes, [&](int lane) {
    simt::Thread& thread = step.warp.thread(lane);
    const uint64_t address = access.address[static_cast<size_t>(lane)];
    memory.require(thread, address, access.bytes, access.bytes, what, step.in.at);
    if (purpose != Purpose::store) {
      if (is_strong) observe(memory, thread, address, order);
      memory.read(thread, address, access.bytes, strength, step.in.at);
    }
    if (purpose != Purpose::load) {
      memory.write(thread, address, access.bytes, strength, step.in.at);
      if (is_strong) publish(memory, thread, address, order);
    }
  });
  const auto kind = purpose == Purpose::load    ? simt::GlobalRequest::load
                    : purpose == Purpose::store ? simt::GlobalRequest::store
                                                : simt::GlobalRequest::atomic;
  simt::count_global(step.launch(), kind, access);
}

}  // namespace

AccessModifiers take_access(Decoder& d) {
  AccessModifiers m;
  const std::string_view space =
      d.take_one({"param::entry", "param::func", "param", "global", "shared::cta",
                  "shared::cluster", "shared", "local", "const"});
  if (space == "shared::cluster") d.refuse("shared memory of other blocks");
  if (space.starts_with("param")) m.window = Window::parameter;
  if (space.starts_with("shared")) m.window = Window::shared;
  if (space == "local") m.window = Window::local;
  if (space == "global" || space == "const") m.window = Window::global;
  d.ignore({"ca",
            "cg",
            "cs",
            "lu",
            "cv",
            "wb",
            "wt",
            "weak",
            "L1::evict_normal",
            "L1::evict_unchanged",
            "L1::evict_first",
            "L1::evict_last",
            "L1::no_allocate",
            "L2::evict_normal",
            "L2::evict_first",
            "L2::evict_last",
            "L2::cache_hint",
            "L2::64B",
            "L2::128B",
            "L2::256B"});
  const std::string_view order =
      d.take_one({"relaxed", "acquire", "release", "acq_rel", "volatile", "mmio"});
  d.ignore({"cta", "cluster", "gpu", "sys"});  // every scope orders alike here
  if (d.take("nc")) m.order = kReadOnly;
  if (!order.empty()) m.order = kStrong;
  if (order == "acquire" || order == "acq_rel") m.order |= kAcquire;
  if (order == "release" || order == "acq_rel") m.order |= kRelease;
  return m;
}

void observe(simt::GlobalMemory& memory, simt::Thread& thread, uint64_t address, int64_t order) {
  const simt::Knowledge* released = memory.published(address);
  if (released == nullptr) return;
  // A relaxed read makes it known at the next fence only.
  simt::Knowledge& learner = (order & kAcquire) != 0 ? thread.known : thread.fence_pending;
  learner.import(*released, thread.block->linear_index);
}

void publish(simt::GlobalMemory& memory, simt::Thread& thread, uint64_t address, int64_t order) {
  if ((order & kRelease) != 0) {
    memory.publish(thread, address, thread.release());
  } else if (thread.has_released) {
    memory.publish(thread, address, thread.fence_released);
  }
}

void check_access(Step& step, const Access& access, Purpose purpose, int64_t order) {
  if (access.window == Window::shared) return check_shared(step, access, purpose, order);
  if (access.window == Window::global) return check_global(step, access, purpose, order);
  const int64_t size = access.window == Window::local
                           ? static_cast<int64_t>(step.warp.local.size()) / simt::kLanes
                           : static_cast<int64_t>(step.launch().parameters.size());
  for_lanes(access.lanes, [&](int lane) {
    const auto address = static_cast<int64_t>(access.address[static_cast<size_t>(lane)]);
    if (address + access.bytes > size) {
      out_of_window(step, lane,
                    access.window == Window::local ? "local access" : "parameter access",
                    access.bytes);
    }
  });
}

}  // namespace wide::ptx
