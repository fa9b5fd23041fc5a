// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One case on one device: operands in place, every strategy and baseline checked, timed in turns,
// checked again.
#pragma once

#include "bench/calibrate.hpp"
#include "bench/runner.hpp"

namespace wide::bench {

struct CaseRequest {
  const RunPlan* plan = nullptr;
  const catalog::PrimitiveSpec* spec = nullptr;
  catalog::Case point;
  Calibration calibration;
  double budget_s =
      0;  ///< for the whole case; 0: the configuration's time-out bounds the timing alone
  Monitor* monitor = nullptr;
};

/// Never throws for what a primitive does; `fatal` is set where the device is lost.
CaseResult run_case(const CaseRequest& request, std::string& fatal);

}  // namespace wide::bench
