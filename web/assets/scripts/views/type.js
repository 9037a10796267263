import { objectLink, remember } from "../app/router.js";
import { get, Latest } from "../data/api.js";
import { Rows } from "../data/rows.js";
import { Dangling } from "../parts/dangling.js";
import { h, fill } from "../parts/dom.js";
import { ago, bytes, number, plural, rate } from "../parts/format.js";
import { Grid } from "../parts/grid.js";
import { Indexes } from "../parts/indexes.js";
import { QueryBox } from "../parts/querybox.js";
import { stateOf } from "../parts/state.js";

const minPause = 2000; // ms between two queries while objects change
const pauseFactor = 10; // the pause is at least this multiple of a query's duration, so that large tables cause little load

/** TypePage shows the objects of a type that match a query. */
export class TypePage {
  constructor({ types, parameters }) {
    Object.assign(this, { types, id: parameters.id ?? "", title: `${parameters.id} · crdcache`, parameters: { ...parameters }, requests: new Latest(), events: -1, asked: 0, pause: minPause });
    this.heading = h("h1", {}, this.id);
    this.figures = h("div.figures");
    this.answer = h("summary", { role: "status" });
    this.plan = h("ul");
    this.box = new QueryBox(this.id, parameters.query ?? "", () => this.ask({ query: this.box.text }));
    this.wide = h("button", { type: "button", "aria-pressed": String(!!parameters.wide), onclick: () => this.widen() }, "All columns");
    this.rows = new Rows(this.id, () => this.grid.draw(), () => this.later());
    this.grid = new Grid("Objects", {
      cells: (i) => this.cells(this.rows.at(i)), href: (i) => { const row = this.rows.at(i); return row && objectLink(this.id, row.key); },
      need: (from, to) => this.rows.need(from, to), marked: (i) => (this.rows.at(i)?.gone ? "gone" : ""),
    }, (sort) => this.sort(sort));
    this.side = h("aside.side", { "aria-label": "Indexes and references" });
    this.element = h("div.page", {}, h("div.bar", {}, this.heading, h("span.grow"), this.figures), h("div.bar", {}, this.box.element, this.wide), h("details.plan", {}, this.answer, this.plan), h("div.split", {}, this.grid.element, this.side));
    this.forget = types.listen(() => this.changed());
    this.clock = setInterval(() => this.grid.later(), 5000);
  }

  /** takes reports whether a location is this page, and applies its query. */
  takes(path, parameters) {
    if (path !== "/type" || parameters.id !== this.id) return false;
    this.parameters = { ...parameters };
    this.box.text = parameters.query ?? "";
    this.run();
    return true;
  }

  async opened() {
    this.changed();
    try {
      this.page = await get("type", { type: this.id });
    } catch (error) {
      fill(this.element, h("p.notice", {}, error.message));
      return;
    }
    fill(this.heading, this.page.kind || this.id, " ", h("span.quiet", {}, this.id));
    this.indexes = new Indexes(this.page, () => this.parameters.query, (condition) => this.narrow(condition));
    this.dangling = new Dangling(this.id);
    fill(this.side, this.page.hidden ? h("p.card", {}, "The values of these objects are hidden. To see them, start crdcache with the flag for secrets.") : null, this.indexes.element, this.dangling.element);
    this.layout();
    this.grid.element.focus({ preventScroll: true });
    this.run();
  }

  close() {
    this.closed = true;
    this.requests.stop();
    this.forget();
    clearInterval(this.clock);
    clearTimeout(this.timer);
  }

  layout() {
    const all = this.page.columns.map((column, i) => ({ ...column, i })).filter((column) => !column.wide || this.parameters.wide);
    this.columns = all;
    const measured = (c) => Math.min(22, Math.max(c.name.length * 0.55 + 1.8, { integer: 6, boolean: 5, date: 5.5, number: 6 }[c.type] ?? 7.5));
    const head = [{ name: "Name", minWidth: 13, grow: 3, sort: "name" }, ...all.map((c) => ({ name: c.name, title: c.description, minWidth: measured(c), grow: c.type === "string" ? 1.5 : 0, number: c.type === "integer" || c.type === "number" || c.type === "date", sort: c.sort }))];
    if (this.page.namespaced) head.unshift({ name: "Namespace", minWidth: 7.5, grow: 1, sort: "namespace" });
    this.grid.columns(head, { by: this.parameters.sort, descending: this.parameters.descending });
  }

