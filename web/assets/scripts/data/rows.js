import { get } from "./api.js";

const size = 200; // rows of a page: as many as the server gives at once
const most = 20; // pages that are kept, those that were in view last
const atOnce = 2; // requests

/**
 * Rows are those of a result, of which only what is in view is asked for. What has left the view before its turn came is
 * not asked for, so that a drag through all rows costs no more than where it ends.
 */
export class Rows {
  constructor(type, onrows, onforgotten) {
    Object.assign(this, { type, onrows, onforgotten, pages: new Map(), wanted: [], loading: new Set(), table: undefined });
  }

  /** show changes to the result of a question. What is known of the one before is shown until rows of the new one come. */
  show(table, question) {
    Object.assign(this, { table, question });
    this.stale = this.pages;
    this.pages = new Map();
    this.wanted = [];
    this.loading = new Set();
  }

  /** at returns row i, or undefined while it is not known. */
  at(i) {
    const number = Math.floor(i / size);
    return (this.pages.get(number) ?? this.stale?.get(number))?.[i % size];
  }

  /** need says which rows are in view; what is missing of them is asked for. */
  need(from, to) {
    this.wanted = [];
    for (let page = Math.floor(from / size); page * size < to; page++) {
      const rows = this.pages.get(page);
      if (!rows) { this.wanted.push(page); continue; }
      this.pages.delete(page); // and set anew: the first in a Map is what was in view longest ago
      this.pages.set(page, rows);
    }
    this.next();
  }

  next() {
    while (this.table && this.loading.size < atOnce) {
      const page = this.wanted.find((number) => !this.loading.has(number));
      if (page === undefined) return;
      this.load(page);
    }
  }

  async load(page) {
    const { table, question, pages, loading } = this;
    loading.add(page);
    this.wanted = this.wanted.filter((number) => number !== page); // one that fails is asked for when it is drawn again
    let rows;
    try {
      ({ rows } = await get("rows", { ...question, type: this.type, table, from: String(page * size) }));
    } catch (error) {
      if (error.status === 410 && pages === this.pages) { this.onforgotten(); return; }
    }
    loading.delete(page);
    if (pages !== this.pages) return;
    if (rows) {
      pages.set(page, rows);
      if (pages.size > most) pages.delete(pages.keys().next().value);
      this.onrows();
    }
    this.next();
  }
}
