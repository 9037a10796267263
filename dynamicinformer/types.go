package dynamicinformer

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/internal/follow"
)

// TypeSource tells which types an API server has. It is an interface of this package, so that importing
// the informers does not cost the import of discovery.
type TypeSource interface {
	// Subscribe calls the methods of listener, in order and never two at a time: for every type that is
	// known now, and then for every change. The returned func ends that; it may return before a call
	// that is under way does.
	Subscribe(listener TypeListener) (stop func())
}

// TypeSourceErr is what a TypeSource may have besides: the conditions of a factory then tell why it is not known
// yet which types there are.
type TypeSourceErr interface {
	// Err returns what keeps the source from telling all there are; nil when it has, or when nothing is known
	// to be wrong.
	Err() error
}

// TypeListener is told what a TypeSource knows.
type TypeListener interface {
	// SetType tells that a type exists as described, new or changed.
	SetType(t Type)
	// RemoveType tells that a type is known to exist no longer. That it could not be looked at is no
	// reason to call this.
	RemoveType(gr schema.GroupResource)
	// SetUnknown replaces the group versions that could not be discovered, with the cause of each. Types of them
	// may exist although SetType was not called. Call it before SetComplete, and after SetType for the types of
	// group versions that are no longer unknown. The listener keeps the map; do not change it.
	SetUnknown(unknown map[schema.GroupVersion]error)
	// SetComplete tells that the types told so far are all there are. It is called once, unless the
	// source never gets to know.
	SetComplete()
}

// Type is what informers need to know of a type.
type Type struct {
	GroupResource schema.GroupResource
	Kind          string
	Namespaced    bool
	// UID is that of the CRD; another one makes it another type. Empty where it is not known.
	UID types.UID
	// Versions are those that are served and can be listed and watched, the one that the server prefers first. What
	// could not be looked at is still served, as far as this goes.
	Versions []string
	// Unwatchable are those that are served and cannot be listed and watched.
	Unwatchable []string
	// Established is false while the server does not serve the type although its CRD exists.
	Established bool
	// Terminating is true while the CRD is being deleted and objects of the type remain.
	Terminating bool
}

// typeBoard writes what a TypeSource tells where the followers of types look.
type typeBoard struct{ *follow.Board }

var _ TypeListener = typeBoard{}

// SetType implements TypeListener.
func (b typeBoard) SetType(t Type) { b.Set(follow.Type(t)) }

// RemoveType implements TypeListener.
func (b typeBoard) RemoveType(gr schema.GroupResource) { b.Remove(gr) }

// SetUnknown implements TypeListener.
func (b typeBoard) SetUnknown(unknown map[schema.GroupVersion]error) { b.Board.SetUnknown(unknown) }

// SetComplete implements TypeListener.
func (b typeBoard) SetComplete() { b.Complete() }
