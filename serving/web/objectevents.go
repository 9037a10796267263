package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/naming"
)

const maxEvents = 100

type eventsAnswer struct {
	// Cached reports whether the Events that the user may see are cached.
	Cached bool          `json:"cached"`
	Events []objectEvent `json:"events"`
	More   int           `json:"more,omitempty"`
}

// objectEvent is a Kubernetes Event.
type objectEvent struct {
	Type    string `json:"type"` // Normal or Warning
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Source  string `json:"source,omitempty"`
	Count   int64  `json:"count,omitempty"`
	Last    string `json:"last"`
}

// events returns the Kubernetes Events of an object, the latest first. The object may have been deleted.
func (h *Handler) events(r *http.Request) (any, error) {
	typ, err := h.requestedType(r)
	if err != nil {
		return nil, err
	}
	key := r.FormValue("key")
	if !typ.scope.allows(key) {
		return nil, notFound("object not found: " + key)
	}
	namespace, name := naming.SplitKey(key)
	// The API server serves each Event in both groups with different field names.
	for _, source := range []struct{ id, field string }{{"events/v1", "involvedObject"},
		{"events.events.k8s.io/v1", "regarding"}} {
		events := h.source.find(source.id)
		if events == nil {
			continue
		}
		if err := h.setScopes(r, events); err != nil {
			return nil, err
		}
		if !events.scope.empty() {
			q := query.Where(fmt.Sprintf("@.%s.name==%s && @.%[1]s.kind==%[3]s", source.field,
				quoteJSON(name),
				quoteJSON(h.source.kind(typ).Kind)))
			if namespace != "" {
				q = query.And(query.Namespace(namespace), q)
			}
			return h.eventsOf(r, events, q)
		}
	}
	return eventsAnswer{Events: []objectEvent{}}, nil
}

func (h *Handler) eventsOf(r *http.Request, events *visibleType, q query.Query) (any, error) {
	result, err := h.evaluator(events).query(r.Context(), q, query.Options{AllowScan: true})
	if err != nil {
		return nil, err
	}
	out := eventsAnswer{Cached: true, Events: []objectEvent{}}
	for _, key := range result.Keys() {
		object := h.content(events, key)
		if object == nil {
			continue // it has just been deleted
		}
		text := func(path ...string) string { return nestedString(object.Object, path...) }
		event := objectEvent{Type: text("type"), Reason: text("reason"),
			Message: cmp.Or(text("message"), text("note")),
			Source:  cmp.Or(text("source", "component"), text("reportingComponent"), text("reportingController")),
			Last: cmp.Or(text("series", "lastObservedTime"), text("lastTimestamp"), text("deprecatedLastTimestamp"),
				text("eventTime"), text("metadata", "creationTimestamp"))}
		series, _ := object.Object["series"].(map[string]any)
		for _, count := range []any{series["count"], object.Object["count"], object.Object["deprecatedCount"]} {
			if n, ok := count.(int64); ok && event.Count == 0 {
				event.Count = n
			}
		}
		out.Events = append(out.Events, event)
	}
	slices.SortStableFunc(out.Events, func(a, b objectEvent) int { return cmp.Compare(b.Last, a.Last) })
	out.More = max(0, len(out.Events)-maxEvents)
	out.Events = out.Events[:min(len(out.Events), maxEvents)]
	return out, nil
}

func quoteJSON(text string) string {
	quoted, _ := json.Marshal(text) // never fails
	return string(quoted)
}
