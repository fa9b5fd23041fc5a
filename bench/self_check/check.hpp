// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// What `info --self-check` checks about measuring itself: a check is one number and the
// range that it must be in if the engine works as promised. All ranges are in one table; judging is
// pure, so that each check is shown to fail without a faulty device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bench/document/result.hpp"

namespace wide::bench {

enum class CheckStatus : uint8_t { passed, failed, skipped };
std::string_view to_string(CheckStatus status);

struct SelfCheck {
  std::string name, device;  ///< "cuda:0"; "cuda" if there is none
  CheckStatus status = CheckStatus::passed;
  std::optional<double> measured;
  std::string unit, expected;  ///< "1 to 1000 ns"
  std::string text;            ///< what depends on it; why it was skipped or could not be measured
};

/// The range of a check's number, both ends included.
struct Limit {
  std::string_view name;
  DeviceType device;
  double least, most;
  std::string_view unit, why;
};
/// For every check, in the order of the report.
std::span<const Limit> limits();
/// Throws invalid_argument for an unknown check.
const Limit& limit_of(std::string_view name, DeviceType device);

/// Passed within the limits; failed outside of them, and if `measured` is NaN.
SelfCheck judge(const Limit& limit, const std::string& device, double measured);
SelfCheck skipped(const Limit& limit, const std::string& device, const std::string& reason);
/// Failed, because it could not be measured.
SelfCheck broken(const Limit& limit, const std::string& device, const std::string& reason);

/// The difference of two clocks over the same span, in percent.
double disagreement_pct(double one_ns, double other_ns);

/// The ratio of times over the ratio of counts: 1 if each call costs the same.
double growth(double few_ns, int64_t few, double many_ns, int64_t many);

/// How often the later of two readings was the smaller one.
double backward_steps(std::span<const double> readings);

/// The median time between changes of a counter that was read at these times; NaN for fewer than
/// three changes, which do not show a period.
double period_of(std::span<const double> times, std::span<const double> readings);

/// Baselines that ran against themselves, and how many of them their verdict distinguishes.
struct AaCells {
  int64_t cells = 0, told_apart = 0;
};
AaCells aa_cells(std::span<const CaseResult> cases);
/// At most 5 % of the cells, rounded up: one of a few may be chance. Failed without any.
SelfCheck judge_aa(const Limit& limit, const std::string& device, const AaCells& aa);

}  // namespace wide::bench
