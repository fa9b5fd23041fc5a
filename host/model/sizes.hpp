// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// How large a model's values may be. Plans of primitives are described by fake addresses, one per
// storage: these are kStorageSpacing apart, so nothing may be as large as that.
#pragma once

#include <string>
#include <vector>

#include "wide/error.hpp"
#include "wide/model.hpp"

namespace wide {

/// 16 TiB.
constexpr int64_t kStorageSpacing = int64_t{1} << 44;

class TooLarge : public Error {
 public:
  explicit TooLarge(const std::string& message) : Error(ErrorCode::invalid_argument, message) {}
};

/// Throws TooLarge with what it is, as "mlp: x".
void check_size(const std::string& what, int64_t bytes);

/// Checks every value, for all its members. `problem` comes from checked_problem().
void check_sizes(const Graph& graph, const ModelProblem& problem,
                 const std::vector<bool>& is_shared);

}  // namespace wide
