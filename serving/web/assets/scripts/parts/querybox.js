import {Latest} from "../data/api.js";
import {h, fill, unique, quiet} from "./dom.js";

/** QueryBox is a combobox for a query, with completions. */
export class QueryBox {
  constructor(type, text, onrun) {
    this.type = type;
    this.onrun = onrun;
    this.requests = new Latest();
    this.proposals = [];
    this.chosen = -1;
    const id = unique("choices");
    this.list = h("ul.choices", {id, role: "listbox", "aria-label": "Proposals", hidden: true});
    this.input = h("input", {
      type: "text", role: "combobox", "aria-label": "Query", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id, spellcheck: "false",
      autocomplete: "off", autocapitalize: "off", placeholder: "Name, or query: team=ledger && where(.spec.replicas > 2)", value: text,
      oninput: () => this.propose(), onkeydown: (event) => this.key(event), onblur: () => setTimeout(() => this.hide(), 150), onclick: () => this.propose(),
    });
    this.error = h("p.query-error.mono", {role: "alert", hidden: true});
    this.element = h("div.query", this.input, this.list, this.error);
  }

  get text() {return this.input.value.trim();}

  set text(text) {this.input.value = text;}

  propose() {
    this.chosen = -1;
    this.draw();
    const asked = (this.pending = this.ask().finally(() => {if (this.pending === asked) this.pending = undefined;}));
  }

  async ask() {
    const at = this.input.selectionStart;
    const answer = await this.requests.get("complete", {type: this.type, query: this.input.value, at: String(at)}).catch(() => undefined);
    if (!answer || document.activeElement !== this.input) return;
    this.proposals = answer.proposals;
    this.range = [answer.from, answer.to];
    this.chosen = -1;
    this.draw();
  }

  draw() {
    fill(this.list, this.proposals.map((p, i) => h("li", {
      role: "option", id: `${this.list.id}-${i}`, "aria-selected": String(i === this.chosen), onmousedown: (event) => {event.preventDefault(); this.accept(i);},
    }, h("span.mono", p.text), quiet(p.note ?? ""))));
    this.list.hidden = !this.proposals.length;
    this.input.setAttribute("aria-expanded", String(!this.list.hidden));
    if (this.chosen >= 0) {
      this.input.setAttribute("aria-activedescendant", `${this.list.id}-${this.chosen}`);
      this.list.children[this.chosen].scrollIntoView({block: "nearest"});
    } else this.input.removeAttribute("aria-activedescendant");
  }

  hide() {
    this.requests.stop();
    this.proposals = [];
    this.chosen = -1;
    this.draw();
  }

  accept(i) {
    const [from, to] = this.range, {text} = this.proposals[i];
    this.input.setRangeText(text, from, to, "end");
    this.input.focus();
    this.propose();
  }

  key(event) {
    const n = this.proposals.length;
    if (n && this.pending && ["ArrowDown", "ArrowUp", "Tab"].includes(event.key)) {// the shown proposals belong to an earlier text
      event.preventDefault();
      this.pending.then(() => this.key(event));
      return;
    }
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && n) {
      this.chosen = (this.chosen + (event.key === "ArrowDown" ? 1 : this.chosen < 0 ? 0 : -1) + n) % n;
      this.draw();
    } else if (event.key === "Tab" && n && !event.shiftKey) this.accept(Math.max(0, this.chosen));
    else if (event.key === "Enter" && this.chosen >= 0) this.accept(this.chosen);
    else if (event.key === "Enter") {this.hide(); this.onrun();}
    else if (event.key === "Escape" && n) {this.hide(); event.stopPropagation();}
    else return;
    event.preventDefault();
  }

  /** fail shows an error of the query, whose text begins at a position of what was sent, or none. */
  fail(error, begin = 0) {
    this.input.setAttribute("aria-invalid", String(!!error));
    this.error.hidden = !error;
    if (!error) return;
    const text = this.input.value, {length} = error, offset = Math.max(0, error.offset - begin);
    fill(this.error, error.message, length ? [h("br"), text.slice(0, offset), h("mark", text.slice(offset, offset + length) || "␣"), text.slice(offset + length)] : null);
  }
}
