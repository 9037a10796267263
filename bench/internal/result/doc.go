// Package result holds what a run of the benchmark found out, in the form that is written to a file: a flat
// list of figures and a description of the machine. Reports and promises are read out of it.
package result
