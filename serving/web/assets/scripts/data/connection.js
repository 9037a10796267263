import {address, get} from "./api.js";

const silence = 15_000;
const overlap = 1000; // ms for which a replaced stream stays open
const pauses = [500, 1000, 2000, 4000, 8000];

/** Connection is an event stream of the server. It reconnects when it is lost. tell(message, ask) receives the messages. */
export class Connection {
  constructor(tell) {Object.assign(this, {tell, failures: 0, sent: new Set()});}

  /** ask opens a stream with other subscriptions. The previous stream stays open for a moment. Without a list, it closes the stream. */
  ask(asks) {
    clearTimeout(this.timer);
    if (!asks) {this.close(); return;}
    this.asks = asks;
    this.next?.close();
    const source = (this.next = new EventSource(address("stream", {ask: asks})));
    for (const name of ["types", "changes", "beat"]) source.addEventListener(name, ({data}) => this.hear(source, asks, name, JSON.parse(data)));
    const lost = () => {if (source === this.source || source === this.next) this.lost();};
    source.addEventListener("end", lost);
    source.onerror = lost;
    this.guard();
  }

  hear(source, asks, name, event) {
    if (source === this.next) this.replace();
    this.failures = 0;
    this.guard();
    if (name === "changes") {
      event.changes = event.changes.filter((change) => this.first(asks[event.ask], change));
      if (event.changes.length || event.skipped) this.tell({name, event}, asks[event.ask]);
    } else if (source === this.source) this.tell({name, event});
  }

  /** first reports whether a change is new: no other stream has delivered it. */
  first(ask, change) {
    if (!this.next && !this.before) return true;
    const text = JSON.stringify([ask, change]);
    return !this.sent.has(text) && this.sent.add(text);
  }

  replace() {
    this.before?.close();
    this.before = this.source;
    this.source = this.next;
    this.next = undefined;
    clearTimeout(this.overlapping);
    this.overlapping = setTimeout(() => {
      this.before?.close();
      this.before = undefined;
      this.sent.clear();
    }, overlap);
  }

  guard() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.lost(), silence);
  }

  async lost() {
    this.close();
    const pause = pauses[Math.min(this.failures++, pauses.length - 1)];
    const timer = (this.timer = setTimeout(() => this.ask(this.asks), pause));
    this.tell({state: {live: false, retry: Date.now() + pause}});
    try {
      await get("type", {type: "?"});
    } catch (error) {
      if (error.status !== 401 || timer !== this.timer) return; // no answer, or type not found
      clearTimeout(timer);
      this.tell({state: {live: false, refused: error.message}});
    }
  }

  close() {
    for (const source of [this.source, this.next, this.before]) source?.close();
    this.source = this.next = this.before = undefined;
    for (const timer of [this.timer, this.watchdog, this.overlapping]) clearTimeout(timer);
    this.timer = undefined;
  }
}
