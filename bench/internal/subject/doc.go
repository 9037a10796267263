// Package subject has the compared caches of one custom resource. Each uses another library behind a common
// interface.
//
// A process has one subject at a time, because two would share a heap and a garbage collector.
package subject
