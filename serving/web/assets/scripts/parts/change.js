import {objectLink, typeLink} from "../app/router.js";
import {h, quiet} from "./dom.js";
import {clock, moment, number} from "./format.js";
import {lookOf} from "./state.js";

const looks = {added: ["＋", "good"], changed: ["~", "open"], deleted: ["✕", "bad"], departed: ["→", "open"]};

// Changes of types that are no states.
const typeLooks = {resuming: ["◐", "warn"], back: ["●", "good"], current: ["●", "good"], stale: ["◌", "warn"], terminating: ["✕", "warn"], relisted: ["↻", "open"]};

const who = (m) => h("span.by", {title: `${m.operation ?? ""} ${m.time ?? ""}`}, m.name, m.subresource ? `/${m.subresource}` : "");

function field(f) {
  return h("li", `${f.label} `, f.before !== undefined ? h("del", f.before) : null, f.before !== undefined && f.after !== undefined ? " → " : null, f.after !== undefined ? h("ins", f.after) : null, (f.by ?? []).map(who));
}

const when = (c) => h("time", {datetime: moment(c.time), title: moment(c.time)}, clock(c.time));

/** typeChange shows a change of a type's status. */
function typeChange(c) {
  const [sign, tone] = typeLooks[c.op] ?? lookOf(c.op);
  return h("li", h("div.change-head", when(c), h("span.op", {class: tone}, `${sign} ${c.op}`), h("a", {href: typeLink(c.type)}, c.type), c.reason ? h("b", c.reason) : null, c.message ? quiet(c.message) : null));
}

/** change shows a change of an object with its fields; with named, also the name of the object. */
export function change(c, {named, brief} = {}) {
  if (!c.key) return typeChange(c);
  const [sign, tone] = looks[c.op];
  const fields = c.fields ?? [];
  const makers = [...new Map(fields.flatMap((f) => f.by ?? []).map((m) => [m.name + m.subresource, m])).values()];
  const all = () => h("ul.fields", fields.map(field), c.more ? h("li.quiet", `and ${number(c.more)} more`) : null);
  const body = !fields.length ? null : brief ? h("details", h("summary.quiet", fields.slice(0, 3).map((f) => f.label).join(", "), fields.length > 3 ? ` and ${number(fields.length - 3 + (c.more ?? 0))} more` : "", makers.map(who)), all()) : all();
  return h("li", h("div.change-head", {},
    when(c), h("span.op", {class: tone}, `${sign} ${c.op}`),
    named ? [quiet(c.type), c.op === "deleted" || c.op === "departed" ? h("span", c.key) : h("a", {href: objectLink(c.type, c.key)}, c.key)] : quiet(`resource version ${c.resourceVersion}`)), body);
}
