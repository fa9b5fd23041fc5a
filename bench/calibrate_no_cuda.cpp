// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
#include "bench/calibrate.hpp"

namespace wide::bench {

void calibrate_cuda(const Context&, Calibration&) {}

}  // namespace wide::bench
