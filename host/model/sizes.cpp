// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Products that saturate, so that every question has an answer.
#include "host/model/sizes.hpp"

#include <limits>
#include <numeric>

#include "host/core/text.hpp"
#include "host/model/routed.hpp"

namespace wide {

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

/// For factors of at least 1; kMost where it does not fit.
int64_t product(int64_t a, int64_t b) {
  int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? kMost : result;
}

}  // namespace

void check_size(const std::string& what, int64_t bytes) {
  if (bytes < kStorageSpacing) return;
  throw TooLarge("model: " + what + " needs " + (bytes == kMost ? "at least " : "") +
                 std::to_string(bytes) + " bytes, expected fewer than " +
                 std::to_string(kStorageSpacing));
}

void check_sizes(const Graph& graph, const ModelProblem& problem,
                 const std::vector<bool>& is_shared) {
  const bool is_ragged = !problem.batches.empty();
  const int64_t all_rows =
      std::accumulate(problem.batches.begin(), problem.batches.end(), int64_t{0});
  const std::vector<bool> has_choices = values_of_choices(problem, graph, is_shared);
  for (int32_t i = 0; i < graph.num_values(); ++i) {
    const Value value{i};
    const ValueType& type = graph.type(value);
    const bool is_one = is_shared[static_cast<size_t>(i)];
    bool has_batch = false;
    int64_t bytes = dtype_bytes(type.dtype);
    for (const int64_t extent : type.shape) {
      has_batch = has_batch || extent == kBatch;
      if (extent != kBatch) bytes = product(bytes, extent);
    }
    const int64_t rows = has_choices[static_cast<size_t>(i)] ? rows_of_choices(problem)
                         : is_ragged && !is_one              ? all_rows
                                                             : problem.batch;
    if (has_batch) bytes = product(bytes, rows);
    const bool lies_as_one = has_batch && (is_ragged || problem.is_routed);
    const bool is_of_members = !is_one && !lies_as_one;
    if (is_of_members) bytes = product(bytes, problem.num_members);
    if (bytes < kStorageSpacing) continue;
    check_size(graph.name() + ": " + graph.name(value) +
                   (is_of_members ? " of " + counted(problem.num_members, "member") : "") +
                   (has_batch ? " of " + counted(rows, "row") : ""),
               bytes);
  }
}

}  // namespace wide
