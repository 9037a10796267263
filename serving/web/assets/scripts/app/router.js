import {load, save} from "./storage.js";

/** place returns the current location from the fragment of the URL: "#/type?id=…". */
export function place() {
  const [path, query] = location.hash.replace(/^#/, "").split(/\?(.*)/s, 2);
  return {path: path || "/", parameters: Object.fromEntries(new URLSearchParams(query ?? ""))};
}

export function link(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) if (value) query.set(key, value);
  return `#${path}${query.size ? `?${query}` : ""}`;
}

export const typeLink = (id, query) => link("/type", {id, query});

export const objectLink = (type, key, view) => link("/object", {type, key, view});

/** remember changes the parameters without a new history entry. */
export function remember(path, parameters) {
  history.replaceState(history.state, "", link(path, {...parameters, ns: namespace.value}));
}

/** visit changes the parameters in a new history entry. */
export function visit(path, parameters) {location.hash = link(path, {...parameters, ns: namespace.value});}

/** namespace is the selected namespace; "" for all. It is a part of each location, and the default of new ones. */
export const namespace = {
  value: load("namespace", ""),

  /** select shows the current page in another namespace. */
  select(name) {
    save("namespace", (this.value = name));
    const {path, parameters} = place();
    location.hash = link(path, {...parameters, ns: name || "*"});
  },

  /** adopt takes the namespace of a location. A new location without one gets the selected namespace. */
  adopt({path, parameters}, isNew) {
    const {ns, ...others} = parameters;
    if (ns !== undefined || !isNew) save("namespace", (this.value = ns === undefined || ns === "*" ? "" : ns));
    if (this.value !== (ns ?? "")) remember(path, others);
    return others;
  },
};

const positions = new Map(load("positions", []).slice(-100)); // by history entry

/** entry returns the id of the current history entry, and whether it is new. */
export function entry() {
  const known = history.state?.id;
  if (known) return {id: known, isNew: false};
  const id = Math.random().toString(36).slice(2);
  history.replaceState({id}, "");
  return {id, isNew: true};
}

export const position = (id) => positions.get(id);

/** keep stores the position of a history entry: where its page is scrolled to, and the selected row. */
export function keep(id, value) {
  positions.delete(id);
  if (value) positions.set(id, value);
  if (positions.size > 200) positions.delete(positions.keys().next().value);
}

addEventListener("pagehide", () => save("positions", [...positions].slice(-100)));

/** clusterLink returns the address of this page for another cluster. */
export const clusterLink = (name) => `${new URL(".", location).pathname.replace(/clusters\/[^/]+\/$/, "")}clusters/${encodeURIComponent(name)}/${location.hash}`;
