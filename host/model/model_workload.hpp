// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A model as a workload: inputs as their readers expect them, all outputs checked.
#pragma once

#include <memory>

#include "host/model/model_catalog.hpp"
#include "wide/catalog.hpp"
#include "wide/graph.hpp"
#include "wide/model.hpp"

namespace wide::catalog {

/// Parameters are drawn for the graph where `parameters_of` is empty.
std::unique_ptr<Workload> make_model_workload(const Context& context,
                                              std::shared_ptr<const Graph> graph,
                                              const ModelProblem& problem,
                                              const WorkloadOptions& options,
                                              const ParametersOf& parameters_of);

}  // namespace wide::catalog
