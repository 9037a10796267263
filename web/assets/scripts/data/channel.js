const patience = 100; // ms in which tabs answer
const many = 8; // tabs, from which on those that have crashed are looked for

/**
 * Channel connects the visible tabs of a browser. One of them leads: it holds a lock, and hands what the others ask to
 * onasks(asks), a list of texts, or undefined when it leads no longer. What the leader tells, onmessage gets in each tab that
 * it is for. Without locks, which pages over plain HTTP lack, each tab leads itself.
 */
export class Channel {
  constructor(onasks, onmessage) {
    // Pages of other namespaces show other objects.
    Object.assign(this, { onasks, onmessage, tab: Math.random().toString(36), name: `crdcache ${new URL(".", location).pathname}` });
    if (!navigator.locks) return;
    this.others = new BroadcastChannel(this.name);
    this.others.addEventListener("message", ({ data }) => this.take(data));
  }

  /** ask says what this tab asks, and joins the others. */
  ask({ changes, ...parameters }) {
    const given = Object.entries(parameters).filter(([, value]) => value);
    this.own = changes ? new URLSearchParams(given).toString() : null; // null: no changes
    if (!this.joined) this.elect((this.joined = new AbortController()));
    this.send({ tab: this.tab, ask: this.own });
  }

  leave() {
    if (!this.joined) return;
    this.joined.abort();
    this.joined = undefined;
    if (this.asks) this.onasks(undefined);
    this.asks = undefined;
    clearTimeout(this.timer);
    this.others?.postMessage({ tab: this.tab, left: true });
  }

  retry() { this.send({ retry: true }); }

  /** tell sends a message of the leader to the tabs that ask for something, or to all. */
  tell(message, ask) {
    this.others?.postMessage({ message, ask });
    this.receive(message, ask);
  }

  // A lock that is held is let go of when the promise resolves; one that is waited for, by the signal.
  elect(joined) {
    const lead = () => {
      if (joined.signal.aborted) return undefined;
      this.tell({ gap: true });
      this.gather();
      return new Promise((resolve) => joined.signal.addEventListener("abort", resolve));
    };
    if (this.others) navigator.locks.request(this.name, { signal: joined.signal }, lead).catch(() => {}); else lead();
  }

  gather() {
    this.asks = new Map([[this.tab, this.own]]);
    this.others?.postMessage({ gather: true });
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.onasks([...new Set(this.asks.values())].filter((ask) => ask !== null)), patience);
  }

  send(message) {
    this.others?.postMessage(message);
    this.take(message);
  }

  take({ tab, ask, left, gather, retry, message }) {
    if (message) this.receive(message, ask);
    else if (gather && this.joined) this.others.postMessage({ tab: this.tab, ask: this.own });
    else if (retry && this.asks) this.later();
    else if (left) this.asks?.delete(tab);
    else if (tab && this.asks && this.asks.get(tab) !== ask) {
      if (!this.asks.has(tab) && this.asks.size >= many) this.gather();
      this.asks.set(tab, ask);
      this.later();
    }
  }

  receive(message, ask) { if (this.joined && (ask === undefined || ask === this.own)) this.onmessage(message); }
}
