import {h, fill, plain, quiet} from "../parts/dom.js";
import {ago, clock, moment, number} from "../parts/format.js";
import {troubled} from "../parts/state.js";
import {clusterLink, namespace, typeLink} from "./router.js";
import {saved, forget, onsaved} from "./saved.js";

const byId = (id) => document.getElementById(id);

/** Shell is the frame around the pages: navigation, connection, failed conditions. */
export class Shell {
  constructor(types, retry) {
    Object.assign(this, {types, retry, state: {live: false, since: 0}, main: byId("main"), counts: new Map()});
    byId("help-open").addEventListener("click", () => byId("help").showModal());
    byId("theme").addEventListener("click", () => this.theme(true));
    byId("menu").addEventListener("click", () => this.menu(!document.body.classList.contains("menu-open")));
    byId("skip").addEventListener("click", (event) => {event.preventDefault(); this.main.focus();});
    document.addEventListener("click", ({target}) => {if (!target.closest("#nav, #menu")) this.menu(false);});
    document.addEventListener("keydown", ({key}) => {if (key === "Escape") this.menu(false);});
    types.listen(() => {this.draw(); this.tree();});
    setInterval(() => this.draw(), 1000);
    onsaved(() => this.saved());
    this.theme();
    this.saved();
  }

  theme(next) {
    const theme = next ? window.nextTheme() : window.currentTheme();
    byId("theme").textContent = {dark: "●", light: "○"}[theme] ?? "◐";
    byId("theme").title = `Theme: ${theme || "that of the system"} (d)`;
    byId("theme").setAttribute("aria-label", byId("theme").title);
  }

  menu(open) {
    if (!open && document.body.classList.contains("menu-open") && byId("nav").contains(document.activeElement)) byId("menu").focus();
    document.body.classList.toggle("menu-open", open);
    byId("menu").setAttribute("aria-expanded", String(open));
    if (open) byId("nav").querySelector("a, button").focus();
  }

  /** moved shows a new location in the navigation. */
  moved(path, parameters) {
    this.menu(false);
    this.type = parameters.id ?? parameters.type;
    const name = namespace.value;
    fill(byId("namespace"), name || "All namespaces");
    byId("namespace").classList.toggle("selected", !!name);
    const own = path === "/events" ? "/changes" : path;
    for (const each of document.querySelectorAll("[data-page]")) current(each, each.dataset.page === own);
    this.saved();
    this.tree();
  }

  show(page, title) {
    fill(this.main, page);
    this.named(title);
  }

  named(title) {
    this.page = title;
    this.draw();
  }

  connection(state) {
    this.state = state;
    this.draw();
  }

  saved() {
    const all = saved();
    fill(byId("saved"), all.length ? [h("h2.label", "Saved queries"), h("ul.list", all.map((each) => h("li", {},
      h("a", {href: each.hash, title: each.name, "aria-current": each.hash === location.hash ? "page" : undefined}, each.name),
      h("button.plain", {"aria-label": `Delete the saved query ${each.name}`, title: "Delete", onclick: () => forget(each.hash)}, "×"))))] : null);
  }

  /** tree lists the types with objects by API group. Elements are replaced only if types come or go. */
  tree() {
    const shown = [...this.types.rows.values()].filter((row) => row.objects || troubled(row)).sort((a, b) => (a.group < b.group ? -1 : a.group > b.group ? 1 : a.resource < b.resource ? -1 : 1));
    const ids = shown.map((row) => row.id).join(" ");
    if (ids !== this.ids) {
      this.ids = ids;
      this.counts.clear();
      const groups = new Map(shown.map((row) => [row.group, shown.filter((other) => other.group === row.group)]));
      fill(byId("tree"), shown.length ? h("h2.label", "Types with objects") : null, [...groups].map(([group, rows]) => h("details", {open: true}, h("summary", {title: group || "the core API group"}, group || "core"), h("ul.list", rows.map((row) => this.leaf(row))))));
    }
    for (const row of shown) {
      const {link, count, sign} = this.counts.get(row.id), text = number(row.objects);
      if (count.textContent !== text) count.textContent = text;
      sign.hidden = !troubled(row);
      current(link, row.id === this.type);
    }
  }

  leaf(row) {
    const count = h("span.count"), sign = h("span.bad", {title: "This type has a problem"}, "▲ ");
    const link = h("a", {href: typeLink(row.id), title: row.id}, sign, h("span.name", row.resource, row.view ? quiet(` ${row.view}`) : null), count);
    this.counts.set(row.id, {link, count, sign});
    return h("li", link);
  }

  draw() {
    const {live, since, retry, refused} = this.state;
    const bad = [...this.types.rows.values()].filter(troubled).length;
    document.title = plain(`${live ? "" : "(lost) "}${bad ? `▲${bad} ` : ""}${this.page ?? "crdcache"}`);
    this.cluster();
    set(byId("notice"), this.types.notice ?? "");
    byId("notice").hidden = !this.types.notice;
    const element = byId("connection");
    set(element, live ? "Live" : since ? "Connection lost" : "Connecting");
    element.className = live ? "connection live" : since || refused ? "connection lost" : "connection";
    this.alarm(live, since, retry, refused);
  }

  /** cluster shows the name of the cluster, and with several a choice that opens this page for another one. */
  cluster() {
    const {title, clusters = []} = this.types;
    if (clusters.length < 2) return set(byId("title"), title || "cluster");
    if (this.clusters === clusters) return undefined;
    this.clusters = clusters;
    return fill(byId("title"), h("select.switch", {id: "cluster", "aria-label": "Cluster", autocomplete: "off", onchange: ({target}) => location.assign(clusterLink(target.value))}, clusters.map(({title: name, problem}) => h("option", {value: name, selected: name === title, title: problem?.message}, problem ? `▲ ${name}: ${problem.reason} since ${clock(problem.since)}` : name))));
  }

  alarm(live, since, retry, refused) {
    const banner = byId("banner");
    const wrong = this.types.conditions.filter((c) => c.status === "False" && c.type !== "Ready");
    const key = refused ?? (live ? wrong.map((c) => c.type + c.message).join() : since ? "lost" : "");
    banner.hidden = !key;
    if (key !== this.alarmed) {
      this.alarmed = key;
      this.left = h("span.quiet", {"aria-hidden": "true"});
      if (refused) fill(banner, refused);
      else if (live) fill(banner, wrong.map((c) => h("div", `${c.type}: no (${c.reason || "unknown reason"}) since ${clock(c.since)}. ${c.message ?? ""}`)));
      else if (key) fill(banner, `crdcache does not answer. The page shows the state at ${clock(since)}. `, this.left, h("button", {onclick: this.retry}, "Try now"));
    }
    if (key === "lost") this.left.textContent = `Lost ${ago(since)} ago; retrying${retry > Date.now() ? ` in ${Math.ceil((retry - Date.now()) / 1000)}s` : ""}.`;
  }
}

// Screen readers announce every assignment.
function set(element, text) {
  if (element.shown === text) return;
  element.shown = text;
  fill(element, text);
}

function current(link, isCurrent) {
  if (isCurrent) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
}

