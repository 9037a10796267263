import {namespace, objectLink, place, remember, visit} from "../app/router.js";
import {remember as saveQuery} from "../app/saved.js";
import {load, save} from "../app/storage.js";
import {address, get, Latest} from "../data/api.js";
import {Rows} from "../data/rows.js";
import {Dangling} from "../parts/dangling.js";
import {copyButton, figure, h, fill, quiet} from "../parts/dom.js";
import {ago, bytes, number, plural, rate} from "../parts/format.js";
import {Grid} from "../parts/grid.js";
import {Indexes} from "../parts/indexes.js";
import {menu} from "../parts/menu.js";
import {failure, notice, skeleton} from "../parts/notice.js";
import {QueryBox} from "../parts/querybox.js";
import {stateOf} from "../parts/state.js";

const minPause = 2000; // ms between two queries while objects change
const pauseFactor = 10; // the pause is at least this multiple of a query's duration, so that large tables cause little load

/** TypePage shows the objects of a type that match a query. */
export class TypePage {
  constructor({types, parameters, position}) {
    Object.assign(this, {types, id: parameters.id ?? "", parameters: {...parameters}, requests: new Latest(), events: -1, asked: 0, pause: minPause});
    this.title = `${this.id.split(/[./]/, 1)[0]} · crdcache`;
    this.heading = h("h1", this.id);
    this.figures = h("div.figures");
    this.gone = h("div", {role: "status"});
    this.answer = h("span", {role: "status"}, "Loading");
    this.plan = h("ul");
    this.box = new QueryBox(this.id, parameters.query ?? "", () => this.search(this.box.text));
    this.chooser = h("fieldset", h("legend.label", "Columns"));
    this.exports = h("div.exports");
    this.name = h("input", {type: "text", "aria-label": "Name of the query", placeholder: "Name", onkeydown: (event) => {if (event.key === "Enter") this.store();}});
    this.rows = new Rows(this.id, () => this.grid.draw(), () => this.later());
    this.grid = new Grid("Objects", {
      row: (i) => this.rows.at(i), cells: (row) => this.cells(row), href: (row) => objectLink(this.id, row.key),
      need: (from, to) => this.rows.need(from, to), marked: (row) => (row.gone ? "gone" : ""),
    }, (sort) => this.sort(sort));
    this.grid.position = position?.grid;
    fill(this.grid.empty, skeleton(10));
    this.grid.empty.hidden = false;
    this.side = h("aside.side", {"aria-label": "Indexes and references"}, skeleton(6));
    this.tools = h("div.bar", menu("Columns", "c", "Choose columns", this.chooser), menu("Export", "e", "Export the result", this.exports), menu("Save", "s", "Save the query in this browser", this.name, h("button.primary", {onclick: () => this.store()}, "Save"), copyButton("Copy link", () => this.link())));
    this.content = h("div.split", this.grid.element, this.side);
    this.element = h("div.page", h("div.bar", this.heading, h("span.grow"), this.figures), this.gone, h("div.bar", this.box.element, this.tools), h("details.plan", h("summary", this.answer), this.plan), this.content);
    this.forget = types.listen(() => this.changed());
    this.clock = setInterval(() => this.grid.refresh(), 10_000); // ages
  }

  /** takes reports whether a location is this page, and applies its query. */
  takes(path, parameters, position) {
    if (path !== "/type" || parameters.id !== this.id) return false;
    this.parameters = {...parameters};
    this.box.text = parameters.query ?? "";
    this.grid.top();
    this.grid.position = position?.grid;
    if (this.page) this.layout();
    this.run();
    return true;
  }

  async opened() {
    this.changed();
    try {
      this.page = await get("type", {type: this.id});
    } catch (error) {
      if (!this.closed) fill(this.content, failure(error, () => {fill(this.content, this.grid.element, this.side); this.opened();}));
      return;
    }
    if (this.closed) return;
    fill(this.heading, this.page.kind || this.id, " ", quiet(this.id));
    this.indexes = new Indexes(this.page, () => this.query(), (condition) => this.narrow(condition));
    this.dangling = new Dangling(this.id);
    fill(this.side, this.page.hidden ? h("p.card", "The values of these objects are hidden. To see them, start crdcache with the flag for secrets.") : null, this.page.reduced ? h("p.card", "Not all fields of these objects are cached.") : null, this.indexes.element, this.dangling.element);
    this.layout();
    if (document.activeElement === document.body) this.grid.element.focus({preventScroll: true});
    this.run();
  }

