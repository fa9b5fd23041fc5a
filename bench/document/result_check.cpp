// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/document/result_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/document/case_id.hpp"
#include "bench/statistics/statistics.hpp"
#include "wide/error.hpp"

namespace wide::bench {

namespace {

constexpr double kSame = 1e-9;  // of the larger: other compilers' last digits, and those of text

/// "$.cases[2].strategies[0].measurements[1]", which is needed only where something is wrong.
struct Place {
  size_t number = 0;  ///< of the case
  const char* group = nullptr;
  size_t runner = 0;
  std::optional<size_t> measurement{};

  [[noreturn]] void refuse(std::string_view field, const std::string& got,
                           const std::string& expected) const {
    std::string path = fmt::format("$.cases[{}]", number);
    if (group != nullptr) path += fmt::format(".{}[{}]", group, runner);
    if (measurement) path += fmt::format(".measurements[{}]", *measurement);
    throw Error(ErrorCode::invalid_argument,
                fmt::format("result: {}.{} is {}, expected {}", path, field, got, expected));
  }
  void require_same(std::string_view field, double got, double expected, const char* of) const {
    if (std::fabs(got - expected) <= kSame * std::max(std::fabs(got), std::fabs(expected))) return;
    refuse(field, fmt::format("{}", got), fmt::format("{}, {}", expected, of));
  }
  void require_probability(std::string_view field, std::optional<double> got) const {
    if (got && !(*got <= 1 + kSame)) refuse(field, fmt::format("{}", *got), "at most 1");
  }
  void require_within(std::string_view field, double got, double lo, double hi) const {
    if (lo <= got + kSame * got && got <= hi + kSame * hi) return;
    refuse(field, fmt::format("{}", got), fmt::format("a value in its interval, {} to {}", lo, hi));
  }
};

void check_samples(const Place& place, const Measurement& m) {
  if (m.samples_ns.empty()) return;
  const std::vector<double> sorted = sorted_copy(m.samples_ns);
  const Statistics& s = m.stats;
  if (s.n != std::ssize(sorted))
    place.refuse("stats.n", std::to_string(s.n), fmt::format("{}, its samples", sorted.size()));
  const auto require = [&](const char* field, double got, double expected) {
    place.require_same(field, got, expected, "its samples'");
  };
  require("stats.min_ns", s.min_ns, sorted.front());
  require("stats.q1_ns", s.q1_ns, quantile(sorted, 0.25));
  require("stats.median_ns", s.median_ns, quantile(sorted, 0.5));
  require("stats.q3_ns", s.q3_ns, quantile(sorted, 0.75));
  require("stats.max_ns", s.max_ns, sorted.back());
}

void check_rates(const Place& place, const CaseResult& c, const Measurement& m) {
  const double time_s = m.stats.median_ns * 1e-9;
  if (!(time_s > 0)) return;
  const auto require = [&](const char* field, const std::optional<double>& got, double expected) {
    if (got) place.require_same(field, *got, expected, "of the case's work and the median");
  };
  require("rates.flops_per_s", m.flops_per_s, c.cost.flops / time_s);
  require("rates.mem_bw_bytes_per_s", m.mem_bw_bytes_per_s, c.cost.bytes() / time_s);
  require("rates.items_per_s", m.items_per_s, c.cost.items / time_s);
  require("rates.pct_of_floor", m.pct_of_floor, 100 * c.floor_ns / m.stats.median_ns);
}

void check_measurement(const Place& place, const CaseResult& c, const Measurement& m) {
  const Statistics& s = m.stats;
  if (m.iters_per_sample < 1)
    place.refuse("iters_per_sample", std::to_string(m.iters_per_sample), "1 or more");
  check_samples(place, m);
  if (s.n > 0) place.require_within("stats.median_ns", s.median_ns, s.ci_lo_ns, s.ci_hi_ns);
  place.require_probability("stats.trend_p", s.trend_p);
  if (s.normality) place.require_probability("stats.normality.p", s.normality->p);
  if (s.dip) place.require_probability("stats.dip.p", s.dip->p);
  check_rates(place, c, m);
}

/// Nothing that was found wrong is ok.
void check_verification(const Place& place, const RunnerResult& r) {
  const VerifyOutcome& v = r.verify;
  for (const auto& [field, outcome] :
       {std::pair("verify.before", &v.before), std::pair("verify.after", &v.after)}) {
    if (*outcome != "pass" && *outcome != "fail" && *outcome != "not_run")
      place.refuse(field, *outcome, "pass, fail or not_run");
    if (*outcome == "fail" && r.status == Status::ok)
      place.refuse("status", "ok", fmt::format("another, as {} is fail", field));
  }
  if (r.status != Status::ok) return;
  if (v.mismatches > 0)
    place.refuse("verify.mismatches", std::to_string(v.mismatches), "0, as status is ok");
  const double most = r.peer.empty() ? 1 : kPeerSlack;
  if (v.worst_error_ratio && !(*v.worst_error_ratio <= most * (1 + kSame)))
    place.refuse("verify.worst_error_ratio", fmt::format("{}", *v.worst_error_ratio),
                 fmt::format("at most {}, as status is ok", most));
}

/// Every sample of a case, whoever took it, was begun at another place.
void check_order(const Place& place, std::vector<int64_t> order) {
  std::sort(order.begin(), order.end());
  const auto twice = std::adjacent_find(order.begin(), order.end());
  if (twice != order.end())
    place.refuse("measurements' samples.order", fmt::format("{} twice", *twice), "it once");
}

/// The speedups of one case, from its rounds' medians.
class Speedups {
 public:
  Speedups(const Place& place, const CaseResult& c) : place_(place), case_(c) {}

