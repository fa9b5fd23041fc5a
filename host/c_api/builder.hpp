// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one way in which a builder takes another value.
#pragma once

#include "host/c_api/handles.hpp"

namespace wide::c_api {

/// `build` on the builder, unless something failed before: then that, again. What fails now is
/// kept.
template <class Build>
wide_status extended(const char* function, wide_builder* builder, const Build& build) noexcept {
  return guarded(function, [&] {
    wide_builder& own = required(builder, "builder");
    if (own.first_error) throw Error(*own.first_error);
    try {
      build(own.builder);
    } catch (const Error& error) {
      own.first_error = error;
      throw;
    } catch (const std::exception& error) {
      own.first_error = Error(ErrorCode::out_of_memory, error.what());
      throw;
    }
  });
}

/// The same for what gives a value: `build` has the builder and the name.
template <class Build>
wide_status appended(const char* function, wide_builder* builder, const char* name, wide_value* out,
                     const Build& build) noexcept {
  return extended(function, builder, [&](GraphBuilder& g) {
    wide_value& place = required(out, "out");
    place = build(g, text(name, "name")).index;
  });
}

}  // namespace wide::c_api
