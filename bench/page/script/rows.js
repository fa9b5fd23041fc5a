// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// One row for each runner or cell: histograms where there are samples, else intervals. Samples are counted into
// bins before anything is drawn, so that a hundred thousand cost no more than a hundred.
import { axisY, dot, plot, pointer, rect, ruleX, ruleY, tickX, tip } from "@observablehq/plot";
import { scaleOf, told } from "./format.js";
import { colorOf } from "./lines.js";

const numBins = 60;

/** Edges of the bins, the same for all rows; with equal ratios, so that a few late samples do not squeeze the others. */
export function edgesOf(rows) {
  let [least, most] = [Infinity, 0];
  for (const { samples } of rows) {
    for (const sample of samples) {
      least = Math.min(least, sample);
      most = Math.max(most, sample);
    }
  }
  const spread = Math.max(most / least, 1.02);
  return Array.from({ length: numBins + 1 }, (_, place) => least * spread ** (place / numBins));
}

/** Shares of the samples in each bin. */
export function sharesOf(samples, edges) {
  const shares = new Array(numBins).fill(0);
  const size = Math.log(edges.at(-1) / edges[0]) / numBins;
  for (const sample of samples) {
    const bin = Math.floor(Math.log(sample / edges[0]) / size);
    shares[Math.min(numBins - 1, Math.max(0, bin))] += 1 / samples.length;
  }
  return shares;
}

function drawHistograms(chart, width) {
  const rows = chart.rows
    .map((row) => ({ ...row, samples: row.samples.filter((sample) => sample > 0) }))
    .filter((row) => row.samples.length > 0);
  const edges = edgesOf(rows);
  const bars = [];
  const labels = [];
  for (const row of rows) {
    const shares = sharesOf(row.samples, edges);
    const tallest = Math.max(...shares);
    shares.forEach((share, bin) => {
      if (share > 0)
        bars.push({ row: row.name, color: row.color, x1: edges[bin], x2: edges[bin + 1], y: share / tallest });
    });
    labels.push({ row: row.name, color: row.color, x: row.value, lo: row.lo, hi: row.hi, text: told(chart, row.name, row) });
  }
  return plot({
    width,
    style: { fontSize: "12px" },
    height: 46 * rows.length + 60,
    marginLeft: 110,
    marginBottom: 42,
    x: scaleOf(chart.x),
    y: { axis: null, domain: [0, 1.1] },
    fy: { label: null, domain: rows.map((row) => row.name), padding: 0.12, axis: "left" },
    marks: [
      rect(bars, { fy: "row", x1: "x1", x2: "x2", y1: 0, y2: "y", fill: (d) => colorOf(d.color), fillOpacity: 0.55 }),
      ruleY(labels, { fy: "row", y: 0, x1: "lo", x2: "hi", strokeWidth: 4, stroke: (d) => colorOf(d.color) }),
      tickX(labels, { fy: "row", x: "x", stroke: "var(--text)", strokeWidth: 2 }),
      tip(labels, pointer({ fy: "row", x: "x", y: 0.6, title: (d) => d.text.replaceAll(", ", "\n"), fill: "var(--page)" })),
    ],
  });
}

function drawIntervals(chart, width) {
  const rows = chart.rows.map((row, place) => ({ ...row, place: `${place}`, told: told(chart, row.name, row) }));
  const names = new Map(rows.map((row) => [row.place, row.name]));
  const longest = Math.max(...rows.map((row) => row.name.length));
  return plot({
    width,
    style: { fontSize: "12px" },
    height: 24 * rows.length + 60,
    marginLeft: Math.min(width / 2, 20 + 6.6 * longest),
    marginBottom: 42,
    x: scaleOf(chart.x),
    y: { type: "point", domain: rows.map((row) => row.place) },
    marks: [
      axisY({ label: null, tickFormat: (place) => names.get(place), tickSize: 0 }),
      chart.reference === null ? null : ruleX([chart.reference], { stroke: "var(--text)" }),
      ruleY(rows.filter((row) => row.lo !== null), { y: "place", x1: "lo", x2: "hi", strokeWidth: 5, strokeOpacity: 0.5,
        stroke: (row) => colorOf(row.color) }),
      dot(rows, { y: "place", x: "value", fill: (row) => colorOf(row.color), r: 4 }),
      tip(rows, pointer({ y: "place", x: "value", title: (row) => row.told.replaceAll(", ", "\n"), fill: "var(--page)" })),
    ],
  });
}

export function drawRows(chart, width) {
  return chart.rows.some((row) => row.samples.length > 0) ? drawHistograms(chart, width) : drawIntervals(chart, width);
}
