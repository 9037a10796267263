// Package report writes a result for people.
package report
