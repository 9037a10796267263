package controllers

import (
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type requestQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// queue is client-go's queue, ordered by priority. It has a goroutine once a request was delayed; the queue
// of controller-runtime has four.
type queue struct {
	*workqueue.Typed[reconcile.Request]
	workqueue.TypedRateLimiter[reconcile.Request]
	delays func() workqueue.TypedDelayingInterface[reconcile.Request]

	mu struct {
		sync.Mutex
		// priorities are the highest ones since a request was taken. ready has requests by priority, in the
		// order of their arrival; one whose priority has risen is also in the former list.
		priorities, readyPriorities map[reconcile.Request]int
		ready                       map[int][]reconcile.Request
		taken                       map[reconcile.Request]int // priorities
	}
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = (*queue)(nil)

func newQueue(limiter workqueue.TypedRateLimiter[reconcile.Request]) *queue {
	if limiter == nil { // the default of controller-runtime
		limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond,
			1000*time.Second)
	}
	q := &queue{TypedRateLimiter: limiter}
	q.mu.priorities, q.mu.readyPriorities = map[reconcile.Request]int{}, map[reconcile.Request]int{}
	q.mu.ready, q.mu.taken = map[int][]reconcile.Request{}, map[reconcile.Request]int{}
	q.Typed = workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Queue: (*order)(q)})
	q.delays = sync.OnceValue(func() workqueue.TypedDelayingInterface[reconcile.Request] {
		config := workqueue.TypedDelayingQueueConfig[reconcile.Request]{Queue: q.Typed}
		return workqueue.NewTypedDelayingQueueWithConfig(config)
	})
	return q
}

func (q *queue) Add(r reconcile.Request) { q.AddWithOpts(priorityqueue.AddOpts{}, r) }

func (q *queue) AddAfter(r reconcile.Request, delay time.Duration) {
	if delay <= 0 {
		q.Typed.Add(r)
	} else if !q.ShuttingDown() {
		q.delays().AddAfter(r, delay)
	}
}

func (q *queue) AddRateLimited(r reconcile.Request) { q.AddAfter(r, q.When(r)) }

func (q *queue) ShutDown() { q.delays().ShutDown() } // also of Typed

func (q *queue) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, r := range requests {
		q.raise(r, ptr.Deref(o.Priority, 0))
		if o.RateLimited {
			q.AddRateLimited(r)
		}
		if !o.RateLimited || o.After > 0 { // the first one counts
			q.AddAfter(r, o.After)
		}
	}
}

func (q *queue) raise(r reconcile.Request, priority int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if former, ok := q.mu.priorities[r]; ok && priority <= former {
		return
	}
	q.mu.priorities[r] = priority
	if _, isReady := q.mu.readyPriorities[r]; isReady {
		q.makeReadyLocked(r, priority)
	}
}

func (q *queue) makeReadyLocked(r reconcile.Request, priority int) {
	q.mu.readyPriorities[r] = priority
	q.mu.ready[priority] = append(q.mu.ready[priority], r)
}

// GetWithPriority returns no request after ShutDown.
func (q *queue) GetWithPriority() (r reconcile.Request, priority int, shutdown bool) {
	r, _ = q.Get()
	shutdown = q.ShuttingDown()
	q.mu.Lock()
	defer q.mu.Unlock()
	priority = q.mu.taken[r]
	delete(q.mu.taken, r)
	return r, priority, shutdown
}

// order implements workqueue.Queue: the requests of a queue that are ready.
type order queue

func (*order) Touch(reconcile.Request) {}

func (o *order) Push(r reconcile.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	(*queue)(o).makeReadyLocked(r, o.mu.priorities[r])
}

func (o *order) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.mu.readyPriorities)
}

func (o *order) Pop() reconcile.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		highest := math.MinInt
		for priority := range o.mu.ready {
			highest = max(highest, priority)
		}
		r := o.mu.ready[highest][0]
		if o.mu.ready[highest] = o.mu.ready[highest][1:]; len(o.mu.ready[highest]) == 0 {
			delete(o.mu.ready, highest)
		}
		if priority, isReady := o.mu.readyPriorities[r]; isReady && priority == highest {
			delete(o.mu.readyPriorities, r)
			delete(o.mu.priorities, r)
			o.mu.taken[r] = highest
			if len(o.mu.readyPriorities)+len(o.mu.priorities) == 0 { // free the memory of a burst
				o.mu.readyPriorities = map[reconcile.Request]int{}
				o.mu.priorities = map[reconcile.Request]int{}
			}
			return r
		}
	}
}
