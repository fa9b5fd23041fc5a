// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Stands in for this folder's *_cuda.cpp where there is no CUDA.
#include "host/core/check.hpp"
#include "host/pointwise/binary_run.hpp"
#include "host/pointwise/dropout_run.hpp"
#include "host/pointwise/dropout_seeds.hpp"
#include "host/pointwise/ensemble_run.hpp"
#include "host/pointwise/pointwise_run.hpp"
#include "host/pointwise/softmax_run.hpp"

namespace wide {

void run_pointwise_cuda(const Context&, const PointwiseProblem&, WideStrategy,
                        const PointwiseArguments&, Stream) {
  no_cuda("pointwise");
}
void run_binary_cuda(const Context&, const BinaryProblem&, WideStrategy, const BinaryArguments&,
                     Stream) {
  no_cuda("binary");
}
void run_softmax_cuda(const Context&, const SoftmaxProblem&, WideStrategy, const SoftmaxArguments&,
                      Stream) {
  no_cuda("softmax");
}
void run_dropout_cuda(const Context&, const DropoutProblem&, WideStrategy, const DropoutArguments&,
                      Stream) {
  no_cuda("dropout");
}
void set_dropout_seeds_cuda(const Context&, const DropoutSeeds&, std::span<const uint64_t>,
                            uint64_t, Stream) {
  no_cuda("dropout");
}
void advance_dropout_seeds_cuda(const Context&, const DropoutSeeds&, int64_t, Stream) {
  no_cuda("dropout");
}
void run_ensemble_cuda(const Context&, const EnsembleProblem&, WideStrategy,
                       const EnsembleArguments&, void*, Stream) {
  no_cuda("ensemble");
}

}  // namespace wide
