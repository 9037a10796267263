import { remember, typeLink } from "../app/router.js";
import { h, fill } from "../parts/dom.js";
import { ago, bytes, moment, number, plural, rate } from "../parts/format.js";
import { Grid } from "../parts/grid.js";
import { sparkline } from "../parts/sparkline.js";
import { severity, stateOf, wording } from "../parts/state.js";

const total = (row) => row.rates.reduce((sum, rate) => sum + rate, 0);

// Columns with their cells and sort values; narrow screens show only columns with a narrow width.
const columns = [
  { name: "Type", minWidth: 16, grow: 3, sort: "name", narrow: 10, value: (row) => row.id, cell: (row) => h(closed(row) ? "span" : "a", closed(row) ? {} : { href: typeLink(row.id), tabindex: -1 }, row.resource, h("span.quiet", {}, `${row.group ? `.${row.group}` : ""}/${row.version}${row.view ? ` · ${row.view}` : ""}`)) },
  { name: "State", minWidth: 9, grow: 2, sort: "state", narrow: 7, first: "descending", value: severity, cell: stateOf },
  { name: "Since", minWidth: 4.5, number: true, sort: "since", first: "descending", value: (row) => row.since, cell: (row) => h("span", { title: moment(row.since) }, ago(row.since)) },
  { name: "Objects", minWidth: 6, number: true, sort: "objects", narrow: 5, first: "descending", value: (row) => row.objects, cell: (row) => number(row.objects) },
  { name: "Size", minWidth: 5.5, number: true, sort: "bytes", first: "descending", value: (row) => row.bytes, cell: (row) => bytes(row.bytes) },
  { name: "Relists", minWidth: 5, number: true, sort: "relists", first: "descending", value: (row) => row.relists, cell: (row) => (row.relists ? number(row.relists) : "") },
  { name: "Events/s", minWidth: 5.5, number: true, sort: "rate", first: "descending", value: total, cell: (row) => rate(row.rate) },
  { name: "2 minutes", minWidth: 10, value: () => 0, cell: (row) => sparkline(row.rates) },
  { name: "Contact", minWidth: 5, number: true, sort: "contact", title: "Last contact with the server", value: (row) => row.contact, cell: (row) => h("span", { class: row.stale ? "warn" : "", title: moment(row.contact) }, row.contact ? `${ago(row.contact)} ago` : "never") },
];

const states = ["Degraded", "Gone", "Stopped", "Pending", "Syncing", "Synced", "Checking", "Withheld"];
const closed = (row) => row.state === "Withheld" || row.state === "Checking";

/** TypesPage lists all types. */
export class TypesPage {
  constructor({ types, parameters }) {
    this.types = types;
    this.title = "Types · crdcache";
    this.parameters = { sort: "", descending: "", ...parameters };
    this.rows = [];
    this.search = h("input", { type: "search", placeholder: "Search types, states, reasons", "aria-label": "Search types", value: parameters.search ?? "", oninput: () => this.ask({ search: this.search.value }) });
    this.search.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === "ArrowDown") { this.grid.element.focus(); event.preventDefault(); } });
    this.chips = h("span.bar", { role: "group", "aria-label": "Only this state" });
    this.figures = h("div.figures", { id: "figures" });
    this.withheld = h("p.quiet", { id: "withheld", role: "note", hidden: true });
    this.grid = new Grid("Types", { cells: (i) => this.shown.map((c) => c.cell(this.rows[i])), href: (i) => (closed(this.rows[i]) ? undefined : typeLink(this.rows[i].id)) }, (sort) => this.sort(sort));
    this.element = h("div.page", {}, h("h1.hidden-text", {}, "Types"), h("div.bar", {}, this.search, this.chips, h("span.grow"), this.figures), this.withheld, this.grid.element);
    this.narrow = matchMedia("(max-width: 700px)");
    this.resized = () => this.layout();
    this.narrow.addEventListener("change", this.resized);
    this.forget = types.listen(() => this.draw());
    this.clock = setInterval(() => this.grid.later(), 1000);
    this.layout();
  }

  opened() { this.grid.element.focus({ preventScroll: true }); this.draw(); }

  close() {
    this.forget();
    clearInterval(this.clock);
    this.narrow.removeEventListener("change", this.resized);
  }

  layout() {
    this.shown = columns.filter((c) => c.narrow || !this.narrow.matches).map((c) => (this.narrow.matches ? { ...c, minWidth: c.narrow } : c));
    this.grid.columns(this.shown, { by: this.parameters.sort || "state", descending: this.parameters.sort ? this.parameters.descending : true });
    this.draw();
  }

  ask(change) {
    Object.assign(this.parameters, change);
    remember("/", this.parameters);
    this.grid.top();
    this.draw();
  }

  sort(by) {
    const { sort, descending } = this.parameters;
    const first = columns.find((c) => c.sort === by).first ? "1" : "";
    this.ask({ sort: by, descending: sort === by ? (descending ? "" : "1") : first });
    this.layout();
  }

  draw() {
    const all = [...this.types.rows.values()];
    const { search = "", state = "", sort, descending } = this.parameters;
    const words = search.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => `${row.id} ${row.view ?? ""} ${wording(row)} ${row.message ?? ""}`.toLowerCase();
    const found = all.filter((row) => (!state || row.state === state) && words.every((word) => text(row).includes(word)));
    const column = columns.find((c) => c.sort === (sort || "state")) ?? columns[0];
    const turn = (sort ? descending : true) ? -1 : 1;
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    this.rows = found.map((row) => [column.value(row), row]).sort((a, b) => turn * compare(a[0], b[0]) || compare(a[1].id, b[1].id)).map((pair) => pair[1]);
    this.summarize(all);
    this.grid.resize(this.rows.length, !this.types.known ? "Waiting for crdcache." : all.length ? "No type matches." : "No types are cached yet.");
  }

  summarize(all) {
    const sum = (of) => all.reduce((n, row) => n + of(row), 0);
    fill(this.figures, h("span", {}, h("b", {}, number(all.length)), " types"), h("span", {}, h("b", {}, number(sum((r) => r.objects))), " objects"), h("span", {}, h("b", {}, bytes(sum((r) => r.bytes)))), h("span", {}, h("b", {}, rate(sum((r) => r.rate)) || "0"), " events/s"));
    const withheld = all.filter((row) => row.state === "Withheld");
    this.withheld.hidden = !withheld.length;
    this.withheld.textContent = withheld.length ? `You cannot see ${plural(withheld.length, "type")}: ${withheld[0].message}` : "";
    const focused = document.activeElement?.dataset?.state;
    fill(this.chips, states.map((name) => {
      const n = all.filter((row) => row.state === name).length;
      if (!n && this.parameters.state !== name) return null;
      const chip = h("button", { type: "button", "data-state": name, "aria-pressed": String(this.parameters.state === name), title: plural(n, "type"), onclick: () => this.ask({ state: this.parameters.state === name ? "" : name }) }, `${name} ${number(n)}`);
      return chip;
    }));
    if (focused) this.chips.querySelector(`[data-state=${focused}]`)?.focus();
  }
}
