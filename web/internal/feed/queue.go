package feed

// maxQueue limits the waiting items of a reader; the oldest are dropped and counted.
const maxQueue = 1000

// queue has the waiting items. It is not safe for concurrent use.
type queue[T any] struct {
	waiting []T
	skipped int
}

func (q *queue[T]) put(value T) {
	if len(q.waiting) >= maxQueue {
		var none T
		q.waiting[0] = none // release the objects
		q.waiting = q.waiting[1:]
		q.skipped++
	}
	q.waiting = append(q.waiting, value)
}

func (q *queue[T]) take() (waiting []T, skipped int) {
	waiting, skipped = q.waiting, q.skipped
	q.waiting, q.skipped = nil, 0
	return waiting, skipped
}
