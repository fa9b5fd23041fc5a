// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Source: PTX ISA, "Miscellaneous Instructions: setmaxnreg".
#include "verify/simt/register_pool.hpp"

#include <string>

namespace wide::simt {

namespace {

constexpr int kLeast = 24, kMost = 256, kMultiple = 8, kWarpgroupWarps = 4;

int held(const Warp& warp) {
  return warp.max_registers > 0 ? warp.max_registers
                                : warp.block->launch.program.registers_at_entry();
}

void report(const Warp& warp, const std::string& text, Location at) {
  warp.block->launch.report(FindingKind::warp, *warp.block,
                            "setmaxnreg, warp " + std::to_string(warp.index) + ": " + text, at);
}

}  // namespace

void set_max_registers(Warp& warp, LaneMask lanes, int count, bool grows, Location at) {
  ++warp.block->launch.counters.register_reallocations;
  if (lanes != warp.exists) report(warp, "some lanes, expected the whole warp", at);
  if (count < kLeast || count > kMost || count % kMultiple != 0) {
    report(warp, std::to_string(count) + " registers, expected a multiple of 8 in [24, 256]", at);
  }
  const int before = held(warp);
  if (before == 0) {
    report(warp,
           "may have no effect: how many registers a thread has at entry is not said "
           "(__launch_bounds__ with both arguments)",
           at);
  } else if (grows ? count < before : count > before) {
    report(warp,
           std::string(grows ? "increases to " : "decreases to ") + std::to_string(count) +
               " from " + std::to_string(before),
           at);
  }
  warp.max_registers = count;
  warp.max_registers_at = at;
}

void check_register_pool(const Block& block) {
  const int at_entry = block.launch.program.registers_at_entry();
  int total = 0;
  const Warp* last = nullptr;
  for (const Warp& warp : block.warps) {
    total += held(warp);
    if (warp.max_registers > at_entry) last = &warp;
    const Warp& first =
        block.warps[static_cast<size_t>(warp.index / kWarpgroupWarps * kWarpgroupWarps)];
    if (warp.max_registers != first.max_registers) {
      const Warp& one = warp.max_registers > 0 ? warp : first;
      report(one, "not by all four warps of its warpgroup", one.max_registers_at);
    }
  }
  const int has = at_entry * static_cast<int>(block.warps.size());
  if (last == nullptr || at_entry == 0 || total <= has) return;
  report(*last,
         "waits forever: the block's warps want " + std::to_string(total) +
             " registers a lane in total, and it has " + std::to_string(has),
         last->max_registers_at);
}

}  // namespace wide::simt
