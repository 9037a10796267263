import {h} from "./dom.js";

/** notice explains why there is nothing to show, and the way out. */
export function notice(title, text, {text: label, href, run} = {}) {
  const way = href ? h("a.button", {href}, label) : run ? h("button", {onclick: run}, label) : null;
  return h("div.notice", {role: "note"}, h("h2", title), text ? h("p.quiet", text) : null, way);
}

/** skeleton has the place of lines that are being loaded. */
export const skeleton = (lines = 3) => h("div.skeletons", {role: "status", "aria-label": "Loading"}, Array.from({length: lines}, () => h("span.skeleton")));

/** failure explains a failed request. */
export function failure(error, retry) {
  const titles = {403: "You may not see this", 404: "Not found", 503: "crdcache is busy", 504: "This took too long"};
  return notice(titles[error.status] ?? (error.status ? "The request failed" : "crdcache does not answer"), error.status ? error.message : "The page reconnects.", error.status === 403 || error.status === 404 ? {text: "All types", href: "#/types"} : {text: "Try again", run: retry});
}
