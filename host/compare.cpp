// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Error over tolerance per element, the worst per member. Conditions are written so that NaN fails.
#include "host/compare.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "host/core/cpu_device.hpp"
#include "host/core/text.hpp"
#include "host/core/thread_pool.hpp"
#include "wide/convert.hpp"

namespace wide::catalog {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The first, the last and seeded random rows, ascending.
std::vector<int64_t> choose_rows(int64_t rows, int64_t wanted, std::mt19937_64& random) {
  if (wanted >= rows) {
    std::vector<int64_t> all(static_cast<size_t>(rows));
    std::iota(all.begin(), all.end(), int64_t{0});
    return all;
  }
  std::set<int64_t> chosen{0, rows - 1};
  while (static_cast<int64_t>(chosen.size()) < wanted) {
    chosen.insert(static_cast<int64_t>(random() % static_cast<uint64_t>(rows)));
  }
  return {chosen.begin(), chosen.end()};
}

double error_ratio(double got, double expected, double tolerance, bool keeps_infinities,
                   Dtype dtype) {
  if (!keeps_infinities && std::isinf(tolerance) && std::isnan(got)) return 0;
  if (std::isnan(expected)) return std::isnan(got) ? 0 : kInfinity;
  if (got == expected) return 0;
  // An infinity's factor: its sign is that of a number that may have been rounded past 0.
  if (std::isinf(tolerance) && std::isinf(expected) && std::isinf(got)) return 0;
  if (std::isinf(expected) || !std::isfinite(got)) return kInfinity;
  // An activation took an infinity away, gelu(-inf) = 0: only roundings of what follows are left.
  if (std::isinf(tolerance)) tolerance = 4 * unit_roundoff(dtype) * std::fabs(expected);
  const double ratio = std::fabs(got - expected) / tolerance;
  return ratio >= 0 ? ratio : kInfinity;
}

std::string describe(const Verdict& verdict) {
  return "member " + text(verdict.worst_member) + ", row " + text(verdict.worst_row) + ", column " +
         text(verdict.worst_column) + ": got " + text(verdict.got, 9) + ", expected " +
         text(verdict.expected, 9) + ", tolerance " + text(verdict.tolerance, 3);
}

void compare_row(const ReferenceSample::Row& row, const MemberOutputs& outputs,
                 const Leniency& leniency, Verdict& verdict) {
  const auto member = static_cast<size_t>(row.member);
  const MemberOutputs::Member& output = outputs.members[member];
  const int64_t first = row.row * output.row_length;
  for (int64_t column = 0; column < output.row_length; ++column) {
    const auto i = static_cast<size_t>(column);
    const double got = load_element(output.bytes.data(), outputs.dtype, first + column);
    const double ratio = error_ratio(got, row.values[i], row.tolerances[i],
                                     leniency.keeps_infinities, outputs.dtype);
    if (!(ratio <= leniency.slack)) ++verdict.mismatches;
    verdict.member_error_ratio[member] = std::max(verdict.member_error_ratio[member], ratio);
    if (verdict.worst_member < 0 || ratio > verdict.worst_error_ratio) {
      verdict.worst_error_ratio = ratio;
      verdict.worst_member = row.member;
      verdict.worst_row = row.row;
      verdict.worst_column = column;
      verdict.got = got;
      verdict.expected = row.values[i];
      verdict.tolerance = row.tolerances[i];
    }
  }
  verdict.elements_compared += output.row_length;
}

/// A member's sums of squares, of errors and of expected values.
struct Squares {
  double errors = 0, expected = 0;
  double fourth_powers = 0;  ///< of expected values
  /// The number of equal values with the same ratio: near 1 if a single large one dominates.
  double effective_count() const { return expected * expected / fourth_powers; }
};

Squares squares_of(const ReferenceSample::Row& row, const MemberOutputs& outputs) {
  const MemberOutputs::Member& output = outputs.members[static_cast<size_t>(row.member)];
  const int64_t first = row.row * output.row_length;
  Squares squares;
  for (size_t i = 0; i < row.values.size(); ++i) {
    const double got =
        load_element(output.bytes.data(), outputs.dtype, first + static_cast<int64_t>(i));
    const double error = got - row.values[i];
    if (!std::isfinite(error)) continue;
    squares.errors += error * error;
    const double square = row.values[i] * row.values[i];
    squares.expected += square;
    squares.fourth_powers += square * square;
  }
  return squares;
}

/// Judges sums of squares member by member; returns the error, or nothing.
std::string judge_squares(const ReferenceSample& reference, const MemberOutputs& outputs,
                          const Leniency& leniency, Verdict& verdict) {
  constexpr double kLeast = 32;  // values: with fewer, one error is the mean
  const double limit = reference.mean_square_limit() * leniency.slack * leniency.slack;
  if (!(limit < kInfinity)) return "";
  std::vector<Squares> members(outputs.members.size());
  for (const auto& row : reference.rows()) {
    Squares& member = members[static_cast<size_t>(row.member)];
    const Squares more = squares_of(row, outputs);
    member.errors += more.errors, member.expected += more.expected;
    member.fourth_powers += more.fourth_powers;
  }
  std::string trouble;
  for (size_t m = 0; m < members.size(); ++m) {
    if (!(members[m].effective_count() >= kLeast)) continue;  // NaN: nothing is expected
    const double share = members[m].errors / members[m].expected;
    if (share <= verdict.mean_square) continue;
    verdict.mean_square = share;
    if (share <= limit) continue;
    const double ratio = std::sqrt(share / reference.mean_square_limit());
    verdict.worst_error_ratio = std::max(verdict.worst_error_ratio, ratio);
    verdict.member_error_ratio[m] = std::max(verdict.member_error_ratio[m], ratio);
    trouble = "member " + text(m) + ": errors have " + text(share, 3) +
              " of the outputs' squares, expected at most " + text(limit, 3) +
              ": a lower precision?";
  }
  return trouble;
}

/// The index of the first NaN of a row, or -1; adds the number of NaNs to `count`.
int64_t scan_row(Dtype dtype, const MemberOutputs::Member& output, int64_t row,
                 std::vector<float>& decoded, int64_t& count) {
  decoded.resize(static_cast<size_t>(output.row_length));
  const int64_t row_bytes = output.row_length * dtype_bytes(dtype);
  decode_row(dtype, output.bytes.data() + row * row_bytes, decoded.data(), output.row_length);
  const auto is_nan = [](float value) { return std::isnan(value); };
  const auto nans = std::count_if(decoded.begin(), decoded.end(), is_nan);
  count += nans;
  return nans == 0 ? -1 : std::find_if(decoded.begin(), decoded.end(), is_nan) - decoded.begin();
}

/// Looks for NaN everywhere, even where no reference was computed; not in members whose reference
/// has NaN, since its other places are not known.
void count_nans(const ReferenceSample& reference, const MemberOutputs& outputs,
                bool keeps_infinities, Verdict& verdict, std::string& first_place) {
  if (!is_floating(outputs.dtype)) return;
  std::vector<bool> expects_nan(outputs.members.size());
  for (const auto& row : reference.rows()) {
    const auto is_nan = [](double value) { return std::isnan(value); };
    const auto is_infinite = [](double value) { return std::isinf(value); };
    const bool has_nan = std::any_of(row.values.begin(), row.values.end(), is_nan) ||
                         (!keeps_infinities &&
                          std::any_of(row.tolerances.begin(), row.tolerances.end(), is_infinite));
    if (has_nan) expects_nan[static_cast<size_t>(row.member)] = true;
  }
  std::vector<float> decoded;
  for (size_t m = 0; m < outputs.members.size(); ++m) {
    if (expects_nan[m]) continue;
    const MemberOutputs::Member& output = outputs.members[m];
    for (int64_t row = 0; row < output.rows; ++row) {
      const int64_t column = scan_row(outputs.dtype, output, row, decoded, verdict.nan_count);
      if (column < 0) continue;
      verdict.member_error_ratio[m] = kInfinity;
      if (first_place.empty()) {
        first_place = "member " + std::to_string(m) + ", row " + std::to_string(row) + ", column " +
                      std::to_string(column) + ": got nan";
      }
    }
  }
}

/// As many threads as pay off for rows of this many operations each.
int reference_threads(double row_flops, size_t num_rows) {
  constexpr double kFlopsPerThread = 2e6;  // a few milliseconds, far more than starting a thread
  const double worth = row_flops * static_cast<double>(num_rows) / kFlopsPerThread;
  return worth < 2 ? 1 : static_cast<int>(std::min<double>(worth, usable_cpu_threads()));
}

/// Of rows that share cached state, the first is computed ahead of the others.
void compute_rows(const Workload& workload, double row_flops,
                  std::vector<ReferenceSample::Row>& rows) {
  constexpr double kFlopsPerTask = 1e5;  // about a tenth of a millisecond
  const auto rows_per_task = static_cast<size_t>(std::max(1.0, kFlopsPerTask / row_flops));
  const int64_t together = workload.reference_rows_together();
  ThreadPool threads(reference_threads(row_flops, rows.size()));
  const auto compute = [&](size_t i) {
    ReferenceSample::Row& row = rows[i];
    const auto length = static_cast<size_t>(workload.row_length(row.member));
    row.values.resize(length), row.tolerances.resize(length);
    workload.reference_row(row.member, row.row, row.values, row.tolerances);
  };
  const auto share = [&](const ReferenceSample::Row& a, const ReferenceSample::Row& b) {
    return a.member == b.member && (together == 0 || a.row / together == b.row / together);
  };
  for (size_t first = 0, last = 0; first < rows.size(); first = last) {
    while (last < rows.size() && share(rows[first], rows[last])) ++last;
    compute(first);
    const auto compute_some = [&](int64_t task) {
      const size_t begin = first + 1 + static_cast<size_t>(task) * rows_per_task;
      for (size_t i = begin; i < std::min(begin + rows_per_task, last); ++i) compute(i);
    };
    const size_t tasks = (last - first - 1 + rows_per_task - 1) / rows_per_task;
    threads.run(static_cast<int64_t>(tasks), task_body(compute_some));
  }
}

void require_memory(int64_t num_rows, int64_t num_elements) {
  constexpr double kBytesPerElement = 2 * sizeof(double);
  constexpr double kBytesPerRow = sizeof(ReferenceSample::Row) + 2 * 16;  // and what malloc adds
  require_available_memory(
      kBytesPerElement * static_cast<double>(num_elements) +
          kBytesPerRow * static_cast<double>(num_rows),
      "the references of " + counted(num_elements, "element") + " of outputs take");
}

/// Why these are not the outputs that the reference was computed for; empty where they are.
std::string shape_trouble(const ReferenceSample& reference, const MemberOutputs& outputs) {
  const auto expected = reference.members();
  if (outputs.members.size() != expected.size()) {
    return "the output has " + counted(outputs.members.size(), "member") +
           ", the reference was computed for " + std::to_string(expected.size());
  }
  for (size_t m = 0; m < expected.size(); ++m) {
    const MemberOutputs::Member& output = outputs.members[m];
    const auto bytes = static_cast<size_t>(output.num_elements() * dtype_bytes(outputs.dtype));
    if (output.rows != expected[m].rows || output.row_length != expected[m].row_length ||
        output.bytes.size() != bytes) {
      return "the output of member " + std::to_string(m) + " is " +
             std::to_string(output.bytes.size()) + " bytes of [" + std::to_string(output.rows) +
             ", " + std::to_string(output.row_length) + "], the reference was computed for [" +
             std::to_string(expected[m].rows) + ", " + std::to_string(expected[m].row_length) + "]";
    }
  }
  const bool compares_nothing = reference.elements() == 0 && reference.elements_in_all() > 0;
  return compares_nothing ? "the reference has no row to compare with" : "";
}

}  // namespace

