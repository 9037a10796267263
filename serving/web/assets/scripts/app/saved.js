import {load, save} from "./storage.js";

const listeners = new Set();

/** saved returns the saved queries of this browser: { name, hash }. */
export const saved = () => load("saved", []);

export function remember(name, hash) {put([...saved().filter((each) => each.hash !== hash), {name, hash}]);}

export function forget(hash) {put(saved().filter((each) => each.hash !== hash));}

export function onsaved(listener) {listeners.add(listener);}

function put(all) {
  save("saved", all);
  for (const listener of listeners) listener();
}
