package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers/query"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

const (
	// recountFactor limits counting to 5% of a processor. A count that took a time is reused for
	// recountFactor times this time.
	recountFactor = 20
	// maxConditions limits the conditions of a type in an answer, and maxStatuses the counted
	// combinations of namespace, condition and status. Objects could have any number of them.
	maxConditions = 40
	maxStatuses   = 50_000
)

var conditionsPath = jsonpath.MustCompile(".status.conditions[*]")

// conditionStatus is a status of a condition in a namespace. Cluster-scoped objects have no namespace. The
// tone depends on the reason, too.
type conditionStatus struct{ namespace, kind, status, tone string }

// healthCount counts the objects of a type and their conditions by namespace. It is immutable.
type healthCount struct {
	fingerprint [3]int64 // of the type's row when it was counted
	reuseUntil  time.Time
	objects     map[string]namespaceCount
	statuses    map[conditionStatus]int
}

// healthCounts caches the counts of informers. It is safe for concurrent use.
type healthCounts struct {
	mu struct {
		sync.Mutex
		counts map[*dynamicinformer.Informer]*healthCount
	}
}

// countChanged counts types that have changed since they were counted. It returns the counts of all types.
func (c *healthCounts) countChanged(ctx context.Context, types []*visibleType,
	rows []*sampledRow) (map[*dynamicinformer.Informer]*healthCount, error) {
	fingerprints := map[string][3]int64{}
	for _, r := range rows {
		fingerprints[r.ID] = [3]int64{r.Events, int64(r.Relists), int64(r.Objects)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[*dynamicinformer.Informer]*healthCount{}
	for _, typ := range types {
		if cached := c.mu.counts[typ.informer]; cached != nil &&
			(cached.fingerprint == fingerprints[typ.id] || time.Now().Before(cached.reuseUntil)) {
			counts[typ.informer] = cached
		} else if counts[typ.informer] == nil {
			start := time.Now()
			count, err := countHealth(ctx, typ.informer)
			if err != nil {
				return nil, err
			}
			now := time.Now()
			count.fingerprint = fingerprints[typ.id]
			count.reuseUntil = now.Add(recountFactor * now.Sub(start))
			counts[typ.informer] = count
		}
	}
	c.mu.counts = counts
	return counts, nil
}

func countHealth(ctx context.Context, informer *dynamicinformer.Informer) (*healthCount, error) {
	health := &healthCount{objects: map[string]namespaceCount{}, statuses: map[conditionStatus]int{}}
	gr := informer.GVR().GroupResource()
	for key, object := range informer.Snapshot().AllStored() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		namespace, _, namespaced := strings.Cut(key, "/")
		if !namespaced {
			namespace = ""
		}
		count, exists := health.objects[namespace]
		if !exists {
			namespace = strings.Clone(namespace) // keys share the memory of the objects
		}
		bytes := forEachCondition(object, func(kind, status, reason string) {
			condition := conditionStatus{namespace, kind, status, toneOf(gr, kind, status, reason)}
			if health.statuses[condition] > 0 || len(health.statuses) < maxStatuses {
				health.statuses[condition]++
			}
		})
		health.objects[namespace] = namespaceCount{namespace, count.Objects + 1, count.Bytes + bytes}
	}
	return health, nil
}

// forEachCondition yields the conditions of an object. It returns the length of the JSON of a packed object,
// or 0.
func forEachCondition(object any, yield func(kind, status, reason string)) (bytes int) {
	switch object := object.(type) {
	case dynamicinformer.PackedObject:
		_ = object.ReadJSON(func(text []byte) error { // a damaged object has no conditions
			bytes = len(text)
			return conditionsPath.FindJSON(text, func(v jsonpath.Value) bool {
				yieldCondition(v.Any(), yield)
				return true
			})
		})
	case *unstructured.Unstructured:
		conditionsPath.Find(object.Object, func(v any) bool {
			yieldCondition(v, yield)
			return true
		})
	}
	return bytes
}

func yieldCondition(value any, yield func(kind, status, reason string)) {
	c, _ := value.(map[string]any)
	if kind := nestedString(c, "type"); kind != "" {
		yield(cellText(kind), cellText(nestedString(c, "status")), nestedString(c, "reason"))
	}
}

type healthAnswer struct {
	Namespaces []namespaceCount `json:"namespaces"`
	Types      []typeHealth     `json:"types"`
}

type namespaceCount struct {
	Name    string `json:"name"`
	Objects int    `json:"objects"`
	Bytes   int    `json:"bytes"` // of the JSON of packed objects
}

// typeHealth counts the visible objects of a type in the requested namespace, or in all namespaces.
type typeHealth struct {
	Type       string            `json:"type"`
	Objects    int               `json:"objects"`
	Conditions []conditionHealth `json:"conditions,omitempty"`
	// Dropped is set if the cache does not store the conditions.
	Dropped bool `json:"dropped,omitempty"`
}

type conditionHealth struct {
	Type string `json:"type"`
	// Good, Bad and Open count the objects by the meaning of the status.
	Good int `json:"good"`
	Bad  int `json:"bad"`
	Open int `json:"open"`
	// BadStatus is the status of the bad objects. Query matches these objects.
	BadStatus string `json:"badStatus,omitempty"`
	Query     string `json:"query,omitempty"`
}

// health returns the namespaces and the conditions of all types. Types with hidden values have no conditions.
func (h *Handler) health(r *http.Request) (any, error) {
	types, err := h.scopedTypes(r)
	if err != nil {
		return nil, err
	}
	types = slices.DeleteFunc(types, func(typ *visibleType) bool { return typ.scope.empty() })
	rows, _, _ := h.figures.latest()
	counts, err := h.counts.countChanged(r.Context(), types, rows)
	if err != nil {
		return nil, err
	}
	namespaceFilter, namespaces := r.FormValue("namespace"), map[string]namespaceCount{}
	out := healthAnswer{Namespaces: []namespaceCount{}, Types: []typeHealth{}}
	for _, typ := range types {
		count, health := counts[typ.informer], typeHealth{Type: typ.id,
			Dropped: typ.informer.Drops(".status.conditions..")}
		isVisible := func(namespace string) bool {
			return typ.scope.allows(namespace+"/") && (namespace != "" || typ.scope.All)
		}
		for namespace, n := range count.objects {
			if !isVisible(namespace) {
				continue
			}
			if namespace != "" {
				total := namespaces[namespace]
				total = namespaceCount{namespace, total.Objects + n.Objects, total.Bytes + n.Bytes}
				namespaces[namespace] = total
			}
			if namespaceFilter == "" || namespaceFilter == namespace {
				health.Objects += n.Objects
			}
		}
		if !h.hidesValues(typ) {
			health.Conditions = count.conditions(func(namespace string) bool {
				return isVisible(namespace) && (namespaceFilter == "" || namespaceFilter == namespace)
			})
		}
		out.Types = append(out.Types, health)
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		out.Namespaces = append(out.Namespaces, namespaces[name])
	}
	return out, nil
}

// conditions returns the conditions in the selected namespaces, sorted by name, up to maxConditions.
func (c *healthCount) conditions(isSelected func(namespace string) bool) []conditionHealth {
	byKind := map[string]*conditionHealth{}
	for status, objects := range c.statuses {
		if !isSelected(status.namespace) {
			continue
		}
		health := byKind[status.kind]
		if health == nil {
			health = &conditionHealth{Type: status.kind}
			byKind[status.kind] = health
		}
		switch status.tone {
		case toneGood:
			health.Good += objects
		case toneBad:
			health.Bad += objects
			health.BadStatus = status.status
			health.Query = query.Where(fmt.Sprintf("@.status.conditions[?(@.type==%s && @.status==%s && @.reason!=%s)]",
				quoteJSON(status.kind), quoteJSON(status.status), quoteJSON(reasonOfEnd))).String()
		default:
			health.Open += objects
		}
	}
	var all []conditionHealth
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		all = append(all, *byKind[kind])
	}
	return all[:min(len(all), maxConditions)]
}
