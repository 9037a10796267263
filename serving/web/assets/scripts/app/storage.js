// Settings of this browser. They are lost if it has no storage. Pages with other prefixes have other settings.

const prefix = `crdcache ${new URL(".", location).pathname} `;
const memory = new Map();

export function load(name, otherwise) {
  try {
    const text = localStorage.getItem(prefix + name) ?? memory.get(name);
    return text === undefined || text === null ? otherwise : JSON.parse(text);
  } catch {
    return memory.has(name) ? JSON.parse(memory.get(name)) : otherwise;
  }
}

export function save(name, value) {
  memory.set(name, JSON.stringify(value));
  try {localStorage.setItem(prefix + name, memory.get(name));} catch {/* kept in memory */}
}
