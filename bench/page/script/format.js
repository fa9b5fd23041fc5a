// SPDX-FileCopyrightText: the wide developers
// SPDX-License-Identifier: Apache-2.0
//
// Values as wbench prints them: three significant digits.
function significant(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

function scaled(value, steps) {
  const [size, unit] = steps.find(([least]) => value < 999.5 * least) ?? steps.at(-1);
  return `${significant(value / size)} ${unit}`;
}

const times = [[1, "ns"], [1e3, "us"], [1e6, "ms"], [1e9, "s"]];
const rates = [[1e6, "MFLOP/s"], [1e9, "GFLOP/s"], [1e12, "TFLOP/s"]];

const formats = {
  count: (value) => `${value}`,
  time: (value) => scaled(value, times),
  ratio: (value) => `${significant(value)}x`,
  percent: (value) => `${value < 0 ? "" : "+"}${value.toFixed(1)}%`,
  intensity: significant,
  flop_rate: (value) => scaled(value, rates),
};

export const formatOf = (scale) => formats[scale.unit];

/** Plot's options for a scale: as wbench drew it. */
export const scaleOf = (scale) => ({
  type: scale.log ? "log" : "linear",
  label: scale.label,
  domain: scale.domain,
  ticks: scale.ticks,
  tickFormat: formatOf(scale),
  grid: true,
});

/** The text shown for a point or a row. */
export function told(chart, name, point) {
  const note = point.note ? `, ${point.note}` : "";
  if (point.value !== undefined) return `${name}: ${formatOf(chart.x)(point.value)}${note}`;
  return `${name}, ${chart.x.label} ${formatOf(chart.x)(point.x)}: ${formatOf(chart.y)(point.y)}${note}`;
}
