import {namespace} from "../app/router.js";
import {Latest, reason} from "./api.js";

const interval = 5000; // ms between requests while a page shows the answer

/** Health has the namespaces, and the conditions of all types in the selected namespace. */
export class Health {
  constructor() {Object.assign(this, {requests: new Latest(), listeners: new Set(), namespaces: [], types: new Map()});}

  /** listen calls a function after each answer, and keeps the answer current. It returns a function that ends this. */
  listen(listener) {
    this.listeners.add(listener);
    this.update();
    return () => {this.listeners.delete(listener);};
  }

  async update() {
    clearTimeout(this.timer);
    const of = namespace.value;
    try {
      const answer = await this.requests.get("health", {namespace: of});
      if (!answer) return; // a newer request replaced this one
      Object.assign(this, {known: true, of, error: undefined, namespaces: answer.namespaces, types: new Map(answer.types.map((type) => [type.type, type]))});
    } catch (error) {
      this.error = reason(error);
    }
    for (const listener of this.listeners) listener();
    clearTimeout(this.timer);
    if (this.listeners.size) this.timer = setTimeout(() => {if (document.hidden) document.addEventListener("visibilitychange", () => this.update(), {once: true}); else this.update();}, interval);
  }

  /** objects returns the number of a type's objects in the selected namespace. */
  objects(row) {return namespace.value && this.of === namespace.value ? this.types.get(row.id)?.objects ?? 0 : row.objects;}
}
