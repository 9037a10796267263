// Package plan decides what a run of the benchmark measures, in which order, and about how long that takes.
package plan
