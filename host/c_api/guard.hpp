// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The frame of every function of the C headers: a body that may throw, and a status for what it
// threw.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <string_view>

#include "host/core/check.hpp"
#include "host/core/text.hpp"
#include "wide/wide.h"

namespace wide::c_api {

/// Inside a catch block: keeps "FUNCTION: MESSAGE" for wide_last_error() and gives the status.
/// Never allocates, so that there is a message even without memory.
wide_status failed(const char* function) noexcept;

/// The same error with `words` before its message; errors without a message of their own, such as
/// std::bad_alloc, are unchanged.
std::exception_ptr prefixed(const std::exception_ptr& error, const std::string& words);

/// A long message is cut, never omitted.
const char* last_error() noexcept;

template <class Body>
wide_status guarded(const char* function, const Body& body) noexcept {
  try {
    body();
    return WIDE_OK;
  } catch (...) {
    return failed(function);
  }
}

/// Dereferences a required pointer argument.
template <class T>
T& required(T* argument, const char* name) {
  WIDE_REQUIRE(argument != nullptr, std::string(name) + " is null, expected one");
  return *argument;
}

inline std::string text(const char* argument, const char* name) {
  return &required(argument, name);
}
inline std::string text(const char* argument, const std::string& name) {
  return text(argument, name.c_str());
}

/// One of several by its name.
template <class T, class Names>
T named(const char* given, const char* what, const Names& all, std::string_view (*name_of)(T)) {
  const std::string name = text(given, what);
  std::string list;
  for (const T candidate : all) {
    if (name_of(candidate) == name) return candidate;
    list += (list.empty() ? "" : ", ") + std::string(name_of(candidate));
  }
  throw_invalid_argument(std::string(what) + " is \"" + name + "\", expected one of " + list);
}

/// An array of `count` elements: may be null only where there are none.
template <class T>
void require_array(const T* argument, int64_t count, const char* name) {
  WIDE_REQUIRE(count >= 0, std::string("the number of ") + name + " is " + std::to_string(count) +
                               ", expected >= 0");
  WIDE_REQUIRE(argument != nullptr || count == 0,
               std::string(name) + " is null, expected " + counted(count, "element"));
}

/// One of several that a handle has: `what` is its index.
template <class T>
const T& element(std::span<const T> all, int64_t index, const char* what) {
  const auto count = static_cast<int64_t>(all.size());
  WIDE_REQUIRE(index >= 0 && index < count, std::string(what) + " is " + std::to_string(index) +
                                                ", expected one in [0, " + std::to_string(count) +
                                                ")");
  return all[static_cast<size_t>(index)];
}

/// Bytes of a struct in the first version that had it. A struct that grows later, by whole words at
/// its end, keeps that here as a specialisation.
template <class Struct>
inline constexpr size_t kFirstSize = sizeof(Struct);

/// Throws unless a struct_size is one of this library's versions, or of a later one. (Inline, as
/// libwide_onnx has these functions, too.)
inline void require_struct_size(const char* name, size_t given, size_t first, size_t own) {
  // An unset size may be any number: nothing is read or written up to it.
  constexpr size_t kMost = 1024;
  const bool is_size = given % alignof(size_t) == 0 && given >= first && given <= kMost;
  WIDE_REQUIRE(is_size, std::string(name) + ".struct_size is " + std::to_string(given) +
                            ", expected sizeof = " + std::to_string(own) + " of WIDE_API_VERSION " +
                            std::to_string(WIDE_API_VERSION));
}

/// Throws unsupported where a field after the `own` bytes, from a later version, is set.
inline void require_no_later_field(const char* name, const void* argument, size_t given,
                                   size_t own) {
  const auto* bytes = static_cast<const unsigned char*>(argument);
  for (size_t i = own; i < given; ++i) {
    if (bytes[i] == 0) continue;
    throw_unsupported(
        std::string(name) + " of struct_size " + std::to_string(given) + " has something at byte " +
        std::to_string(i) + ", expected zeros after the " + std::to_string(own) +
        " bytes of WIDE_API_VERSION " + std::to_string(WIDE_API_VERSION) + ", the library's");
  }
}

/// A struct of the caller's. Fields that an earlier version did not have are zero, their default.
template <class Struct>
Struct sized(const Struct* argument, const char* name) {
  const size_t given = required(argument, name).struct_size;
  require_struct_size(name, given, kFirstSize<Struct>, sizeof(Struct));
  require_no_later_field(name, argument, given, sizeof(Struct));
  Struct own{};
  std::memcpy(&own, argument, std::min(given, sizeof own));
  return own;
}

/// An element of the caller's array of structs, whose elements have the size given in the first
/// one: access them in order, each through sized().
template <class Struct>
const Struct* element_of(const Struct* array, int64_t index) {
  const auto* bytes = reinterpret_cast<const std::byte*>(array);
  return reinterpret_cast<const Struct*>(bytes + static_cast<size_t>(index) * array->struct_size);
}

/// What messages call it, or a field of it: "options.strategies[1].primitive".
inline std::string element_name(const char* array, int64_t index, const char* field = "") {
  return std::string(array) + "[" + std::to_string(index) + "]" + field;
}

/// Options: null means that all are zero, which is every option's default.
template <class Struct>
Struct options_or_default(const Struct* argument, const char* name) {
  return argument == nullptr ? Struct{} : sized(argument, name);
}

/// Writes through the last argument; zero for fields of a later version.
template <class Struct>
void write(Struct* out, Struct value) {
  const size_t given = required(out, "out").struct_size;
  require_struct_size("out", given, kFirstSize<Struct>, sizeof(Struct));
  value.struct_size = given;
  std::memset(static_cast<void*>(out), 0, given);
  std::memcpy(out, &value, std::min(given, sizeof value));
}

/// A function that makes a handle.
template <class Handle, class Make>
wide_status created(const char* function, Handle** out, const Make& make) noexcept {
  return guarded(function, [&] {
    Handle*& place = required(out, "out");
    place = new Handle(make());
  });
}

}  // namespace wide::c_api
