// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for linear's CUDA strategies in a build without CUDA. No CUDA context can exist there,
// so nothing but a mistake of ours gets here.
#include "host/core/check.hpp"
#include "host/linear/linear_cublaslt.hpp"
#include "host/linear/linear_run.hpp"

namespace wide {

void run_linear_kernel(const DeviceInfo&, LinearStrategy, const LinearTiles&, const LinearProblem&,
                       const LinearArguments&, const Execution&) {
  throw_unsupported("linear: this build has no CUDA");
}

void run_linear_members(const DeviceInfo&, const LinearTiles&, const LinearProblem&,
                        const LinearArguments&, const Execution&) {
  throw_unsupported("linear: this build has no CUDA");
}

void run_linear_cublas(const DeviceInfo&, LinearStrategy, const LinearProblem&,
                       const LinearArguments&, const Execution&) {
  throw_unsupported("linear: this build has no CUDA");
}

std::shared_ptr<const CublasLtPlan> make_cublaslt_plan(const Context&, const LinearProblem&,
                                                       const std::string&, bool) {
  throw_unsupported("linear: this build has no CUDA");
}

}  // namespace wide
