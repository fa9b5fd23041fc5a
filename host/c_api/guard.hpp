// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What every function of the C headers is made of: a body that may throw, and a status for what it
// threw.
#pragma once

#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "host/core/check.hpp"
#include "wide/wide.h"

namespace wide::c_api {

/// Inside a catch block: keeps "FUNCTION: MESSAGE" for wide_last_error() and gives the status.
/// Never allocates, so that there is a message when memory is out.
wide_status failed(const char* function) noexcept;

/// The same error with words in front of its message; one without a message of its own, as
/// std::bad_alloc, stays as it is.
std::exception_ptr prefixed(const std::exception_ptr& error, const std::string& words);

/// The message is cut, never missing.
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

/// What a pointer argument points to.
template <class T>
T& required(T* argument, const char* name) {
  WIDE_REQUIRE(argument != nullptr, std::string(name) + " is null, expected one");
  return *argument;
}

inline std::string text(const char* argument, const char* name) {
  return &required(argument, name);
}

/// An array of `count` elements: may be null only where there are none.
template <class T>
void require_array(const T* argument, int64_t count, const char* name) {
  WIDE_REQUIRE(count >= 0, std::string("the number of ") + name + " is " + std::to_string(count) +
                               ", expected >= 0");
  WIDE_REQUIRE(argument != nullptr || count == 0,
               std::string(name) + " is null, expected " + std::to_string(count) + " elements");
}

/// A struct of the caller's, after a look at its struct_size.
template <class Struct>
Struct& sized(Struct* argument, const char* name) {
  Struct& given = required(argument, name);
  WIDE_REQUIRE(given.struct_size == sizeof(Struct),
               std::string(name) + ".struct_size is " + std::to_string(given.struct_size) +
                   ", expected sizeof = " + std::to_string(sizeof(Struct)) +
                   " of WIDE_API_VERSION " + std::to_string(WIDE_API_VERSION));
  return given;
}

/// Options: null means that all are zero, which is every option's default.
template <class Struct>
Struct options_or_default(const Struct* argument, const char* name) {
  return argument == nullptr ? Struct{} : sized(argument, name);
}

/// What there is to write through the last argument.
template <class Struct>
void write(Struct* out, Struct value) {
  Struct& place = sized(out, "out");
  value.struct_size = place.struct_size;
  place = value;
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
