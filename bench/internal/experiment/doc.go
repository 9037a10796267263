// Package experiment has the experiments. A child process runs one experiment with one subject, because all
// measurements, including garbage collection, cover the whole process.
package experiment
