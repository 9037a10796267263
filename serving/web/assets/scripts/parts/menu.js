import {h} from "./dom.js";

/** menu is a button that opens a box. Escape, or a click elsewhere, closes it. */
export function menu(label, key, title, ...content) {
  return h("details.menu", h("summary.button", {"data-key": key, title: `${title} (${key})`}, label), h("div.menu-box", content));
}
