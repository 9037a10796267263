import { get } from "./api.js";

const size = 100, most = 40;

/** Rows are those of a result, of which only pages in view are asked for; the latest are kept. */
export class Rows {
  constructor(type, onrows, onforgotten) {
    Object.assign(this, { type, onrows, onforgotten, pages: new Map(), table: undefined });
  }

  /** show changes to another result. What is known of the one before is shown until rows of the new one come. */
  show(table) {
    this.table = table;
    this.stale = this.pages;
    this.pages = new Map();
  }

  /** at returns row i, or undefined while it is not known. */
  at(i) {
    const number = Math.floor(i / size);
    return (this.pages.get(number)?.rows ?? this.stale?.get(number)?.rows)?.[i % size];
  }

  /** need asks for what is missing of some rows. */
  need(from, to) {
    if (!this.table) return;
    for (let page = Math.floor(from / size); page * size < to; page++) if (!this.pages.has(page)) this.load(page);
  }

  async load(page) {
    const { table, pages } = this;
    const entry = { rows: undefined };
    pages.set(page, entry);
    if (pages.size > most) pages.delete(pages.keys().next().value);
    try {
      entry.rows = (await get("rows", { type: this.type, table, from: String(page * size) })).rows.slice(0, size);
    } catch (error) {
      pages.delete(page);
      if (error.status === 410 && pages === this.pages) this.onforgotten();
      return;
    }
    if (pages === this.pages) this.onrows();
  }
}
