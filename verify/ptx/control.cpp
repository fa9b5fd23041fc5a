// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ret exit trap, barriers, and instructions that change no value: hints, sleeps, register counts.
#include "verify/ptx/decoder.hpp"
#include "verify/simt/cluster.hpp"
#include "verify/simt/register_pool.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;
enum Note : size_t { kAligned, kReduction, kGrows, kReleases };

/// Back to behind the call, or to the end.
void leave(Step& step);
void come_back(Step& step) {
  if (step.path.calls.empty()) return leave(step);
  step.warp.split(step.path, step.mask);
  step.path.pc = step.path.calls.back();
  step.path.calls.pop_back();
}

/// Lanes end; a path without lanes is gone.
void leave(Step& step) {
  step.warp.exited |= step.mask;
  step.path.lanes &= ~step.mask;
  step.is_over = true;
  if (step.path.lanes != 0) return;
  auto& paths = step.warp.paths;
  paths.erase(paths.begin() + (&step.path - paths.data()));
}

void trap(Step& step) {
  const std::string text = "trap, " + to_string(step.warp.thread(std::countr_zero(step.mask)));
  step.launch().report(simt::FindingKind::launch, step.block(), text, step.in.at);
  throw simt::Fault(simt::Fault::Kind::trap, text + " " + to_string(step.in.at));
}

void nothing(Step&) {}

void wait_for_grid(Step& step) {
  step.launch().waited_for_grid = true;
  for_lanes(step.mask, [&](int lane) { step.warp.thread(lane).waited_for_grid = true; });
}

void reallocate_registers(Step& step) {
  set_max_registers(step.warp, step.mask, static_cast<int>(step.uniform(0, "setmaxnreg's number")),
                    step.in.numbers[kGrows] != 0, step.in.at);
}

/// A cache policy is a number that nobody looks into.
void make_policy(Step& step) {
  for_lanes(step.mask, [&](int lane) { step.set(step.in.arguments[0].parts[0], lane, 0); });
}

int needed_threads(const Step& step, size_t argument) {
  if (step.in.arguments.size() <= argument) return simt::kWholeBlock;
  return static_cast<int>(step.uniform(argument, "a barrier's number of threads"));
}

int barrier_of(const Step& step, size_t argument) {
  const uint64_t id = step.in.arguments.size() > argument ? step.uniform(argument, "a barrier") : 0;
  if (id > 15) throw simt::Unsupported("ptx: barrier " + std::to_string(id) + ": " + step.in.text);
  return static_cast<int>(id);
}

/// Of an instruction whose arguments `barrier` and, where it has that many, `count` say which one.
simt::BarrierArrival arrival(const Step& step, size_t barrier, size_t count) {
  simt::BarrierArrival result;
  result.barrier = barrier_of(step, barrier);
  result.needed = needed_threads(step, count);
  result.is_aligned = step.in.numbers[kAligned] != 0;
  result.at = step.in.at;
  return result;
}

void reach(Step& step, const simt::BarrierArrival& arrival) {
  step.is_over = !reach_barrier(step.warp, step.path, step.mask, arrival);
}

void synchronise(Step& step) {
  reach(step, arrival(step, 0, 1));
}

void arrive(Step& step) {
  simt::BarrierArrival only = arrival(step, 0, 1);
  only.waits = false;
  reach(step, only);
}

void reduce(Step& step) {
  const size_t last = step.in.arguments.size() - 1;
  simt::BarrierArrival reducing = arrival(step, 1, last > 2 ? 2 : step.in.arguments.size());
  reducing.result = {step.result<uint32_t>(), step.mask,
                     static_cast<simt::BarrierReduction>(step.in.numbers[kReduction])};
  reducing.predicates = step.predicate(last);
  reach(step, reducing);
}

void arrive_at_cluster(Step& step) {
  step.is_over =
      !simt::arrive_at_cluster(step.warp, step.path, step.mask, step.in.numbers[kReleases] != 0,
                               step.in.numbers[kAligned] != 0, step.in.at);
}

void wait_for_cluster(Step& step) {
  step.is_over = !simt::wait_for_cluster(step.warp, step.path, step.mask,
                                         step.in.numbers[kAligned] != 0, step.in.at);
}

void synchronise_warp(Step& step) {
  const auto members = static_cast<simt::LaneMask>(step.uniform(0, "__syncwarp's mask"));
  step.is_over = !warp_sync(step.warp, step.path, step.mask, members, step.in.at);
}

void decode_cluster_barrier(Decoder& d) {
  d.in.numbers[kAligned] = d.take("aligned");
  if (d.take("arrive")) {
    d.in.numbers[kReleases] = d.take_one({"release", "relaxed"}) != "relaxed";
    d.in.execute = arrive_at_cluster;
  } else if (d.take("wait")) {
    d.take("acquire");
    d.in.execute = wait_for_cluster;
  }
}

}  // namespace

void decode_control(Decoder& d) {
  const std::string& op = d.opcode();
  d.in.kind = InstructionClass::control;
  d.ignore({"uni"});
  if (op == "ret" || op == "exit") {
    d.in.execute = op == "ret" ? come_back : leave;
    d.in.flow = op == "ret" ? Flow::back : Flow::end;
  } else if (op == "trap" || op == "brkpt") {
    d.in.execute = trap;
  } else if (op == "griddepcontrol") {
    const bool waits = d.take("wait");
    if (!waits && !d.take("launch_dependents")) d.refuse("not known");
    if (waits) d.in.kind = InstructionClass::synchronise;  // the other one only saves time
    d.in.execute = waits ? wait_for_grid : nothing;
  } else if (op == "setmaxnreg") {
    d.ignore({"sync", "aligned"});
    d.in.numbers[kGrows] = d.take("inc");
    if (d.in.numbers[kGrows] == 0 && !d.take("dec")) d.refuse("not known");
    d.take_type();
    d.in.execute = reallocate_registers;
  } else if (op == "createpolicy") {
    while (!d.next().empty()) continue;  // whatever it says, it is a hint
    d.in.execute = make_policy;
  } else {
    while (!d.next().empty()) continue;
    d.in.execute = nothing;  // nanosleep, prefetch, discard, applypriority, pmevent
  }
}

void decode_barrier(Decoder& d) {
  d.in.kind = InstructionClass::synchronise;
  const bool is_bar = d.opcode() == "bar";
  if (d.take("cluster")) return decode_cluster_barrier(d);
  if (d.take("warp")) {
    if (!d.take("sync")) d.refuse("not known");
    d.in.execute = synchronise_warp;
    return;
  }
  d.take("cta");
  d.in.numbers[kAligned] = d.take("aligned") || is_bar;
  if (d.take("sync")) {
    d.in.execute = synchronise;
  } else if (d.take("arrive")) {
    d.in.execute = arrive;
  } else if (d.take("red")) {
    const std::string_view operation = d.take_one({"popc", "and", "or"});
    d.take_optional_type();
    d.in.numbers[kReduction] =
        static_cast<int64_t>(operation == "popc"  ? simt::BarrierReduction::popc
                             : operation == "and" ? simt::BarrierReduction::all
                                                  : simt::BarrierReduction::any);
    d.require_arguments(3, 4);
    d.in.execute = reduce;
  }
}

}  // namespace wide::ptx
