// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Problems as stored in plans.
#pragma once

#include <string>
#include <string_view>

#include "wide/embedding.hpp"
#include "wide/tuning.hpp"

namespace wide {

inline constexpr std::string_view kEmbeddingName = "embedding";  ///< in messages

/// Elements of a row of the table as it is stored: bytes of a quantised one.
int64_t row_elements(const EmbeddingProblem& problem);

/// Fills in strides that were left 0: packed. Throws for illegal problems.
EmbeddingProblem resolved(EmbeddingProblem problem);

/// Also for those that have no problem yet. Throws invalid_argument.
void require_padding_id(int64_t padding_id, int64_t vocab);

/// Throws with the first field in which the operands differ from the plan's problem.
void require_same(const EmbeddingProblem& got, const EmbeddingProblem& plan);

/// In tuning caches (host/core/tuned_choice.hpp).
std::string problem_key(const EmbeddingProblem& complete);
TuningKey tuning_key(const EmbeddingProblem& problem);

}  // namespace wide
