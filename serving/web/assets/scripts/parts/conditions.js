import {h, quiet} from "./dom.js";
import {ago} from "./format.js";

const signs = {good: "●", bad: "▲", open: "○"};

/** conditions shows the conditions of an object. */
export function conditions(list) {
  return h("section.card", {"aria-label": "Conditions"}, h("h2", "Conditions"), h("table.table.conditions", h("tbody", list.map((c) => {
    const since = Date.parse(c.since);
    return h("tr", {},
      h("th", {scope: "row", dir: "auto", class: c.tone}, `${signs[c.tone]} ${c.type}`),
      h("td", c.status === "True" ? "yes" : c.status === "False" ? "no" : c.status || "unknown"),
      h("td.quiet", {title: c.since}, Number.isNaN(since) ? "" : `for ${ago(since)}`),
      h("td", {dir: "auto"}, c.reason ?? "", c.message ? quiet(` ${c.message}`) : null));
  }))));
}
