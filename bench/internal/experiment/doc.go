// Package experiment holds what a child process does: one experiment on one subject, with nothing else in the
// process.
package experiment
