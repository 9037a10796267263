// Package queue makes calls in order, on a goroutine of its own, so that nobody waits for them.
package queue
