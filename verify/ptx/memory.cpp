// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// ld and st in every space, scalars and vectors.
#include <algorithm>
#include <type_traits>

#include "verify/ptx/access.hpp"

namespace wide::ptx {

namespace {

using simt::InstructionClass;
enum Note : size_t { kWindow, kElementBytes, kOrder, kSigned };

/// What each lane's address is on the host.
using Places = std::array<const std::byte*, simt::kLanes>;

/// Elements of type T, side by side at each lane's place, into the registers they are for: zero- or
/// sign-extended, as T is.
template <class T>
void read_elements(Step& step, simt::LaneMask mask, const Places& from) {
  const std::vector<Lanes>& parts = step.in.arguments[0].parts;
  const auto read = [&](auto* to, size_t offset) {
    for_lanes(mask, [&](int lane) {
      T value;
      std::memcpy(&value, from[static_cast<size_t>(lane)] + offset, sizeof(T));
      to[lane] = static_cast<std::remove_pointer_t<decltype(to)>>(value);
    });
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].number < 0) continue;
    if (parts[i].is_wide) {
      read(step.lanes<uint64_t>(parts[i]), i * sizeof(T));
    } else {
      read(step.lanes<uint32_t>(parts[i]), i * sizeof(T));
    }
  }
}

template <class T>
void load(Step& step) {
  const auto bytes = static_cast<int64_t>(sizeof(T) * step.in.arguments[0].parts.size());
  for_windows(step, 1, static_cast<Window>(step.in.numbers[kWindow]), bytes,
              [&](const Access& access) {
                check_access(step, access, Purpose::load, step.in.numbers[kOrder]);
                Places from;
                for_lanes(access.lanes, [&](int lane) {
                  const auto i = static_cast<size_t>(lane);
                  from[i] = bytes_at(step, access.window, access.address[i], lane);
                });
                read_elements<T>(step, access.lanes, from);
              });
}

/// A parameter at a known place: one value for all lanes.
template <class T>
void load_parameter(Step& step) {
  if (window_of(address_of(step, 1, 0)) != Window::parameter)
    return load<T>(step);  // of a function
  const uint64_t address = address_of(step, 1, 0) & ~kWindowMask;
  Access access;
  access.window = Window::parameter;
  access.lanes = step.mask & (0 - step.mask);
  access.bytes = static_cast<int>(sizeof(T) * step.in.arguments[0].parts.size());
  access.address.fill(address);
  check_access(step, access, Purpose::load, 0);
  Places from;
  from.fill(step.launch().parameters.data() + address);
  read_elements<T>(step, step.mask, from);
}

template <class T>
Execute loader(bool is_parameter) {
  return is_parameter ? load_parameter<T> : load<T>;
}

/// For elements of so many bytes.
Execute loader(int64_t bytes, bool is_signed, bool is_parameter) {
  switch (bytes) {
    case 1:
      return is_signed ? loader<int8_t>(is_parameter) : loader<uint8_t>(is_parameter);
    case 2:
      return is_signed ? loader<int16_t>(is_parameter) : loader<uint16_t>(is_parameter);
    case 4:
      return is_signed ? loader<int32_t>(is_parameter) : loader<uint32_t>(is_parameter);
    default:
      return loader<uint64_t>(is_parameter);
  }
}

void store(Step& step) {
  const std::vector<Lanes>& parts = step.in.arguments[1].parts;
  const auto element = static_cast<size_t>(step.in.numbers[kElementBytes]);
  const auto bytes = static_cast<int64_t>(element * parts.size());
  for_windows(
      step, 0, static_cast<Window>(step.in.numbers[kWindow]), bytes, [&](const Access& access) {
        check_access(step, access, Purpose::store, step.in.numbers[kOrder]);
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
  d.in.execute =
      loader(d.in.numbers[kElementBytes], d.in.numbers[kSigned] != 0, is_parameter && is_fixed);
  if (is_parameter) d.in.kind = InstructionClass::move;
}

void decode_store(Decoder& d) {
  if (decode_access(d, 1)) d.in.kind = InstructionClass::move;
  d.in.execute = store;
}

}  // namespace wide::ptx
