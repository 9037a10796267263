import {namespace, remember, typeLink} from "../app/router.js";
import {recent} from "../data/types.js";
import {figure, h, fill, quiet} from "../parts/dom.js";
import {ago, bytes, moment, number, plural, rate} from "../parts/format.js";
import {Grid} from "../parts/grid.js";
import {notice, skeleton} from "../parts/notice.js";
import {sparkline} from "../parts/sparkline.js";
import {isClosed, severity, stateOf, troubled, unknown, wording} from "../parts/state.js";

const typeName = (row) => h(isClosed(row) ? "span" : "a", isClosed(row) ? {title: row.id} : {href: typeLink(row.id), tabindex: -1, title: row.id}, row.resource, quiet(`${row.group ? `.${row.group}` : ""}/${row.version}${row.view ? ` · ${row.view}` : ""}`));

const states = ["Degraded", "Gone", "Stopped", "Pending", "Syncing", "Synced", "Checking", "Withheld"];

/** TypesPage lists all types by API group; types without objects are folded. With a sort order or a search it is one list. */
export class TypesPage {
  constructor({types, health, parameters, position}) {
    Object.assign(this, {types, health, title: "Types · crdcache", parameters: {...parameters}, rows: [], folded: new Set(position?.folded), unfolded: new Set(position?.unfolded)});
    // Columns with their cells and sort values; narrow screens show only columns with a narrow width.
    this.columns = [
      {name: "Type", minWidth: 16, grow: 3, sort: "name", narrow: 11, value: (row) => row.id, cell: typeName},
      {name: "State", minWidth: 8, grow: 2, sort: "state", narrow: 6.5, first: "1", value: severity, cell: stateOf},
      {name: "Objects", minWidth: 6.5, number: true, sort: "objects", narrow: 5, first: "1", value: (row) => this.health.objects(row), cell: (row) => (isClosed(row) ? "" : number(this.health.objects(row)))},
      {name: "Bad conditions", minWidth: 9, number: true, sort: "bad", first: "1", value: (row) => this.bad(row), cell: (row) => (this.bad(row) ? h("span.bad", {title: this.badText(row)}, `▲ ${number(this.bad(row))}`) : "")},
      {name: "Changes", minWidth: 6, number: true, sort: "changes", first: "1", title: "Changes in the last ten minutes", value: recent, cell: (row) => (recent(row) ? h("span", {title: `${rate(row.rate) || "0"} a second`}, number(recent(row))) : "")},
      {name: "10 minutes", minWidth: 9, title: "Changes in the last ten minutes, the newest on the right", cell: (row) => sparkline(row.changes)},
      {name: "Size", minWidth: 5.5, number: true, sort: "bytes", first: "1", value: (row) => row.bytes, cell: (row) => (row.bytes ? h("span", {title: `${number(row.bytes)} bytes`}, bytes(row.bytes)) : "")},
      {name: "Relists", minWidth: 5, number: true, sort: "relists", first: "1", value: (row) => row.relists, cell: (row) => (row.relists ? number(row.relists) : "")},
      {name: "Since", minWidth: 4.5, number: true, sort: "since", first: "1", title: "Time in this state", value: (row) => row.since, cell: (row) => h("span", {title: moment(row.since)}, ago(row.since))},
      {name: "Contact", minWidth: 6, number: true, sort: "contact", title: "Last contact with the server", value: (row) => row.contact, cell: (row) => h("span", {class: row.stale ? "warn" : "", title: moment(row.contact)}, row.contact ? `${ago(row.contact)} ago` : isClosed(row) ? "" : "never")},
    ];
    this.search = h("input", {type: "search", placeholder: "Filter by type, group, state or reason", "aria-label": "Search types", value: parameters.search ?? "", oninput: () => this.ask({search: this.search.value})});
    this.search.addEventListener("keydown", (event) => {if (event.key === "Enter" || event.key === "ArrowDown") {this.grid.element.focus(); event.preventDefault();}});
    this.chips = h("span.bar", {role: "group", "aria-label": "Only this state"});
    this.figures = h("div.figures", {id: "figures"});
    this.withheld = h("p.quiet", {id: "withheld", role: "note", hidden: true});
    this.grid = new Grid("Types", {row: (i) => this.rows[i], cells: (row) => this.cells(row), href: (row) => (isClosed(row) ? undefined : typeLink(row.id)), marked: (row) => (row.fold ? row.style : ""), act: (row) => row.fold && this.toggle(row)}, (sort) => this.sort(sort));
    this.grid.position = position?.grid;
    this.element = h("div.page", h("div.bar", h("h1", "Types"), h("span.grow"), this.figures), h("div.bar", this.search, this.chips), this.withheld, this.grid.element);
    this.narrow = matchMedia("(max-width: 700px)");
    this.resized = () => this.layout();
    this.narrow.addEventListener("change", this.resized);
    this.forget = [types.listen(() => this.draw()), health.listen(() => this.draw())];
    this.clock = setInterval(() => this.grid.refresh(), 2000);
    fill(this.grid.empty, skeleton(8));
    this.grid.empty.hidden = false;
    this.layout();
  }

  opened() {this.grid.element.focus({preventScroll: true}); this.draw();}

  close() {
    for (const forget of this.forget) forget();
    clearInterval(this.clock);
    this.narrow.removeEventListener("change", this.resized);
  }

  takes(path, parameters) {
    if (path !== "/types") return false;
    this.parameters = {...parameters};
    this.search.value = parameters.search ?? "";
    this.health.update(); // of another namespace
    this.layout();
    return true;
  }

