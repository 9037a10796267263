import {objectLink} from "../app/router.js";
import {get, reason} from "../data/api.js";
import {h, fill, quiet} from "./dom.js";
import {number, plural} from "./format.js";
import {notice, skeleton} from "./notice.js";

const trail = []; // the objects visited before, the latest last
const shownChildren = 30; // of an expanded node; more on request

const id = (r) => `${r.type ?? r.kind} ${r.key}`;

/**
 * Graph shows an object between the objects that it refers to, on the left, and the objects that refer to it, on the
 * right. With deep, each of them can be expanded in its direction.
 */
export class Graph {
  constructor(type, key, kind, deep) {
    Object.assign(this, {deep, root: {type, key, kind, state: "Resolved", open: true}});
    const at = trail.findIndex((step) => step.type === type && step.key === key);
    if (at >= 0) trail.length = at;
    trail.push({type, key, kind});
    if (trail.length > 7) trail.shift();
    this.body = h("div", {onkeydown: (event) => this.move(event)}, skeleton(3));
    const steps = h("ol.trail", {"aria-label": "Visited objects"}, trail.map((step) => h("li", h("a", {href: objectLink(step.type, step.key, deep && "graph")}, `${step.kind} ${step.key}`))));
    this.element = h("section.card", {"aria-label": "Connections"}, h("h2", "Connections"), trail.length > 1 ? steps : null, this.body);
    this.resized = new ResizeObserver(() => this.connect());
    this.resized.observe(this.body);
  }

  close() {this.resized.disconnect();}

  async update() {
    try {
      await this.load(this.root);
    } catch (error) {
      fill(this.body, quiet(reason(error)));
      return;
    }
    this.draw();
  }

  /** load reads the neighbors of a node. Nodes that are open stay open. */
  async load(node) {
    const {owners, refers, owned, referred, more = 0} = await get("related", {type: node.type, key: node.key});
    const merge = (before = [], all, own) => all.map((r) => Object.assign(before.find((old) => id(old) === id(r) && old.name === r.name) ?? {}, r, {relation: r.name === "owners" ? own : r.name}));
    Object.assign(node, {left: merge(node.left, [...owners, ...refers], "owner"), right: merge(node.right, [...owned, ...referred], "owned"), more});
  }

  /** columns returns the nodes of a side, the nearest column first. A node that was on the way is not expanded again. */
  columns(side) {
    const columns = [];
    for (let parents = [{...this.root, self: this.root, way: [id(this.root)]}]; parents.length;) {
      const column = parents.flatMap(({self, way}) => {
        if (!self.open || !self[side]) return [];
        const shown = self[side].slice(0, self.all ? undefined : shownChildren);
        const children = shown.map((child) => ({self: child, parent: self, way: [...way, id(child)], isLoop: way.includes(id(child))}));
        return self[side].length > shown.length ? [...children, {self: {rest: self[side].length - shown.length}, parent: self, way}] : children;
      });
      if (column.length) columns.push(column);
      parents = column.filter((each) => !each.isLoop && !each.self.rest);
    }
    return columns;
  }

  draw(focus) {
    const left = this.columns("left"), right = this.columns("right");
    if (!left.length && !right.length) {
      fill(this.body, notice("No connections", "It has no references, and no cached object refers to it."));
      return;
    }
    const active = document.activeElement, before = [...this.drawn ?? []].find(([, element]) => element.contains(active))?.[0];
    this.drawn = new Map();
    this.edges = [];
    const list = (column, side, depth) => h("ul", {"aria-label": side === "left" ? "Refers to" : "Referred to by", "data-side": side, "data-depth": depth}, column.map((each) => this.item(each, side)));
    this.here = h("span.node.here", {tabindex: 0, "aria-current": "true"}, h("bdi", this.root.key), h("small", this.root.kind));
    this.drawn.set(this.root, this.here);
    this.lines = h("svg", {"aria-hidden": "true"});
    fill(this.body,
      h("div.graph-head", left.length ? h("span", "← refers to") : h("span"), right.length ? h("span", "referred to by →") : null),
      h("div.graph", {class: this.deep ? "deep" : ""}, this.lines, left.map((column, i) => list(column, "left", i)).reverse(), h("ul", h("li", this.here)), right.map((column, i) => list(column, "right", i))),
      this.root.more ? h("p.quiet", `and ${number(this.root.more)} more`) : null);
    this.connect();
    const isFirst = this.deep && !this.shown;
    this.shown = true;
    if (!focus && this.deep) this.here.scrollIntoView({inline: "center", block: "nearest"});
    this.focus(focus ?? before ?? (isFirst && this.root), active.localName === "button");
  }

