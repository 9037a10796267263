import {copyButton, h, fill} from "./dom.js";
import {number} from "./format.js";

const maxLines = 5000; // lines shown at first; more on request

/** Yaml shows an object as foldable lines. */
export class Yaml {
  constructor() {
    this.folded = new Set([".metadata.managedFields"]); // by path, so that it survives changes of the object
    this.lines = [];
    this.limit = maxLines;
    this.list = h("ol.yaml", {"aria-label": "YAML"});
    const copied = copyButton("Copy", () => this.lines.map((line) => `${this.text(line)}\n`).join(""), {"data-key": "y", title: "Copy the YAML (y)"});
    this.element = h("section.card", {"aria-label": "YAML"}, h("div.bar", h("h2", "YAML"), h("span.grow"), copied), this.list);
  }

  /** show displays lines, and briefly highlights changed paths. */
  show(lines, changed = []) {
    this.lines = lines;
    this.changed = new Set(changed);
    this.draw();
    this.changed.clear();
  }

  text(line) {
    return `${"  ".repeat(line.d)}${line.l ? "- " : ""}${line.k ? `${line.k}:${line.t ? " " : ""}` : ""}${line.t ?? ""}`;
  }

  draw(focus) {
    const shown = [];
    for (let i = 0; i < this.lines.length && shown.length < this.limit; i++) {
      const line = this.lines[i], folded = line.f && this.folded.has(line.p);
      shown.push(this.line(line, folded));
      if (folded) i += line.f;
    }
    const left = shown.length >= this.limit ? h("li", h("button", {onclick: () => {this.limit *= 4; this.draw();}}, `Show more of ${number(this.lines.length)} lines`)) : null;
    fill(this.list, shown, left);
    if (focus) this.list.querySelector(`[data-path="${CSS.escape(focus)}"]`)?.focus();
  }

  line(line, folded) {
    const fold = line.f && line.p ? h("button.fold", {"data-path": line.p, "aria-expanded": String(!folded), "aria-label": `${line.k ?? line.p}, ${line.f} lines`, onclick: () => this.fold(line.p)}, folded ? "▸" : "▾") : null;
    return h("li", {class: this.changed?.has(line.p) ? "flash" : ""}, fold, `${"  ".repeat(line.d)}${line.l ? "- " : ""}`, line.k ? [h("span.key", line.k), `:${line.t ? " " : ""}`] : null, line.t ? h(`span.${line.c}`, line.t) : null, folded ? h("span.folded", ` … ${line.f} lines`) : null);
  }

  fold(path) {
    if (!this.folded.delete(path)) this.folded.add(path);
    this.draw(path);
  }
}