  close() {
    this.closed = true;
    this.requests.stop();
    this.forget();
    clearInterval(this.clock);
    clearTimeout(this.timer);
  }

  get position() {return {grid: this.grid.position};}

  /** partOfName returns the text of the box unless it is a query. */
  partOfName() {
    const text = this.parameters.query ?? "";
    return /^[\w.:/-]+$/.test(text) && !this.page.indexes.some((index) => index.name === text) ? text : "";
  }

  /** query returns the query within the selected namespace. */
  query() {
    const query = this.partOfName() ? "" : this.parameters.query ?? "";
    return this.scope() ? (query && query !== "*" ? `${this.scope()}(${query})` : this.scope().replace(/ && $/, "")) : query;
  }

  scope() {return namespace.value && this.page?.namespaced ? `namespace=${JSON.stringify(namespace.value)} && ` : "";}

  layout() {
    const chosen = this.parameters.columns?.split(",") ?? load(`columns ${this.id}`, undefined);
    const all = this.page.columns.map((column, i) => ({...column, i}));
    this.columns = all.filter((column) => (chosen ? chosen.includes(column.name) : !column.wide));
    const measured = (c) => Math.min(22, Math.max(c.name.length * 0.56 + 2, {integer: 5.5, boolean: 5, date: 5, number: 5.5}[c.type] ?? 8));
    const head = [{name: "Name", minWidth: 13, grow: 3, sort: "name"}, ...this.columns.map((c) => ({name: c.name, title: c.description, minWidth: measured(c), grow: c.type === "string" ? 1.5 : 0, number: c.type === "integer" || c.type === "number" || c.type === "date", sort: c.sort}))];
    if (this.page.namespaced) head.splice(1, 0, {name: "Namespace", minWidth: 8, grow: 1, sort: "namespace"});
    this.grid.columns(head, {by: this.parameters.sort, descending: this.parameters.descending});
    const inputs = all.map((column) => h("label", {title: column.description}, h("input", {type: "checkbox", checked: this.columns.some((c) => c.i === column.i), onchange: () => this.choose(all.filter((_, i) => inputs[i].firstChild.checked).map((c) => c.name))}), column.name));
    const focused = [...this.chooser.querySelectorAll("input, button")].indexOf(document.activeElement);
    fill(this.chooser, h("legend.label", "Columns"), inputs, h("button.plain", {onclick: () => this.choose(undefined)}, "Default columns"));
    this.chooser.querySelectorAll("input, button")[focused]?.focus();
    this.offer();
  }

  choose(names) {
    save(`columns ${this.id}`, names ?? null);
    this.parameters.columns = names && (names.join() || ",");
    remember("/type", this.parameters);
    this.layout();
  }

  /** offer sets the links to export the result. */
  offer() {
    const {sort, descending} = this.parameters, given = {type: this.id, query: this.query(), name: this.partOfName(), sort, descending};
    fill(this.exports, h("a.button", {href: address("export", {...given, format: "csv", column: this.columns.map((c) => c.i)}), download: ""}, "CSV of the shown columns"), h("a.button", {href: address("export", {...given, format: "yaml"}), download: ""}, "YAML of the objects"));
  }

  link() {
    const {origin, pathname} = location, {parameters} = place();
    return `${origin}${pathname}#/type?${new URLSearchParams({...parameters, ns: namespace.value || "*"})}`;
  }

