/** place returns the current location from the fragment of the URL: "#/type?id=…". */
export function place() {
  const [path, query] = location.hash.replace(/^#/, "").split("?", 2);
  return { path: path || "/", parameters: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

export function link(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) if (value) query.set(key, value);
  return `#${path}${query.size ? `?${query}` : ""}`;
}

export const typeLink = (id, query) => link("/type", { id, query });

export const objectLink = (type, key) => link("/object", { type, key });

/** remember changes the parameters without a new history entry. */
export function remember(path, parameters) {
  history.replaceState(null, "", link(path, parameters));
}
