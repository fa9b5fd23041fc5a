// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// atom and red on global and shared memory, and the fences that give relaxed ones their order.
#include <cstring>

#include "verify/ptx/access.hpp"
#include "verify/ptx/numbers.hpp"
#include "verify/simt/async.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;
enum Note : size_t { kWindow, kElementBytes, kOrder, kOperation };

struct Operands {
  uint64_t old = 0, first = 0, second = 0;
};
using Operation = uint64_t (*)(const Operands&);

template <class T, class Function>
uint64_t on(const Operands& o, const Function& f) {
  using F = Format<T>;
  using W = typename F::Word;
  return F::word(f(F::value(static_cast<W>(o.old)), F::value(static_cast<W>(o.first))));
}

template <class T>
uint64_t add(const Operands& o) {
  if constexpr (std::is_integral_v<T>) {
    return o.old + o.first;
  } else if constexpr (std::is_same_v<T, Half>) {
    return on<T>(o, [](T a, T b) { return static_cast<T>(a + b); });
  } else if constexpr (std::is_same_v<T, Bfloat>) {
    return on<T>(o, [](T a, T b) {
      return to_bfloat(static_cast<double>(to_float(a)) + static_cast<double>(to_float(b)));
    });
  } else {
    return on<T>(o, [](T a, T b) { return a + b; });
  }
}
template <class T>
uint64_t add_pair(const Operands& o) {
  const uint64_t low = add<T>({o.old & 0xffff, o.first & 0xffff, 0}) & 0xffff;
  return (add<T>({o.old >> 16 & 0xffff, o.first >> 16 & 0xffff, 0}) & 0xffff) << 16 | low;
}
template <class T>
uint64_t least(const Operands& o) {
  return on<T>(o, [](T a, T b) { return minimum(a, b); });
}
template <class T>
uint64_t most(const Operands& o) {
  return on<T>(o, [](T a, T b) { return maximum(a, b); });
}
uint64_t bit_and(const Operands& o) {
  return o.old & o.first;
}
uint64_t bit_or(const Operands& o) {
  return o.old | o.first;
}
uint64_t bit_xor(const Operands& o) {
  return o.old ^ o.first;
}
uint64_t exchange(const Operands& o) {
  return o.first;
}
uint64_t compare_and_swap(const Operands& o) {
  return o.old == o.first ? o.second : o.old;
}
uint64_t increment(const Operands& o) {
  return o.old >= o.first ? 0 : o.old + 1;
}
uint64_t decrement(const Operands& o) {
  return o.old == 0 || o.old > o.first ? o.first : o.old - 1;
}

Operation choose_add(Type type) {
  if (type.is_pair) return type.kind == 'B' ? add_pair<Bfloat> : add_pair<Half>;
  if (type.kind == 'B') return add<Bfloat>;
  if (type.kind == 'f')
    return type.bits == 16 ? add<Half> : type.bits == 32 ? add<float> : add<double>;
  return add<uint64_t>;
}

Operation choose_extreme(Type type, bool is_min) {
  if (type == Type{'s', 32}) return is_min ? least<int32_t> : most<int32_t>;
  if (type == Type{'u', 32}) return is_min ? least<uint32_t> : most<uint32_t>;
  if (type == Type{'s', 64}) return is_min ? least<int64_t> : most<int64_t>;
  if (type == Type{'u', 64}) return is_min ? least<uint64_t> : most<uint64_t>;
  return nullptr;
}

Operation take_operation(Decoder& d, Type type) {
  const std::string_view word =
      d.take_one({"add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"});
  d.ignore({"noftz"});
  if (word == "add") return choose_add(type);
  if (word == "min" || word == "max") return choose_extreme(type, word == "min");
  if (word == "and") return bit_and;
  if (word == "or") return bit_or;
  if (word == "xor") return bit_xor;
  if (word == "exch") return exchange;
  if (word == "cas") return compare_and_swap;
  if (word == "inc") return increment;
  if (word == "dec") return decrement;
  return nullptr;
}

