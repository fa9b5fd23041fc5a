// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A chart as SVG, inside a page of html.hpp: it uses the page's classes s0 to s7 for colours and
// its symbols m0 to m3 for markers, so that dark mode and print need no other chart.
#pragma once

#include <string>

#include "bench/page/chart.hpp"

namespace wide::bench {

inline constexpr int kNumColors = 8, kNumMarkers = 4;

/// The definitions of the markers, to be included once per page.
std::string svg_symbols();
/// The symbol of a series in a legend.
std::string svg_key(int color);
std::string svg_of(const Chart& chart);

}  // namespace wide::bench
