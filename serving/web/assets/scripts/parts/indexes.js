import {get, reason} from "../data/api.js";
import {h, fill, quiet} from "./dom.js";
import {number, plural} from "./format.js";
import {skeleton} from "./notice.js";

/** Indexes shows the indexes of a type with their most frequent values, which can be added to the query. */
export class Indexes {
  constructor(page, query, onpick) {
    Object.assign(this, {page, query, onpick});
    this.items = page.indexes.map((index, i) => this.item(index, i < 3));
    this.element = h("section.card", {"aria-label": "Indexes"}, h("h2", "Indexes"), this.items.map((item) => item.element));
  }

  item(index, open) {
    const notes = [index.parts?.join(" / "), index.types?.join(" / "), index.sorted && "sorted"].filter(Boolean).join(", ");
    const bars = h("ul.bars", h("li", skeleton(2)));
    const element = h("details.index", {open}, h("summary", {title: notes ? `${index.name}: ${notes}` : index.name}, index.name, notes ? quiet(` ${notes}`) : null), bars);
    const item = {index, element, bars};
    element.addEventListener("toggle", () => element.open && this.load(item));
    return item;
  }

  /** update counts the values again, among the results of the query. */
  update() {
    for (const item of this.items) if (item.element.open) this.load(item);
  }

  async load({index, bars}) {
    try {
      const {values, more = 0, rest = 0} = await get("values", {type: this.page.id, index: index.name, query: this.query()});
      const most = Math.max(1, ...values.map((v) => v.count));
      const focused = [...bars.children].findIndex((li) => li.contains(document.activeElement));
      fill(bars, values.map((value) => {
        const bar = h("span.fill");
        bar.style.width = `${(100 * value.count) / most}%`;
        return h("li", h("button", {title: `${value.text}: ${plural(value.count, "object")}; add to the query`, onclick: () => this.onpick(value.query)}, bar, h("bdi.name", value.text), h("span.count", number(value.count))));
      }), values.length ? null : h("li.quiet", "No values"), more ? h("li.quiet", `${number(more)} more values, ${number(rest)} times`) : null);
      bars.children[focused]?.querySelector("button")?.focus();
    } catch (error) {
      fill(bars, h("li.quiet", reason(error)));
    }
  }
}
