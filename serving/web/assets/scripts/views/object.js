import {objectLink, remember, typeLink} from "../app/router.js";
import {Latest} from "../data/api.js";
import {change} from "../parts/change.js";
import {conditions} from "../parts/conditions.js";
import {copyButton, h, fill} from "../parts/dom.js";
import {Events} from "../parts/events.js";
import {ago, clock, moment, plural} from "../parts/format.js";
import {Graph} from "../parts/graph.js";
import {failure, notice, skeleton} from "../parts/notice.js";
import {Yaml} from "../parts/yaml.js";

const maxChanges = 200; // shown changes
const refresh = 15_000; // ms between two requests for Events, which are other objects

/** ObjectPage shows an object: its details, or its graph. */
export class ObjectPage {
  constructor({parameters, position}) {
    Object.assign(this, {type: parameters.type ?? "", key: parameters.key ?? "", parameters: {...parameters}, requests: new Latest(), wanted: position?.scroll});
    this.title = `${this.key} · crdcache`;
    this.stream = {changes: true, type: this.type, key: this.key};
    this.heading = h("h1", h("bdi", this.key));
    this.facts = h("div.figures");
    this.notes = h("div", {role: "status"});
    this.conditions = h("div", skeleton(3));
    this.connections = h("div");
    this.events = new Events(this.type, this.key);
    this.yaml = new Yaml();
    this.list = h("ol.changes", h("li.quiet", "Changes appear here as they happen."));
    const [, namespace, name] = this.key.match(/^(?:([^/]*)\/)?(.*)$/s);
    this.views = ["details", "graph"].map((view) => h("a", {href: objectLink(this.type, this.key, view === "graph" && view), "data-view": view, onclick: (event) => {event.preventDefault(); this.show(view);}}, view === "graph" ? "Graph" : "Details"));
    this.details = h("div.object", h("div.cards", this.conditions, this.events.element, this.connections, h("section.card", {"aria-label": "Changes"}, h("h2", "Changes"), this.list)), this.yaml.element);
    this.graphs = h("div");
    this.element = h("div.page.scrolls", {tabindex: 0, role: "region", "aria-label": this.key},
      h("nav.crumbs", {"aria-label": "Location"}, h("a", {href: "#/types"}, "Types"), h("a", {href: typeLink(this.type)}, this.type), namespace ? h("a", {href: typeLink(this.type, `namespace=${JSON.stringify(namespace)}`)}, namespace) : null, h("bdi", {"aria-current": "page"}, name)),
      h("div.bar", this.heading, h("span.grow"), this.facts), this.notes,
      h("div.bar.views", h("span.segments", {role: "group", "aria-label": "View (v)"}, this.views), copyButton("Copy name", () => this.key), copyButton("Copy link", () => location.href)),
      this.details, this.graphs);
    this.yaml.element.hidden = true;
    this.timer = setInterval(() => {if (!document.hidden) this.events.update();}, refresh);
  }

  opened() {
    this.element.focus({preventScroll: true});
    this.events.update();
    this.select();
    return this.load([]);
  }

  close() {
    this.closed = true;
    this.requests.stop();
    this.graph?.close();
    this.deep?.close();
    clearInterval(this.timer);
  }

  get position() {return {scroll: this.element.scrollTop};}

  show(view) {
    this.parameters.view = view === "graph" ? view : "";
    remember("/object", this.parameters);
    this.select();
    this.draw();
  }

  select() {
    const isGraph = this.parameters.view === "graph";
    this.details.hidden = isGraph;
    this.graphs.hidden = !isGraph;
    for (const each of this.views) if ((each.dataset.view === "graph") === isGraph) each.setAttribute("aria-current", "true"); else each.removeAttribute("aria-current");
    for (const each of this.views) each.toggleAttribute("data-key", false);
    this.views[isGraph ? 0 : 1].dataset.key = "v";
  }

  /** draw shows the graph of the current view. */
  draw() {
    const [name, parent, deep] = this.parameters.view === "graph" ? ["deep", this.graphs, true] : ["graph", this.connections, false];
    if (!this[name] && this.kind) {
      this[name] = new Graph(this.type, this.key, this.kind, deep);
      fill(parent, this[name].element);
    }
    this[name]?.update();
  }

  async load(changed) {
    let object;
    try {
      object = await this.requests.get("object", {type: this.type, key: this.key});
    } catch (error) {
      if (this.closed) return;
      if (!this.kind) fill(this.conditions);
      fill(this.notes, failure(error, () => {fill(this.notes); this.load([]);}));
      return;
    }
    if (!object || this.closed) return;
    this.kind = object.kind;
    fill(this.heading, h("span.kind", object.kind), " ", h("bdi", this.key));
    const created = Date.parse(object.created);
    fill(this.facts, h("span", {title: object.created}, `age ${ago(created)}`), h("span", `resource version ${object.resourceVersion}`));
    fill(this.notes,
      object.deleted ? h("p.banner", `Deletion requested ${ago(Date.parse(object.deleted))} ago; waiting for ${(object.finalizers ?? []).join(", ") || "the end of its grace period"}.`) : null,
      object.hidden ? h("p.quiet", "The values of this object are hidden. Each mark changes when its value changes.") : null,
      object.reduced ? h("p.quiet", "Not all fields of this object are cached.") : null);
    fill(this.conditions, object.conditions ? conditions(object.conditions) : null);
    this.yaml.element.hidden = false;
    this.yaml.show(object.lines, changed);
    this.draw();
    if (this.wanted) this.element.scrollTop = this.wanted;
    this.wanted = 0;
  }

  resumed(since) {
    this.list.prepend(h("li.quiet", `Changes from ${clock(since)} to ${clock(Date.now())} are missing, because this page was not connected`));
    this.load([]);
  }

  changes({changes, skipped = 0}) {
    if (!this.any && changes.length) fill(this.list);
    this.any ||= changes.length > 0;
    for (const c of changes) this.list.prepend(change(c));
    if (skipped) this.list.prepend(h("li.quiet", `${plural(skipped, "change")} came too fast to be shown`));
    while (this.list.children.length > maxChanges) this.list.lastChild.remove();
    const last = changes.at(-1);
    if (last?.op === "departed") fill(this.notes, notice("This object has left the shard of this cache", "It still exists."));
    else if (last?.op === "deleted") fill(this.notes, notice("This object was deleted", `At ${moment(last.time)}. The page shows its last state.`));
    else this.load(changes.flatMap((c) => c.fields ?? []).map((f) => f.path));
  }
}
