// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a graph for cuDNN means, as cuDNN documents its operations, in fp64 on the host: so that a
// graph and its bindings are judged by a primitive's reference where cuDNN cannot run.
#pragma once

#include <span>

#include "host/cudnn/cudnn_plan.hpp"

namespace wide::test {

/// Addresses are of host memory. Every tensor in memory must be bound.
void interpret(const CudnnGraph& graph, std::span<const CudnnBinding> bindings);

}  // namespace wide::test
