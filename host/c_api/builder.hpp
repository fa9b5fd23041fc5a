// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The one way in which a builder takes another value.
#pragma once

#include "host/c_api/handles.hpp"

namespace wide::c_api {

/// Rethrows an earlier failure, with the function that failed.
inline void require_no_error(const wide_builder& builder) {
  if (!builder.first_error) return;
  std::rethrow_exception(prefixed(builder.first_error, std::string(builder.failed_in) + ": "));
}

/// C counts a builder's values from 1, so that a field left 0 means none.
inline wide_value handle_of(Value value) {
  return value.index + 1;
}
inline Value value_of(const GraphBuilder& g, wide_value handle) {
  const int64_t count = g.graph().num_values();
  WIDE_REQUIRE(handle >= 1 && handle <= count,
               "value is " + std::to_string(handle) + ", expected one of the builder's " +
                   std::to_string(count) + " values, counted from 1");
  return Value{handle - 1};
}
inline Value optional_value_of(const GraphBuilder& g, wide_value handle) {
  return handle == 0 ? Value{} : value_of(g, handle);
}

/// Runs `build` on the builder, unless something failed before: then reports that again. A new
/// failure is kept; `name` is what is built.
template <class Build>
wide_status extended(const char* function, wide_builder* builder, const char* name,
                     const Build& build) noexcept {
  return guarded(function, [&] {
    wide_builder& own = required(builder, "builder");
    require_no_error(own);
    try {
      build(own.builder);
    } catch (...) {
      own.failed_in = function;
      own.first_error = std::current_exception();  // kept even without memory for a message
      if (name != nullptr) own.first_error = prefixed(own.first_error, std::string(name) + ": ");
      std::rethrow_exception(own.first_error);
    }
  });
}

/// The same for functions that give a value: `build` gets the builder and the name.
template <class Build>
wide_status appended(const char* function, wide_builder* builder, const char* name, wide_value* out,
                     const Build& build) noexcept {
  return extended(function, builder, name, [&](GraphBuilder& g) {
    wide_value& place = required(out, "out");
    place = handle_of(build(g, text(name, "name")));
  });
}

}  // namespace wide::c_api
