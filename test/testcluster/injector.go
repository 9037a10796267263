package testcluster

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/crdcache/crdcache/serving/readapi"
)

// Match selects requests. The zero value selects all.
type Match struct {
	// Verbs are verbs of readapi.Request, in which a watch that begins with a list is a watch-list. See
	// Reads. Default: any.
	Verbs []string
	// Resource is the plural of a type. Default: any.
	Resource string
	// Path is the complete path of the URL. Default: any.
	Path string
}

// Reads are the verbs of the requests of informers: a list, a watch, and both in one. Do not change it.
var Reads = []string{"list", "watch", "watch-list"}

func (m Match) matches(kind requestKind) bool {
	return (m.Path == "" || m.Path == kind.path) && (m.Resource == "" || m.Resource == kind.resource) &&
		(m.Verbs == nil || kind.resource != "" && slices.Contains(m.Verbs, kind.verb))
}

// Effect answers a request instead of next. It can call next.
type Effect func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Fault is an effect on some requests.
type Fault struct {
	Match Match
	// Times is the number of requests that the fault applies to. Default: all.
	Times int
	// Effect is required.
	Effect Effect
}

// Injector is a handler that injects faults into the answers of another handler. Create it with NewInjector.
type Injector struct {
	next http.Handler

	mu struct {
		sync.Mutex
		faults []*activeFault
		// counts are the numbers of requests by kind. It grows with the number of different paths.
		counts  map[requestKind]int
		arrived chan struct{} // closed and replaced by every request
	}
}

// requestKind is the part of a request that Match compares.
type requestKind struct{ verb, resource, path string }

func requestKindOf(r *http.Request) requestKind {
	request, ok := readapi.ParseRequest(r)
	if !ok {
		return requestKind{path: r.URL.Path}
	}
	return requestKind{request.Verb, request.GVR.Resource, r.URL.Path}
}

type activeFault struct {
	Fault
	hits int
}

// NewInjector returns an Injector without faults that wraps next.
func NewInjector(next http.Handler) *Injector {
	i := &Injector{next: next}
	i.mu.counts = map[requestKind]int{}
	i.mu.arrived = make(chan struct{})
	return i
}

// Add adds a fault and returns a function that removes it. If several faults match a request, the latest
// applies.
func (i *Injector) Add(f Fault) (remove func()) {
	added := &activeFault{Fault: f}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.faults = append(i.mu.faults, added)
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.mu.faults = slices.DeleteFunc(i.mu.faults, func(a *activeFault) bool { return a == added })
	}
}

// Clear removes all faults.
func (i *Injector) Clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.faults = nil
}

// Count returns the number of matching requests so far.
func (i *Injector) Count(m Match) int {
	n, _ := i.count(m)
	return n
}

func (i *Injector) count(m Match) (n int, arrived <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for kind, count := range i.mu.counts {
		if m.matches(kind) {
			n += count
		}
	}
	return n, i.mu.arrived
}

// Await blocks until n matching requests have arrived, or returns the error of ctx.
func (i *Injector) Await(ctx context.Context, m Match, n int) error {
	for {
		count, arrived := i.count(m)
		if count >= n {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ServeHTTP implements http.Handler.
func (i *Injector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if effect := i.admit(r); effect != nil {
		effect(w, r, i.next)
		return
	}
	i.next.ServeHTTP(w, r)
}

// admit counts a request and returns its effect, or nil.
func (i *Injector) admit(r *http.Request) Effect {
	kind := requestKindOf(r)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.counts[kind]++
	close(i.mu.arrived)
	i.mu.arrived = make(chan struct{})
	for _, f := range slices.Backward(i.mu.faults) {
		if f.Match.matches(kind) && (f.Times == 0 || f.hits < f.Times) {
			f.hits++
			return f.Effect
		}
	}
	return nil
}
