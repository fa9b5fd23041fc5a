// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Models that are added to the catalogue while a program runs.
#pragma once

#include <functional>
#include <string>

#include "wide/catalog.hpp"
#include "wide/model.hpp"

namespace wide::catalog {

/// A member's parameters, from a seed and its id.
using ParametersOf = std::function<OwnedParameters(uint64_t seed, int64_t id)>;

/// As add_model of the catalogue, with parameters that are not drawn at random.
const PrimitiveSpec& add_model(const std::string& name, Graph graph, ParametersOf parameters);
/// What a model's case plans: `batch` rows of each member, of its own or among one batch of all.
ModelProblem model_problem(const Case& point);
/// A member's parameters in a workload of a model's case. Throws invalid_argument for primitives.
OwnedParameters model_parameters(const Case& point, uint64_t seed, int64_t member);

}  // namespace wide::catalog
