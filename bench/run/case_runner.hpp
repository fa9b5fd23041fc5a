// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One case on one device: makes the operands, then checks every strategy and baseline, times them
// in turns, and checks them again.
#pragma once

#include <functional>

#include "bench/machine/calibrate.hpp"
#include "bench/run/runner.hpp"

namespace wide::bench {

struct CaseRequest {
  const RunPlan* plan = nullptr;
  const catalog::PrimitiveSpec* spec = nullptr;
  catalog::Case point;
  Calibration calibration;  ///< before the case
  double budget_s =
      0;  ///< for the whole case; 0: only the timing is bounded, by the configuration's time-out
  Monitor* monitor = nullptr;
  std::function<Calibration()> judged_ceilings;  ///< asked when it has been timed
};

/// Never throws for errors of a primitive; `fatal` is set if the device is lost.
CaseResult run_case(const CaseRequest& request, std::string& fatal);

}  // namespace wide::bench
