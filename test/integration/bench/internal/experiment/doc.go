// Package experiment has the experiments, and the compared caches behind a common interface. A child process
// runs one experiment with one cache, because all measurements, including garbage collection, cover the whole
// process.
package experiment
