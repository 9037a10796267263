package discovery

import (
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/queue"
)

// EventAction is the kind of change of a type.
type EventAction string

const (
	// Added is sent for every existing type when a handler subscribes, and for every new one.
	Added EventAction = "Added"
	// Changed is sent when a type changes; a change of its schemas changes Type.Generation.
	Changed EventAction = "Changed"
	// Removed is sent when the server no longer serves a type; see Event.Deleted. A CRD that was deleted and
	// created again is Removed and then Added, even if both were observed together.
	Removed EventAction = "Removed"
	// Synced is sent once to each handler, after the Added events of all existing types, and not before
	// TrackerStatus.Synced is true. Its Type is empty.
	Synced EventAction = "Synced"
	// FailuresChanged is sent when the set of group versions with failed or stale discovery changes, or
	// Event.Err. When discovery of a group version succeeds again, the events of its types are sent first.
	// The Type of the event is empty.
	FailuresChanged EventAction = "FailuresChanged"
)

// Event is a change of the served types.
type Event struct {
	Action EventAction
	// Type is the current type; for Removed, the last one.
	Type Type
	// Old is the previous type, for Changed only.
	Old Type
	// Deleted is set for Removed if the type's CRD is known to be deleted, and its objects with it. Otherwise
	// they may exist: after the removal of an APIService, or while CRDs cannot be read.
	Deleted bool
	// FailedGroupVersions lists all group versions with failed or stale discovery, for FailuresChanged only.
	FailedGroupVersions []GroupFailure
	// Err is the reason why the tracker is not synced, for FailuresChanged only. Nil if no reason is known.
	Err error
}

// sameType reports whether two states of a type are equal.
func sameType(a, b Type) bool {
	sameVersions := slices.EqualFunc(a.Versions, b.Versions, sameVersion)
	a.Versions, b.Versions = nil, nil
	return sameVersions && apiequality.Semantic.DeepEqual(a, b)
}

func sameVersion(a, b TypeVersion) bool {
	return a.Name == b.Name && a.Served == b.Served && a.Storage == b.Storage && a.Kind == b.Kind &&
		equalSets(a.Verbs, b.Verbs) && equalSets(a.Subresources, b.Subresources)
}

// equalSets compares without order, because the discovery forms sort verbs differently.
func equalSets(a, b []string) bool {
	return slices.Equal(a, b) ||
		slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// Subscription delivers the events of a Tracker to one handler, in order. A slow handler does not delay
// others. It has a goroutine only while events are queued.
type Subscription struct {
	tracker *Tracker
	handler func(Event)
	calls   *queue.Calls
}

// Stop ends the delivery and drops queued events. It does not wait for a call of the handler in progress (see
// Done), so that handlers can call it. It is idempotent.
func (s *Subscription) Stop() {
	s.calls.Close()
	s.tracker.mu.Lock()
	defer s.tracker.mu.Unlock()
	s.tracker.forgetEndedLocked()
}

// Done returns a channel that is closed after Stop or the end of the tracker, when no handler is called.
func (s *Subscription) Done() <-chan struct{} { return s.calls.Done() }

// push queues events. It never blocks.
func (s *Subscription) push(events []Event) {
	s.calls.Push(naming.Map(events, func(e Event) func() { return func() { s.handler(e) } })...)
}

// Types returns the tracker, which must run as long as the factory, for dynamicinformer.Options.Types.
func (t *Tracker) Types() typesource.Source { return typeSource{t} }

type typeSource struct{ tracker *Tracker }

func (s typeSource) Subscribe(listener typesource.Listener) (stop func()) {
	return s.tracker.Subscribe(func(e Event) {
		switch e.Action {
		case Added, Changed:
			listener.SetType(informerType(e.Type))
		case Removed:
			listener.RemoveType(e.Type.GroupResource, e.Deleted)
		case FailuresChanged:
			unknown := make(map[schema.GroupVersion]error, len(e.FailedGroupVersions))
			for _, f := range e.FailedGroupVersions {
				unknown[f.GroupVersion] = f.Err
			}
			if e.Err != nil {
				unknown[schema.GroupVersion{}] = e.Err
			}
			listener.SetUnknown(unknown)
		case Synced:
			listener.SetComplete()
		}
	}).Stop
}

func informerType(t Type) typesource.Type {
	out := typesource.Type{
		GroupResource: t.GroupResource,
		Kind:          t.Kind,
		Namespaced:    t.Scope == Namespaced,
		UID:           t.UID,
		Established:   t.Established,
		Terminating:   t.Terminating,
	}
	for _, v := range t.Versions {
		switch {
		case !v.Served:
		case !slices.Contains(v.Verbs, "list"):
			out.Unlistable = append(out.Unlistable, v.Name)
		case slices.Contains(v.Verbs, "watch"):
			out.Versions = append(out.Versions, v.Name)
		default:
			out.ListOnly = append(out.ListOnly, v.Name)
		}
	}
	return out
}
