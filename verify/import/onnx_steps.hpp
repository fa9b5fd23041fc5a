// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Files of steps from one input x to one output y, judged by loops over these steps.
#pragma once

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "verify/support/model_run.hpp"
#include "verify/support/onnx_loops.hpp"
#include "wide/onnx.hpp"

namespace wide::test::onnx {

inline OnnxModel parse(const std::string& file) {
  return OnnxModel::parse(std::as_bytes(std::span(file)), "a file");
}

/// Imported, `file` computes what the loops do from x of this shape, batch included, and `known`
/// constants, alone and with three members. Returns its operations.
inline std::vector<std::string> judged(const std::string& file, const Steps& steps, Tensors known,
                                       const Extents& shape) {
  const OnnxModel model = parse(file);
  const Graph& graph = model.graph();
  Doubles x{shape, {}};
  int64_t size = 1;
  for (const int64_t extent : shape) size *= extent;
  for (int64_t i = 0; i < size; ++i) x.values.push_back(number(static_cast<size_t>(i) + 99));
  known["x"] = x;
  const Doubles wanted = evaluate_steps(steps, std::move(known)).at("y");
  std::map<std::string, Doubles> parameters;
  for (const auto& [name, view] : model.parameters(0)) parameters[name] = catalog::to_doubles(view);
  const Doubles got = catalog::evaluate_graph(graph, {{"x", x}}, parameters).at("y");
  REQUIRE(got.shape == wanted.shape);
  double worst = 0;
  for (size_t i = 0; i < got.values.size(); ++i) {
    const double error = std::fabs(got.values[i] - wanted.values[i]);
    worst = error > worst || std::isnan(error) ? error : worst;
  }
  CHECK(worst < 1e-5);
  ModelRun run(Context::cpu(), graph, {.num_members = 3, .batch = 2});
  CHECK(run.worst_error(run.run()) < 2e-5);
  return operations(graph);
}

}  // namespace wide::test::onnx
