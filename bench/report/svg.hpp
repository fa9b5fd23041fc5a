// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A chart as SVG, inside of a page of html.hpp: colours are its classes s0 to s7, markers its
// symbols m0 to m3, so that dark pages and paper need no other chart.
#pragma once

#include <string>

#include "bench/report/chart.hpp"

namespace wide::bench {

inline constexpr int kNumColors = 8, kNumMarkers = 4;

/// The markers' definitions, once for every page.
std::string svg_symbols();
/// What stands for a series in a legend.
std::string svg_key(int color);
std::string svg_of(const Chart& chart);

}  // namespace wide::bench
