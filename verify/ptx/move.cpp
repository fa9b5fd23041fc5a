// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// mov (packing and unpacking lists too), cvta, isspacep.
#include "verify/ptx/decoder.hpp"
#include "verify/ptx/kernel.hpp"
#include "verify/simt/cluster.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;

template <class W>
void copy(Step& s) {
  W* d = s.result<W>();
  const W* a = s.source<W>(1);
  s.each([=](int l) { d[l] = a[l]; });
}

/// {low, high} into one register; numbers[0]: bits of a part.
void join(Step& s) {
  const auto& parts = s.in.arguments[1].parts;
  const auto bits = static_cast<size_t>(s.in.numbers[0]);
  for_lanes(s.mask, [&](int l) {
    uint64_t value = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
      value |= (s.value(parts[i], l) & mask) << (i * bits);
    }
    s.set(s.in.arguments[0].parts[0], l, value);
  });
}

void divide(Step& s) {
  const auto& parts = s.in.arguments[0].parts;
  const auto bits = static_cast<size_t>(s.in.numbers[0]);
  for_lanes(s.mask, [&](int l) {
    const uint64_t value = s.value(1, l);
    const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].number >= 0) s.set(parts[i], l, value >> (i * bits) & mask);
    }
  });
}

/// The machine's clock counts instructions: it goes forward, and is the same in every run.
void read_clock(Step& s) {
  const auto now = static_cast<uint64_t>(s.launch().instructions);
  for_lanes(s.mask, [&](int l) { s.set(s.in.arguments[0].parts[0], l, now); });
}

/// To generic: the window's tag is added; from generic: it is removed. numbers[0]: the tag.
void to_generic(Step& s) {
  const auto tag = static_cast<uint64_t>(s.in.numbers[0]);
  for_lanes(s.mask, [&](int l) {
    s.set(s.in.arguments[0].parts[0], l, (s.value(1, l) & ~kWindowMask) | tag);
  });
}
void from_generic(Step& s) {
  for_lanes(s.mask,
            [&](int l) { s.set(s.in.arguments[0].parts[0], l, s.value(1, l) & ~kWindowMask); });
}

void is_in_window(Step& s) {
  uint32_t* d = s.result<uint32_t>();
  const auto tag = static_cast<uint64_t>(s.in.numbers[0]);
  for_lanes(s.mask, [&](int l) { d[l] = (s.value(1, l) & kWindowMask) == tag; });
}

/// Of shared addresses; generic ones keep the rest of their bits.
void map_address(Step& s) {
  for_lanes(s.mask, [&](int l) {
    const uint64_t address = s.value(1, l), rest = address & ~uint64_t{0xffffffff};
    const auto rank = static_cast<uint32_t>(s.value(2, l));
    s.set(s.in.arguments[0].parts[0], l,
          rest | map_to_rank(s.block(), static_cast<uint32_t>(address), rank, s.in.at));
  });
}

uint64_t take_window(Decoder& d) {
  const std::string_view space =
      d.take_one({"global", "shared::cta", "shared", "local", "param", "const"});
  d.take("entry");
  if (space == "shared" || space == "shared::cta") return kSharedWindow;
  if (space == "local") return kLocalWindow;
  if (space == "param") return kParameterWindow;
  if (space.empty()) d.refuse("state space is not known");
  return 0;
}

}  // namespace

void decode_move(Decoder& d) {
  d.in.kind = InstructionClass::move;
  if (d.opcode() == "mapa") {
    d.take("shared::cluster");
    d.take_type();
    d.require_arguments(3, 3);
    d.in.execute = map_address;
    return;
  }
  d.require_arguments(2, 2);
  if (d.opcode() == "isspacep") {
    d.in.numbers[0] = static_cast<int64_t>(take_window(d));
    d.in.execute = is_in_window;
    return;
  }
  if (d.opcode() == "cvta") {
    const bool is_from = d.take("to");
    d.in.numbers[0] = static_cast<int64_t>(take_window(d));
    d.take_type();
    // Parameters keep their tag: they are read through it.
    d.in.execute = d.in.numbers[0] == 0 ? copy<uint64_t> : is_from ? from_generic : to_generic;
    return;
  }
  const Type type = d.take_type();
  const Argument &to = d.in.arguments[0], &from = d.in.arguments[1];
  if (d.in.text.find("%clock") != std::string::npos ||
      d.in.text.find("%globaltimer") != std::string::npos) {
    d.in.execute = read_clock;
  } else if (from.kind == Argument::Kind::list) {
    d.in.numbers[0] = type.bits / static_cast<int64_t>(from.parts.size());
    d.in.execute = join;
  } else if (to.kind == Argument::Kind::list) {
    d.in.numbers[0] = type.bits / static_cast<int64_t>(to.parts.size());
    d.in.execute = divide;
  } else {
    d.in.execute = type.bits == 64 ? copy<uint64_t> : copy<uint32_t>;
  }
}

}  // namespace wide::ptx
