// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// cp.async, mbarriers, bulk copies and tiles: the instructions' arguments, handed to the block's
// asynchronous engine lane by lane.
#include "verify/simt/async.hpp"

#include <bit>
#include <cstdlib>

#include "verify/ptx/access.hpp"
#include "verify/ptx/kernel.hpp"
#include "verify/simt/cluster.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;
enum Note : size_t { kBytes, kNote1, kNote2, kNote3 };
constexpr Note kMaskArgument = kNote2, kIsClusters = kNote3;

template <class Function>
void for_threads(Step& step, const Function& f) {
  for_lanes(step.mask, [&](int lane) { f(step.warp.thread(lane), lane); });
}

uint32_t shared_address(const Step& step, size_t argument, int lane) {
  return static_cast<uint32_t>(address_of(step, argument, lane));
}

// ---- cp.async

void copy(Step& step) {
  const int bytes = static_cast<int>(step.in.numbers[kBytes]);
  simt::Request request;
  request.bytes = bytes;
  for_threads(step, [&](simt::Thread& thread, int lane) {
    const bool has_size = step.in.numbers[kNote1] != 0;
    const int read =
        has_size ? static_cast<int>(static_cast<uint32_t>(step.value(3, lane))) : bytes;
    const uint64_t from = address_of(step, 1, lane);
    if (read > 0) {
      request.lanes |= simt::LaneMask{1} << lane;
      request.address[static_cast<size_t>(lane)] = from;
    }
    step.block().async->copy(thread, shared_address(step, 0, lane), from, bytes, read, step.in.at);
  });
  if (request.lanes != 0)
    simt::count_global(step.launch(), simt::GlobalRequest::async_copy, request);
}

void commit_copies(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int) { step.block().async->commit(thread); });
}

void wait_for_copies(Step& step) {
  const int pending = static_cast<int>(step.uniform(0, "cp.async.wait_group's number"));
  for_threads(step,
              [&](simt::Thread& thread, int) { step.block().async->wait_group(thread, pending); });
}

void wait_for_all_copies(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int) { step.block().async->wait_all(thread); });
}

void copies_arrive(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    step.block().async->copy_arrive(thread, shared_address(step, 0, lane),
                                    step.in.numbers[kNote1] == 0, step.in.at);
  });
}

// ---- bulk copies and tiles

std::vector<int32_t> coordinates(const Step& step, size_t argument, int lane) {
  const std::vector<Lanes>& parts = step.in.arguments[argument].parts;
  std::vector<int32_t> all;
  for (size_t i = 1; i < parts.size(); ++i)
    all.push_back(static_cast<int32_t>(static_cast<uint32_t>(step.value(parts[i], lane))));
  return all;
}

/// A tensor map among the parameters is where the launch keeps them.
uint64_t map_address(const Step& step, size_t argument, int lane) {
  const uint64_t address = address_of(step, argument, lane);
  if (window_of(address) != Window::parameter) return address;
  return reinterpret_cast<uint64_t>(step.launch().parameters.data()) + (address & ~kWindowMask);
}

/// Where a load goes: `shared` and `mbarrier` are addresses in each of the blocks.
struct Targets {
  std::vector<simt::Block*> blocks;
  uint32_t shared, mbarrier;
};

/// To the cluster's blocks in a mask where the instruction has one, else to the one that the
/// address is in.
Targets targets_of(const Step& step, int lane, uint32_t shared, uint32_t mbarrier) {
  const simt::ClusterAddress to = locate(step.block(), shared, "a load's destination", step.in.at);
  const simt::ClusterAddress on = locate(step.block(), mbarrier, "a load's mbarrier", step.in.at);
  if (&to.block != &on.block) {
    throw simt::Unsupported(
        "ptx: a load whose mbarrier is in another block than its destination: " + step.in.text);
  }
  Targets targets{{}, to.address, on.address};
  const auto mask = static_cast<size_t>(step.in.numbers[kMaskArgument]);
  if (mask == 0) {
    targets.blocks.push_back(&to.block);
    return targets;
  }
  for (auto blocks = static_cast<uint16_t>(step.value(mask, lane)); blocks != 0;
       blocks = static_cast<uint16_t>(blocks & (blocks - 1))) {
    targets.blocks.push_back(&block_of_rank(step.block(),
                                            static_cast<uint32_t>(std::countr_zero(blocks)),
                                            "a multicast load", step.in.at));
  }
  return targets;
}

