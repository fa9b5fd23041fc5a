// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Running a decoded kernel: one path of a warp at a time, lane masks, meeting paths.
#include "verify/ptx/kernel.hpp"

#include <algorithm>

#include "verify/simt/async.hpp"

namespace wide::ptx {

namespace {

constexpr std::string_view kSpecialNames[] = {"%tid.x",
                                              "%tid.y",
                                              "%tid.z",
                                              "%ntid.x",
                                              "%ntid.y",
                                              "%ntid.z",
                                              "%ctaid.x",
                                              "%ctaid.y",
                                              "%ctaid.z",
                                              "%nctaid.x",
                                              "%nctaid.y",
                                              "%nctaid.z",
                                              "%laneid",
                                              "%warpid",
                                              "%nwarpid",
                                              "%smid",
                                              "%nsmid",
                                              "%lanemask_eq",
                                              "%lanemask_lt",
                                              "%lanemask_le",
                                              "%lanemask_gt",
                                              "%lanemask_ge",
                                              "%dynamic_smem_size",
                                              "%total_smem_size",
                                              "%cluster_ctaid.x",
                                              "%cluster_ctaid.y",
                                              "%cluster_ctaid.z",
                                              "%cluster_nctaid.x",
                                              "%cluster_nctaid.y",
                                              "%cluster_nctaid.z",
                                              "%cluster_ctarank",
                                              "%cluster_nctarank",
                                              "%clusterid.x",
                                              "%clusterid.y",
                                              "%clusterid.z",
                                              "%nclusterid.x",
                                              "%nclusterid.y",
                                              "%nclusterid.z"};
static_assert(std::size(kSpecialNames) == static_cast<size_t>(Special::count));

/// The place of a block in its cluster: clusters tile the grid.
uint32_t special_value(Special special, const simt::Warp& warp, int lane) {
  const simt::Block& block = *warp.block;
  const simt::LaunchConfig& config = block.launch.config;
  const auto thread = static_cast<uint32_t>(warp.index * simt::kLanes + lane);
  const uint32_t bit = uint32_t{1} << lane;
  switch (special) {
    case Special::tid_x:
      return thread % config.block.x;
    case Special::tid_y:
      return thread / config.block.x % config.block.y;
    case Special::tid_z:
      return thread / config.block.x / config.block.y;
    case Special::ntid_x:
      return config.block.x;
    case Special::ntid_y:
      return config.block.y;
    case Special::ntid_z:
      return config.block.z;
    case Special::ctaid_x:
      return block.index.x;
    case Special::ctaid_y:
      return block.index.y;
    case Special::ctaid_z:
      return block.index.z;
    case Special::nctaid_x:
      return config.grid.x;
    case Special::nctaid_y:
      return config.grid.y;
    case Special::nctaid_z:
      return config.grid.z;
    case Special::laneid:
      return static_cast<uint32_t>(lane);
    case Special::warpid:
      return static_cast<uint32_t>(warp.index);
    case Special::nwarpid:
      return static_cast<uint32_t>(block.warps.size());
    case Special::smid:
      return static_cast<uint32_t>(block.linear_index % 132);
    case Special::nsmid:
      return 132;
    case Special::lanemask_eq:
      return bit;
    case Special::lanemask_lt:
      return bit - 1;
    case Special::lanemask_le:
      return bit | (bit - 1);
    case Special::lanemask_gt:
      return ~(bit | (bit - 1));
    case Special::lanemask_ge:
      return ~(bit - 1);
    case Special::dynamic_smem_size:
      return static_cast<uint32_t>(config.dynamic_shared_bytes);
    case Special::total_smem_size:
      return static_cast<uint32_t>(config.dynamic_shared_bytes +
                                   block.launch.program.static_shared_bytes());
    case Special::cluster_ctaid_x:
      return block.index.x % config.cluster.x;
    case Special::cluster_ctaid_y:
      return block.index.y % config.cluster.y;
    case Special::cluster_ctaid_z:
      return block.index.z % config.cluster.z;
    case Special::cluster_nctaid_x:
      return config.cluster.x;
    case Special::cluster_nctaid_y:
      return config.cluster.y;
    case Special::cluster_nctaid_z:
      return config.cluster.z;
    case Special::cluster_ctarank:
      return static_cast<uint32_t>(block.rank);
    case Special::cluster_nctarank:
      return static_cast<uint32_t>(config.cluster.count());
    case Special::clusterid_x:
      return block.index.x / config.cluster.x;
    case Special::clusterid_y:
      return block.index.y / config.cluster.y;
    case Special::clusterid_z:
      return block.index.z / config.cluster.z;
    case Special::nclusterid_x:
      return config.grid.x / config.cluster.x;
    case Special::nclusterid_y:
      return config.grid.y / config.cluster.y;
    case Special::nclusterid_z:
      return config.grid.z / config.cluster.z;
    default:
      return 0;
  }
}

simt::LaneMask guard_mask(const Instruction& in, const std::byte* registers) {
  const auto* guard = reinterpret_cast<const uint32_t*>(registers + in.guard.offset);
  simt::LaneMask mask = 0;
  for (int lane = 0; lane < simt::kLanes; ++lane) mask |= (guard[lane] & 1u) << lane;
  return in.guard_is_negated ? ~mask : mask;
}

/// A register that a wgmma still owns may be neither read nor written.
void check_in_flight(const Step& step) {
  const auto check = [&](int32_t number, const char* does) {
    const uint8_t flag = step.warp.in_flight[static_cast<size_t>(number)];
    if (flag == 0) return;
    if (flag == simt::Warp::kReadOnly && step.in.continues_product) return;
    step.launch().report(simt::FindingKind::wgmma, step.block(),
                         "warp " + std::to_string(step.warp.index) + " " + does +
                             " a register that a wgmma still owns: " + step.in.text,
                         step.in.at);
  };
  for (const int32_t number : step.in.reads) check(number, "reads");
  for (const int32_t number : step.in.writes) check(number, "writes");
}

/// When D or A was written last, in wgmma.fence.
void note_written(const Step& step) {
  std::vector<uint32_t>& written = step.warp.written;
  uint32_t now = step.warp.num_fences;
  if (step.in.is_copy) now = written[static_cast<size_t>(step.in.reads[0])];
  for (const int32_t number : step.in.writes) {
    uint32_t& last = written[static_cast<size_t>(number)];
    last = step.mask == simt::kAllLanes ? now : std::max(last, now);
  }
}

}  // namespace

std::string_view name_of(Special special) {
  return kSpecialNames[static_cast<size_t>(special)];
}

uint64_t Step::uniform(size_t i, const char* what) const {
  const int first = std::countr_zero(mask);
  const uint64_t common = value(i, first);
  for_lanes(mask, [&](int lane) {
    if (value(i, lane) != common) {
      throw simt::Unsupported(std::string(what) + " differs between lanes of a warp: " + in.text +
                              " " + to_string(in.at));
    }
  });
  return common;
}

simt::LaneMask Step::predicate(size_t i) const {
  simt::LaneMask set = 0;
  const bool is_negated = in.arguments[i].is_negated;
  for_lanes(mask, [&](int lane) {
    set |= simt::LaneMask{(value(i, lane) & 1) != (is_negated ? 1u : 0u)} << lane;
  });
  return set;
}

void DecodedKernel::begin(simt::Warp& warp) const {
  // What no instruction has written is anything but zero, which sums begin with: by the seed NaN,
  // -1 and true, or a large number and false.
  const bool is_odd = warp.block->launch.options.seed % 2 != 0;
  warp.registers.assign(static_cast<size_t>(register_bytes_), std::byte(is_odd ? 0x5a : 0xff));
  warp.local.assign(static_cast<size_t>(local_bytes_) * simt::kLanes, std::byte{0xff});
  warp.in_flight.assign(warp.registers.size() / (simt::kLanes * 4), 0);
  if (has_products_) warp.written.assign(warp.in_flight.size(), 0);
  for (const auto& [special, offset] : specials_) {
    auto* values = reinterpret_cast<uint32_t*>(warp.registers.data() + offset);
    for (int lane = 0; lane < simt::kLanes; ++lane)
      values[lane] = special_value(special, warp, lane);
  }
}

/// Ready paths at the same place become one. `path` keeps naming the one that runs.
void DecodedKernel::merge_paths(simt::Warp& warp, size_t& path) const {
  for (size_t other = 0; other < warp.paths.size(); ++other) {
    if (other == path || !warp.paths[other].is_ready ||
        warp.paths[other].pc != warp.paths[path].pc ||
        warp.paths[other].calls != warp.paths[path].calls) {
      continue;
    }
    warp.paths[path].lanes |= warp.paths[other].lanes;
    warp.paths.erase(warp.paths.begin() + static_cast<std::ptrdiff_t>(other));
    if (other < path) --path;
    --other;  // wraps at 0, and back
  }
}

void DecodedKernel::run(simt::Warp& warp, size_t index, int max_steps) const {
  const auto is_behind = [&] {
    return std::any_of(warp.paths.begin(), warp.paths.end(), [&](const simt::Path& other) {
      return other.is_ready && other.pc < warp.paths[index].pc;
    });
  };
  const bool was_last = !is_behind();
  simt::Launch& launch = warp.block->launch;
  std::byte* const registers = warp.registers.data();
  for (int step_count = 0; step_count < max_steps; ++step_count) {
    if (warp.paths.size() > 1) {
      merge_paths(warp, index);
      if (was_last && is_behind()) return;  // whoever is behind runs first, so that lanes meet
    }
    simt::Path& path = warp.paths[index];
    const auto pc = static_cast<size_t>(path.pc);
    const Instruction& in = code_[pc];
    simt::LaneMask mask = path.lanes;
    if (in.has_guard) mask &= guard_mask(in, registers);
    ++path.pc;
    path.at = in.at;
    ++launch.instructions;
    launch.counters.instructions[static_cast<size_t>(in.kind)] += std::popcount(path.lanes);
    if (mask == 0) continue;
    Step step{in, warp, path, mask, registers, constants_.data()};
    if (warp.num_in_flight > 0) check_in_flight(step);
    if (in.writes_product) note_written(step);
    in.execute(step);
    if (step.is_over) return;
  }
}

void execute_branch(Step& step) {
  simt::Path& path = step.path;
  if (step.mask == path.lanes) {
    path.pc = step.in.target;
    return;
  }
  step.warp.split(path, step.mask);  // the rest goes on behind the branch
  path.pc = step.in.target;
}

std::vector<Kernel::Synchroniser> DecodedKernel::synchronisers() const {
  std::vector<Synchroniser> all;
  for (const Instruction& in : code_) {
    if (is_synchroniser(in)) all.push_back({in.text, in.at});
  }
  return all;
}

std::unique_ptr<Kernel> DecodedKernel::without(int n) const {
  auto mutant = std::make_unique<DecodedKernel>(*this);
  for (Instruction& in : mutant->code_) {
    if (!is_synchroniser(in) || n-- != 0) continue;
    const bool is_wait = in.text.find("try_wait") != std::string::npos ||
                         in.text.find("test_wait") != std::string::npos;
    in.reads.clear();
    in.execute =
        is_wait
            ? [](Step& s) { s.each([&](int lane) { s.set(s.in.arguments[0].parts[0], lane, 1); }); }
            : [](Step&) {};
    return mutant;
  }
  throw std::out_of_range(name_ + " has no synchroniser " + std::to_string(n));
}

uint64_t DecodedKernel::code_hash() const {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const Instruction& in : code_) {
    for (const char c : in.text + '>' + std::to_string(in.target))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

bool is_synchroniser(const Instruction& in) {
  if (in.kind != simt::InstructionClass::synchronise) return false;
  return in.text.find("mbarrier.init") == std::string::npos;
}

}  // namespace wide::ptx
