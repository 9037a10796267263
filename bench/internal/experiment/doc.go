// Package experiment holds what a child process does: one experiment on one subject, with nothing else in the
// process, because everything that is measured is of the whole process, garbage collection included.
package experiment
