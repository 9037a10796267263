import {listenForKeys} from "./app/keys.js";
import {Palette} from "./app/palette.js";
import {entry, keep, namespace, place, position, typeLink} from "./app/router.js";
import {Shell} from "./app/shell.js";
import {Health} from "./data/health.js";
import {Stream} from "./data/stream.js";
import {Types} from "./data/types.js";
import {notice} from "./parts/notice.js";
import {ChangesPage} from "./views/changes.js";
import {ObjectPage} from "./views/object.js";
import {OverviewPage} from "./views/overview.js";
import {TypePage} from "./views/type.js";
import {TypesPage} from "./views/types.js";

const pages = {"/": OverviewPage, "/types": TypesPage, "/type": TypePage, "/object": ObjectPage, "/changes": ChangesPage, "/events": ChangesPage};

const types = new Types();
const health = new Health();
let page, at;

const stream = new Stream((name, event) => {
  if (name === "types") types.update(event);
  else page?.changes?.(event);
}, (state) => shell.connection(state), (since) => page?.resumed?.(since));

const shell = new Shell(types, () => stream.retry());
const palette = new Palette(types, health);

/**
 * open shows the page of the current location. A page has an element, a title, the parameters of its stream, and
 * optionally a position, which is restored when Back or Forward returns to it.
 */
function open() {
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  leave();
  const {id, isNew} = entry();
  const {path, parameters} = place();
  const own = namespace.adopt({path, parameters}, isNew);
  at = id;
  shell.moved(path, own);
  if (page?.takes?.(path, own, position(id))) {stream.ask(page.stream ?? {}); shell.named(page.title); return;}
  page?.close?.();
  const Page = pages[path];
  page = Page ? new Page({types, health, parameters: own, position: position(id), path, ask: (wanted) => stream.ask(wanted)})
    : {element: notice("There is no such page", path, {text: "Overview", href: "#/"}), title: "crdcache"};
  stream.ask(page.stream ?? {});
  shell.show(page.element, page.title);
  page.opened?.();
}

const leave = () => {if (at) keep(at, page?.position);};

function up() {
  const {path, parameters} = place();
  location.hash = path === "/object" ? typeLink(parameters.type) : path === "/type" ? "#/types" : "#/";
}

listenForKeys({up, search: () => palette.search(), namespace: () => palette.namespaces(), theme: () => shell.theme(true)});
addEventListener("hashchange", open);
addEventListener("pagehide", leave);
document.getElementById("search").addEventListener("click", () => palette.search());
document.getElementById("namespace").addEventListener("click", () => palette.namespaces());
open();