void load_tile(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    const Targets to =
        targets_of(step, lane, shared_address(step, 0, lane), shared_address(step, 2, lane));
    step.block().async->load_tile(thread, to.shared, map_address(step, 1, lane),
                                  coordinates(step, 1, lane), to.mbarrier, step.in.at, to.blocks);
  });
}
void store_tile(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    step.block().async->store_tile(thread, map_address(step, 0, lane), coordinates(step, 0, lane),
                                   shared_address(step, 1, lane), step.in.at);
  });
}
void load_bulk(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    const Targets to =
        targets_of(step, lane, shared_address(step, 0, lane), shared_address(step, 3, lane));
    step.block().async->load_bulk(thread, to.shared, address_of(step, 1, lane),
                                  static_cast<int64_t>(step.value(2, lane)), to.mbarrier,
                                  step.in.at, to.blocks);
  });
}
void store_bulk(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    step.block().async->store_bulk(thread, address_of(step, 0, lane), shared_address(step, 1, lane),
                                   static_cast<int64_t>(step.value(2, lane)), step.in.at);
  });
}
void commit_stores(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int) { step.block().async->commit_stores(thread); });
}
void wait_stores(Step& step) {
  const int pending = static_cast<int>(step.uniform(0, "cp.async.bulk.wait_group's number"));
  for_threads(step, [&](simt::Thread& thread, int) {
    step.block().async->wait_stores(thread, pending, step.in.numbers[kNote1] != 0);
  });
}
void prefetch_tile(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    step.block().async->prefetch_tile(thread, map_address(step, 0, lane),
                                      coordinates(step, 0, lane), step.in.at);
  });
}
void prefetch_bulk(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    step.block().async->prefetch_bulk(thread, address_of(step, 0, lane),
                                      static_cast<uint32_t>(step.value(1, lane)), step.in.at);
  });
}

/// Notes which argument is the mask of a multicast load. Returns the most arguments that there are:
/// `first` of them, the mask and a cache hint.
size_t take_mask(Decoder& d, bool is_load, size_t first) {
  if (!is_load) return first;
  const bool has_mask = d.take("multicast::cluster");
  if (has_mask) d.in.numbers[kMaskArgument] = static_cast<int64_t>(first);
  return first + (has_mask ? 2 : 1);
}

/// A tile is argument `tile` of at most `most`, the last of which is a cache hint.
void require_tile(Decoder& d, size_t tile, size_t most) {
  const std::string_view rank = d.take_one({"1d", "2d", "3d", "4d", "5d"});
  if (rank.empty()) d.refuse("rank is not known");
  d.take("tile");
  d.require_arguments(most - 1, most);
  if (d.in.arguments[tile].parts.size() != static_cast<size_t>(rank[0] - '0') + 1)
    d.refuse("coordinates of another rank");
}

void decode_tile(Decoder& d, bool is_load) {
  require_tile(d, is_load ? 1 : 0, take_mask(d, is_load, 3));
  d.in.execute = is_load ? load_tile : store_tile;
}

void decode_prefetch(Decoder& d) {
  const bool is_tile = d.take("tensor");
  d.ignore({"L2", "global", "L2::cache_hint"});
  if (is_tile) {
    require_tile(d, 0, 2);
  } else {
    d.require_arguments(2, 3);
  }
  d.in.execute = is_tile ? prefetch_tile : prefetch_bulk;
}

void decode_bulk(Decoder& d) {
  d.in.kind = InstructionClass::memory;
  if (d.take("commit_group")) {
    d.in.kind = InstructionClass::synchronise;
    d.in.execute = commit_stores;
    return;
  }
  if (d.take("wait_group")) {
    d.in.kind = InstructionClass::synchronise;
    d.in.numbers[kNote1] = d.take("read");
    d.in.execute = wait_stores;
    return;
  }
  if (d.take("prefetch")) return decode_prefetch(d);
  const bool is_tile = d.take("tensor");
  const bool is_load = d.take("shared::cluster") ||
                       (!is_tile && d.in.text.find(".shared::cta.global") != std::string::npos);
  d.ignore(
      {"global", "shared::cta", "mbarrier::complete_tx::bytes", "bulk_group", "L2::cache_hint"});
  if (is_load && d.in.text.find("shared::cluster.shared::cta") != std::string::npos)
    d.refuse("copies to other blocks' shared memory");
  if (is_tile) return decode_tile(d, is_load);
  const size_t most = take_mask(d, is_load, 4);
  d.require_arguments(most - 1, most);
  d.in.execute = is_load ? load_bulk : store_bulk;
}

// ---- mbarriers

void initialise(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    step.block().async->init(thread, shared_address(step, 0, lane),
                             static_cast<uint32_t>(step.value(1, lane)), step.in.at);
  });
}
void invalidate(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    step.block().async->invalidate(thread, shared_address(step, 0, lane), step.in.at);
  });
}
/// An mbarrier that a thread arrives at: with .shared::cluster it may be another block's.
simt::ClusterAddress mbarrier_at(const Step& step, size_t argument, int lane) {
  const uint32_t address = shared_address(step, argument, lane);
  if (step.in.numbers[kIsClusters] == 0) return {step.block(), address};
  return locate(step.block(), address, "an mbarrier", step.in.at);
}

void expect_bytes(Step& step) {
  for_threads(step, [&](simt::Thread& thread, int lane) {
    const simt::ClusterAddress on = mbarrier_at(step, 0, lane);
    on.block.async->expect_bytes(thread, on.address, static_cast<uint32_t>(step.value(1, lane)),
                                 step.in.at);
  });
}

