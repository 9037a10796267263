// Package measure reads what a process has cost so far, and times small operations.
//
// Everything is about the whole process, garbage collection included, so nothing else may happen in it.
package measure
