import {h, fill, unique} from "./dom.js";

const headHeight = 32;
const spare = 4; // rows with elements above and below the view
// Browsers limit the height of elements to some ten million pixels. Above this limit, scrolling skips rows.
const maxHeight = 8_000_000;

/**
 * Column is { name, minWidth, grow?, number?, sort?, title? }: minWidth is in rem, grow is the share of the remaining width.
 * Grid is a table of any number of rows. Only rows in view have elements, and scrolling replaces only those that enter the
 * view. Its source has
 *   row(i): the data of row i, undefined if it is not loaded; other data is drawn again
 *   cells(row, i): the cells of a row, texts or elements
 *   href(row, i): the link of a row
 *   need(from, to): called with the rows in view, optional
 *   marked(row, i): a class for a row, or "", optional
 *   act(row, i): opens a row that is no link, optional
 */
export class Grid {
  constructor(label, source, onSort) {
    Object.assign(this, {source, onSort, total: 0, active: 0, rows: [], version: 0, id: unique("grid"), rowHeight: 32});
    this.head = h("div.grid-head", {role: "row", "aria-rowindex": 1});
    this.body = h("div.grid-body", {role: "rowgroup"});
    this.empty = h("div.grid-empty", {hidden: true});
    this.element = h("div.grid", {role: "grid", tabindex: 0, "aria-label": label, onkeydown: (e) => this.key(e)}, h("div.grid-top", {role: "rowgroup"}, this.head), this.empty, this.body);
    this.element.addEventListener("scroll", () => this.later(), {passive: true});
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
      role: "columnheader", class: c.number ? "number" : "", title: c.title ?? c.name,
      "aria-sort": c.sort && sorted?.by === c.sort ? (sorted.descending ? "descending" : "ascending") : c.sort ? "none" : undefined,
    }, c.sort ? h("button", {tabindex: 0, onclick: () => this.onSort(c.sort)}, c.name) : h("span", c.name))));
    if (focused >= 0) this.head.children[focused]?.querySelector("button")?.focus();
    this.refresh();
  }

  /** resize sets the number of rows, and what to show if there are none. */
  resize(total, why) {
    this.total = total;
    this.active = Math.max(0, Math.min(this.active, total - 1));
    this.element.setAttribute("aria-rowcount", total + 1);
    this.body.style.height = `${Math.min(total * this.rowHeight, maxHeight)}px`;
    this.empty.hidden = total > 0;
    if (!total && why !== undefined) fill(this.empty, why);
    if (this.wanted && total) {
      const {top, left, active} = this.wanted;
      this.wanted = undefined;
      this.active = Math.min(active, total - 1);
      this.element.scrollTo({top, left, behavior: "instant"});
    }
    this.draw();
  }

  /** refresh draws all rows in view again. */
  refresh() {
    this.version++;
    this.draw();
  }

  top() {this.element.scrollTop = 0; this.active = 0; this.wanted = undefined;}

  get position() {return this.wanted ?? {top: this.element.scrollTop, left: this.element.scrollLeft, active: this.active};}

  /** restore returns to a position once there are rows. */
  set position(position) {this.wanted = position;}

  later() {this.asked ||= requestAnimationFrame(() => {this.asked = 0; this.draw();});}

  /** view returns the first row in view, as a fraction, and how many rows fit. */
  view() {
    const fits = Math.max(1, (this.element.clientHeight - headHeight) / this.rowHeight);
    const scrolls = Math.max(1, Math.min(this.total * this.rowHeight, maxHeight) - fits * this.rowHeight);
    const hidden = Math.max(0, this.total - fits);
    return {fits, scrolls, hidden, first: Math.min(hidden, (this.element.scrollTop / scrolls) * hidden)};
  }

  draw() {
    if (!this.shown) return;
    const {fits, first} = this.view();
    const from = Math.max(0, Math.floor(first) - spare), to = Math.min(this.total, Math.ceil(first + fits) + spare);
    while (this.rows.length < Math.ceil(fits) + 1 + 2 * spare) {
      const row = h("div.grid-row", {role: "row", hidden: true, onclick: (e) => this.click(e)});
      this.rows.push(row);
      this.body.append(row);
    }
    const n = this.rows.length, scaled = this.total * this.rowHeight > maxHeight;
    // Row i always has element i modulo n, so that a row keeps its element while others come and go.
    for (let slot = 0; slot < n; slot++) {
      const i = from + ((slot - (from % n)) + n) % n;
      this.place(this.rows[slot], i, i < to, scaled ? this.element.scrollTop + (i - first) * this.rowHeight : i * this.rowHeight);
    }
    this.source.need?.(from, to);
  }

  place(row, i, inView, top) {
    if (row.hidden === inView) row.hidden = !inView;
    if (!inView) {row.index = -1; return;}
    if (row.top !== top) row.style.transform = `translateY(${(row.top = Math.round(top))}px)`;
    const data = this.source.row(i), active = i === this.active;
    if (row.index !== i || row.data !== data || row.version !== this.version) {
      row.setAttribute("aria-rowindex", i + 2);
      row.id = `${this.id}-${i}`;
      Object.assign(row, {index: i, data, version: this.version, drawnActive: undefined});
      fill(row, data === undefined ? this.shown.map(() => h("div", {role: "gridcell"}, h("span.skeleton"))) : this.source.cells(data, i).map((cell, column) => this.cell(cell, column)));
    }
    if (row.drawnActive === active) return;
    row.drawnActive = active;
    row.className = `grid-row ${(data !== undefined && this.source.marked?.(data, i)) || ""}${active ? " active" : ""}`;
    row.setAttribute("aria-selected", String(active));
    if (active) this.element.setAttribute("aria-activedescendant", row.id);
  }

  cell(cell, column) {return h("div", {role: "gridcell", dir: "auto", class: this.shown[column]?.number ? "number" : "", title: typeof cell === "string" ? cell : cell?.title ? undefined : cell?.textContent}, cell);}

  click(event) {
    const row = event.currentTarget;
    this.active = row.index;
    this.draw();
    if (event.target.closest("a, button") || String(getSelection())) return;
    this.open();
  }

  open() {
    const data = this.total ? this.source.row(this.active) : undefined;
    if (data === undefined || this.source.act?.(data, this.active)) return;
    const href = this.source.href(data, this.active);
    if (href) location.hash = href;
  }

  key(event) {
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.view().fits) - 1);
    const moves = {ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: page, PageUp: -page, Home: -this.total, End: this.total};
    if (event.key === "Enter") this.open();
    else if (event.key in moves) this.move(this.active + moves[event.key]);
    else return;
    event.preventDefault();
  }

  move(to) {
    this.active = Math.max(0, Math.min(this.total - 1, to));
    const {fits, first, scrolls, hidden} = this.view();
    if (hidden > 0) {
      if (this.active < first) this.element.scrollTop = (this.active / hidden) * scrolls;
      else if (this.active > first + fits - 1) this.element.scrollTop = (Math.min(hidden, this.active - fits + 1) / hidden) * scrolls;
    }
    this.draw();
  }
}
