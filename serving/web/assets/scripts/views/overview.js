import {link, namespace, typeLink} from "../app/router.js";
import {recent} from "../data/types.js";
import {h, fill, quiet} from "../parts/dom.js";
import {bytes, number, plural} from "../parts/format.js";
import {notice, skeleton} from "../parts/notice.js";
import {sparkline} from "../parts/sparkline.js";
import {health, isClosed, stateOf, troubled, unknown} from "../parts/state.js";

const most = 12; // rows of a section before "show all"

/** OverviewPage shows the health of everything at a glance. */
export class OverviewPage {
  constructor({types, health: counts, position}) {
    Object.assign(this, {types, counts, title: "Overview · crdcache", wanted: position?.scroll, all: new Set()});
    this.figures = h("div.tiles");
    this.attention = h("div", skeleton(3));
    this.conditions = h("div", skeleton(5));
    this.changed = h("div", skeleton(3));
    this.namespaces = h("div", skeleton(3));
    const card = (title, body) => h("section.card", {"aria-label": title}, h("h2", title), body);
    this.element = h("div.page.scrolls", {tabindex: 0, role: "region", "aria-label": "Overview"}, h("h1", "Overview"), this.figures,
      h("div.columns", h("div", card("Needs attention", this.attention), card("Changes in the last ten minutes", this.changed), card("Namespaces", this.namespaces)), card("Conditions", this.conditions)));
    this.forget = [types.listen(() => this.draw()), counts.listen(() => this.draw())];
    this.draw();
  }

  opened() {this.element.focus({preventScroll: true});}

  close() {for (const forget of this.forget) forget();}

  takes(path) {
    if (path !== "/") return false;
    this.counts.update(); // of another namespace
    return true;
  }

  get position() {return {scroll: this.element.scrollTop};}

  draw() {
    if (!this.types.known) return;
    const every = [...this.types.rows.values()], rows = every.filter((row) => !isClosed(row));
    this.unknown = unknown(every);
    const sum = (of) => rows.reduce((n, row) => n + of(row), 0);
    const full = rows.filter((row) => this.counts.objects(row)).length;
    const tile = (label, value, title, extra, known = !this.unknown) => h("div.tile", {title}, h("span.label", label), known || value.replace(/^0\b.*/, "") ? h("b", value) : h("b", h("span.skeleton")), known ? extra : quiet(this.unknown));
    const total = rows.reduce((all, {changes}) => all.map((n, i) => n + (changes[i - all.length + changes.length] ?? 0)), Array(60).fill(0));
    fill(this.figures, tile("Objects", number(sum((row) => this.counts.objects(row))), namespace.value ? `in ${namespace.value}` : "in all namespaces"),
      tile("Types with objects", number(full), `${number(rows.length - full)} types are empty`, quiet(`of ${number(rows.length)}`)),
      tile("Memory", bytes(sum((row) => row.bytes)), `${number(sum((row) => row.bytes))} bytes`),
      tile("Changes in ten minutes", number(sum(recent)), "of the types that you may list completely", sparkline(total), !this.unknown || sum(recent) > 0));
    this.section(this.changed, "changes", rows.filter(recent).sort((a, b) => recent(b) - recent(a)), (row) => h("li", typeName(row), sparkline(row.changes), h("span.count", number(recent(row)))), "No changes", "None in the last ten minutes.");
    if (!this.counts.known && !this.counts.error) return;
    this.health(rows);
    if (this.wanted) this.element.scrollTop = this.wanted;
    this.wanted = 0;
  }

  health(rows) {
    if (this.counts.error && !this.counts.known) {
      for (const body of [this.attention, this.conditions, this.namespaces]) fill(body, notice("The conditions are unknown", this.counts.error, {text: "Try again", run: () => this.counts.update()}));
      return;
    }
    const spaces = [...this.counts.namespaces].sort((a, b) => b.bytes - a.bytes || b.objects - a.objects);
    this.section(this.namespaces, "namespaces", spaces, (each) => h("li", h("a.name", {href: link("/", {ns: each.name})}, each.name), quiet(plural(each.objects, "object")), h("span.count", {title: `${number(each.bytes)} bytes of JSON`}, bytes(each.bytes))), "No namespaces", "No visible object has a namespace.");
    const all = rows.flatMap((row) => (this.counts.types.get(row.id)?.conditions ?? []).map((c) => ({row, ...c})));
    const bad = all.filter((each) => each.bad).sort((a, b) => b.bad - a.bad);
    const types = rows.filter(troubled);
    this.section(this.attention, "attention", [...types, ...bad], (each) => (each.query ? h("li", h("a", {href: typeLink(each.row.id, each.query)}, h("span.bad", `▲ ${number(each.bad)} `), each.row.resource), quiet(`${each.type} is ${each.badStatus}`))
      : h("li", typeName(each), stateOf(each))), "All is well", "No type or condition is bad.");
    all.sort((a, b) => b.bad - a.bad || (a.row.id < b.row.id ? -1 : 1));
    const dropped = rows.filter((row) => this.counts.types.get(row.id)?.dropped);
    if (dropped.length) all.push({dropped});
    this.section(this.conditions, "conditions", all, (each) => (each.dropped ? h("li.quiet", `Not cached: conditions of ${each.dropped.map((row) => row.resource).join(", ")}`) : this.condition(each)), "No conditions", "No visible object has conditions in its status.");
  }

  condition(each) {
    return h("li", typeName(each.row), quiet(each.type), bar(each), health(each));
  }

  section(body, name, rows, item, emptyTitle, emptyText) {
    if (body.contains(document.activeElement) && document.activeElement.matches("a, button")) return; // do not take the focus away
    const shown = this.all.has(name) ? rows : rows.slice(0, most);
    const none = this.unknown ? [skeleton(3), quiet(this.unknown)] : notice(emptyTitle, emptyText);
    fill(body, rows.length ? h(`ul.rows.${name}`, shown.map(item)) : none, rows.length > shown.length ? h("button.plain", {onclick: (event) => {this.all.add(name); event.currentTarget.blur(); this.draw();}}, `Show all ${plural(rows.length, "row")}`) : null);
  }
}

const typeName = (row) => h("a.name", {href: typeLink(row.id), title: row.id}, row.resource, row.group ? quiet(`.${row.group}`) : null);

function bar(each) {
  const total = Math.max(1, each.good + each.bad + each.open);
  return h("span.bar-line", {"aria-hidden": "true"}, ["bad", "open", "good"].map((tone) => {
    const part = h("span", {class: tone});
    part.style.width = `${each[tone] ? Math.max(2, (100 * each[tone]) / total) : 0}%`;
    return part;
  }));
}
