const buckets = 60;

/** Types has the last known state of the server's types, with their changes in the last ten minutes. */
export class Types {
  constructor() {
    this.rows = new Map();
    this.conditions = [];
    this.listeners = new Set();
  }

  /** update applies a "types" event. */
  update(event) {
    const shift = Math.max(0, Math.min(buckets, event.bucket - (this.bucket ?? event.bucket)));
    this.bucket = event.bucket;
    if (event.all) {
      const now = new Set((event.rows ?? []).map((row) => row.id));
      for (const id of this.rows.keys()) if (!now.has(id)) this.rows.delete(id);
    }
    if (shift > 0) for (const row of this.rows.values()) row.changes = [...row.changes, ...Array(shift).fill(0)].slice(-buckets);
    for (const row of event.rows ?? []) {
      const before = this.rows.get(row.id);
      row.changes ??= event.all || !before ? [0] : before.changes;
      if (before && !event.all) row.changes[row.changes.length - 1] += Math.max(0, row.changed - before.changed);
      this.rows.set(row.id, row);
    }
    for (const id of event.gone ?? []) this.rows.delete(id);
    this.title = event.title;
    this.clusters = event.clusters ?? this.clusters ?? [];
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

/** recent returns the number of changes of a type in the last ten minutes. */
export const recent = (row) => row.changes.reduce((sum, n) => sum + n, 0);
