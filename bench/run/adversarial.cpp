// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/run/adversarial.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/process/interrupt.hpp"

namespace wide::bench {

namespace {

using catalog::Fill;

struct Hostile {
  Fill fill;
  const char* name;
};
constexpr Hostile kHostile[] = {
    {Fill::integers, "whole numbers"},      {Fill::specials, "NaN and infinities"},
    {Fill::cancelling, "sums that cancel"}, {Fill::tiny, "subnormals"},
    {Fill::wide_range, "a wide range"},     {Fill::positive, "sums of one sign"}};

bool keeps_infinities(const catalog::PrimitiveSpec& spec, const Contender& contender) {
  return contender.is_baseline() ||
         std::all_of(spec.strategies.begin(), spec.strategies.end(), [&](const auto& info) {
           return info.name != contender.result.strategy || info.keeps_infinities;
         });
}

/// Merges the outcome of one fill into that of all fills.
void take_over(const RunnerResult& found, const char* fill, RunnerResult& result) {
  const VerifyOutcome& from = found.verify;
  VerifyOutcome& to = result.verify;
  const bool was_finite = to.worst_error_ratio.has_value();
  const bool is_worse =
      was_finite && (!from.worst_error_ratio || *from.worst_error_ratio > *to.worst_error_ratio);
  if (is_worse) {
    to.worst_error_ratio = from.worst_error_ratio;
    to.worst_member = from.worst_member;
  }
  to.mismatches += from.mismatches;
  to.nan_count += from.nan_count;
  to.saved.insert(to.saved.end(), from.saved.begin(), from.saved.end());
  if (found.status == Status::ok) return;
  result.status = found.status;
  to.before = from.before;
  to.message = result.reason = fmt::format("with {}: {}", fill, found.reason);
}

void verify_fill(const Adversary& a, const Hostile& hostile,
                 const std::vector<std::unique_ptr<Contender>>& contenders, const Guard& guard) {
  catalog::WorkloadOptions options = a.options;
  options.fill = hostile.fill;
  const auto workload = a.make_workload(options);
  const catalog::ReferenceSample reference(*workload, a.reference_flops, a.seed);
  // Rows that the reference skips must be free of NaN, which these outputs are not.
  const bool is_tried =
      hostile.fill != Fill::specials || reference.elements() == reference.elements_in_all();
  for (const auto& contender : contenders) {
    if (is_interrupted()) return;
    guard(*contender, [&] {
      if (!is_tried) {
        contender->result.reason =
            fmt::format("{} were not tried: only {} of {} values are compared", hostile.name,
                        reference.elements(), reference.elements_in_all());
        return;
      }
      const auto other = contender->on(*workload);
      if (!other) return;
      const bool keeps = hostile.fill != Fill::specials || keeps_infinities(a.spec, *contender);
      if (contender->on_checked) {
        other->on_checked = [&](CheckedCall checked) {
          checked.phase = hostile.name;
          return contender->on_checked(checked);
        };
      }
      other->verify(reference, &VerifyOutcome::before, keeps);
      take_over(other->result, hostile.name, contender->result);
    });
  }
}

void verify_apartness(const Adversary& a, const std::vector<std::unique_ptr<Contender>>& contenders,
                      const Guard& guard) {
  catalog::WorkloadOptions options = a.options;
  const int64_t poisoned = options.poisoned_member = 1;
  const auto workload = a.make_workload(options);
  if (workload->num_members() <= poisoned) return;
  for (const auto& contender : contenders) {
    if (is_interrupted()) return;
    guard(*contender, [&] {
      const auto other = contender->on(*workload);
      if (!other) return;
      const catalog::MemberOutputs clean = contender->outputs();
      const catalog::MemberOutputs dirty = other->outputs();
      for (size_t m = 0; m < clean.members.size(); ++m) {
        if (static_cast<int64_t>(m) == poisoned || clean.members[m] == dirty.members[m]) continue;
        RunnerResult& result = contender->result;
        result.status = Status::verify_failed;
        result.verify.before = "fail";
        result.verify.message = result.reason =
            fmt::format("NaN in member {} changes member {}", poisoned, m);
        return;
      }
    });
  }
}

}  // namespace

void verify_adversarially(const Adversary& a,
                          const std::vector<std::unique_ptr<Contender>>& contenders,
                          const Guard& guard) {
  for (const Hostile& hostile : kHostile) verify_fill(a, hostile, contenders, guard);
  if (!a.spec.joins_members) verify_apartness(a, contenders, guard);
}

}  // namespace wide::bench
