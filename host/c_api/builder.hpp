// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one way in which a builder takes another value.
#pragma once

#include "host/c_api/handles.hpp"

namespace wide::c_api {

/// `build` on the builder, unless something failed before: then that, again, with the function that
/// it failed in. What fails now is kept; `name` is what is built.
template <class Build>
wide_status extended(const char* function, wide_builder* builder, const char* name,
                     const Build& build) noexcept {
  return guarded(function, [&] {
    wide_builder& own = required(builder, "builder");
    if (own.first_error) throw Error(*own.first_error);
    const auto fail = [&](ErrorCode code, const char* message) {
      const std::string text = (name == nullptr ? "" : std::string(name) + ": ") + message;
      own.first_error = Error(code, std::string(function) + ": " + text);
      throw Error(code, text);
    };
    try {
      build(own.builder);
    } catch (const Error& error) {
      fail(error.code(), error.what());
    } catch (const std::exception& error) {
      fail(ErrorCode::out_of_memory, error.what());
    }
  });
}

/// The same for what gives a value: `build` has the builder and the name.
template <class Build>
wide_status appended(const char* function, wide_builder* builder, const char* name, wide_value* out,
                     const Build& build) noexcept {
  return extended(function, builder, name, [&](GraphBuilder& g) {
    wide_value& place = required(out, "out");
    place = build(g, text(name, "name")).index;
  });
}

}  // namespace wide::c_api
