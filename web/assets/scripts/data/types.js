const points = 60;

/** Types has the last known state of the server's types. */
export class Types {
  constructor() {
    this.rows = new Map();
    this.conditions = [];
    this.listeners = new Set();
  }

  /** update applies a "types" event. */
  update(event) {
    if (event.all) {
      const now = new Set((event.rows ?? []).map((row) => row.id));
      for (const id of this.rows.keys()) if (!now.has(id)) this.rows.delete(id);
    }
    const told = new Set();
    for (const row of event.rows ?? []) {
      const before = this.rows.get(row.id);
      row.rates ??= before ? [...before.rates, row.rate].slice(-points) : [row.rate];
      this.rows.set(row.id, row);
      told.add(row.id);
    }
    if (!event.all) for (const row of this.rows.values()) if (!told.has(row.id)) { row.rates.push(0); if (row.rates.length > points) row.rates.shift(); }
    for (const id of event.gone ?? []) this.rows.delete(id);
    this.title = event.title;
    this.notice = event.notice;
    this.conditions = event.conditions ?? [];
    this.known = true;
    for (const listener of this.listeners) listener();
  }

  /** listen calls a function after each update. It returns a function that ends this. */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}
