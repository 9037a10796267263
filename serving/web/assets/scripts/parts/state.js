import {h} from "./dom.js";
import {number, plural} from "./format.js";

// Each state has a sign, for people who cannot see its color. Severity sorts the types: problems come first.
const states = {
  Degraded: {sign: "▲", tone: "bad", severity: 5},
  Gone: {sign: "✕", tone: "bad", severity: 4},
  Stopped: {sign: "■", tone: "open", severity: 3},
  Pending: {sign: "○", tone: "warn", severity: 2},
  Syncing: {sign: "◐", tone: "warn", severity: 1},
  Synced: {sign: "●", tone: "good", severity: 0},
  Checking: {sign: "…", tone: "open", severity: -0.5},
  Withheld: {sign: "⊘", tone: "open", severity: -1},
};

const look = (row) => (row.state === "Synced" && row.stale ? {sign: "◌", tone: "warn", severity: 4.5} : states[row.state] ?? {sign: "?", tone: "open", severity: 2});

/** lookOf returns the sign and tone of a state in lower case. */
export function lookOf(name) {
  const {sign, tone} = look({state: name[0].toUpperCase() + name.slice(1)});
  return [sign, tone];
}

export const severity = (row) => look(row).severity;

/** troubled reports whether a type needs attention. */
export const troubled = (row) => severity(row) >= 4;

/** isClosed reports whether the user may not open a type. */
export const isClosed = (row) => row.state === "Withheld" || row.state === "Checking";

/** unknown says how much is known yet; "" if everything is. */
export function unknown(rows) {
  for (const [verb, ...names] of [["checking", "Checking"], ["reading", "Pending", "Syncing"]]) {
    const n = rows.filter((row) => names.includes(row.state)).length;
    if (n) return `${verb} ${number(rows.length - n)} of ${plural(rows.length, "type")}`;
  }
  return "";
}

/** wording returns the state of a type with its reason. */
export const wording = (row) => row.state + (row.stale ? ", stale" : "") + (row.terminating ? ", terminating" : "") + (row.reason ? `: ${row.reason}` : "");

export function stateOf(row) {
  const {sign, tone} = look(row);
  return h("span.state", {class: tone, title: row.message || wording(row)}, `${sign} ${wording(row)}`);
}

const signs = {good: "●", bad: "▲", open: "○"};

/** health shows the number of objects for which a condition is good, bad, or neither. */
export function health({good, bad, open}) {
  const part = (n, tone) => (n ? h("span", {class: tone, title: `${number(n)} ${tone === "open" ? "neutral or unknown" : tone}`}, `${signs[tone]} ${number(n)}`) : null);
  return h("span.health", part(bad, "bad"), part(open, "open"), part(good, "good"));
}