ReferenceSample::ReferenceSample(const Workload& workload, double flops_budget, uint64_t seed) {
  const int64_t members = workload.num_outputs();
  mean_square_limit_ = workload.mean_square_limit();
  const double row_flops = std::max(workload.reference_row_flops(), 1.0);
  const double affordable =
      flops_budget / (row_flops * static_cast<double>(std::max<int64_t>(members, 1)));
  std::vector<int64_t> wanted;
  int64_t num_rows = 0;
  for (int64_t member = 0; member < members; ++member) {
    const int64_t rows = workload.rows(member), length = workload.row_length(member);
    members_.push_back({rows, length});
    wanted.push_back(affordable >= static_cast<double>(rows)
                         ? rows
                         : std::min(rows, std::max<int64_t>(3, static_cast<int64_t>(affordable))));
    num_rows += wanted.back();
    elements_ += wanted.back() * length;
    elements_in_all_ += rows * length;
  }
  require_memory(num_rows, elements_);
  rows_.reserve(static_cast<size_t>(num_rows));
  std::mt19937_64 random(seed);
  for (size_t m = 0; m < wanted.size(); ++m) {
    for (const int64_t row : choose_rows(members_[m].rows, wanted[m], random))
      rows_.push_back({static_cast<int64_t>(m), row, {}, {}});
  }
  compute_rows(workload, row_flops, rows_);
}

Verdict compare(const ReferenceSample& reference, const MemberOutputs& outputs,
                const Leniency& leniency) {
  Verdict verdict;
  verdict.member_error_ratio.resize(outputs.members.size());
  verdict.elements = reference.elements_in_all();
  verdict.message = shape_trouble(reference, outputs);
  if (!verdict.message.empty()) {
    verdict.worst_error_ratio = kInfinity;
    return verdict;
  }
  for (const auto& row : reference.rows()) compare_row(row, outputs, leniency, verdict);
  std::string first_nan;
  count_nans(reference, outputs, leniency.keeps_infinities, verdict, first_nan);
  const std::string imprecise = judge_squares(reference, outputs, leniency, verdict);
  verdict.passed = verdict.mismatches == 0 && verdict.nan_count == 0 && imprecise.empty();
  if (verdict.mismatches > 0) {
    verdict.message = describe(verdict);
  } else if (!imprecise.empty()) {
    verdict.message = imprecise;
  } else if (verdict.nan_count > 0) {
    verdict.message = first_nan;
    verdict.worst_error_ratio = kInfinity;
  }
  return verdict;
}

}  // namespace wide::catalog
