// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Judges outputs against the reference, member by member. NaN fails.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "wide/catalog.hpp"

namespace wide::catalog {

/// Reference rows of one workload: all of them where that is cheap, else for every member the
/// first, the last and seeded random ones. Computed once, used for every strategy and baseline.
class ReferenceSample {
 public:
  /// `flops_budget` bounds the work; at least min(3, rows) rows of every member are taken. Several
  /// threads compute them where that pays off, with the same results for any number; shared work of
  /// rows, such as a whole sequence of `recurrent` or a batch row of a model, is done by one.
  /// Memory: 16 bytes per element. Throws out_of_memory where fewer are available.
  explicit ReferenceSample(const Workload& workload, double flops_budget = 2e8, uint64_t seed = 1);

  struct Row {
    int64_t member = 0;
    int64_t row = 0;
    std::vector<double> values;
    std::vector<double> tolerances;
  };
  const std::vector<Row>& rows() const { return rows_; }
  /// Shapes of the members' outputs.
  struct Member {
    int64_t rows = 0, row_length = 0;
  };
  std::span<const Member> members() const { return members_; }
  double mean_square_limit() const { return mean_square_limit_; }  ///< the workload's
  int64_t elements() const { return elements_; }                   ///< compared with the reference
  int64_t elements_in_all() const {
    return elements_in_all_;
  }  ///< of the output; all are scanned for NaN

 private:
  std::vector<Row> rows_;
  std::vector<Member> members_;
  int64_t elements_ = 0, elements_in_all_ = 0;
  double mean_square_limit_ = 0;
};

struct Verdict {
  bool passed = false;
  /// Largest |got - expected| / tolerance over the rows compared; infinite for a NaN, an infinity
  /// of the wrong sign or any error where the tolerance is 0; where a member's squared errors
  /// exceed their limit, the root of that ratio, if it is larger. Passed where <= 1, or Leniency's
  /// slack.
  double worst_error_ratio = 0;
  int64_t worst_member = -1, worst_row = -1, worst_column = -1;
  double got = 0, expected = 0, tolerance = 0;  ///< at the worst place
  int64_t mismatches = 0;                       ///< elements whose ratio is above that
  int64_t nan_count = 0;  ///< in the whole output, where the reference has none
  /// The worst member's sum of squared errors relative to that of expected values, where these
  /// amount to at least 32 finite values of about one size (sum^2 of squares over the sum of fourth
  /// powers): Workload::mean_square_limit() bounds it, times the square of the slack.
  double mean_square = 0;
  int64_t elements_compared = 0, elements = 0;
  std::vector<double> member_error_ratio;  ///< worst per member
  std::string message;                     ///< where, got, expected, tolerance; or what was damaged
};

/// What passes in addition.
struct Leniency {
  bool keeps_infinities = true;  ///< else results of infinities may be NaN
  double slack = 1;              ///< errors up to this many tolerances
};

/// Results of an infinity have an infinite tolerance. Either infinity passes for the other there,
/// where infinities are not kept NaN, too, and for a finite value what is within 4 u of it, u the
/// output's unit roundoff.
Verdict compare(const ReferenceSample& reference, const MemberOutputs& outputs,
                const Leniency& leniency = {});

}  // namespace wide::catalog