  void check(const Speedup& s) {
    const std::string of =
        fmt::format("speedup of {} vs {} ({})", s.strategy,
                    s.peer.empty() ? to_string(s.baseline) : s.peer, to_string(s.regime));
    constexpr std::string_view kVerdicts[] = {"faster", "slower", "same", "ambiguous",
                                              "not_comparable"};
    if (std::find(std::begin(kVerdicts), std::end(kVerdicts), s.verdict) == std::end(kVerdicts))
      place_.refuse(of + ": verdict", s.verdict,
                    fmt::format("one of {}", fmt::join(kVerdicts, ", ")));
    place_.require_probability(of + ": p_wilcoxon", s.p_wilcoxon);
    if (!s.speedup_ratio) return;
    const double ratio = *s.speedup_ratio, lo = s.ci_lo.value_or(0), hi = s.ci_hi.value_or(ratio);
    place_.require_within(of, ratio, lo, hi);
    if ((s.verdict == "faster" && !(lo > 1)) || (s.verdict == "slower" && !(hi < 1)))
      place_.refuse(of + ": verdict", s.verdict, fmt::format("another, of {} to {}", lo, hi));
    const RoundMedians *mine = find(case_.strategies, s.strategy, s.regime),
                       *theirs = find(case_.baselines, baseline_of(s), s.regime);
    if (mine == nullptr || theirs == nullptr) return;
    const std::vector<double> logs = paired_log_ratios(*theirs, *mine);
    if (s.pairs != std::ssize(logs))
      place_.refuse(of + ": pairs", std::to_string(s.pairs),
                    fmt::format("{}, its rounds", logs.size()));
    place_.require_same(of, ratio, std::exp(median(logs)), "its rounds'");
  }

 private:
  static std::string baseline_of(const Speedup& s) {
    return s.peer.empty() ? std::string(to_string(s.baseline)) : s.peer;
  }
  /// Null without samples.
  const RoundMedians* find(const std::vector<RunnerResult>& group, const std::string& name,
                           Regime regime) {
    for (const RunnerResult& r : group) {
      if (r.name != name) continue;
      for (const Measurement& m : r.measurements) {
        if (m.regime != regime || m.samples_ns.empty()) continue;
        RoundMedians& known = known_[&m];
        if (known.rounds.empty()) known = round_medians(m.samples_ns, m.samples_round);
        return &known;
      }
    }
    return nullptr;
  }

  const Place& place_;
  const CaseResult& case_;
  std::map<const Measurement*, RoundMedians> known_;
};

void check_case(const Place& place, const CaseResult& c, bool has_cpu_alone) {
  catalog::PrimitiveSpec spec;
  spec.version = static_cast<int>(c.op_version);
  const std::string id = case_id(spec, c.point);
  if (c.case_id != id) place.refuse("case_id", c.case_id, id + ", of its op, version and axes");
  std::vector<int64_t> order;
  for (const auto* group : {&c.strategies, &c.baselines}) {
    const char* name = group == &c.strategies ? "strategies" : "baselines";
    for (size_t i = 0; i < group->size(); ++i) {
      const RunnerResult& r = (*group)[i];
      check_verification({place.number, name, i}, r);
      for (size_t k = 0; k < r.measurements.size(); ++k) {
        const Measurement& m = r.measurements[k];
        const Place at{place.number, name, i, k};
        if (has_cpu_alone && m.regime != Regime::cpu)
          at.refuse("regime", std::string(to_string(m.regime)), "cpu, the run's only device");
        check_measurement(at, c, m);
        order.insert(order.end(), m.samples_order.begin(), m.samples_order.end());
      }
    }
  }
  check_order(place, std::move(order));
  Speedups speedups(place, c);
  for (const Speedup& s : c.speedups) speedups.check(s);
  for (const NoiseFloor& f : c.noise_floors)
    place.require_within("noise_floors' ratio", f.ratio, f.ci_lo, f.ci_hi);
}

}  // namespace

void require_consistent(const RunResult& result) {
  const bool has_cpu_alone =
      !result.devices.empty() &&
      std::all_of(result.devices.begin(), result.devices.end(),
                  [](const RunDevice& d) { return d.device.type == DeviceType::cpu; });
  for (size_t i = 0; i < result.cases.size(); ++i) check_case({i}, result.cases[i], has_cpu_alone);
}

}  // namespace wide::bench
