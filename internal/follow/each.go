package follow

import (
	"context"
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

// NamespaceList tells which namespaces exist.
type NamespaceList interface {
	// Known returns the namespaces, and a channel that is closed when that may have changed.
	Known() (KnownNamespaces, <-chan struct{})
	// Notify has changed called, with no lock held, when a namespace is created or deleted, until stop is
	// called.
	Notify(changed func()) (stop func())
	// Release gives the list up.
	Release()
}

// KnownNamespaces are the namespaces that the server has listed.
type KnownNamespaces struct {
	// Names are the namespaces. They count only where Listed is set.
	Names  []string
	Listed bool
	// Refused says that the server is not expected to list them.
	Refused bool
	// Reason says why they are not listed, or may be out of date; ReasonNone: they are current.
	Reason requests.Reason
	Err    error
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
		known, changed := e.all.Known()
		names := e.selected(known)
		became := (known.Listed || len(names) > 0) && e.take(names)
		e.report(known)
		if became {
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

// selected returns the namespaces to read. Where the server does not list any, these are the ones that the
// set names.
func (e *eachNamespace) selected(known KnownNamespaces) []string {
	switch {
	case known.Listed:
		return slices.DeleteFunc(known.Names, func(name string) bool { return !e.Namespaces.Has(name) })
	case known.Refused:
		return e.Namespaces.named()
	}
	return nil
}

// report records which parts there are, and why there may be others.
func (e *eachNamespace) report(known KnownNamespaces) {
	var err error
	switch {
	case known.Reason == requests.ReasonNone && !known.Listed:
		return // the factory shuts down
	case known.Reason != requests.ReasonNone:
		err = fmt.Errorf("%w; nor is it known which namespaces there are: %w", e.refusal, known.Err)
	}
	e.Health.Consists(e.names(), "namespaces "+e.Namespaces.String(), known.Reason, err)
}
