// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What no pooling plan takes, also for those that have no problem yet: builders of graphs.
#pragma once

#include <string>

#include "wide/pooling.hpp"
#include "wide/tuning.hpp"

namespace wide {

/// A window of a pool that is not adaptive, where its stride may be left to the kernel; `name` is
/// rows or columns. Throws invalid_argument.
void require_pooling_window(const char* name, PoolingWindow window, PoolingMode mode);
/// Of an adaptive pool; `name` is out_height or out_width. Throws invalid_argument.
void require_adaptive_outputs(const char* name, int64_t outputs);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const PoolingProblem& complete);
TuningKey tuning_key(const PoolingProblem& problem);

}  // namespace wide
