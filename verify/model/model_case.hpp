// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What tests of operations in models ask of each.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <functional>

#include "verify/support/devices.hpp"
#include "verify/support/model_run.hpp"

namespace wide::test {

/// Errors of sums of a few hundred products, over the largest value.
inline double allowed_error(Dtype dtype) {
  return dtype == Dtype::fp32 ? 2e-5 : dtype == Dtype::fp16 ? 4e-3 : 3e-2;
}

/// On every device, by the passes and without, with one batch and with batches of members' own.
inline void check_on_all_devices(const Graph& graph, double most = 2e-5) {
  for (const Context& context : devices_at_hand()) {
    for (const char* preset : {"default", "debug"}) {
      CAPTURE(preset, to_string(context.device()));
      ModelRun run(context, graph, {.num_members = 3, .batch = 2}, model_options(preset));
      CHECK(run.worst_error(run.run()) < most);
      ModelRun ragged(context, graph, {.num_members = 3, .batches = {1, 0, 3}},
                      model_options(preset));
      CHECK(ragged.worst_error(ragged.run()) < most);
    }
  }
}

/// Of what is built.
inline void check_on_all_devices(const char* name,
                                 const std::function<void(GraphBuilder&)>& build) {
  CAPTURE(name);
  GraphBuilder g(name);
  build(g);
  check_on_all_devices(std::move(g).build());
}

/// Each member's own, or one for all.
inline Value input_of(GraphBuilder& g, const char* name, const Shape& shape, bool is_shared) {
  return is_shared ? g.shared_input(name, shape) : g.input(name, shape);
}

}  // namespace wide::test
