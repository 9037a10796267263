// Not a module, so that it runs before the first paint: the page does not flash in another theme.
{
  const themes = ["", "dark", "light"]; // "" is that of the system
  let theme = "";
  try {theme = localStorage.getItem("crdcache.theme") ?? "";} catch {/* no storage: the theme lasts as long as the page */}
  const show = () => {if (theme) document.documentElement.dataset.theme = theme; else delete document.documentElement.dataset.theme;};
  show();
  window.nextTheme = () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    show();
    try {localStorage.setItem("crdcache.theme", theme);} catch {/* see above */}
    return theme;
  };
  window.currentTheme = () => theme;
}
