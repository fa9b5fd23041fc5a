// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What a graph for cuDNN means, as cuDNN documents its operations, in fp64 on the host: so that a
// graph and its bindings are judged by a primitive's reference where cuDNN cannot run.
#pragma once

#include <span>

#include "host/cudnn/cudnn_plan.hpp"
#include "verify/support/strided_memory.hpp"

namespace wide::test {

/// Every tensor in memory must be bound. What is read is read before anything is written.
void interpret(const CudnnGraph& graph, std::span<const CudnnBinding> bindings,
               const Access& access = host_access);

}  // namespace wide::test
