package dynamicinformer

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/follow"
)

// Namespaces is a set of namespaces. The zero value means that it is not set, which in the end comes to
// AllNamespaces.
type Namespaces struct{ set follow.Namespaces }

// AllNamespaces is every namespace, with what is in none.
func AllNamespaces() Namespaces { return Namespaces{follow.All()} }

// InNamespaces is these namespaces. Objects of cluster-scoped types are in none.
func InNamespaces(names ...string) Namespaces { return Namespaces{follow.Only(names...)} }

// ExceptNamespaces is every namespace but these, with what is in none. Everything is watched, and what is not
// wanted dropped on arrival; where that is forbidden, it is as with MatchingNamespaces.
func ExceptNamespaces(names ...string) Namespaces { return Namespaces{follow.Except(names...)} }

// MatchingNamespaces is every namespace whose name matches one of include and none of except, where "*"
// stands for any run of characters; without include, every one but those that match except, with what is in
// none. Namespaces count as they come and go.
//
// Everything is watched, and what is not wanted dropped on arrival, where that is allowed. Where listing or
// watching the type in all namespaces is forbidden, an informer of all namespaces, shared by the factory and
// part of its Status, tells which there are, and each that matches is listed and watched by itself, from when
// it comes until it goes. Should the server not tell the namespaces either, those that include has by name
// are followed, and the state is degraded, with ReasonForbidden. While listing the namespaces fails in
// another way, the state is not synced, with the reason of that failure or ReasonNamespacesUnknown. Meanwhile
// the server is asked again every one to five minutes, and on Retry, whether everything may be read, and then
// it is. The cache stays readable through all of that. A type that may be cluster-scoped, as each may be
// without Options.Types, is followed by namespaces only if include has any.
func MatchingNamespaces(include, except []string) Namespaces {
	return Namespaces{follow.Matching(include, except)}
}

// String describes the set: "all", "in a,b", "except a,b", "matching a-*", "matching a-* except a-b", or "not
// matching a-*".
func (n Namespaces) String() string { return n.set.String() }

// namespacesGVR is the type of namespaces.
var namespacesGVR = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// namespaces returns the list of all namespaces, from an informer of the factory's own that runs while
// somebody has the list. It fails after Shutdown.
func (f *Factory) namespaces() (follow.NamespaceList, error) {
	options := ResourceOptions{
		Namespaces: AllNamespaces(), Storage: Storage{Mode: StorageMetadata},
		Indexers: byNamespace,
	}
	key := entryKeyOf(namespacesGVR, options)
	key.own = true
	h, err := f.claim(claim{key: key, options: options})
	if err != nil {
		return nil, err
	}
	return namespaceList{h}, nil
}

// namespaceList is a claim to an informer of all namespaces.
type namespaceList struct{ *Handle }

var _ follow.NamespaceList = namespaceList{}

// Known implements follow.NamespaceList. That credentials are not accepted says nothing about namespaces.
func (l namespaceList) Known() (follow.KnownNamespaces, <-chan struct{}) {
	i := l.Informer()
	current, changed := i.StatusChange()
	var known follow.KnownNamespaces
	if known.Listed = i.HasSynced(); known.Listed {
		known.Names = i.GetStore().ListKeys()
	}
	if known.Listed && current.State != status.Degraded || current.State == status.Stopped {
		return known, changed
	}
	known.Refused = current.Settled() && current.Reason != status.ReasonUnauthorized
	known.Err = cmp.Or(current.LastError, errors.New(current.Message))
	switch known.Reason = current.Reason; {
	case known.Refused:
		// whatever the reason, it is not that the type itself does not exist
		known.Reason = status.ReasonForbidden
	case known.Reason == status.ReasonNone:
		known.Reason = status.ReasonNamespacesUnknown
	}
	return known, changed
}

// Notify implements follow.NamespaceList.
func (l namespaceList) Notify(changed func()) (stop func()) {
	i := l.Informer()
	tell := func(any) { changed() }
	told, err := i.AddEventHandler(MetadataOnly(cache.ResourceEventHandlerFuncs{AddFunc: tell,
		DeleteFunc: tell}))
	if err != nil { // it has stopped, with the factory
		return func() {}
	}
	return func() { _ = i.RemoveEventHandler(told) } // it fails only for a registration of another kind
}
