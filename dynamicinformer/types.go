package dynamicinformer

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
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

// identity is what makes a type the same as before.
type identity struct {
	kind       string
	namespaced bool
	uid        types.UID
}

func (t Type) identity() identity {
	return identity{kind: t.Kind, namespaced: t.Namespaced, uid: t.UID}
}

// same reports whether two identities are of one type. A UID that is not known is no difference.
func (i identity) same(other identity) bool {
	if i.uid == "" || other.uid == "" {
		i.uid, other.uid = "", ""
	}
	return i == other
}

// sees is what is known about one type at one moment.
type sees struct {
	Type
	exists   bool
	complete bool // the source has told all there are
}

// runnable returns which version an informer can follow with these options, asked being the version that it was
// asked for, and otherwise what it waits for.
func (s sees) runnable(asked string, options ResourceOptions) (version string, waits Reason) {
	switch {
	case !s.exists && !s.complete:
		return "", ReasonTypesUnknown
	case !s.exists:
		return "", ReasonNotInstalled
	case !s.Established:
		return "", ReasonNotEstablished
	}
	version, waits = options.Versions.choose(asked, s.Type)
	if waits == ReasonNone && options.Namespaces.limited() && !s.Namespaced {
		return "", ReasonScopeConflict
	}
	return version, waits
}

// ended returns why a generation that follows the type as it was must end, whatever its version. A type that is
// no longer established still has its objects: only what cannot come back ends a generation.
func (s sees) ended(was identity) Reason {
	switch {
	case !s.exists:
		return ReasonNotInstalled
	case !s.identity().same(was):
		return ReasonReplaced
	}
	return ReasonNone
}

// serves reports whether a version can be listed and watched.
func (s sees) serves(version string) bool { return slices.Contains(s.Versions, version) }

// typeBoard keeps what a TypeSource last told, and wakes those who wait for news of a type.
type typeBoard struct {
	stop func()
	// completed is called when the source has told all there are.
	completed func()

	mu struct {
		sync.Mutex
		types    map[schema.GroupResource]Type
		news     map[schema.GroupResource]chan struct{} // closed and removed at the next change
		complete bool
	}
}

var _ TypeListener = (*typeBoard)(nil)

func newTypeBoard(source TypeSource, completed func()) *typeBoard {
	b := &typeBoard{completed: completed}
	b.mu.types = map[schema.GroupResource]Type{}
	b.mu.news = map[schema.GroupResource]chan struct{}{}
	b.stop = sync.OnceFunc(source.Subscribe(b))
	return b
}

// look returns what is known of a type and a channel that is closed when that changes.
func (b *typeBoard) look(gr schema.GroupResource) (sees, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t, exists := b.mu.types[gr]
	news, ok := b.mu.news[gr]
	if !ok {
		news = make(chan struct{})
		b.mu.news[gr] = news
	}
	return sees{Type: t, exists: exists, complete: b.mu.complete}, news
}

// SetType implements TypeListener.
func (b *typeBoard) SetType(t Type) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.types[t.GroupResource] = t
	b.wakeLocked(t.GroupResource)
}

// RemoveType implements TypeListener.
func (b *typeBoard) RemoveType(gr schema.GroupResource) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.types, gr)
	b.wakeLocked(gr)
}

// SetComplete implements TypeListener.
func (b *typeBoard) SetComplete() {
	defer b.completed()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.complete = true
	for gr := range b.mu.news {
		b.wakeLocked(gr)
	}
}

func (b *typeBoard) wakeLocked(gr schema.GroupResource) {
	if news, ok := b.mu.news[gr]; ok {
		close(news)
		delete(b.mu.news, gr)
	}
}
