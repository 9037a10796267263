import {get} from "./api.js";

const pageSize = 200; // rows, the maximum of a response
const maxPages = 20; // cached pages, least recently viewed first
const maxRequests = 2; // concurrent requests

/**
 * Rows are the rows of a result. Only pages in view are requested. A page that leaves the view before its request is
 * skipped, so dragging the scrollbar through all rows loads only the last position.
 */
export class Rows {
  constructor(type, onrows, onforgotten) {
    Object.assign(this, {type, onrows, onforgotten, pages: new Map(), wanted: [], loading: new Set(), table: undefined});
  }

  /** show switches to the result of a query. Until its rows arrive, the previous rows are shown. */
  show(table, question) {
    Object.assign(this, {table, question});
    this.stale = this.pages;
    this.pages = new Map();
    this.wanted = [];
    this.loading = new Set();
  }

  /** at returns row i, or undefined if it is not loaded. */
  at(i) {
    const number = Math.floor(i / pageSize);
    return (this.pages.get(number) ?? this.stale?.get(number))?.[i % pageSize];
  }

  /** need sets the rows in view, and requests missing ones. */
  need(from, to) {
    this.wanted = [];
    for (let page = Math.floor(from / pageSize); page * pageSize < to; page++) {
      const rows = this.pages.get(page);
      if (!rows) {this.wanted.push(page); continue;}
      this.pages.delete(page); // and set again: the first entry of the Map is the least recently viewed
      this.pages.set(page, rows);
    }
    this.next();
  }

  next() {
    while (this.table && this.loading.size < maxRequests) {
      const page = this.wanted.find((number) => !this.loading.has(number));
      if (page === undefined) return;
      this.load(page);
    }
  }

  async load(page) {
    const {table, question, pages, loading} = this;
    loading.add(page);
    this.wanted = this.wanted.filter((number) => number !== page); // after a failure it is requested when drawn again
    let rows;
    try {
      ({rows} = await get("rows", {...question, type: this.type, table, from: String(page * pageSize)}));
    } catch (error) {
      if (error.status === 410 && pages === this.pages) {this.onforgotten(); return;}
    }
    loading.delete(page);
    if (pages !== this.pages) return;
    if (rows) {
      pages.set(page, rows);
      if (pages.size > maxPages) pages.delete(pages.keys().next().value);
      this.onrows();
    }
    this.next();
  }
}
