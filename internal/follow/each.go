package follow

import (
	"context"
	"fmt"
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
	*plan
	// all tells which namespaces there are.
	all NamespaceList
	// allowed is closed when everything may be listed at once.
	allowed <-chan struct{}
	// refusal is why it may not.
	refusal error
	// news has an element when namespaces have come or gone.
	news chan struct{}
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
		names, known, changed, err := e.namespaces()
		e.Health.Consists(e.names(), err, "namespaces "+e.Namespaces.String())
		if known && e.take(names) {
			return e.set(), true
		}
		select {
		case <-e.news:
		case <-e.Shard.changes():
		case <-changed:
		case <-e.allowed:
			return nil, false
		case <-ctx.Done():
		}
	}
	return nil, false
}

// namespaces returns those to follow; false while there is nothing to say about that. When the server does not
// tell which namespaces there are, these are those that the set has by name, and the error says so.
func (e *eachNamespace) namespaces() (names []string, known bool, changed <-chan struct{}, err error) {
	names, known, changed, err = e.all.Names()
	if err != nil {
		names = e.Namespaces.named()
		err = fmt.Errorf("%w; nor is it known which namespaces there are: %w", e.refusal, err)
		return names, len(names) > 0, changed, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !e.Namespaces.Has(name) })
	return names, known, changed, nil
}