  cells(row) {
    if (!row) return null;
    const slash = row.key.indexOf("/");
    const name = h("a", { href: objectLink(this.id, row.key), tabindex: -1 }, row.key.slice(slash + 1));
    const cells = this.columns.map((column) => this.cell(column, row.cells?.[column.i] ?? ""));
    return this.page.namespaced ? [row.key.slice(0, Math.max(0, slash)), name, ...cells] : [name, ...cells];
  }

  cell(column, text) {
    if (column.type !== "date" || !text) return text;
    const at = Date.parse(text);
    return Number.isNaN(at) ? text : h("span", { title: text }, ago(at));
  }

  widen() {
    this.ask({ wide: this.parameters.wide ? "" : "1" });
    this.wide.setAttribute("aria-pressed", String(!!this.parameters.wide));
    this.layout();
  }

  sort(by) {
    const { sort, descending } = this.parameters;
    this.ask(sort !== by ? { sort: by, descending: "" } : descending ? { sort: "", descending: "" } : { descending: "1" });
    this.layout();
  }

  narrow(condition) {
    const { text } = this.box;
    this.box.text = !text || text === "*" ? condition : /\|\|/.test(text) ? `(${text}) && ${condition}` : `${text} && ${condition}`;
    this.ask({ query: this.box.text });
  }

  ask(change) {
    Object.assign(this.parameters, change);
    remember("/type", this.parameters);
    this.grid.top();
    this.run();
  }

  async run() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.asked = Date.now();
    this.events = this.types.rows.get(this.id)?.events ?? this.events;
    const { query, sort, descending } = this.parameters;
    try {
      const answer = await this.requests.get("table", { type: this.id, query, sort, descending });
      if (!answer || this.closed) return;
      this.pause = Math.max(minPause, pauseFactor * (Date.now() - this.asked));
      this.box.fail();
      this.rows.show(answer.table, { query, sort, descending });
      this.grid.resize(answer.total, answer.objects ? "No object matches the query." : "No objects.");
      this.explain(answer);
      this.indexes?.update();
      this.dangling?.update();
    } catch (error) {
      if (error.status) this.box.fail(error);
      else this.answer.textContent = "crdcache does not answer";
    }
  }

  explain(answer) {
    const time = answer.microseconds < 1000 ? `${answer.microseconds} µs` : `${(answer.microseconds / 1000).toFixed(1)} ms`;
    const text = `${number(answer.total)} of ${plural(answer.objects, "object")} in ${time}${answer.scan && this.parameters.query ? ", by a full scan" : ""}${answer.stale ? ", stale" : ""}${answer.warnings ? `, ${plural(answer.warnings.length, "warning")}` : ""}`;
    this.answer.textContent = text;
    fill(this.plan, answer.plan.map((sentence) => h("li", {}, sentence)), (answer.warnings ?? []).map((warning) => h("li.warn", {}, warning)), h("li.quiet", {}, `At resource version ${answer.resourceVersion || "unknown"}.`));
  }

  later() { this.timer ??= setTimeout(() => this.run(), Math.max(0, this.asked + this.pause - Date.now())); }

  /** changed is called after each update of the types. */
  changed() {
    const row = this.types.rows.get(this.id);
    if (!row) return;
    fill(this.figures, stateOf(row), h("span", {}, h("b", {}, number(row.objects)), " objects"), row.partial ? null : h("span", {}, h("b", {}, bytes(row.bytes))), row.partial ? null : h("span", {}, h("b", {}, rate(row.rate) || "0"), " events/s"), h("span", {}, `contact ${row.contact ? `${ago(row.contact)} ago` : "never"}`), row.message ? h("span", { class: row.reason ? "bad" : "" }, row.message) : null);
    if (!this.page || this.timer || (!row.partial && row.events === this.events)) return; // events of partly visible types are not counted
    this.later();
  }
}
