import { h, fill } from "../parts/dom.js";
import { ago, clock } from "../parts/format.js";

const byId = (id) => document.getElementById(id);

/** Shell is the frame around the pages: the header, the state of the connection, and failed conditions. */
export class Shell {
  constructor(types, retry) {
    this.types = types;
    this.retry = retry;
    this.state = { live: false, since: 0 };
    this.main = byId("main");
    byId("help-open").addEventListener("click", () => byId("help").showModal());
    byId("skip").addEventListener("click", (event) => { event.preventDefault(); this.main.focus(); });
    types.listen(() => this.draw());
    setInterval(() => this.draw(), 1000);
  }

  /** show displays a page. */
  show(page, path, title) {
    this.page = title;
    fill(this.main, page);
    this.main.scrollTop = 0;
    for (const [id, own] of [["nav-types", path !== "/events"], ["nav-events", path === "/events"]]) {
      if (own) byId(id).setAttribute("aria-current", "page"); else byId(id).removeAttribute("aria-current");
    }
    this.draw();
  }

  connection(state) {
    this.state = state;
    this.draw();
  }

  draw() {
    const { live, since, retry, refused } = this.state;
    const troubled = [...this.types.rows.values()].filter((row) => row.state === "Degraded" || row.state === "Gone" || row.stale).length;
    document.title = `${live ? "" : "(lost) "}${troubled ? `▲${troubled} ` : ""}${this.page ?? "crdcache"}`;
    byId("title").textContent = this.types.title ?? "";
    this.about(this.types.notice ?? "");
    this.say(byId("connection"), live ? "Live" : since ? "Connection lost" : "Connecting", live ? "connection live" : since || refused ? "connection lost" : "connection");
    this.alarm(live, since, retry, refused);
  }

  about(text) {
    const notice = byId("notice");
    if (notice.textContent !== text) notice.textContent = text;
    notice.hidden = !text;
  }

  say(element, text, name) {
    if (element.textContent !== text) element.textContent = text; // screen readers announce every assignment
    element.className = name;
  }

  alarm(live, since, retry, refused) {
    const banner = byId("banner");
    const wrong = this.types.conditions.filter((c) => c.status === "False" && c.type !== "Ready");
    const key = refused ?? (live ? wrong.map((c) => c.type + c.message).join() : since ? "lost" : "");
    banner.hidden = !key;
    if (key !== this.alarmed) {
      this.alarmed = key;
      this.left = h("span.quiet", { "aria-hidden": "true" });
      if (refused) fill(banner, refused);
      else if (live) fill(banner, wrong.map((c) => h("div", {}, `${c.type}: no (${c.reason || "unknown reason"}) since ${clock(c.since)}. ${c.message ?? ""}`)));
      else if (key) fill(banner, `crdcache does not answer. The page shows the state at ${clock(since)}. `, this.left, h("button", { type: "button", onclick: this.retry }, "Try now"));
    }
    if (key === "lost") this.left.textContent = `Lost ${ago(since)} ago; retrying${retry > Date.now() ? ` in ${Math.ceil((retry - Date.now()) / 1000)}s` : ""}.`;
  }
}
