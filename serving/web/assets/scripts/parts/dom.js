// Elements are created by calls, never from HTML, so the content of objects stays text.

const svgNames = new Set(["svg", "path"]);

// Characters that are invisible, or that change the order of the text around them.
// eslint-disable-next-line no-control-regex
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

const code = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

/** plain replaces hidden characters by their codes, where elements are impossible. */
export const plain = (text) => String(text).replace(hidden, (character) => `⟨${code(character)}⟩`);

/** text returns the nodes of a text, with a mark for each hidden character. */
function text(value) {
  value = String(value);
  if (value.search(hidden) < 0) return [value];
  const nodes = [];
  let from = 0;
  for (const {0: character, index} of value.matchAll(hidden)) {
    const mark = document.createElement("span");
    mark.className = "hidden-character";
    mark.title = "invisible";
    mark.textContent = code(character);
    nodes.push(value.slice(from, index), mark);
    from = index + character.length;
  }
  return [...nodes, value.slice(from)];
}

const isShown = (child) => child !== null && child !== undefined && child !== false && child !== "";

const nodes = (children) => children.flat(2).filter(isShown).flatMap((child) => (child instanceof Node ? [child] : text(child)));

/** h creates an element from a name with classes ("div.card"), attributes and children. */
export function h(name, ...children) {
  const attributes = children[0]?.constructor === Object ? children.shift() : {};
  const [tag, ...classes] = name.split(".");
  const element = svgNames.has(tag) ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  if (tag === "button") element.type = "button";
  if (classes.length) element.setAttribute("class", classes.join(" "));
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.setAttribute("class", [...classes, value].join(" "));
    else if (key === "title" || key === "aria-label") element.setAttribute(key, plain(value));
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...nodes(children));
  return element;
}

export const quiet = (...children) => h("span.quiet", ...children);

/** fill replaces the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
  return element;
}

let last = 0;

/** unique returns an id that no other element has. */
export const unique = (name) => `${name}-${++last}`;

/** copyButton is a button that copies the text that a function returns. */
export function copyButton(label, text, attributes) {
  const button = h("button", {...attributes, onclick: async () => {
    const done = await navigator.clipboard.writeText(text()).then(() => "Copied", () => "Not allowed");
    button.textContent = done;
    setTimeout(() => {button.textContent = label;}, 1500);
  }}, label);
  return button;
}

/** figure is a number with its unit. */
export const figure = (value, unit, title) => h("span", {title}, h("b", value), ` ${unit}`);
