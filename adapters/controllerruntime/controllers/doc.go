// Package controllers starts, changes and stops controllers while a program runs, for types that are known
// only then, and that need not be installed: the kinds of a policy, a package or a template. The instances of
// a controller can select the objects that they depend on.
//
// docs/run-time-types.md describes the behavior.
package controllers
