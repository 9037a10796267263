import {Channel} from "./channel.js";
import {Connection} from "./connection.js";

const silenceTimeout = 15_000; // ms without a message; the server sends a heartbeat every five seconds

/**
 * Stream receives the events of the server. All visible tabs of a browser share one connection, because browsers open at
 * most six per server over HTTP/1.1. Hidden tabs have none.
 * onstate({ live, since, retry, refused }) receives the time of the last message, the time of the next retry, and the reason
 * if the server rejects this browser. onresume(since) is called if changes after a time were missed.
 */
export class Stream {
  constructor(onevent, onstate, onresume) {
    Object.assign(this, {onevent, onstate, onresume, seen: 0, missed: 0, parameters: {}});
    const connection = new Connection((message, ask) => this.channel.tell(message, ask));
    this.channel = new Channel((asks) => connection.ask(asks), (message) => this.hear(message));
    document.addEventListener("visibilitychange", () => this.join());
    addEventListener("pagehide", () => this.leave());
    addEventListener("pageshow", () => this.join());
    addEventListener("online", () => this.retry());
  }

  /** ask subscribes this tab to changes: { changes, type, key, match }, or {} for none. */
  ask(parameters) {
    this.parameters = parameters;
    this.missed = 0; // by the previous page
    this.join();
  }

  join() {
    if (document.hidden) {this.leave(); return;}
    if (!this.joined) this.miss();
    this.joined = true;
    this.watch();
    this.channel.ask(this.parameters);
  }

  leave() {
    this.joined = false;
    clearTimeout(this.watchdog);
    this.channel.leave();
  }

  retry() {if (this.joined) this.channel.retry();}

  miss() {this.missed ||= this.seen;}

  watch() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => this.hear({state: {live: false}}), silenceTimeout);
  }

  /** hear handles a message of the leading tab: an event, the state of the connection, or a gap. */
  hear({name, event, state, gap}) {
    if (!this.joined) return;
    if (gap || state) this.miss();
    if (state) this.onstate({...state, since: this.seen});
    if (!name) return;
    this.seen = Date.now();
    this.watch();
    this.onstate({live: true, since: this.seen});
    if (this.missed) this.onresume(this.missed);
    this.missed = 0;
    if (name !== "beat") this.onevent(name, event);
  }
}
