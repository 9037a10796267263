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

func (m Match) fits(r *http.Request) bool {
	if m.Path != "" && m.Path != r.URL.Path {
		return false
	}
	if m.Verbs == nil && m.Resource == "" {
		return true
	}
	asked, ok := readapi.ParseRequest(r)
	return ok && (m.Verbs == nil || slices.Contains(m.Verbs, asked.Verb)) &&
		(m.Resource == "" || m.Resource == asked.GVR.Resource)
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
		faults   []*active
		requests []*http.Request
		arrived  chan struct{} // closed and replaced with every request
	}
}

type active struct {
	Fault
	met int
}

// New returns an Injector before next, without faults.
func New(next http.Handler) *Injector {
	i := &Injector{next: next}
	i.mu.arrived = make(chan struct{})
	return i
}

// Add adds a fault and returns what removes it. Of several that fit a request, the one that was added last counts.
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
	for _, r := range i.mu.requests {
		if m.fits(r) {
			n++
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
	i.mu.Lock()
	defer i.mu.Unlock()
	// Only what tells requests apart is kept.
	i.mu.requests = append(i.mu.requests, &http.Request{Method: r.Method, URL: r.URL})
	close(i.mu.arrived)
	i.mu.arrived = make(chan struct{})
	for _, f := range slices.Backward(i.mu.faults) {
		if f.Match.fits(r) && (f.Times == 0 || f.met < f.Times) {
			f.met++
			return f.Effect
		}
	}
	return nil
}
