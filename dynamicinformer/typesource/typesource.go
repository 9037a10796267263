package typesource

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Source reports the types of an API server to listeners.
type Source interface {
	// Subscribe calls the methods of the listener in order, one at a time: first for each known type,
	// then for each change. The returned function ends the calls; it may return while a call is running.
	Subscribe(listener Listener) (stop func())
}

// OnDemand is implemented by a Source that finds each type when it is used, and may never call SetComplete.
type OnDemand interface{ FindsTypesOnDemand() }

// AssumeServed is a constant source for a factory that assumes that every type exists, as client-go does. The
// factory then follows no CRDs.
var AssumeServed Source = assumed{}

type assumed struct{}

func (assumed) Subscribe(Listener) (stop func()) { return func() {} }

// Listener receives the types of a Source.
type Listener interface {
	// SetType reports a new or changed type.
	SetType(t Type)
	// RemoveType reports that the server no longer serves a type. deleted states that its CRD is known to be
	// deleted, and its objects with it. Otherwise they may exist elsewhere, as after the removal of an
	// APIService. A source must not call RemoveType for a type that it merely failed to look up.
	RemoveType(gr schema.GroupResource, deleted bool)
	// SetUnknown replaces the group versions that could not be discovered, with the cause of each. Their
	// types may exist although SetType was not called. Call it before SetComplete, and call it after
	// SetType for the types of group versions that have become known. The empty group version has the reason
	// why the source cannot report all types, which the factory's conditions include. The listener keeps the
	// map; do not change it.
	SetUnknown(unknown map[schema.GroupVersion]error)
	// SetComplete reports that all types have been reported. A source calls it at most once.
	SetComplete()
}

// Type describes a type to informers.
type Type struct {
	GroupResource schema.GroupResource
	Kind          string
	Namespaced    bool
	// UID is the UID of the CRD. A different UID means a different type. It is empty if unknown.
	UID types.UID
	// Versions are the served versions that support list and watch, the server's preferred version
	// first. A version that could not be looked up remains in the list.
	Versions []string
	// ListOnly are the served versions that support list but not watch. Informers poll them.
	ListOnly []string
	// Unlistable are the served versions that do not support list.
	Unlistable []string
	// Established is false while the CRD exists and the server does not serve the type.
	Established bool
	// Terminating is true while the CRD is being deleted and objects of the type remain.
	Terminating bool
}
