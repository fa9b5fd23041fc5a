// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for this folder's *_cuda.cpp where there is no CUDA.
#include "host/core/check.hpp"
#include "host/linear/linear_cublaslt.hpp"
#include "host/linear/linear_run.hpp"
#include "host/linear/ragged_linear_run.hpp"
#include "host/linear/routed_linear_run.hpp"

namespace wide {

void run_linear_kernel(const DeviceInfo&, LinearStrategy, const LinearTiles&, const LinearProblem&,
                       const LinearArguments&, const Execution&) {
  no_cuda("linear");
}
void run_linear_decoded(const DeviceInfo&, const LinearTiles&, int64_t, const LinearProblem&,
                        const LinearArguments&, const Execution&) {
  no_cuda("linear");
}
void run_linear_members(const DeviceInfo&, const LinearTiles&, const LinearProblem&,
                        const LinearArguments&, const Execution&) {
  no_cuda("linear");
}
void run_linear_cublas(const DeviceInfo&, LinearStrategy, const LinearWorkspace&,
                       const LinearProblem&, const LinearArguments&, const Execution&) {
  no_cuda("linear");
}
std::shared_ptr<const CublasLtPlan> make_cublaslt_plan(const Context&, const LinearProblem&,
                                                       const std::string&, bool) {
  no_cuda("linear");
}
void run_ragged_linear_kernel(const DeviceInfo&, RaggedLinearStrategy, const RaggedLinearProblem&,
                              kernels::RaggedLinearParams, const RaggedLinearArguments&, Stream) {
  no_cuda("ragged_linear");
}
std::unique_ptr<const RaggedGroupedCublas> make_ragged_grouped_cublas(const DeviceInfo&,
                                                                      const RaggedLinearProblem&) {
  no_cuda("ragged_linear");
}
void run_routed_linear_cuda(const DeviceInfo&, RoutedLinearStrategy, const RoutedLinearProblem&,
                            const RoutedLinearArguments&, Stream) {
  no_cuda("routed_linear");
}

}  // namespace wide
