// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Short runs of the fake primitive, for the tests of the runner.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "bench/run/runner.hpp"
#include "bench/timer/seconds.hpp"
#include "verify/support/fake_primitive.hpp"

namespace wide::bench {

using test::fake_case;
using test::FakePrimitive;
using Clock = std::chrono::steady_clock;

std::function<void()> spin_us(double microseconds);

RunConfig short_config();

/// Of a machine that nothing is too fast for; to measure one takes half a second.
Calibration given_calibration();

/// A plan of the fake primitive for one thread.
RunPlan fake_plan(const catalog::PrimitiveSpec& spec, const RunConfig& config);

struct Run {
  RunResult result;
  double seconds = 0;
};

Run run(FakePrimitive& fake, const RunConfig& config, const std::vector<int64_t>& members = {3},
        bool verify_only = false);

const RunnerResult& strategy(const CaseResult& result, const std::string& name);

const Speedup& speedup(const CaseResult& result, const std::string& name);

FakePrimitive fake_with(std::vector<test::FakeStrategy> strategies);

}  // namespace wide::bench
