package discovery

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Types returns the tracker in the form that a dynamicinformer.Factory follows: see
// dynamicinformer.Options.Types. The tracker must run for as long as the factory does.
func (t *Tracker) Types() dynamicinformer.TypeSource { return typeSource{t} }

type typeSource struct{ tracker *Tracker }

// Subscribe implements dynamicinformer.TypeSource.
func (s typeSource) Subscribe(listener dynamicinformer.TypeListener) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := make(chan struct{}, 1) // held during a call: completeness is told from another goroutine
	serially := func(call func()) {
		calls <- struct{}{}
		defer func() { <-calls }()
		call()
	}
	subscription := s.tracker.Subscribe(func(e Event) {
		serially(func() {
			if e.Kind == Removed {
				listener.RemoveType(e.Type.GroupResource)
				return
			}
			listener.SetType(informerType(e.Type))
		})
	})
	// Ended by the tracker's first sync or by cancel.
	go func() {
		if s.tracker.WaitForSync(ctx) != nil {
			return
		}
		// What the subscription has still to deliver might be missed otherwise.
		for _, t := range s.tracker.Snapshot().Types() {
			serially(func() { listener.SetType(informerType(t)) })
		}
		serially(listener.SetComplete)
	}()
	return func() {
		cancel()
		subscription.Stop()
	}
}

// informerType keeps of a type what informers need.
func informerType(t Type) dynamicinformer.Type {
	out := dynamicinformer.Type{
		GroupResource: schema.GroupResource{Group: t.GroupResource.Group, Resource: t.GroupResource.Resource},
		Kind:          t.Kind,
		Namespaced:    t.Scope == Namespaced,
		UID:           t.UID,
		Established:   t.Established,
	}
	for _, v := range t.Versions {
		switch {
		case !v.Served:
		case hasVerbs(v.Verbs, "list", "watch"):
			out.Versions = append(out.Versions, v.Name)
		default:
			out.Unwatchable = append(out.Unwatchable, v.Name)
		}
	}
	return out
}
