package follow

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/crdcache/crdcache/internal/informer"
)

// NamespaceList tells which namespaces there are.
type NamespaceList interface {
	// Names returns the namespaces, if they are known; otherwise an error if they cannot be told, and none while that is
	// not known either. changed is closed when it says something else than that.
	Names() (names []string, known bool, changed <-chan struct{}, err error)
	// Notify has changed called, with no lock held, when a namespace comes or goes, until stop is called.
	Notify(changed func()) (stop func())
	// Release gives the list up.
	Release()
}

// eachNamespace says which namespaces are followed one by one. Its fields are used by one goroutine.
type eachNamespace struct {
	*Follower
	generation *generation
	// all tells which namespaces there are.
	all NamespaceList
	// allowed is closed when everything may be listed at once.
	allowed <-chan struct{}
	// refusal is why it may not.
	refusal error
	// news has an element when namespaces have come or gone.
	news chan struct{}
	// parts are those that run.
	parts map[string]informer.Part
	begun bool // there has been a set
}

// notify is told that namespaces have come or gone.
func (e *eachNamespace) notify() {
	select {
	case e.news <- struct{}{}:
	default:
	}
}

// next waits for another set of parts than those that run; false when they are to end.
func (e *eachNamespace) next(ctx context.Context) ([]informer.Part, bool) {
	for ctx.Err() == nil {
		names, known, changed, err := e.names()
		e.Health.Consists(slices.Collect(maps.Keys(e.parts)), err, "namespaces "+e.Namespaces.String())
		if known && e.take(names) {
			return slices.Collect(maps.Values(e.parts)), true
		}
		select {
		case <-e.news:
		case <-changed:
		case <-e.allowed:
			return nil, false
		case <-ctx.Done():
		}
	}
	return nil, false
}

// names returns the namespaces to follow; false while there is nothing to say about that. When the server does not
// tell which namespaces there are, these are those that the set has by name, and the error says so.
func (e *eachNamespace) names() (names []string, known bool, changed <-chan struct{}, err error) {
	names, known, changed, err = e.all.Names()
	if err != nil {
		names = e.Namespaces.named()
		err = fmt.Errorf("%w; nor is it known which namespaces there are: %w", e.refusal, err)
		return names, len(names) > 0, changed, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !e.Namespaces.Has(name) })
	return names, known, changed, nil
}

// take makes these namespaces the ones that run, and reports whether that changes anything.
func (e *eachNamespace) take(names []string) bool {
	next := make(map[string]informer.Part, len(names))
	same := e.begun && len(names) == len(e.parts)
	for _, name := range names {
		part, ok := e.parts[name]
		if !ok {
			p := e.describe(e.generation, name)
			p.Late = e.begun
			part, same = e.part(p, nil), false
		}
		next[name] = part
	}
	e.parts, e.begun = next, true
	return !same
}
