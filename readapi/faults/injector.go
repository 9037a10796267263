package faults

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/crdcache/crdcache/readapi"
)

// Match says which requests a fault is for. The zero value fits all.
type Match struct {
	// Verbs are those of readapi.Request. Default: any.
	Verbs []string
	// Resource is the plural of a type. Default: any.
	Resource string
	// Path is the whole path of the URL. Default: any.
	Path string
}

func (m Match) fits(s sort) bool {
	return (m.Path == "" || m.Path == s.path) && (m.Resource == "" || m.Resource == s.resource) &&
		(m.Verbs == nil || s.resource != "" && slices.Contains(m.Verbs, s.verb))
}

// Effect answers a request in the place of next, or lets it do so.
type Effect func(w http.ResponseWriter, r *http.Request, next http.Handler)

// Fault is what becomes of some requests.
type Fault struct {
	Match Match
	// Times is how many requests meet the fault. Default: all until it is removed.
	Times int
	// Effect is required.
	Effect Effect
}

// Injector is a handler that breaks the requests of another one. It is only made by New.
type Injector struct {
	next http.Handler

	mu struct {
		sync.Mutex
		faults []*active
		// counts are the requests that came: how many of each sort, of which there are as many as there are
		// paths.
		counts  map[sort]int
		arrived chan struct{} // closed and replaced with every request
	}
}

// sort is what a Match can tell requests apart by.
type sort struct{ verb, resource, path string }

func sortOf(r *http.Request) sort {
	asked, ok := readapi.ParseRequest(r)
	if !ok {
		return sort{path: r.URL.Path}
	}
	return sort{asked.Verb, asked.GVR.Resource, r.URL.Path}
}

type active struct {
	Fault
	met int
}

// New returns an Injector before next, without faults.
func New(next http.Handler) *Injector {
	i := &Injector{next: next}
	i.mu.counts = map[sort]int{}
	i.mu.arrived = make(chan struct{})
	return i
}

// Add adds a fault and returns what removes it. Of several that fit a request, the one that was added last
// counts.
func (i *Injector) Add(f Fault) (remove func()) {
	added := &active{Fault: f}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.faults = append(i.mu.faults, added)
	return func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.mu.faults = slices.DeleteFunc(i.mu.faults, func(a *active) bool { return a == added })
	}
}

// Clear removes all faults.
func (i *Injector) Clear() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.faults = nil
}

// Count returns how many requests came that fit.
func (i *Injector) Count(m Match) int {
	n, _ := i.count(m)
	return n
}

func (i *Injector) count(m Match) (n int, arrived <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for s, count := range i.mu.counts {
		if m.fits(s) {
			n += count
		}
	}
	return n, i.mu.arrived
}

// Await waits until so many requests came that fit, or returns the error of ctx.
func (i *Injector) Await(ctx context.Context, m Match, n int) error {
	for {
		got, arrived := i.count(m)
		if got >= n {
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

// admit notes a request and returns the effect that it meets.
func (i *Injector) admit(r *http.Request) Effect {
	s := sortOf(r)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.counts[s]++
	close(i.mu.arrived)
	i.mu.arrived = make(chan struct{})
	for _, f := range slices.Backward(i.mu.faults) {
		if f.Match.fits(s) && (f.Times == 0 || f.met < f.Times) {
			f.met++
			return f.Effect
		}
	}
	return nil
}
