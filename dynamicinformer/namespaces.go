package dynamicinformer

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/follow"
)

// Namespaces is a set of namespaces. The zero value is unset; the default is AllNamespaces.
type Namespaces struct{ set follow.Namespaces }

// AllNamespaces selects all namespaces and cluster-scoped objects.
func AllNamespaces() Namespaces { return Namespaces{follow.AllNamespaces()} }

// InNamespaces selects these namespaces, and no cluster-scoped objects.
func InNamespaces(names ...string) Namespaces { return Namespaces{follow.OnlyNamespaces(names...)} }

// ExceptNamespaces selects all namespaces except these, and cluster-scoped objects. The informer watches all
// namespaces and drops the excluded objects. If that is forbidden, it behaves like MatchingNamespaces.
func ExceptNamespaces(names ...string) Namespaces {
	return Namespaces{follow.AllNamespacesExcept(names...)}
}

// MatchingNamespaces selects the namespaces that match a pattern of include and no pattern of except. "*"
// matches any characters. With an empty include it selects cluster-scoped objects and all namespaces
// that except does not match. The set follows the namespaces of the cluster.
//
// If the program may list and watch the type in all namespaces, the informer does so and drops objects
// in other namespaces. Otherwise the factory runs a shared informer of namespaces, which appears in its
// Status, and each matching namespace has its own watch. If the program may not list namespaces either,
// the informer watches the namespaces that include names literally, and is Degraded with
// ReasonForbidden. If listing namespaces fails otherwise, the informer is not synced, with the reason
// of the failure or ReasonNamespacesUnknown. Every one to five minutes, and on Retry, the informer
// checks whether it may watch all namespaces by now. The cache stays readable.
//
// A type that may be cluster-scoped (every type without Options.Types) is watched by namespace only if
// include is not empty.
func MatchingNamespaces(include, except []string) Namespaces {
	return Namespaces{follow.NamespacesMatching(include, except)}
}

// String describes the set: "all", "in a,b", "except a,b", "matching a-*", "not matching a-*" and so on.
func (n Namespaces) String() string { return n.set.String() }

var namespacesGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// namespaces returns the list of all namespaces. The factory's own informer runs while a caller holds the
// list. It returns ErrShutdown after Shutdown.
func (f *Factory) namespaces() (follow.NamespaceList, error) {
	options := ResourceOptions{
		Namespaces: AllNamespaces(), Storage: Storage{Mode: StorageMetadata},
		Indexers: byNamespace,
	}
	key := entryKeyOf(namespacesGVR, options)
	key.ownedByFactory = true
	h, err := f.findOrMake(acquireRequest{key: key, options: options})
	if err != nil {
		return nil, err
	}
	return namespaceList{h}, nil
}

// namespaceList is a handle to the informer of namespaces.
type namespaceList struct{ *Handle }

// Current implements follow.NamespaceList. Rejected credentials (401) do not mean that listing is forbidden.
func (l namespaceList) Current() (follow.KnownNamespaces, <-chan struct{}) {
	i := l.Informer()
	current, changed := i.StatusChange()
	var known follow.KnownNamespaces
	if known.Listed = i.HasSynced(); known.Listed {
		known.Names = i.GetStore().ListKeys()
	}
	if known.Listed && current.State != status.Degraded || current.State == status.Stopped {
		return known, changed
	}
	known.Unlistable = current.Settled() && current.Reason != status.ReasonUnauthorized
	known.Err = cmp.Or(current.LastError, errors.New(current.Message))
	switch known.Reason = current.Reason; {
	case known.Unlistable:
		// another reason would seem to concern the type itself
		known.Reason = status.ReasonForbidden
	case known.Reason == status.ReasonNone:
		known.Reason = status.ReasonNamespacesUnknown
	}
	return known, changed
}

func (l namespaceList) OnChange(changed func()) (stop func()) {
	i := l.Informer()
	notify := func(any) { changed() }
	registration, err := i.AddEventHandler(MetadataOnly(cache.ResourceEventHandlerFuncs{AddFunc: notify,
		DeleteFunc: notify}))
	if err != nil { // it has stopped, with the factory
		return func() {}
	}
	return func() { _ = i.RemoveEventHandler(registration) } // fails only for a foreign registration
}
