// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Addresses of a warp's memory instruction: which window each lane means, what is checked and
// counted before the bytes are touched, and the order that acquire and release make.
#pragma once

#include "verify/ptx/decoder.hpp"
#include "verify/simt/global_memory.hpp"

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
uint64_t address_of(const Step& step, size_t i, int lane);
/// Accesses of so many bytes a lane in `window`, split by window where that is generic; calls
/// f(access) for each.
template <class Function>
void for_windows(const Step& step, size_t argument, Window window, int64_t bytes,
                 const Function& f);
Window window_of(uint64_t address);

/// Bounds, alignment, races; counts the request. Throws simt::Fault.
void check_access(Step& step, const Access& access, Purpose purpose, int64_t order);
/// Where the bytes of a checked address are.
std::byte* bytes_at(Step& step, Window window, uint64_t address, int lane);
/// What a strong read or write at a global address learns or publishes.
void observe(simt::GlobalMemory& memory, simt::Thread& thread, uint64_t address, int64_t order);
void publish(simt::GlobalMemory& memory, simt::Thread& thread, uint64_t address, int64_t order);

template <class Function>
void for_windows(const Step& step, size_t argument, Window window, int64_t bytes,
                 const Function& f) {
  Access access;
  access.bytes = static_cast<int>(bytes);
  access.window = window;
  std::array<Window, simt::kLanes> of;  // set for the lanes of the mask
  for_lanes(step.mask, [&](int lane) {
    const auto i = static_cast<size_t>(lane);
    access.address[i] = address_of(step, argument, lane);
    of[i] = window == Window::generic ? window_of(access.address[i]) : window;
    if (of[i] == Window::shared) access.address[i] &= 0xffffffffu;
    if (of[i] != Window::global) access.address[i] &= ~(uint64_t{15} << 60);
  });
  for (simt::LaneMask left = step.mask; left != 0; left &= ~access.lanes) {
    access.window = of[static_cast<size_t>(std::countr_zero(left))];
    access.lanes = 0;
    for_lanes(left, [&](int lane) {
      if (of[static_cast<size_t>(lane)] == access.window) access.lanes |= simt::LaneMask{1} << lane;
    });
    f(access);
  }
}

}  // namespace wide::ptx
