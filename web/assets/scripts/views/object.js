import { typeLink } from "../app/router.js";
import { Latest } from "../data/api.js";
import { change } from "../parts/change.js";
import { conditions } from "../parts/conditions.js";
import { h, fill } from "../parts/dom.js";
import { ago, clock } from "../parts/format.js";
import { Graph } from "../parts/graph.js";
import { Yaml } from "../parts/yaml.js";

const maxChanges = 200; // shown changes

/** ObjectPage shows an object, its references, and its changes from now on. */
export class ObjectPage {
  constructor({ parameters }) {
    Object.assign(this, { type: parameters.type ?? "", key: parameters.key ?? "", requests: new Latest() });
    this.title = `${this.key} · crdcache`;
    this.stream = { changes: true, type: this.type, key: this.key };
    this.heading = h("h1", {}, this.key);
    this.facts = h("div.figures");
    this.notes = h("div", { role: "status" });
    this.conditions = h("div");
    this.connections = h("div");
    this.yaml = new Yaml();
    this.list = h("ol.changes", {}, h("li.quiet", {}, "Changes appear here as they happen."));
    this.element = h("div.page.scrolls", { tabindex: 0, "aria-label": this.key },
      h("div.bar", {}, h("a", { href: typeLink(this.type) }, this.type), this.heading, h("span.grow"), this.facts), this.notes,
      h("div.object", {}, h("div", {}, this.yaml.element), h("div", {}, this.conditions, this.connections, h("section.card", { "aria-label": "Changes" }, h("h2", {}, "Changes"), this.list))));
  }

  opened() { this.element.focus({ preventScroll: true }); return this.load([]); }

  close() {
    this.requests.stop();
    this.graph?.close();
  }

  async load(changed) {
    let object;
    try {
      object = await this.requests.get("object", { type: this.type, key: this.key });
    } catch (error) {
      fill(this.notes, h("p.banner", {}, error.message));
      return;
    }
    if (!object) return;
    fill(this.heading, `${object.kind} `, this.key);
    const created = Date.parse(object.created);
    fill(this.facts, h("span", { title: object.created }, `age ${ago(created)}`), h("span", {}, `resource version ${object.resourceVersion}`));
    fill(this.notes,
      object.deleted ? h("p.banner", {}, `Deletion requested ${ago(Date.parse(object.deleted))} ago; waiting for ${(object.finalizers ?? []).join(", ") || "the end of its grace period"}.`) : null,
      object.hidden ? h("p.quiet", {}, "The values of this object are hidden. Each mark changes when its value changes.") : null);
    fill(this.conditions, object.conditions ? conditions(object.conditions) : null);
    this.yaml.show(object.lines, changed);
    if (!this.graph) {
      this.graph = new Graph(this.type, this.key, object.kind);
      fill(this.connections, this.graph.element);
    }
    this.graph.update();
  }

  resumed(since) {
    this.list.prepend(h("li.quiet", {}, `Changes from ${clock(since)} to ${clock(Date.now())} are missing, because this page was not connected`));
    this.load([]);
  }

  changes({ changes, skipped = 0 }) {
    if (!this.any && changes.length) fill(this.list);
    this.any ||= changes.length > 0;
    for (const c of changes) this.list.prepend(change(c));
    if (skipped) this.list.prepend(h("li.quiet", {}, `${skipped} changes came too fast to be shown`));
    while (this.list.children.length > maxChanges) this.list.lastChild.remove();
    if (changes.at(-1)?.op === "departed") fill(this.notes, h("p.banner", {}, "This object has left the shard of this cache, but still exists. The page shows its last known state."));
    else if (changes.at(-1)?.op === "deleted") fill(this.notes, h("p.banner", {}, "This object was deleted. The page shows its last state."));
    else this.load(changes.flatMap((c) => c.fields ?? []).map((f) => f.path));
  }
}
