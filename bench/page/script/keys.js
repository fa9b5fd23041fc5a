// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// A chart by keys: left and right move along a series, up and down from one to the next; each point is put into
// words for screen readers, and marked by a ring.
import { told } from "./format.js";

/** Series of places to visit; every row of a chart of rows is a series of one. */
function tracks(chart) {
  if (chart.rows.length > 0) return chart.rows.map((row) => ({ name: row.name, points: [row] }));
  return chart.series.filter((s) => s.mark !== "guide" && s.points.length > 0);
}

function ring(plotted, chart, point) {
  plotted.querySelector(".ring")?.remove();
  if (chart.rows.length > 0) return;  // the text shown already names the row
  const circle = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  circle.setAttribute("class", "ring");
  circle.setAttribute("cx", plotted.scale("x").apply(point.x));
  circle.setAttribute("cy", plotted.scale("y").apply(point.y));
  circle.setAttribute("r", "9");
  plotted.append(circle);
}

export function addKeys(holder, chart, plotted) {
  const all = tracks(chart);
  if (all.length === 0) return;
  const readout = document.createElement("output");
  readout.className = "readout";
  readout.setAttribute("aria-live", "polite");
  holder.after(readout);
  holder.tabIndex = 0;
  holder.setAttribute("role", "application");
  holder.setAttribute("aria-roledescription", "chart");
  holder.setAttribute("aria-label", `${chart.title}. Arrow keys read its points.`);
  let [track, place] = [0, -1];
  holder.addEventListener("keydown", (event) => {
    const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
    if (!step) return;
    event.preventDefault();
    if (place >= 0) track = (track + step[0] + all.length) % all.length;
    const { name, points } = all[track];
    place = Math.min(points.length - 1, Math.max(0, place + step[1]));
    readout.textContent = told(chart, name, points[place]);
    ring(plotted, chart, points[place]);
  });
}
