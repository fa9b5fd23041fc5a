// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// The steps of a model as workloads, to find the fastest strategy of each: planned as the model
// plans them, on views as in the model, so that the key in a tuning cache is the one that the
// model's plan looks up.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/model/model_catalog.hpp"
#include "wide/catalog.hpp"
#include "wide/model.hpp"

namespace wide::catalog {

/// Steps that have the same problem.
struct StepProblem {
  std::string primitive;  ///< by its name in the catalogue
  TuningKey key;
  std::vector<std::string> nodes;  ///< in the order of the steps
  Dtype dtype = Dtype::fp32;       ///< of the result
  size_t step = 0;                 ///< the first one's number
};

/// Steps that cannot be tuned, and why.
struct FixedSteps {
  std::string reason;
  std::vector<std::string> nodes;
};

/// A model's case, step by step. Every operand of a step has memory of its own: no result lies
/// where an operand was, as it may in the model, since calls are repeated.
class ModelSteps {
 public:
  /// Plans the model as strategy "auto" does. Throws what make_model_plan throws.
  ModelSteps(const Context& context, const Case& point);
  ~ModelSteps();
  ModelSteps(const ModelSteps&) = delete;

  const Case& point() const;
  const std::vector<StepProblem>& problems() const;  ///< each once
  const std::vector<FixedSteps>& fixed() const;
  /// Random operands, but the model's own parameters, as the model stores them; checked against
  /// the step's node in double. Takes the seed and the fill of the options and none of the rest.
  /// Valid as long as this object.
  std::unique_ptr<Workload> make_workload(const StepProblem& problem,
                                          const WorkloadOptions& options);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wide::catalog
