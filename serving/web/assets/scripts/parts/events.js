import {get, reason} from "../data/api.js";
import {h, fill, quiet} from "./dom.js";
import {ago, number, plural} from "./format.js";
import {skeleton} from "./notice.js";

/** Events shows the Kubernetes Events of an object, the latest first. */
export class Events {
  constructor(type, key) {
    Object.assign(this, {type, key});
    this.body = h("div", skeleton(2));
    this.element = h("section.card", {"aria-label": "Kubernetes Events"}, h("h2", "Kubernetes Events"), this.body);
  }

  async update() {
    try {
      const {cached, events, more = 0} = await get("events", {type: this.type, key: this.key});
      fill(this.body, !cached ? quiet("Events are not cached, or you may not list them.") : !events.length ? quiet("No Events. The API server keeps them for an hour.") : h("ul.plain-list.k8s-events", events.map(line)), more ? h("p.quiet", `and ${plural(more, "earlier Event")}`) : null);
    } catch (error) {
      fill(this.body, quiet(reason(error)));
    }
  }
}

function line(e) {
  const last = Date.parse(e.last);
  return h("li", h("span", {class: e.type === "Warning" ? "warn" : "quiet"}, e.type === "Warning" ? "▲ " : "○ ", h("b", e.reason)), h("span.quiet", {title: e.last}, ` ${Number.isNaN(last) ? "" : `${ago(last)} ago`}${e.count > 1 ? ` · ${number(e.count)} times` : ""}${e.source ? ` · ${e.source}` : ""}`), h("div", e.message));
}
