// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ld and st in every space, scalars and vectors.
#include <algorithm>

#include "verify/ptx/access.hpp"
#include "verify/ptx/kernel.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;
enum Note : size_t { kWindow, kElementBytes, kOrder, kSigned };

int64_t sign_extended(uint64_t value, int64_t bytes) {
  const auto unused = static_cast<int>(64 - 8 * bytes);
  return static_cast<int64_t>(value << unused) >> unused;
}

void read_lane(Step& step, const std::byte* from, int lane, const std::vector<Lanes>& parts) {
  const int64_t bytes = step.in.numbers[kElementBytes];
  for (const Lanes& part : parts) {
    uint64_t value = 0;
    std::memcpy(&value, from, static_cast<size_t>(bytes));
    from += bytes;
    if (step.in.numbers[kSigned] != 0) value = static_cast<uint64_t>(sign_extended(value, bytes));
    if (part.number >= 0) step.set(part, lane, value);
  }
}

void load(Step& step) {
  const std::vector<Lanes>& parts = step.in.arguments[0].parts;
  const int64_t bytes = step.in.numbers[kElementBytes] * static_cast<int64_t>(parts.size());
  for_windows(step, 1, static_cast<Window>(step.in.numbers[kWindow]), [&](const Access& access) {
    check_access(step, access, bytes, Purpose::load, step.in.numbers[kOrder]);
    for_lanes(access.lanes, [&](int lane) {
      const uint64_t address = access.address[static_cast<size_t>(lane)];
      read_lane(step, bytes_at(step, access.window, address, lane), lane, parts);
    });
  });
}

/// A parameter at a known place: one value for all lanes.
void load_parameter(Step& step) {
  const std::vector<Lanes>& parts = step.in.arguments[0].parts;
  if (window_of(address_of(step, 1, 0)) != Window::parameter) return load(step);  // of a function
  const uint64_t address = address_of(step, 1, 0) & ~kWindowMask;
  const int64_t bytes = step.in.numbers[kElementBytes] * static_cast<int64_t>(parts.size());
  Access access{Window::parameter, step.mask & (0 - step.mask), {}};
  access.address.fill(address);
  check_access(step, access, bytes, Purpose::load, 0);
  const std::byte* from = step.launch().parameters.data() + address;
  for_lanes(step.mask, [&](int lane) { read_lane(step, from, lane, parts); });
}

void store(Step& step) {
  const std::vector<Lanes>& parts = step.in.arguments[1].parts;
  const auto element = static_cast<size_t>(step.in.numbers[kElementBytes]);
  const auto bytes = static_cast<int64_t>(element * parts.size());
  for_windows(step, 0, static_cast<Window>(step.in.numbers[kWindow]), [&](const Access& access) {
    check_access(step, access, bytes, Purpose::store, step.in.numbers[kOrder]);
    for_lanes(access.lanes, [&](int lane) {
      std::byte* to =
          bytes_at(step, access.window, access.address[static_cast<size_t>(lane)], lane);
      for (const Lanes& part : parts) {
        const uint64_t value = step.value(part, lane);
        std::memcpy(to, &value, element);
        to += element;
      }
    });
  });
}

/// Whether it is about parameters.
bool decode_access(Decoder& d, size_t value_argument) {
  d.in.kind = InstructionClass::memory;
  const AccessModifiers modifiers = take_access(d);
  const std::string_view vector = d.take_one({"v2", "v4", "v8"});
  const size_t expected = vector.empty() ? 1 : static_cast<size_t>(vector[1] - '0');
  const Type type = d.take_type();
  d.require_arguments(2, 3);  // the third is a cache policy
  if (d.in.arguments[value_argument].parts.size() != expected) d.refuse("vector of another length");
  if (type.bits > 64) d.refuse("elements of 128 bits");
  // Parameters of functions lie in local memory; the address says which they are.
  const bool is_parameter = modifiers.window == Window::parameter;
  d.in.numbers[kWindow] = static_cast<int64_t>(is_parameter ? Window::generic : modifiers.window);
  d.in.numbers[kOrder] = modifiers.order;
  d.in.numbers[kElementBytes] = std::max(1, type.bits / 8);
  d.in.numbers[kSigned] = type.kind == 's';
  return is_parameter;
}

}  // namespace

void decode_load(Decoder& d) {
  const bool is_parameter = decode_access(d, 0);
  const bool is_fixed = d.in.arguments[1].parts[0].is_constant;
  d.in.execute = is_parameter && is_fixed ? load_parameter : load;
  if (is_parameter) d.in.kind = InstructionClass::move;
}

void decode_store(Decoder& d) {
  if (decode_access(d, 1)) d.in.kind = InstructionClass::move;
  d.in.execute = store;
}

}  // namespace wide::ptx
