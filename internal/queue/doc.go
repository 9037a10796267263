// Package queue has the queues of the engine, which are unbounded, so that who pushes never waits for who is called: a
// Queue of elements for one consumer, and Calls, which makes calls on a goroutine of its own. How much waits is for
// people to see.
package queue
