import { objectLink } from "../app/router.js";
import { get } from "../data/api.js";
import { h, fill } from "./dom.js";
import { number } from "./format.js";

const trail = []; // the objects visited before, the latest last

/** Graph shows an object with links: the objects that it refers to, and the objects that refer to it. */
export class Graph {
  constructor(type, key, kind) {
    Object.assign(this, { type, key });
    this.body = h("div", {}, h("span.quiet", {}, "Loading"));
    const at = trail.findIndex((step) => step.type === type && step.key === key);
    if (at >= 0) trail.length = at;
    trail.push({ type, key, kind });
    if (trail.length > 7) trail.shift();
    const steps = h("ol.trail", { "aria-label": "Visited objects" }, trail.map((step) => h("li", {}, h("a", { href: objectLink(step.type, step.key) }, `${step.kind} ${step.key}`))));
    this.element = h("section.card", { "aria-label": "Connections" }, h("h2", {}, "Connections"), trail.length > 1 ? steps : null, this.body);
    this.resized = new ResizeObserver(() => this.connect());
    this.resized.observe(this.body);
    this.kind = kind;
  }

  close() { this.resized.disconnect(); }

  async update() {
    try {
      this.draw(await get("related", { type: this.type, key: this.key }));
    } catch (error) {
      fill(this.body, h("span.quiet", {}, error.message));
    }
  }

  draw({ owners, refers, owned, referred, more = 0 }) {
    if (!owners.length && !refers.length && !owned.length && !referred.length) {
      fill(this.body, h("span.quiet", {}, "It has no references, and no cached object refers to it."));
      return;
    }
    const out = h("ul", { "aria-label": "Refers to" }, [...owners, ...refers].map((r) => this.node(r, r.name === "owners" ? "owner" : r.name)));
    const into = h("ul", { "aria-label": "Referred to by" }, [...owned, ...referred].map((r) => this.node(r, r.name === "owners" ? "owned" : r.name)));
    this.lines = h("svg", { "aria-hidden": "true" });
    this.here = h("ul", {}, h("li", {}, h("span.node.here", { "aria-current": "true" }, this.key, h("small", {}, this.kind))));
    this.sides = [out, into];
    fill(this.body, h("div.graph", {}, this.lines, h("h3", {}, "refers to"), h("h3"), h("h3", {}, "referred to by"), out, this.here, into), more ? h("p.quiet", {}, `and ${number(more)} more`) : null);
    this.connect();
  }

  node(r, name) {
    const lost = r.state === "Dangling";
    const inside = [r.key, h("small", {}, `${r.kind} · ${name}${lost ? " · not found" : r.state === "Unknown" ? " · unknown" : ""}`)];
    const node = r.type && !lost ? h("a.node", { href: objectLink(r.type, r.key) }, inside) : h("span.node", { class: lost ? "dangling" : "" }, inside);
    return h("li", {}, node);
  }

  /** connect draws the lines between the nodes. */
  connect() {
    if (!this.lines?.isConnected) return;
    const frame = this.lines.getBoundingClientRect(), here = this.here.querySelector(".node").getBoundingClientRect();
    const y = (box) => (box.top + box.height / 2 - frame.top).toFixed(1), x = (at) => (at - frame.left).toFixed(1);
    fill(this.lines, this.sides.flatMap((side, right) => [...side.querySelectorAll(".node")].map((node) => {
      const box = node.getBoundingClientRect();
      const [from, to] = right ? [here.right, box.left] : [here.left, box.right];
      const middle = x((from + to) / 2);
      return h("path", { d: `M${x(from)} ${y(here)}C${middle} ${y(here)} ${middle} ${y(box)} ${x(to)} ${y(box)}`, class: node.classList.contains("dangling") ? "dangling" : "" });
    })));
  }
}
