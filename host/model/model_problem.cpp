// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "host/model/model_problem.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "host/core/check.hpp"
#include "host/core/plan_checks.hpp"
#include "host/core/text.hpp"
#include "host/model/routed.hpp"

namespace wide {

namespace {

/// Which of all members these are.
void check_ids(const ModelProblem& problem) {
  int64_t end = 0;
  WIDE_REQUIRE(
      problem.first_id >= 0 && !__builtin_add_overflow(problem.first_id, problem.num_members, &end),
      "model: first_id is " + text(problem.first_id) +
          ", expected at least 0, and ids of all members in 64 bits");
  WIDE_REQUIRE(
      problem.first_id == 0 || problem.is_routed,
      "model: first_id is " + text(problem.first_id) + ", expected 0 where rows are not routed");
  WIDE_REQUIRE(problem.num_scores == 0 || problem.router == Router::scores,
               "model: num_scores is " + text(problem.num_scores) +
                   ", expected 0 where router is " + std::string(router_name(problem.router)));
  WIDE_REQUIRE(problem.num_scores == 0 || problem.num_scores >= end,
               "model: num_scores is " + text(problem.num_scores) +
                   ", expected at least first_id + num_members = " + text(end));
}

/// What they are stored as.
void check_id_dtype(const ModelProblem& problem) {
  const bool is_id = problem.id_dtype == Dtype::int64 || problem.id_dtype == Dtype::int32;
  const bool has_ids = problem.is_routed && problem.router != Router::scores;
  WIDE_REQUIRE(
      is_id && (has_ids || problem.id_dtype == Dtype::int64),
      "model: id_dtype is " + std::string(dtype_name(problem.id_dtype)) +
          (has_ids ? ", expected int64 or int32" : ", expected int64 where no ids are given"));
}

/// What a mixture is made of.
void check_choices(const ModelProblem& problem) {
  WIDE_REQUIRE(problem.choices >= 1,
               "model: choices is " + text(problem.choices) + ", expected at least 1");
  require_enumerator("model", "router", problem.router, kAllRouters.back());
  require_enumerator("model", "gate", problem.gate, kAllGateFunctions.back());
  WIDE_REQUIRE(problem.is_routed || !is_mixture(problem),
               "model: choices is " + text(problem.choices) + " and router is " +
                   std::string(router_name(problem.router)) +
                   ", expected 1 and ids where rows are not routed");
  check_ids(problem);
  check_id_dtype(problem);
  WIDE_REQUIRE(
      problem.router != Router::scores || problem.choices <= scores_of(problem),
      "model: choices is " + text(problem.choices) + ", expected at most " +
          (scores_of(problem) == problem.num_members ? "num_members = " : "num_scores = ") +
          text(scores_of(problem)) + ", to choose from by scores");
  WIDE_REQUIRE(problem.choices == 1 ||
                   problem.batch <= std::numeric_limits<int32_t>::max() / problem.choices,
               "model: batch is " + text(problem.batch) + " and choices is " +
                   text(problem.choices) + ", expected up to 2^31 - 1 rows that are routed");
}

}  // namespace

ModelProblem checked_problem(ModelProblem problem) {
  WIDE_REQUIRE(problem.num_members >= 1,
               "model: num_members is " + text(problem.num_members) + ", expected at least 1");
  if (!problem.batches.empty()) {
    const size_t count = problem.batches.size();
    WIDE_REQUIRE(static_cast<int64_t>(count) == problem.num_members,
                 "model: batches has " + counted(count, "entry", "entries") +
                     ", expected one per member = " + text(problem.num_members));
    int64_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      WIDE_REQUIRE(problem.batches[i] >= 0, "model: batches of member " + text(i) + " is " +
                                                text(problem.batches[i]) + ", expected >= 0");
      WIDE_REQUIRE(!__builtin_add_overflow(sum, problem.batches[i], &sum),
                   "model: batches up to that of member " + text(i) + " = " +
                       text(problem.batches[i]) +
                       " are more rows than fit in 64 bits, expected fewer");
    }
    WIDE_REQUIRE(sum > 0, "model: batches are 0 for every member, expected rows for at least one");
    problem.batch = *std::max_element(problem.batches.begin(), problem.batches.end());
  }
  WIDE_REQUIRE(!problem.is_routed || problem.batches.empty(),
               "model: rows are routed, and batches has " +
                   counted(problem.batches.size(), "entry", "entries") +
                   ", expected none: ids tell whose rows there are");
  WIDE_REQUIRE(problem.batch >= 1,
               "model: batch is " + text(problem.batch) + ", expected at least 1");
  check_choices(problem);
  return problem;
}

}  // namespace wide
