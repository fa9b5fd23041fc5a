// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Addresses of a warp's memory instruction: which window each lane means, what is checked and
// counted before the bytes are touched, and the order that acquire and release make.
#pragma once

#include "verify/ptx/decoder.hpp"
#include "verify/ptx/kernel.hpp"
#include "verify/simt/global_memory.hpp"
#include "verify/simt/shared_memory.hpp"

namespace wide::ptx {

enum class Window : uint8_t { generic, global, shared, local, parameter };
enum class Purpose : uint8_t { load, store, atomic };

/// How an instruction orders: numbers[kOrder] of it.
constexpr int64_t kStrong = 1, kAcquire = 2, kRelease = 4, kReadOnly = 8;

/// Space, cache hints and order of ld, st, atom and red; the rest of the modifiers is left.
struct AccessModifiers {
  Window window = Window::generic;
  int64_t order = 0;
};
AccessModifiers take_access(Decoder& d);

/// Lanes that mean one window, with addresses inside of it.
struct Access : simt::Request {
  Window window = Window::global;
};

/// Address of a lane for argument `i` of kind memory, its displacement added.
inline uint64_t address_of(const Step& step, size_t i, int lane) {
  const Argument& a = step.in.arguments[i];
  return step.value(a.parts[0], lane) + static_cast<uint64_t>(a.displacement);
}
inline Window window_of(uint64_t address) {
  switch (address & kWindowMask) {
    case kSharedWindow:
      return Window::shared;
    case kLocalWindow:
      return Window::local;
    case kParameterWindow:
      return Window::parameter;
    default:
      return Window::global;
  }
}
/// Accesses of so many bytes a lane in `window`, split by window where that is generic; calls
/// f(access) for each.
template <class Function>
void for_windows(const Step& step, size_t argument, Window window, int64_t bytes,
                 const Function& f);

/// Bounds, alignment, races; counts the request. Throws simt::Fault.
void check_access(Step& step, const Access& access, Purpose purpose, int64_t order);
/// Where the bytes of a checked address are.
inline std::byte* bytes_at(Step& step, Window window, uint64_t address, int lane) {
  switch (window) {
    case Window::shared:
      return step.block().shared->at(static_cast<uint32_t>(address));
    case Window::global:
      return step.launch().memory.data(address);
    case Window::local: {
      const size_t each = step.warp.local.size() / simt::kLanes;
      return step.warp.local.data() + static_cast<size_t>(lane) * each + address;
    }
    default:
      return const_cast<std::byte*>(step.launch().parameters.data()) + address;
  }
}
/// What a strong read or write at a global address learns or publishes.
void observe(simt::GlobalMemory& memory, simt::Thread& thread, uint64_t address, int64_t order);
void publish(simt::GlobalMemory& memory, simt::Thread& thread, uint64_t address, int64_t order);

template <class Function>
void for_windows(const Step& step, size_t argument, Window window, int64_t bytes,
                 const Function& f) {
  Access access;
  access.bytes = static_cast<int>(bytes);
  access.lanes = step.mask;
  access.window = window;
  const Argument& place = step.in.arguments[argument];
  const auto displacement = static_cast<uint64_t>(place.displacement);
  const auto take = [&](const auto* bases) {
    for_lanes(step.mask, [&](int lane) {
      access.address[static_cast<size_t>(lane)] = bases[lane] + displacement;
    });
  };
  if (place.parts[0].is_wide) {
    take(step.lanes<uint64_t>(place.parts[0]));
  } else {
    take(step.lanes<uint32_t>(place.parts[0]));
  }
  // To offsets in the window, which have no number of one; global addresses are what they are.
  const auto strip = [&] {
    if (access.window == Window::global) return;
    const uint64_t offset = access.window == Window::shared ? 0xffffffffu : ~kWindowMask;
    for_lanes(access.lanes, [&](int lane) { access.address[static_cast<size_t>(lane)] &= offset; });
  };
  if (window != Window::generic) {
    strip();
    return f(access);
  }
  for (simt::LaneMask left = step.mask; left != 0; left &= ~access.lanes) {
    access.window = window_of(access.address[static_cast<size_t>(std::countr_zero(left))]);
    access.lanes = 0;
    for_lanes(left, [&](int lane) {
      const bool is_same = window_of(access.address[static_cast<size_t>(lane)]) == access.window;
      access.lanes |= simt::LaneMask{is_same} << lane;
    });
    strip();
    f(access);
  }
}

}  // namespace wide::ptx
