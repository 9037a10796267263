// Package report holds the figures of a benchmark run, compares them with the promises, and writes both as
// a page.
package report
