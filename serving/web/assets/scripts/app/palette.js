import {Latest, reason} from "../data/api.js";
import {h, fill, quiet} from "../parts/dom.js";
import {number, plural} from "../parts/format.js";
import {namespace, objectLink, typeLink} from "./router.js";
import {saved} from "./saved.js";

const pause = 120; // ms after a key before the server searches

/** Palette is a dialog with a text field and a list: the search, or the choice of a namespace. */
export class Palette {
  constructor(types, health) {
    Object.assign(this, {types, health, requests: new Latest(), items: [], chosen: 0});
    this.input = h("input", {type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", oninput: () => this.typed(), onkeydown: (event) => this.key(event)});
    this.list = h("div.palette-list", {id: "palette-list", role: "listbox", "aria-label": "Results"});
    this.note = h("p.palette-note", {role: "status"});
    this.dialog = h("dialog.palette", {"aria-label": "Search", onclose: () => this.closed(), onclick: (event) => {if (event.target === this.dialog) this.dialog.close();}}, this.input, this.list, this.note);
  }

  search() {this.open("Search", `Search names and values${namespace.value ? ` in ${namespace.value}` : " in all types"}`, () => this.everything());}

  namespaces() {this.open("Namespace", "Switch to a namespace", () => this.spaces());}

  open(label, placeholder, fillList) {
    this.fillList = fillList;
    this.dialog.setAttribute("aria-label", label);
    this.input.setAttribute("aria-label", label);
    this.input.placeholder = placeholder;
    this.input.value = "";
    this.all = false;
    document.body.append(this.dialog);
    this.dialog.showModal();
    this.typed();
  }

  closed() {
    this.dialog.remove();
    clearTimeout(this.timer);
    this.requests.stop();
  }

  get text() {return this.input.value.trim();}

  typed() {
    this.all = false;
    this.chosen = 0;
    this.fillList();
  }

  /** show lists sections: { title, items: [{ text, hint, count, href, run }] }. */
  show(sections, note = "") {
    this.items = sections.flatMap((section) => section.items);
    this.chosen = Math.min(this.chosen, Math.max(0, this.items.length - 1));
    let next = 0;
    fill(this.list, sections.filter((section) => section.items.length).map((section, i) => h("div", {role: "group", "aria-labelledby": `palette-${i}`}, h("div.label", {id: `palette-${i}`, role: "presentation"}, section.title), section.items.map((item) => this.option(item, next++)))));
    fill(this.note, note);
    this.mark();
  }

  option(item, i) {
    return h("div.option", {role: "option", id: `palette-item-${i}`, onclick: () => this.pick(i)}, h("span.text", h("bdi", item.text), item.detail ? h("span.detail", item.detail) : null), item.hint ? quiet(item.hint) : null, item.count !== undefined ? h("span.count", number(item.count)) : null);
  }

  mark() {
    const options = this.list.querySelectorAll("[role=option]");
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === this.chosen)));
    const chosen = options[this.chosen];
    if (chosen) this.input.setAttribute("aria-activedescendant", chosen.id); else this.input.removeAttribute("aria-activedescendant");
    chosen?.scrollIntoView({block: "nearest"});
  }

  key(event) {
    const n = this.items.length, step = {ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8}[event.key];
    if (step && n) {
      this.chosen = Math.abs(step) === 1 ? (this.chosen + step + n) % n : Math.max(0, Math.min(n - 1, this.chosen + step));
      this.mark();
    } else if (event.key === "Enter") this.enter();
    else return;
    event.preventDefault();
  }

  // The shown items can belong to an earlier text: then Enter waits for the answer.
  async enter() {
    await this.pending;
    if (this.items[this.chosen]) this.pick(this.chosen);
  }

  pick(i) {
    const {href, run} = this.items[i];
    if (run?.() === "stay") return;
    this.dialog.close();
    if (href) location.hash = href;
  }

  async spaces() {
    const draw = () => {
      const found = this.health.namespaces.filter((each) => each.name.includes(this.text.toLowerCase()));
      const all = {text: "All namespaces", hint: namespace.value ? "" : "selected", run: () => namespace.select("")};
      const items = found.map((each) => ({text: each.name, hint: each.name === namespace.value ? "selected" : "", count: each.objects, run: () => namespace.select(each.name)}));
      this.show([{title: "Namespaces", items: this.text ? items : [all, ...items]}], this.health.error ?? (this.health.known ? found.length ? "" : "No namespace with objects matches." : "Loading namespaces…"));
    };
    draw();
    if (!this.text) this.pending = this.health.update().then(() => {if (this.dialog.open) draw();});
    await this.pending;
  }

  local() {
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean), fits = (text) => words.every((word) => text.toLowerCase().includes(word));
    const pages = [["Overview", "#/", "g o"], ["Types", "#/types", "g t"], ["Changes", "#/changes", "g c"]].map(([text, href, hint]) => ({text, href, hint}));
    const types = [...this.types.rows.values()].filter((row) => row.state !== "Withheld" && fits(row.id)).sort((a, b) => b.resource.startsWith(words[0] ?? "") - a.resource.startsWith(words[0] ?? "") || !!b.objects - !!a.objects || (a.id < b.id ? -1 : 1));
    const limit = this.text ? 6 : 10;
    return [
      {title: "Saved queries", items: saved().filter((each) => fits(each.name)).map((each) => ({text: each.name, href: each.hash}))},
      {title: types.length > limit ? `Types (${number(types.length)})` : "Types", items: types.slice(0, limit).map((row) => ({text: row.resource, detail: row.group || "core", count: row.objects, href: typeLink(row.id)}))},
      {title: "Pages", items: pages.filter((each) => fits(each.text))},
    ];
  }

  everything() {
    clearTimeout(this.timer);
    this.requests.stop();
    if (!this.text) {this.pending = undefined; this.show(this.local()); return;}
    this.show(this.local(), "…");
    this.pending = new Promise((resolve) => {this.timer = setTimeout(() => this.remote().finally(resolve), this.all ? 0 : pause);});
  }

  async remote() {
    const {text, all} = this;
    let found;
    try {
      found = await this.requests.get("search", {text, all, namespace: namespace.value});
    } catch (error) {
      this.show(this.local(), reason(error));
      return;
    }
    if (!found || text !== this.text) return;
    const short = (type) => type.split(/[./]/, 1)[0];
    const left = found.contents.length < 20 && found.searched < found.objects;
    this.show([
      ...this.local().slice(0, 2),
      {title: found.moreNames ? `Names (${number(found.names.length + found.moreNames)})` : "Names", items: found.names.map((each) => ({text: each.key, hint: short(each.type), href: objectLink(each.type, each.key)}))},
      {title: "Indexed values", items: found.values.map((each) => ({text: each.text, detail: each.index, hint: short(each.type), count: each.count, href: typeLink(each.type, each.query)}))},
      {title: "Values in objects", items: [...found.contents.map((each) => ({text: each.text, detail: `${each.key} ${each.path}`, hint: short(each.type), href: objectLink(each.type, each.key)})),
        ...(left ? [{text: "Search the other objects", hint: `${number(found.objects - found.searched)} left`, run: () => {this.all = true; this.everything(); return "stay";}}] : [])]},
      ...this.local().slice(2),
    ], left ? `Searched the content of ${number(found.searched)} of ${plural(found.objects, "object")}.` : `${this.items.length || found.names.length + found.values.length + found.contents.length ? "Searched" : "Nothing matches in"} ${plural(found.objects, "object")}${namespace.value ? ` of ${namespace.value}` : ""}.`);
  }
}
