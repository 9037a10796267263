const numbers = new Intl.NumberFormat("en");

export const number = (n) => numbers.format(n);

export function bytes(n) {
  if (n < 1024) return `${n} B`;
  let unit = -1;
  do {n /= 1024; unit++;} while (n >= 1024 && unit < 4);
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${"kMGTP"[unit]}B`;
}

export function rate(n) {
  if (n === 0) return "";
  return n < 10 ? n.toFixed(1) : number(Math.round(n));
}

/** duration formats milliseconds like kubectl: 45s, 12m, 3h20m, 5d. */
export function duration(ms) {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 120) return `${s}s`;
  const m = Math.floor(s / 60);
  if (m < 60) return m < 10 && s % 60 ? `${m}m${s % 60}s` : `${m}m`;
  const hours = Math.floor(m / 60);
  if (hours < 48) return hours < 8 && m % 60 ? `${hours}h${m % 60}m` : `${hours}h`;
  const d = Math.floor(hours / 24);
  return d < 730 ? `${d}d` : `${Math.floor(d / 365)}y`;
}

/** ago formats the time since, or until, a moment. */
export function ago(ms) {
  if (!ms || Number.isNaN(ms)) return "";
  const passed = Date.now() - ms;
  return passed < -1000 ? `in ${duration(-passed)}` : duration(passed);
}

export const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB", {hour12: false});

/** moment formats a time in full. */
export const moment = (ms) => (ms ? new Date(ms).toISOString().replace(/[.]\d+Z$/, "Z") : "never");

export const plural = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;
