import { listenForKeys } from "./app/keys.js";
import { place, typeLink } from "./app/router.js";
import { Shell } from "./app/shell.js";
import { Stream } from "./data/stream.js";
import { Types } from "./data/types.js";
import { h } from "./parts/dom.js";
import { EventsPage } from "./views/events.js";
import { ObjectPage } from "./views/object.js";
import { TypePage } from "./views/type.js";
import { TypesPage } from "./views/types.js";

const pages = { "/": TypesPage, "/type": TypePage, "/object": ObjectPage, "/events": EventsPage };

const types = new Types();
let page;

const stream = new Stream((name, event) => {
  if (name === "types") types.update(event);
  else page?.changes?.(event);
}, (state) => shell.connection(state), (since) => page?.resumed?.(since));

const shell = new Shell(types, () => stream.retry());

/** open shows the page of the current location. A page has an element, a title, a path, and the parameters of its stream. */
function open() {
  const { path, parameters } = place();
  if (page?.takes?.(path, parameters)) return;
  page?.close?.();
  const Page = pages[path];
  page = Page ? new Page({ types, stream, parameters }) : { element: h("p.notice", {}, "Page not found."), title: "crdcache" };
  stream.ask(page.stream ?? {});
  shell.show(page.element, path, page.title);
  page.opened?.();
}

function up() {
  const { path, parameters } = place();
  location.hash = path === "/object" ? typeLink(parameters.type) : "#/";
}

listenForKeys(up);
addEventListener("hashchange", open);
open();
