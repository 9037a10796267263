package discovery

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
)

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
