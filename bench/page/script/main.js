// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Draws the page's charts over those that wbench drew, each when it comes into view: a page may have hundreds.
import { addKeys } from "./keys.js";
import { drawLines } from "./lines.js";
import { drawRows } from "./rows.js";

const charts = JSON.parse(document.getElementById("charts").textContent);

function draw(figure) {
  if (figure.dataset.drawn) return;
  figure.dataset.drawn = "yes";
  const holder = figure.querySelector(".plot");
  const chart = charts[figure.id];
  const width = Math.max(320, Math.min(900, holder.clientWidth || 640));
  const plotted = (chart.rows.length > 0 ? drawRows : drawLines)(chart, width);
  plotted.setAttribute("role", "img");
  plotted.setAttribute("aria-label", chart.title);
  holder.replaceChildren(plotted);
  addKeys(holder, chart, plotted);
}

const figures = [...document.querySelectorAll("figure")];
const watcher = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting) continue;
      watcher.unobserve(target);
      draw(target);
    }
  },
  { rootMargin: "300px" },
);
figures.forEach((figure) => watcher.observe(figure));

// Printing expands what is collapsed on the screen; charts not in view stay as wbench drew them.
let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  opened.forEach((details) => (details.open = true));
});
addEventListener("afterprint", () => opened.forEach((details) => (details.open = false)));
