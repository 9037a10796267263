/** listenForKeys handles the keyboard shortcuts of all pages. They are disabled in text fields. */
export function listenForKeys(up) {
  let before = "";
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input, textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const chord = before === "g" ? `g${event.key}` : event.key;
    before = event.key;
    const action = actions[chord] ?? (chord === "u" ? up : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

const press = (selector) => document.querySelector(selector)?.click();

const actions = {
  "/": () => document.querySelector("main input[type=search], main [role=combobox]")?.focus(),
  "?": () => document.getElementById("help").showModal(),
  gt: () => { location.hash = "#/"; },
  ge: () => { location.hash = "#/events"; },
  p: () => press("[data-key=p]"),
};
