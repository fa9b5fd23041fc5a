// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Series of points with their intervals: speedups, times, rooflines, history.
import { areaY, dot, line, plot, pointer, ruleY, tip } from "@observablehq/plot";
import { scaleOf, told } from "./format.js";

const symbols = ["circle", "square", "triangle", "diamond"];
export const colorOf = (color) => `var(--c${color % 8})`;

function marksOf(series) {
  const stroke = series.mark === "guide" ? "var(--faint)" : colorOf(series.color);
  const marks = [];
  const bounded = series.points.filter((p) => p.lo !== null && p.hi !== null);
  if (bounded.length > 0)
    marks.push(areaY(bounded, { x: "x", y1: "lo", y2: "hi", fill: stroke, fillOpacity: 0.22 }));
  if (series.mark !== "dots") {
    const strokeDasharray = { dashed: "5 4", guide: "2 3" }[series.mark];
    marks.push(line(series.points, { x: "x", y: "y", stroke, strokeWidth: 1.8, strokeDasharray }));
  }
  if (series.mark !== "guide")
    marks.push(dot(series.points, { x: "x", y: "y", fill: stroke, symbol: symbols[series.color % 4], r: 4 }));
  return marks;
}

export function drawLines(chart, width) {
  const points = chart.series
    .filter((s) => s.mark !== "guide")
    .flatMap((s) => s.points.map((p) => ({ ...p, told: told(chart, s.name, p) })));
  return plot({
    width,
    style: { fontSize: "12px" },
    height: Math.min(360, Math.max(240, width * 0.5)),
    marginLeft: 100,
    marginBottom: 42,
    x: scaleOf(chart.x),
    y: scaleOf(chart.y),
    marks: [
      chart.reference === null ? null : ruleY([chart.reference], { stroke: "var(--text)" }),
      ...chart.series.flatMap(marksOf),
      tip(points, pointer({ x: "x", y: "y", title: (p) => p.told.replaceAll(", ", "\n"), fill: "var(--page)" })),
    ],
  });
}
