import { h } from "./dom.js";

const width = 120, height = 20, points = 60;

/** sparkline draws rates, the newest on the right. */
export function sparkline(rates) {
  const most = Math.max(1, ...rates);
  const start = width - (rates.length - 1) * (width / (points - 1));
  const line = rates.map((rate, i) => `${i ? "L" : "M"}${(start + (i * width) / (points - 1)).toFixed(1)} ${(height - 1 - (rate / most) * (height - 3)).toFixed(1)}`).join("");
  return h("svg.spark", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" }, h("path.base", { d: `M0 ${height - 1}H${width}` }), h("path", { d: line }));
}
