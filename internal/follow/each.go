package follow

import (
	"context"
	"fmt"
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
)

// NamespaceList provides the existing namespaces.
type NamespaceList interface {
	// Current returns the namespaces, and a channel that is closed when they may have changed.
	Current() (KnownNamespaces, <-chan struct{})
	// OnChange calls changed, without locks, when a namespace is created or deleted, until stop is called.
	OnChange(changed func()) (stop func())
	// Release ends the use of the list.
	Release()
}

// KnownNamespaces are the namespaces that the server has listed.
type KnownNamespaces struct {
	// Names are the namespaces, valid if Listed is set.
	Names  []string
	Listed bool
	// Unlistable states that the server is not expected to list namespaces.
	Unlistable bool
	// Reason is why the namespaces are not listed, or may be outdated; ReasonNone if they are current.
	Reason status.Reason
	Err    error
}

// namespaceSelector selects the namespaces to follow one by one. One goroutine uses it.
type namespaceSelector struct {
	*plan
	namespaces NamespaceList
	// listAllowed is closed when listing all namespaces is allowed.
	listAllowed <-chan struct{}
	// refusal is the error of listing all namespaces.
	refusal error
	// changed has an element after namespaces were created or deleted.
	changed chan struct{}
}

// next waits for a different set of partitions and returns it. It returns false when they must stop.
func (e *namespaceSelector) next(ctx context.Context) ([]informer.Partition, bool) {
	for ctx.Err() == nil {
		known, changed := e.namespaces.Current()
		names := e.selected(known)
		changedSet := (known.Listed || len(names) > 0) && e.update(names)
		e.report(known)
		if changedSet {
			return e.partitions(), true
		}
		select {
		case <-e.changed:
		case <-e.Selections.changes():
		case <-changed:
		case <-e.listAllowed:
			return nil, false
		case <-ctx.Done():
		}
	}
	return nil, false
}

// selected returns the namespaces to read. If the server does not list them, it returns the exact names.
func (e *namespaceSelector) selected(known KnownNamespaces) []string {
	switch {
	case known.Listed:
		return slices.DeleteFunc(known.Names, func(name string) bool { return !e.Namespaces.Has(name) })
	case known.Unlistable:
		return e.Namespaces.exactNames()
	}
	return nil
}

// report reports the partitions, and why their set may be incomplete, to Health.
func (e *namespaceSelector) report(known KnownNamespaces) {
	var err error
	switch {
	case known.Reason == status.ReasonNone && !known.Listed:
		return // the factory shuts down
	case known.Reason != status.ReasonNone:
		err = fmt.Errorf("%w; the namespaces are unknown: %w", e.refusal, known.Err)
	}
	e.Health.SetPartitions(e.names(), "namespaces "+e.Namespaces.String(), known.Reason, err)
}