/// Lanes take their turns, in the order of lanes.
template <bool kReturns>
void update(Step& step) {
  const auto operation = reinterpret_cast<Operation>(step.in.numbers[kOperation]);
  const auto element = static_cast<size_t>(step.in.numbers[kElementBytes]);
  constexpr size_t kAddress = kReturns ? 1 : 0;
  const Argument& values = step.in.arguments[kAddress + 1];
  const auto bytes = static_cast<int64_t>(element * values.parts.size());
  for_windows(
      step, kAddress, static_cast<Window>(step.in.numbers[kWindow]), bytes,
      [&](const Access& access) {
        check_access(step, access, Purpose::atomic, step.in.numbers[kOrder]);
        for_lanes(access.lanes, [&](int lane) {
          std::byte* at =
              bytes_at(step, access.window, access.address[static_cast<size_t>(lane)], lane);
          for (size_t i = 0; i < values.parts.size(); ++i, at += element) {
            Operands o;
            std::memcpy(&o.old, at, element);
            o.first = step.value(values.parts[i], lane);
            const bool has_second = step.in.arguments.size() > kAddress + 2 &&
                                    step.in.arguments[kAddress + 2].kind == Argument::Kind::lanes;
            if (has_second) o.second = step.value(kAddress + 2, lane);
            const uint64_t mask = element == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * element)) - 1;
            o.first &= mask;
            const uint64_t result = operation(o);
            std::memcpy(at, &result, element);
            if constexpr (kReturns) {
              const Lanes& target = step.in.arguments[0].parts[i];
              if (target.number >= 0) step.set(target, lane, o.old);
            }
          }
        });
      });
}

/// fence.acq_rel: what relaxed reads saw becomes known, and relaxed writes from here on publish
/// what is known now.
void fence_thread(simt::Thread& thread) {
  thread.known.join(thread.fence_pending);
  thread.fence_pending.clear();
  thread.fence_released = thread.release();
  thread.has_released = true;
}

void fence(Step& step) {
  for_lanes(step.mask, [&](int lane) { fence_thread(step.warp.thread(lane)); });
}

/// fence.sc, membar, __threadfence(): those of the device are in one order, and each synchronises
/// with all behind it.
void fence_in_sequence(Step& step) {
  const int64_t block = step.block().linear_index;
  simt::Knowledge& sequence = step.launch().sequential_fences;
  for_lanes(step.mask, [&](int lane) {
    simt::Thread& thread = step.warp.thread(lane);
    thread.known.import(sequence, block);
    fence_thread(thread);
    sequence.import(thread.fence_released.exported(block), simt::Launch::kNoBlock);
  });
}

void fence_proxy(Step& step) {
  for_lanes(step.mask, [&](int lane) { step.block().async->fence_proxy(step.warp.thread(lane)); });
}

void fence_mbarrier_init(Step& step) {
  for_lanes(step.mask,
            [&](int lane) { step.block().async->fence_mbarrier_init(step.warp.thread(lane)); });
}

}  // namespace

void decode_atomic(Decoder& d) {
  d.in.kind = InstructionClass::memory;
  AccessModifiers modifiers = take_access(d);
  modifiers.order |= kStrong;
  const bool returns = d.opcode() == "atom";
  d.ignore({"v2", "v4", "v8"});  // the arguments show it
  const Type type = d.take_type();
  const Operation operation = take_operation(d, type);
  if (operation == nullptr) d.refuse("operation is not known with this type");
  if (modifiers.window != Window::global && modifiers.window != Window::shared &&
      modifiers.window != Window::generic) {
    d.refuse("atomics in this space");
  }
  d.require_arguments(returns ? 3 : 2, returns ? 4 : 3);
  d.in.numbers[kWindow] = static_cast<int64_t>(modifiers.window);
  d.in.numbers[kOrder] = modifiers.order;
  d.in.numbers[kElementBytes] = type.bits / 8;
  d.in.numbers[kOperation] = static_cast<int64_t>(reinterpret_cast<intptr_t>(operation));
  d.in.execute = returns ? update<true> : update<false>;
}

void decode_fence(Decoder& d) {
  d.in.kind = InstructionClass::synchronise;
  if (d.take("mbarrier_init")) {
    d.ignore({"release", "cluster"});
    d.in.execute = fence_mbarrier_init;
    return;
  }
  if (d.take("proxy")) {
    if (d.take("async") || d.take("async::generic")) {
      d.ignore({"global", "shared::cta", "shared::cluster", "shared", "acquire", "release",
                "cluster", "sync_restrict::shared::cta", "sync_restrict::shared::cluster"});
      d.in.execute = fence_proxy;
      return;
    }
    d.refuse("this proxy");
  }
  const bool is_sequential = d.take("sc") || d.opcode() == "membar";
  d.ignore({"acq_rel", "acquire", "release"});
  const std::string_view scope = d.take_one({"cta", "cluster", "gpu", "gl", "sys"});
  const bool is_wide = scope == "gpu" || scope == "gl" || scope == "sys";
  d.in.execute = is_sequential && is_wide ? fence_in_sequence : fence;
}

}  // namespace wide::ptx
