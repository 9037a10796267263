// Package report holds the figures of a run, judges by them what is promised, and writes both for people.
package report
