// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Warp collectives: shfl vote match redux activemask elect. They exchange values and order nothing.
#include "verify/ptx/decoder.hpp"
#include "verify/ptx/numbers.hpp"

namespace wide::ptx {

namespace {

using simt::Collective;
using simt::InstructionClass;
using Inputs = std::array<std::array<uint64_t, 4>, simt::kLanes>;

enum Note : size_t { kMode, kMaskArgument, kOperation };
enum Kind : int { kShuffle = 1, kVote, kMatch, kReduce, kElect };
enum Shuffle : int64_t { kUp, kDown, kButterfly, kIndex };
enum Vote : int64_t { kAll, kAny, kUni, kBallot };

/// Lanes arrive with their inputs; `finish` runs once all members have.
void collect(Step& step, int kind, const Inputs& inputs, const char* what,
             const std::function<void(Collective&)>& finish) {
  const auto members = static_cast<simt::LaneMask>(
      step.uniform(static_cast<size_t>(step.in.numbers[kMaskArgument]), "a collective's mask"));
  const Argument& target = step.in.arguments[0];
  uint32_t* output = target.parts[0].number >= 0 ? step.result<uint32_t>() : nullptr;
  uint32_t* predicate = target.has_second ? step.lanes<uint32_t>(target.second) : nullptr;
  const bool goes_on = collective(step.warp, step.path, step.mask, kind, members, inputs, output,
                                  predicate, what, step.in.at, finish);
  step.is_over = !goes_on;
}

void write(Collective& c, int lane, uint32_t value) {
  if (uint32_t* output = c.outputs[static_cast<size_t>(lane)]) *output = value;
}

struct Source {
  int lane = 0;
  bool is_inside = false;
};

/// Which lane a lane reads: within its segment, as c's clamp and mask bits say.
Source source_of(int lane, int64_t mode, uint64_t by, uint64_t c) {
  const int b = static_cast<int>(by & 31), clamp = static_cast<int>(c & 31),
            segment = static_cast<int>(c >> 8 & 31);
  const int low = lane & segment, high = low | (clamp & ~segment);
  const int wanted = mode == kUp          ? lane - b
                     : mode == kDown      ? lane + b
                     : mode == kButterfly ? lane ^ b
                                          : low | (b & ~segment);
  const bool is_inside = mode == kUp ? wanted >= high : wanted <= high;
  return {is_inside ? wanted : lane, is_inside};
}

void shuffle(Step& step) {
  Inputs inputs{};
  for_lanes(step.mask, [&](int l) {
    const Source from = source_of(l, step.in.numbers[kMode], step.value(2, l), step.value(3, l));
    inputs[static_cast<size_t>(l)] = {step.value(1, l), static_cast<uint64_t>(from.lane),
                                      from.is_inside, 0};
  });
  collect(step, kShuffle, inputs, "shfl.sync",
          [&block = step.block(), at = step.in.at](Collective& c) {
            for_lanes(c.members, [&](int l) {
              const auto& own = c.inputs[static_cast<size_t>(l)];
              const auto from = static_cast<int>(own[1]);
              if ((c.members >> from & 1) == 0) {
                block.launch.report(simt::FindingKind::warp, block,
                                    "shfl.sync: lane " + std::to_string(l) + " reads lane " +
                                        std::to_string(from) + ", which does not take part",
                                    at);
              }
              write(c, l, static_cast<uint32_t>(c.inputs[static_cast<size_t>(from)][0]));
              if (uint32_t* predicate = c.predicates[static_cast<size_t>(l)])
                *predicate = own[2] != 0;
            });
          });
}

void vote(Step& step) {
  Inputs inputs{};
  const simt::LaneMask set = step.predicate(1);
  for_lanes(step.mask, [&](int l) { inputs[static_cast<size_t>(l)][0] = set >> l & 1; });
  collect(step, kVote, inputs, "vote.sync", [mode = step.in.numbers[kMode]](Collective& c) {
    simt::LaneMask votes = 0;
    for_lanes(c.members, [&](int l) {
      if (c.inputs[static_cast<size_t>(l)][0] != 0) votes |= simt::LaneMask{1} << l;
    });
    const bool all = votes == c.members, any = votes != 0;
    const uint32_t value = mode == kBallot ? votes
                           : mode == kAll  ? all
                           : mode == kAny  ? any
                                           : all || !any;
    for_lanes(c.members, [&](int l) { write(c, l, value); });
  });
}

void match(Step& step) {
  Inputs inputs{};
  for_lanes(step.mask, [&](int l) { inputs[static_cast<size_t>(l)][0] = step.value(1, l); });
  collect(step, kMatch, inputs, "match.sync", [mode = step.in.numbers[kMode]](Collective& c) {
    for_lanes(c.members, [&](int l) {
      simt::LaneMask same = 0;
      for_lanes(c.members, [&](int other) {
        if (c.inputs[static_cast<size_t>(other)][0] == c.inputs[static_cast<size_t>(l)][0])
          same |= simt::LaneMask{1} << other;
      });
      const bool is_common = same == c.members;
      write(c, l, mode == kAll && !is_common ? 0 : same);
      if (uint32_t* predicate = c.predicates[static_cast<size_t>(l)]) *predicate = is_common;
    });
  });
}

using Reduction = uint32_t (*)(uint32_t, uint32_t);
template <class T, bool kMin>
uint32_t extreme(uint32_t a, uint32_t b) {
  using F = Format<T>;
  return F::word(kMin ? minimum(F::value(a), F::value(b)) : maximum(F::value(a), F::value(b)));
}
constexpr Reduction kReductions[] = {[](uint32_t a, uint32_t b) { return a + b; },
                                     [](uint32_t a, uint32_t b) { return a & b; },
                                     [](uint32_t a, uint32_t b) { return a | b; },
                                     [](uint32_t a, uint32_t b) { return a ^ b; },
                                     extreme<uint32_t, true>,
                                     extreme<uint32_t, false>,
                                     extreme<int32_t, true>,
                                     extreme<int32_t, false>};

void reduce(Step& step) {
  Inputs inputs{};
  for_lanes(step.mask, [&](int l) { inputs[static_cast<size_t>(l)][0] = step.value(1, l); });
  const Reduction operation = kReductions[step.in.numbers[kOperation]];
  collect(step, kReduce, inputs, "redux.sync", [operation](Collective& c) {
    bool is_first = true;
    uint32_t sum = 0;
    for_lanes(c.members, [&](int l) {
      const auto value = static_cast<uint32_t>(c.inputs[static_cast<size_t>(l)][0]);
      sum = is_first ? value : operation(sum, value);
      is_first = false;
    });
    for_lanes(c.members, [&](int l) { write(c, l, sum); });
  });
}

/// Always the same of the same members, but which one the manual leaves open: the seed says.
void elect(Step& step) {
  const uint64_t seed = step.block().launch.options.seed;
  collect(step, kElect, {}, "elect.sync", [seed](Collective& c) {
    simt::LaneMask left = c.members;
    for (uint64_t i = seed % static_cast<uint64_t>(std::popcount(left)); i > 0; --i)
      left &= left - 1;
    const int leader = std::countr_zero(left);
    for_lanes(c.members, [&](int l) {
      write(c, l, static_cast<uint32_t>(leader));
      if (uint32_t* predicate = c.predicates[static_cast<size_t>(l)]) *predicate = l == leader;
    });
  });
}

void active_mask(Step& step) {
  uint32_t* d = step.result<uint32_t>();
  for_lanes(step.mask, [&](int l) { d[l] = step.mask; });
}

void decode_reduction(Decoder& d) {
  const std::string_view word = d.take_one({"add", "and", "or", "xor", "min", "max"});
  const Type type = d.take_type();
  if (type.bits != 32 || type.kind == 'f') d.refuse("values of this type");
  const bool is_signed = type.kind == 's';
  d.in.numbers[kOperation] = word == "add"   ? 0
                             : word == "and" ? 1
                             : word == "or"  ? 2
                             : word == "xor" ? 3
                             : word == "min" ? (is_signed ? 6 : 4)
                                             : (is_signed ? 7 : 5);
  d.in.execute = reduce;
}

}  // namespace

void decode_warp(Decoder& d) {
  const std::string& op = d.opcode();
  d.in.kind = InstructionClass::move;
  if (!d.take("sync") && op != "activemask") d.refuse("without .sync");
  d.in.numbers[kMaskArgument] = static_cast<int64_t>(d.num_arguments()) - 1;
  if (op == "shfl") {
    const std::string_view mode = d.take_one({"up", "down", "bfly", "idx"});
    d.in.numbers[kMode] = mode == "up"     ? kUp
                          : mode == "down" ? kDown
                          : mode == "bfly" ? kButterfly
                                           : kIndex;
    d.require_arguments(5, 5);
    d.in.execute = shuffle;
  } else if (op == "vote") {
    const std::string_view mode = d.take_one({"all", "any", "uni", "ballot"});
    d.in.numbers[kMode] = mode == "all"   ? kAll
                          : mode == "any" ? kAny
                          : mode == "uni" ? kUni
                                          : kBallot;
    d.in.execute = vote;
  } else if (op == "match") {
    d.in.numbers[kMode] = d.take("all") ? kAll : kAny;
    d.take("any");
    d.in.execute = match;
  } else if (op == "redux") {
    return decode_reduction(d);
  } else if (op == "elect") {
    d.in.execute = elect;
    return;
  } else {
    d.in.execute = active_mask;
  }
  d.take_optional_type();
}

}  // namespace wide::ptx