  get position() {return {grid: this.grid.position, folded: [...this.folded], unfolded: [...this.unfolded]};}

  bad(row) {return (this.health.types.get(row.id)?.conditions ?? []).reduce((n, c) => n + c.bad, 0);}

  badText(row) {return this.health.types.get(row.id).conditions.filter((c) => c.bad).map((c) => `${c.type} is ${c.badStatus}: ${number(c.bad)}`).join(", ");}

  cells(row) {
    if (!row.fold) return this.shown.map((c) => c.cell(row));
    return [h("span", h("span.twist", row.open ? "▾" : "▸"), row.text, quiet(` ${row.note}`))];
  }

  layout() {
    this.shown = this.columns.filter((c) => c.narrow || !this.narrow.matches).map((c) => (this.narrow.matches ? {...c, minWidth: c.narrow} : c));
    this.grid.columns(this.shown, {by: this.parameters.sort, descending: this.parameters.descending});
    this.draw();
  }

  ask(change) {
    Object.assign(this.parameters, change);
    remember("/types", this.parameters);
    this.grid.top();
    this.draw();
  }

  sort(by) {
    const {sort, descending} = this.parameters, {first = ""} = this.columns.find((c) => c.sort === by);
    this.ask(sort !== by ? {sort: by, descending: first} : descending === first ? {descending: first ? "" : "1"} : {sort: "", descending: ""});
    this.layout();
  }

  toggle(row) {
    const set = row.empty ? this.unfolded : this.folded;
    if (!set.delete(row.fold)) set.add(row.fold);
    this.draw();
    return true;
  }

  draw() {
    const {search, state, sort, descending} = this.parameters;
    const all = [...this.types.rows.values()], words = (search ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row) => `${row.id} ${row.view ?? ""} ${wording(row)} ${row.message ?? ""}`.toLowerCase();
    const found = all.filter((row) => (!state || row.state === state) && words.every((word) => text(row).includes(word)));
    const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    if (sort || words.length || state) {
      const column = this.columns.find((c) => sort && c.sort === sort) ?? this.columns[0], turn = sort && descending ? -1 : 1;
      this.rows = found.map((row) => [column.value(row), row]).sort((a, b) => turn * compare(a[0], b[0]) || compare(a[1].id, b[1].id)).map((pair) => pair[1]);
    } else this.rows = this.grouped(found.sort((a, b) => compare(a.group, b.group) || compare(a.id, b.id)));
    this.summarize(all);
    if (!this.types.known) return;
    this.grid.resize(this.rows.length, all.length ? notice("No type matches", `${plural(all.length, "type is", "types are")} cached.`, {text: "Clear the filter", run: () => {this.search.value = ""; this.ask({search: "", state: ""});}}) : notice("No types are cached yet", "They appear here as soon as crdcache finds them."));
  }

  /** grouped adds a row for each API group, and one for its types without objects. Fold rows keep their identity while they are unchanged. */
  grouped(found) {
    const rows = [], before = this.folds ?? new Map();
    this.folds = new Map();
    const fold = (row) => {
      const key = JSON.stringify(row), kept = before.get(key) ?? row;
      this.folds.set(key, kept);
      rows.push(kept);
      return row.open;
    };
    for (let from = 0, to; from < found.length; from = to) {
      const {group} = found[from];
      for (to = from; to < found.length && found[to].group === group; to++);
      const own = found.slice(from, to), full = own.filter((row) => this.health.objects(row) || troubled(row)), empty = own.filter((row) => !full.includes(row));
      const objects = full.reduce((n, row) => n + this.health.objects(row), 0);
      if (!fold({fold: `group ${group}`, style: "group", text: group || "core", note: `${plural(own.length, "type")}, ${plural(objects, "object")}`, open: !this.folded.has(`group ${group}`)})) continue;
      rows.push(...full);
      if (empty.length && fold({fold: group || "core", style: "fold", empty: true, text: `${number(empty.length)} without objects${namespace.value ? ` in ${namespace.value}` : ""}`, note: empty.slice(0, 4).map((row) => row.resource).join(", ") + (empty.length > 4 ? ", …" : ""), open: this.unfolded.has(group || "core")})) rows.push(...empty);
    }
    return rows;
  }

  summarize(all) {
    const sum = (of) => all.reduce((n, row) => n + of(row), 0), size = sum((row) => row.bytes);
    const missing = unknown(all), objects = sum((row) => this.health.objects(row));
    fill(this.figures, figure(number(all.length), "types"), missing ? quiet(missing) : null, missing && !objects ? null : [figure(number(objects), "objects"), figure(bytes(size), "", `${number(size)} bytes`), figure(rate(sum((row) => row.rate)) || "0", "changes/s")]);
    const withheld = all.filter((row) => row.state === "Withheld");
    this.withheld.hidden = !withheld.length;
    fill(this.withheld, withheld.length ? `You cannot see ${plural(withheld.length, "type")}: ${withheld[0].message}` : "");
    const focused = document.activeElement?.dataset?.state;
    fill(this.chips, states.map((name) => {
      const n = all.filter((row) => row.state === name).length;
      if (!n && this.parameters.state !== name) return null;
      return h("button.chip", {"data-state": name, "aria-pressed": String(this.parameters.state === name), title: plural(n, "type"), onclick: () => this.ask({state: this.parameters.state === name ? "" : name})}, `${name} ${number(n)}`);
    }));
    if (focused) this.chips.querySelector(`[data-state=${focused}]`)?.focus();
  }
}