  /** focus moves the focus to a node, or to its button. */
  focus(node, isButton) {
    const element = this.drawn.get(node);
    (element?.querySelector(isButton ? "button" : "a, span[tabindex]") ?? element)?.focus();
  }

  /** move handles the arrow keys: up and down in a column, left and right to a neighbor, which can expand a node. */
  move(event) {
    const [dx, dy] = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key] ?? [];
    const [at, element] = [...this.drawn ?? []].find(([, each]) => each.contains(event.target)) ?? [];
    if (dx === undefined || !at || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    if (dy) {
      const nodes = [...element.closest("ul").querySelectorAll(".node")], next = nodes[nodes.indexOf(element) + dy];
      for (const [node, each] of this.drawn) if (each === next) this.focus(node);
      return;
    }
    const out = dx > 0 ? "right" : "left";
    const edge = this.edges.find(({from, to, side}) => (side === out ? from : to) === at);
    if (edge) this.focus(edge.side === out ? edge.to : edge.from);
    else if (element.closest(`[data-side=${out}]`) && element.querySelector("button")) this.expand(at, out);
  }

  item({self, parent, isLoop}, side) {
    if (self.rest) return h("li", h("button.plain", {onclick: () => {parent.all = true; this.draw(parent);}}, `${number(self.rest)} more`));
    const lost = self.state === "Dangling";
    const inside = [h("bdi", self.key), h("small", `${self.kind} · ${self.relation}${lost ? " · not found" : self.state === "Unknown" ? " · unknown" : ""}`)];
    const title = `${self.kind} ${self.key}`;
    const node = self.type && !lost ? h("a", {href: objectLink(self.type, self.key, this.deep && "graph"), title}, inside) : h("span", {title, tabindex: -1}, inside);
    const canExpand = this.deep && self.type && !lost && !isLoop;
    const expand = canExpand ? h("button.plain", {"aria-expanded": String(!!self.open), "aria-label": `Expand ${title}`, onclick: () => this.expand(self, side)}, self.open ? "−" : "+") : isLoop ? h("span.quiet", {title: "on this path"}, "↺") : null;
    const element = h("div.node", {class: lost ? "dangling" : ""}, node, expand);
    this.drawn.set(self, element);
    this.edges.push({from: parent, to: self, side});
    return h("li", element);
  }

  async expand(node, side) {
    node.open = !node.open;
    if (node.open && !node[side]) {
      try {
        await this.load(node);
      } catch (error) {
        node.open = false;
        this.drawn.get(node)?.append(h("small.bad", {role: "alert"}, reason(error)));
        return;
      }
      if (!node[side].length) {node.open = false; this.drawn.get(node)?.append(h("small", {role: "status"}, `${plural(0, "further object")}`)); return;}
    }
    this.draw(node);
  }

  /** connect draws the lines between the nodes. */
  connect() {
    if (!this.lines?.isConnected) return;
    const frame = this.lines.parentElement.getBoundingClientRect(), {scrollLeft, scrollTop, scrollWidth, scrollHeight} = this.lines.parentElement;
    Object.assign(this.lines.style, {width: `${scrollWidth}px`, height: `${scrollHeight}px`});
    const x = (at) => (at - frame.left + scrollLeft).toFixed(1), y = (box) => (box.top + box.height / 2 - frame.top + scrollTop).toFixed(1);
    fill(this.lines, this.edges.map(({from, to, side}) => {
      const a = this.drawn.get(from).getBoundingClientRect(), element = this.drawn.get(to), b = element.getBoundingClientRect();
      const [begin, end] = side === "right" ? [a.right, b.left] : [a.left, b.right], middle = x((begin + end) / 2);
      return h("path", {d: `M${x(begin)} ${y(a)}C${middle} ${y(a)} ${middle} ${y(b)} ${x(end)} ${y(b)}`, class: element.classList.contains("dangling") ? "dangling" : ""});
    }));
  }
}
