/** listenForKeys handles the keyboard shortcuts of all pages. They are disabled in text fields, but for Ctrl-K and Escape. */
export function listenForKeys({up, search, namespace, theme}) {
  const actions = {
    "/": () => document.querySelector("main input[type=search], main [role=combobox]")?.focus(),
    "?": () => document.getElementById("help").showModal(),
    go: () => {location.hash = "#/";}, gt: () => {location.hash = "#/types";}, gc: () => {location.hash = "#/changes";},
    u: up, n: namespace, d: theme,
  };
  let before = "";
  document.addEventListener("keydown", (event) => {
    const key = event.key, open = document.querySelector("dialog[open]"), control = event.ctrlKey || event.metaKey;
    if (control && key === "k") {
      event.preventDefault();
      if (!open) search();
      return;
    }
    if (control || event.altKey || open) return;
    const menu = document.querySelector("details.menu[open]");
    if (key === "Escape" && menu) {menu.open = false; menu.firstElementChild.focus(); return;}
    if (event.target.closest("input")) {
      if (key === "Escape") event.target.blur();
      return;
    }
    const chord = before === "g" ? `g${key}` : key;
    before = key;
    const button = key.length === 1 && document.querySelector(`main [data-key="${CSS.escape(key)}"]`);
    const action = actions[chord] ?? (button && chord === key ? () => (button.localName === "summary" ? openMenu(button) : button.click()) : undefined);
    if (!action) return;
    event.preventDefault();
    action();
  });
  document.addEventListener("click", ({target}) => {for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(target)) menu.open = false;});
}

function openMenu(summary) {
  summary.parentElement.open = true;
  summary.parentElement.querySelector("input, button, a")?.focus();
}
