package feed

// maxQueue is how many things wait for a reader at most; the oldest make way, and are counted.
const maxQueue = 1000

// queue is what waits. It is not safe for concurrent use.
type queue[T any] struct {
	waiting []T
	skipped int
}

func (q *queue[T]) put(value T) {
	if len(q.waiting) >= maxQueue {
		var none T
		q.waiting[0] = none // let go of the objects
		q.waiting = q.waiting[1:]
		q.skipped++
	}
	q.waiting = append(q.waiting, value)
}

// take empties the queue.
func (q *queue[T]) take() (waiting []T, skipped int) {
	waiting, skipped = q.waiting, q.skipped
	q.waiting, q.skipped = nil, 0
	return waiting, skipped
}