/// Arguments are [state,] address [, count or bytes].
void arrive(Step& step) {
  const bool has_state = step.in.numbers[kNote2] != 0;
  const size_t address = has_state ? 1 : 0;
  const bool expects = step.in.numbers[kNote1] != 0;
  for_threads(step, [&](simt::Thread& thread, int lane) {
    const bool has_number = step.in.arguments.size() > address + 1;
    const auto number = static_cast<uint32_t>(has_number ? step.value(address + 1, lane) : 1);
    const simt::ClusterAddress on = mbarrier_at(step, address, lane);
    const uint64_t state = on.block.async->arrive(thread, on.address, expects ? 1 : number,
                                                  expects ? number : 0, step.in.at);
    const bool is_wanted = has_state && step.in.arguments[0].kind == Argument::Kind::lanes &&
                           step.in.arguments[0].parts[0].number >= 0;
    if (is_wanted) step.set(step.in.arguments[0].parts[0], lane, state);
  });
}

/// A state token holds its phase in the lowest bit: waiting for it is waiting for that parity.
void test(Step& step) {
  const bool blocks = step.in.numbers[kNote1] != 0;
  const auto address =
      static_cast<uint32_t>(step.uniform(1, "an mbarrier's address") +
                            static_cast<uint64_t>(step.in.arguments[1].displacement));
  const auto parity = static_cast<uint32_t>(step.uniform(2, "an mbarrier's parity") & 1);
  simt::Async& async = *step.block().async;
  const bool is_complete = async.test_wait(step.warp, step.mask, address, parity, step.in.at);
  const bool gives_up = async.is_out_of_time(step.path);
  if (!is_complete && blocks && !gives_up) {
    step.warp.split(step.path, step.mask);
    --step.path.pc;  // asks again when woken
    async.wait(step.warp, step.path, address, step.in.at);
    step.is_over = true;
    return;
  }
  uint32_t* d = step.result<uint32_t>();
  for_lanes(step.mask, [&](int lane) { d[lane] = is_complete; });
}

}  // namespace

void decode_copy(Decoder& d) {
  if (!d.take("async")) d.refuse("without .async");
  if (d.take("bulk")) return decode_bulk(d);
  d.in.kind = InstructionClass::synchronise;
  if (d.take("commit_group")) {
    d.in.execute = commit_copies;
  } else if (d.take("wait_group")) {
    d.in.execute = wait_for_copies;
  } else if (d.take("wait_all")) {
    d.in.execute = wait_for_all_copies;
  } else if (d.take("mbarrier")) {
    if (!d.take("arrive")) d.refuse("not known");
    d.in.numbers[kNote1] = d.take("noinc");
    d.ignore({"shared", "shared::cta", "b64"});
    d.in.execute = copies_arrive;
  } else {
    d.in.kind = InstructionClass::memory;
    d.ignore({"ca", "cg", "shared", "shared::cta", "global", "L2::cache_hint", "L2::64B",
              "L2::128B", "L2::256B"});
    d.require_arguments(3, 5);
    if (!d.in.arguments[2].parts[0].is_constant) d.refuse("a size that is no constant");
    const bool has_hint = d.in.text.find("cache_hint") != std::string::npos;
    d.in.numbers[kNote1] = d.num_arguments() > (has_hint ? 4u : 3u);
    const std::string size = d.in.text.substr(d.in.text.find("],", d.in.text.find("],") + 1) + 2);
    d.in.numbers[kBytes] = std::strtol(size.c_str(), nullptr, 0);
    d.in.execute = copy;
  }
}

void decode_mbarrier(Decoder& d) {
  d.in.kind = InstructionClass::synchronise;
  d.in.numbers[kIsClusters] = d.take("shared::cluster");
  d.ignore({"shared", "shared::cta", "b64", "cta", "cluster", "release", "acquire", "relaxed"});
  if (d.take("init")) {
    d.in.execute = initialise;
  } else if (d.take("inval")) {
    d.in.execute = invalidate;
  } else if (d.take("expect_tx")) {
    // Alone it only expects; with .arrive it is an arrival as well.
    const bool arrives = d.take("arrive");
    d.in.numbers[kNote1] = arrives;
    d.in.numbers[kNote2] = d.in.arguments[0].kind != Argument::Kind::memory;
    d.in.execute = arrives ? arrive : expect_bytes;
  } else if (d.take("arrive")) {
    if (d.take("noComplete")) d.refuse("arrivals that may not complete");
    d.in.numbers[kNote2] = d.in.arguments[0].kind != Argument::Kind::memory;
    d.in.execute = arrive;
  } else if (d.take("try_wait") || d.take("test_wait")) {
    d.in.numbers[kNote1] = d.in.text.find("try_wait") != std::string::npos;
    d.take("parity");
    d.require_arguments(3, 4);  // the fourth is a time limit
    d.in.execute = test;
  }
}

}  // namespace wide::ptx
