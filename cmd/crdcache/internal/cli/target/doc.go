// Package target is what the verbs have in common: which API server they work on, in which namespaces, for how
// long they wait, and what the names of types stand for there.
package target
