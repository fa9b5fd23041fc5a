// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Checks shared by runs of models, whole, in chunks or captured, and changes of their members.
#pragma once

#include <span>

#include "wide/model.hpp"

namespace wide {

/// Throws invalid_argument where the device has streams and this is null: CUDA's default stream by
/// accident.
void require_stream(Device device, Stream stream);

/// Steps read inputs after outputs are written, and write the workspace all the time: throws
/// invalid_argument with the names where an output overlaps an input or another output, or
/// an operand overlaps the `workspace_bytes` that are used of the workspace. There is a view for
/// each operand. Inputs, which are only read, may overlap. Allocates nothing.
void require_apart(std::span<const ModelOperand> inputs, std::span<const ModelOperand> outputs,
                   const ModelArguments& arguments, const Execution& execution,
                   int64_t workspace_bytes);

}  // namespace wide
