import { address, get } from "./api.js";

const silence = 15_000; // the server says every five seconds that it is there
const pauses = [500, 1000, 2000, 4000, 8000];

/**
 * Stream is what the server tells as it happens. It connects anew when the connection is lost, and says so:
 * onstate({ live, since, retry, refused }) with the moment of the last sign of life, that of the next try, and why the
 * server does not want this browser.
 */
export class Stream {
  constructor(onevent, onstate) {
    Object.assign(this, { onevent, onstate, failures: 0, seen: 0, parameters: {} });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.sleep() : this.wake()));
    addEventListener("online", () => this.retry());
  }

  /** ask connects for something else. */
  ask(parameters) {
    if (this.source && JSON.stringify(parameters) === JSON.stringify(this.parameters)) return;
    this.parameters = parameters;
    this.connect();
  }

  connect() {
    this.close();
    const source = (this.source = new EventSource(address("stream", this.parameters)));
    const alive = () => {
      this.failures = 0;
      this.seen = Date.now();
      clearTimeout(this.watchdog);
      this.watchdog = setTimeout(() => this.lost(), silence);
      this.onstate({ live: true, since: this.seen });
    };
    for (const name of ["types", "changes", "beat"]) {
      source.addEventListener(name, (event) => {
        if (source !== this.source) return;
        alive();
        if (name !== "beat") this.onevent(name, JSON.parse(event.data));
      });
    }
    source.addEventListener("end", () => source === this.source && this.lost());
    source.onerror = () => source === this.source && this.lost();
    this.watchdog = setTimeout(() => source === this.source && this.lost(), silence);
  }

  async lost() {
    this.close();
    const pause = pauses[Math.min(this.failures++, pauses.length - 1)];
    this.onstate({ live: false, since: this.seen, retry: Date.now() + pause });
    this.timer = setTimeout(() => this.connect(), pause);
    try {
      await get("type", { type: "?" });
    } catch (error) {
      if (error.status !== 401) return; // nobody answers, or the answer is that there is no such type
      clearTimeout(this.timer);
      this.onstate({ live: false, since: this.seen, refused: error.message });
    }
  }

  retry() { if (!this.source && !document.hidden) this.connect(); }

  close() {
    this.source?.close();
    this.source = undefined;
    clearTimeout(this.timer);
    clearTimeout(this.watchdog);
  }

  // A page that nobody looks at costs nothing; browsers allow few connections to one server, for all pages together.
  sleep() { this.napping = setTimeout(() => { this.close(); this.asleep = true; }, 30_000); }

  wake() {
    clearTimeout(this.napping);
    if (this.asleep) this.connect();
    this.asleep = false;
  }
}
