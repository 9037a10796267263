import { h, fill, unique } from "./dom.js";

const rowHeight = 26, headHeight = 28;
// Browsers limit the height of elements to some ten million pixels. Above this limit, scrolling skips rows.
const maxHeight = 8_000_000;

/**
 * Column is { name, minWidth, grow?, number?, sort?, title? }: minWidth is in rem, grow is the share of the remaining width.
 * Grid is a table of any number of rows. Only rows in view have elements. Its source has
 *   cells(i): the cells of row i, texts or elements; null if they are not loaded
 *   href(i): the link of row i
 *   need(from, to): called with the rows in view
 *   marked(i): a class for row i, or ""
 */
export class Grid {
  constructor(label, source, onSort) {
    this.source = source;
    this.onSort = onSort;
    this.total = 0;
    this.active = 0;
    this.rows = [];
    this.id = unique("grid");
    this.head = h("div.grid-head", { role: "row", "aria-rowindex": 1 });
    this.body = h("div.grid-body", { role: "rowgroup" });
    this.empty = h("div.grid-empty", { hidden: true });
    this.element = h("div.grid", { role: "grid", tabindex: 0, "aria-label": label, onkeydown: (e) => this.key(e) }, h("div.grid-top", { role: "rowgroup" }, this.head), this.empty, this.body);
    this.element.addEventListener("scroll", () => this.later(), { passive: true });
    new ResizeObserver(() => this.later()).observe(this.element);
  }

  /** columns sets the columns. */
  columns(columns, sorted) {
    this.shown = columns;
    this.element.style.setProperty("--columns", columns.map((c) => (c.grow ? `minmax(${c.minWidth}rem, ${c.grow}fr)` : `${c.minWidth}rem`)).join(" "));
    this.element.style.setProperty("--least", `${columns.reduce((sum, c) => sum + c.minWidth, 0)}rem`);
    this.element.setAttribute("aria-colcount", columns.length);
    const focused = [...this.head.children].findIndex((cell) => cell.contains(document.activeElement));
    fill(this.head, columns.map((c) => h("div", {
      role: "columnheader", class: c.number ? "number" : "", title: c.title,
      "aria-sort": c.sort && sorted?.by === c.sort ? (sorted.descending ? "descending" : "ascending") : c.sort ? "none" : undefined,
    }, c.sort ? h("button", { type: "button", tabindex: 0, onclick: () => this.onSort(c.sort) }, c.name) : h("span", {}, c.name))));
    if (focused >= 0) this.head.children[focused]?.querySelector("button")?.focus();
    for (const row of this.rows) row.remove();
    this.rows = [];
    this.draw();
  }

  /** resize sets the number of rows, and the text to show if there are none. */
  resize(total, why = "") {
    this.total = total;
    this.active = Math.max(0, Math.min(this.active, total - 1));
    this.element.setAttribute("aria-rowcount", total + 1);
    this.body.style.height = `${Math.min(total * rowHeight, maxHeight)}px`;
    this.empty.hidden = total > 0;
    this.empty.textContent = why;
    this.draw();
  }

  top() { this.element.scrollTop = 0; this.active = 0; }

  later() {
    if (this.asked) return;
    this.asked = requestAnimationFrame(() => { this.asked = 0; this.draw(); });
  }

  /** view returns the first row in view, as a fraction, and how many rows fit. */
  view() {
    const fits = Math.max(1, (this.element.clientHeight - headHeight) / rowHeight);
    const scrolls = Math.max(1, Math.min(this.total * rowHeight, maxHeight) - fits * rowHeight);
    const hidden = Math.max(0, this.total - fits);
    return { fits, scrolls, hidden, first: Math.min(hidden, (this.element.scrollTop / scrolls) * hidden) };
  }

  draw() {
    if (!this.shown) return;
    const { fits, first } = this.view();
    const from = Math.max(0, Math.floor(first) - 2), to = Math.min(this.total, Math.ceil(first + fits) + 2);
    while (this.rows.length < to - from) {
      const row = h("div.grid-row", { role: "row", onclick: (e) => this.click(e, row) });
      this.rows.push(row);
      this.body.append(row);
    }
    this.rows.forEach((row, slot) => this.place(row, from + slot, to, first));
    this.mark();
    this.source.need?.(from, to);
  }

  place(row, i, to, first) {
    row.hidden = i >= to;
    if (row.hidden) { row.index = -1; return; }
    row.index = i;
    row.id = `${this.id}-${i}`;
    row.setAttribute("aria-rowindex", i + 2);
    row.style.transform = `translateY(${Math.round(this.element.scrollTop + (i - first) * rowHeight)}px)`;
    const cells = this.source.cells(i) ?? this.shown.map((_, column) => (column ? "" : "…"));
    fill(row, cells.map((cell, column) => h("div", { role: "gridcell", class: this.shown[column]?.number ? "number" : "" }, cell)));
    row.className = `grid-row ${this.source.marked?.(i) ?? ""}`;
  }

  mark() {
    for (const row of this.rows) {
      const active = row.index === this.active && !row.hidden;
      row.classList.toggle("active", active);
      if (active) this.element.setAttribute("aria-activedescendant", row.id);
    }
  }

  click(event, row) {
    if (event.target.closest("a, button") || String(getSelection())) return;
    this.active = row.index;
    this.mark();
    this.open();
  }

  open() {
    const href = this.total && this.source.href(this.active);
    if (href) location.hash = href;
  }

  key(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.view().fits) - 1);
    const moves = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -this.total, End: this.total };
    if (event.key === "Enter") this.open();
    else if (event.key in moves) this.move(this.active + moves[event.key]);
    else return;
    event.preventDefault();
  }

  move(to) {
    this.active = Math.max(0, Math.min(this.total - 1, to));
    const { fits, first, scrolls, hidden } = this.view();
    if (hidden > 0) {
      if (this.active < first) this.element.scrollTop = (this.active / hidden) * scrolls;
      else if (this.active > first + fits - 1) this.element.scrollTop = (Math.min(hidden, this.active - fits + 1) / hidden) * scrolls;
    }
    this.draw();
  }
}
