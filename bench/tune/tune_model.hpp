// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// `tune --model`: every problem of a model's steps, as a primitive's cases are.
#pragma once

#include "bench/tune/tune_cases.hpp"
#include "wide/catalog.hpp"

namespace wide::bench {

/// Each problem once, whatever the number of steps, cases and models that have it. A `budget_s` of
/// 0 means none.
TunedOp tune_model(const TuneRequest& request, const catalog::PrimitiveSpec& model,
                   double budget_s);

}  // namespace wide::bench
