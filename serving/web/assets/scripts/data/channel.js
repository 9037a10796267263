const answerTimeout = 100; // ms to wait for answers of other tabs
const checkedTabs = 8; // number of tabs from which each new tab causes a check for crashed tabs

/**
 * Channel connects the visible tabs of a browser. One tab is the leader: it holds a lock, and calls onasks(asks) with the
 * subscriptions of all tabs, or with undefined when it is no longer the leader. The leader's messages reach onmessage in each
 * subscribed tab. Pages over plain HTTP have no locks; there each tab is its own leader.
 */
export class Channel {
  constructor(onasks, onmessage) {
    // Pages with other namespaces show other objects.
    Object.assign(this, {onasks, onmessage, tab: Math.random().toString(36), name: `crdcache ${new URL(".", location).pathname}`});
    if (!navigator.locks) return;
    this.others = new BroadcastChannel(this.name);
    this.others.addEventListener("message", ({data}) => this.take(data));
  }

  /** ask sets the subscription of this tab, and joins the other tabs. */
  ask({changes, ...parameters}) {
    const given = Object.entries(parameters).filter(([, value]) => value);
    this.own = changes ? new URLSearchParams(given).toString() : null; // null: no changes
    if (!this.joined) this.elect((this.joined = new AbortController()));
    this.send({tab: this.tab, ask: this.own});
  }

  leave() {
    if (!this.joined) return;
    this.joined.abort();
    this.joined = undefined;
    if (this.asks) this.onasks(undefined);
    this.asks = undefined;
    clearTimeout(this.timer);
    this.others?.postMessage({tab: this.tab, left: true});
  }

  retry() {this.send({retry: true});}

  /** tell sends a message of the leader to the tabs with a subscription, or to all. */
  tell(message, ask) {
    this.others?.postMessage({message, ask});
    this.receive(message, ask);
  }

  // A held lock is released when the promise resolves; a pending request is aborted by the signal.
  elect(joined) {
    const lead = () => {
      if (joined.signal.aborted) return undefined;
      this.tell({gap: true});
      this.gather();
      return new Promise((resolve) => joined.signal.addEventListener("abort", resolve));
    };
    if (this.others) navigator.locks.request(this.name, {signal: joined.signal}, lead).catch(() => {}); else lead();
  }

  gather() {
    this.asks = new Map([[this.tab, this.own]]);
    this.others?.postMessage({gather: true});
    this.later();
  }

  later() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.onasks([...new Set(this.asks.values())].filter((ask) => ask !== null)), answerTimeout);
  }

  send(message) {
    this.others?.postMessage(message);
    this.take(message);
  }

  take({tab, ask, left, gather, retry, message}) {
    if (message) this.receive(message, ask);
    else if (gather && this.joined) this.others.postMessage({tab: this.tab, ask: this.own});
    else if (retry && this.asks) this.later();
    else if (left) this.asks?.delete(tab);
    else if (tab && this.asks && this.asks.get(tab) !== ask) {
      if (!this.asks.has(tab) && this.asks.size >= checkedTabs) this.gather();
      this.asks.set(tab, ask);
      this.later();
    }
  }

  receive(message, ask) {if (this.joined && (ask === undefined || ask === this.own)) this.onmessage(message);}
}
