package controllers

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"k8s.io/utils/third_party/forked/golang/btree"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue has the requests of all controllers, which take turns. It has no goroutine; the queue of
// controller-runtime has four, and merges delays.
type queue struct {
	priorityqueue.PriorityQueue[instance] // nil: its other methods are not called
	mu                                    sync.Mutex
	changed                               *sync.Cond
	turns                                 []*requests // with requests that a worker can take
	hasEnded                              bool
	added                                 int // number of requests
}

// requests are those of a controller, and its queue for event handlers. queue.mu guards them.
type requests struct {
	priorityqueue.PriorityQueue[reconcile.Request] // nil: handlers do not take requests
	queue                                          *queue
	controller                                     *running
	limiter                                        workqueue.TypedRateLimiter[reconcile.Request]
	all                                            map[types.NamespacedName]*request
	ready                                          *btree.BTree[*request] // without active ones
	active                                         int
	isWaiting                                      bool // in queue.turns
}

// request can be delayed, ready and active at the same time.
type request struct {
	instance
	priority, order   int // the highest priority since it was taken
	isReady, isActive bool
	// timer ends the shortest delay at end; nil without one. delayed is its priority.
	timer   *time.Timer
	end     time.Time
	delayed int
}

// newQueue returns a queue for a controller of controller-runtime, which it adds to a manager: it reconciles
// the requests. Metrics of a name remain after its controller, so all have one name.
func newQueue(m manager.Manager, workers int, reconciler reconcile.TypedFunc[instance]) (*queue, error) {
	q := &queue{}
	q.changed = sync.NewCond(&q.mu)
	_, err := controller.NewTyped("run-time", m, controller.TypedOptions[instance]{Reconciler: reconciler,
		MaxConcurrentReconciles: workers, SkipNameValidation: new(true), NeedLeaderElection: new(true),
		NewQueue: func(string,
			workqueue.TypedRateLimiter[instance]) workqueue.TypedRateLimitingInterface[instance] {
			return q
		},
		LogConstructor: func(i *instance) logr.Logger {
			l := log.Log.WithValues("controller", "run-time")
			if i != nil {
				l = l.WithValues("settings", i.controller.name, "object", klog.KRef(i.name.Namespace, i.name.Name),
					"namespace", i.name.Namespace, "name", i.name.Name)
			}
			return l
		}})
	return q, err
}

// GetWithPriority takes a request of the controller that waits longest. It waits for one, until ShutDown.
func (q *queue) GetWithPriority() (i instance, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.turns) == 0 && !q.hasEnded {
		q.changed.Wait()
	}
	if q.hasEnded {
		return i, 0, true
	}
	r := q.turns[0]
	q.turns = slices.Delete(q.turns, 0, 1)
	r.isWaiting = false
	x, _ := r.ready.DeleteMin()
	x.isReady, x.isActive = false, true
	r.active++
	r.offerLocked()
	return x.instance, x.priority, false
}

// Done ends a reconcile.
func (q *queue) Done(i instance) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r, x := i.controller.queue, i.controller.queue.all[i.name]
	r.active--
	if x.isActive = false; x.isReady {
		r.ready.ReplaceOrInsert(x)
	} else if x.timer == nil {
		delete(r.all, i.name)
	}
	if len(r.all) == 0 { // free the memory of a burst
		r.all = map[types.NamespacedName]*request{}
	}
	r.offerLocked()
}

func (*queue) AddWithOpts(o priorityqueue.AddOpts, instances ...instance) {
	for _, i := range instances {
		i.controller.queue.AddWithOpts(o, i.request())
	}
}

func (*queue) Forget(i instance) { i.controller.queue.Forget(i.request()) }

func (q *queue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hasEnded = true
	q.changed.Broadcast()
}

func newRequests(k *running, limiter workqueue.TypedRateLimiter[reconcile.Request]) *requests {
	if limiter == nil { // the default of controller-runtime
		limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond,
			1000*time.Second)
	}
	return &requests{queue: k.controllers.queue, controller: k, limiter: limiter,
		all: map[types.NamespacedName]*request{}, ready: btree.New(8, func(a, b *request) bool {
			return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.order, b.order)) < 0
		})}
}

// offerLocked makes the controller wait for a worker, if one can take a request.
func (r *requests) offerLocked() {
	k := r.controller
	if !r.isWaiting && r.ready.Len() > 0 && r.active < k.settings.Load().MaxConcurrent && k.ctx.Err() == nil {
		r.isWaiting = true
		r.queue.turns = append(r.queue.turns, r)
		r.queue.changed.Signal()
	}
}

// addLocked makes a request ready, or raises its priority.
func (x *request) addLocked(priority int) {
	r := x.controller.queue
	if x.isReady && x.priority >= priority {
		return
	}
	r.ready.Delete(x) // with the former priority
	r.queue.added++
	x.isReady, x.priority, x.order = true, priority, r.queue.added
	if !x.isActive { // otherwise Done adds it
		r.ready.ReplaceOrInsert(x)
		r.offerLocked()
	}
}

// delayLocked adds a request after its shortest delay.
func (x *request) delayLocked(priority int, delay time.Duration) {
	end := time.Now().Add(delay)
	if x.timer == nil {
		x.end, x.delayed = end, priority
		x.timer = time.AfterFunc(delay, func() {
			q := x.controller.controllers.queue
			q.mu.Lock()
			defer q.mu.Unlock()
			if x.timer != nil && !time.Now().Before(x.end) {
				x.timer = nil
				x.addLocked(x.delayed)
			}
		})
	} else if end.Before(x.end) {
		x.end = end
		x.timer.Reset(delay)
	}
	x.delayed = max(x.delayed, priority)
}

func (r *requests) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, added := range requests {
		name, priority, delay := added.NamespacedName, ptr.Deref(o.Priority, 0), o.After
		if o.RateLimited {
			limited := r.limiter.When(added)
			delay = min(cmp.Or(delay, limited), limited)
		}
		r.queue.mu.Lock() // not while a limiter of this controller runs
		x := cmp.Or(r.all[name], &request{instance: instance{r.controller, name}})
		switch r.all[name] = x; {
		case r.controller.ctx.Err() != nil:
		case delay > 0:
			x.delayLocked(priority, delay)
		default:
			x.addLocked(priority)
		}
		r.queue.mu.Unlock()
	}
}

func (r *requests) Add(request reconcile.Request) { r.AddWithOpts(priorityqueue.AddOpts{}, request) }

func (r *requests) AddAfter(request reconcile.Request, delay time.Duration) {
	r.AddWithOpts(priorityqueue.AddOpts{After: delay}, request)
}

func (r *requests) AddRateLimited(request reconcile.Request) {
	r.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, request)
}

func (r *requests) Forget(request reconcile.Request)          { r.limiter.Forget(request) }
func (r *requests) NumRequeues(request reconcile.Request) int { return r.limiter.NumRequeues(request) }
func (r *requests) ShuttingDown() bool                        { return r.controller.ctx.Err() != nil }

// Len returns the number of requests that are ready.
func (r *requests) Len() int {
	r.queue.mu.Lock()
	defer r.queue.mu.Unlock()
	return r.ready.Len()
}
