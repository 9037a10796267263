import {objectLink} from "../app/router.js";
import {get, reason} from "../data/api.js";
import {h, fill, quiet} from "./dom.js";
import {skeleton} from "./notice.js";
import {number} from "./format.js";

/** Dangling lists the dangling references of a type. */
export class Dangling {
  constructor(type) {
    this.type = type;
    this.body = h("div", skeleton(2));
    this.element = h("section.card", {"aria-label": "Dangling references"}, h("h2", "Dangling references"), this.body);
  }

  async update() {
    try {
      const {references, more = 0, unchecked = []} = await get("dangling", {type: this.type});
      fill(this.body,
        h("ul.plain-list", references.map((r) => h("li", h("a", {href: objectLink(this.type, r.key)}, r.key), ` ${r.name} → `, h("span.bad", r.to)))),
        references.length ? null : quiet("None"), more ? h("p.quiet", `and ${number(more)} more`) : null,
        unchecked.length ? h("details", h("summary.quiet", `${number(unchecked.length)} types could not be checked`), h("ul.plain-list", unchecked.map((text) => h("li", text)))) : null);
    } catch (error) {
      fill(this.body, quiet(reason(error)));
    }
  }
}