  store() {
    const name = this.name.value.trim() || `${this.id.split(/[./]/, 1)[0]} ${this.parameters.query || "all"}`;
    saveQuery(name, this.link().replace(/^[^#]*/, ""));
    this.name.value = "";
    this.tools.querySelector("details[open]").open = false;
  }

  cells(row) {
    const slash = row.key.indexOf("/"), text = row.key.slice(slash + 1);
    const name = h("a", {href: objectLink(this.id, row.key), tabindex: -1, title: row.key}, h("bdi", text));
    const cells = this.columns.map((column) => this.cell(column, row.cells?.[column.i] ?? ""));
    return this.page.namespaced ? [name, row.key.slice(0, Math.max(0, slash)), ...cells] : [name, ...cells];
  }

  cell(column, text) {
    if (column.type !== "date" || !text) return text;
    const at = Date.parse(text);
    return Number.isNaN(at) ? text : h("span", {title: text}, ago(at));
  }

  sort(by) {
    const {sort, descending} = this.parameters;
    Object.assign(this.parameters, sort !== by ? {sort: by, descending: ""} : descending ? {sort: "", descending: ""} : {descending: "1"});
    remember("/type", this.parameters);
    this.grid.top();
    this.layout();
    this.run();
  }

  narrow(condition) {
    const {text} = this.box;
    this.box.text = !text || text === "*" || this.partOfName() ? condition : /\|\|/.test(text) ? `(${text}) && ${condition}` : `${text} && ${condition}`;
    this.search(this.box.text);
  }

  /** search runs another query, in a new history entry; the same query again keeps its entry. */
  search(query) {
    if (query !== (this.parameters.query ?? "")) visit("/type", {...this.parameters, query});
    else this.run();
  }

  async run() {
    if (!this.page) return; // opened runs the query
    clearTimeout(this.timer);
    this.timer = undefined;
    this.asked = Date.now();
    this.events = this.types.rows.get(this.id)?.events ?? this.events;
    const {sort, descending} = this.parameters, query = this.query(), name = this.partOfName();
    this.element.setAttribute("aria-busy", "true");
    try {
      const answer = await this.requests.get("table", {type: this.id, query, name, sort, descending});
      if (!answer || this.closed) return;
      this.pause = Math.max(minPause, pauseFactor * (Date.now() - this.asked));
      this.box.fail();
      this.rows.show(answer.table, {query, name, sort, descending});
      this.grid.resize(answer.total, this.nothing(answer));
      this.explain(answer);
      this.offer();
      this.indexes?.update();
      this.dangling?.update();
    } catch (error) {
      if (this.closed) return;
      if (error.status === 400 || error.status === 413) {
        this.box.fail(error, this.scope().length + (this.scope() ? 1 : 0));
        fill(this.answer, "Not the result of this query");
      }
      else fill(this.gone, failure(error, () => {fill(this.gone); this.run();}));
    }
    this.element.setAttribute("aria-busy", "false");
  }

  nothing(answer) {
    const clear = () => visit("/type", {...this.parameters, query: ""});
    if (this.parameters.query) return notice("No object matches the query", `This type has ${plural(answer.objects, "object")}.`, {text: "Show all", run: clear});
    if (this.scope() && answer.objects) return notice(`No objects in ${namespace.value}`, `Other namespaces have ${plural(answer.objects, "object")} of this type.`, {text: "Show all namespaces", run: () => namespace.select("")});
    return notice("No objects", "New ones appear here.");
  }

  explain(answer) {
    const time = answer.microseconds < 1000 ? `${answer.microseconds} µs` : `${(answer.microseconds / 1000).toFixed(1)} ms`;
    fill(this.answer, `${number(answer.total)} of ${plural(answer.objects, "object")} in ${time}${answer.scan && this.parameters.query ? ", by a full scan" : ""}${answer.stale ? ", stale" : ""}${answer.warnings ? `, ${plural(answer.warnings.length, "warning")}` : ""}`);
    fill(this.plan, answer.plan.map((sentence) => h("li", sentence)), (answer.warnings ?? []).map((warning) => h("li.warn", warning)), h("li.quiet", `At resource version ${answer.resourceVersion || "unknown"}.`));
  }

  later() {this.timer ??= setTimeout(() => this.run(), Math.max(0, this.asked + this.pause - Date.now()));}

  /** changed is called after each update of the types. */
  changed() {
    const row = this.types.rows.get(this.id);
    if (this.types.known && !row && this.seen) fill(this.gone, notice("This type is not cached any more", "The table shows its last objects.", {text: "All types", href: "#/types"}));
    if (!row) return;
    if (!this.seen) fill(this.gone);
    this.seen = true;
    fill(this.figures, stateOf(row), figure(number(row.objects), "objects"), !row.partial && [figure(bytes(row.bytes), "", `${number(row.bytes)} bytes`), figure(rate(row.rate) || "0", "changes/s")], h("span", `contact ${row.contact ? `${ago(row.contact)} ago` : "never"}`), row.message ? h("span", {class: row.reason ? "bad" : ""}, row.message) : null);
    if (!this.page || this.timer || (!row.partial && row.events === this.events)) return; // changes of partly visible types are not counted
    this.later();
  }
}
