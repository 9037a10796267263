import {h} from "./dom.js";

const width = 120, height = 20, points = 60;

/** sparkline draws numbers of changes in the last ten minutes, the newest on the right. */
export function sparkline(changes) {
  const most = Math.max(1, ...changes), step = width / points, from = points - changes.length;
  const bars = changes.map((n, i) => (n ? `M${((from + i) * step + 0.5).toFixed(1)} ${height}V${(height - 2 - (n / most) * (height - 4)).toFixed(1)}` : "")).join("");
  return h("svg.spark", {viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true"}, h("path.base", {d: `M0 ${height - 0.5}H${width}`}), h("path", {d: bars}));
}
