import {namespace, remember} from "../app/router.js";
import {change} from "../parts/change.js";
import {h, fill} from "../parts/dom.js";
import {clock, number, plural} from "../parts/format.js";
import {notice} from "../parts/notice.js";

const maxChanges = 500; // shown changes; while paused, also the maximum of waiting changes

// group returns the name of the filter that a change belongs to: the operation, or "types". Objects that left the shard count as deleted.
const group = (c) => (!c.key ? "types" : c.op === "departed" ? "deleted" : c.op);

/** ChangesPage shows changes of all objects and types, the latest first. */
export class ChangesPage {
  constructor({ask, parameters}) {
    Object.assign(this, {ask, title: "Changes · crdcache", parameters: {...parameters}, off: new Set(), waiting: [], dropped: 0});
    this.search = h("input", {type: "search", placeholder: "Types and names, such as workloads payments/", "aria-label": "Filter changes", value: parameters.match ?? "", oninput: () => this.filter()});
    this.pause = h("button", {"data-key": "p", "aria-pressed": "false", title: "Pause (p)", onclick: () => this.toggle()}, "Pause");
    this.status = h("span.quiet", {role: "status"});
    this.ops = ["added", "changed", "deleted", "types"].map((op) => h("button.chip", {"aria-pressed": "true", onclick: (event) => this.only(op, event.currentTarget)}, op));
    this.list = h("ol.changes");
    this.empty = notice("No changes yet", "They appear here. The overview counts those of the last ten minutes.", {text: "Overview", href: "#/"});
    this.element = h("div.page", h("div.bar", h("h1", "Changes"), h("span.grow"), this.status), h("div.bar", this.search, h("span.bar", {role: "group", "aria-label": "Kinds of changes"}, this.ops), h("span.grow"), this.pause, h("button", {onclick: () => this.clear()}, "Clear")),
      h("div.log", {tabindex: 0, role: "region", "aria-label": "Changes, the latest first"}, this.empty, this.list));
  }

  get stream() {return {changes: true, match: [this.parameters.match, namespace.value && `${namespace.value}/`].filter(Boolean).join(" ")};}

  opened() {this.element.querySelector(".log").focus({preventScroll: true});}

  close() {clearTimeout(this.typing);}

  filter() {
    this.parameters.match = this.search.value.trim();
    remember("/changes", this.parameters);
    const words = this.parameters.match.toLowerCase().split(/\s+/).filter(Boolean);
    for (const item of this.list.children) item.hidden = !words.every((word) => (item.names ?? "").includes(word));
    clearTimeout(this.typing);
    this.typing = setTimeout(() => this.ask(this.stream), 300); // the server then sends only matching changes
  }

  only(op, button) {
    const off = this.off.has(op);
    if (off) this.off.delete(op); else this.off.add(op);
    button.setAttribute("aria-pressed", String(off));
    for (const item of this.list.children) if (item.op === op) item.hidden = !off;
  }

  toggle() {
    this.paused = !this.paused;
    this.pause.setAttribute("aria-pressed", String(this.paused));
    fill(this.pause, this.paused ? "Resume" : "Pause");
    if (!this.paused) {
      const {waiting, dropped} = this;
      this.waiting = [];
      this.dropped = 0;
      this.add(waiting, dropped);
    }
    this.tell();
  }

  clear() {
    fill(this.list);
    this.empty.hidden = false;
  }

  changes({changes, skipped = 0}) {
    const own = changes.filter((c) => !namespace.value || c.key?.startsWith(`${namespace.value}/`));
    if (!this.paused) {this.add(own, skipped); return;}
    this.waiting.push(...own);
    this.dropped += skipped + Math.max(0, this.waiting.length - maxChanges);
    this.waiting = this.waiting.slice(-maxChanges);
    this.tell();
  }

  resumed(since) {
    if (this.list.children.length) this.list.prepend(h("li.quiet", `Changes from ${clock(since)} to ${clock(Date.now())} are missing, because this page was not connected`));
  }

  tell() {fill(this.status, this.paused ? `Paused; ${plural(this.waiting.length + this.dropped, "change")} since` : "");}

  add(changes, skipped) {
    this.empty.hidden ||= changes.length > 0;
    for (const c of changes) {
      const item = change(c, {named: true, brief: true});
      Object.assign(item, {op: group(c), names: `${c.type} ${c.key || c.op}`.toLowerCase(), hidden: this.off.has(group(c))});
      this.list.prepend(item);
    }
    if (skipped) this.list.prepend(h("li.quiet", `${number(skipped)} changes came too fast to be shown`));
    while (this.list.children.length > maxChanges) this.list.lastChild.remove();
  }
}
