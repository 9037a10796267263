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
	// recountFactor limits counting to 5% of a processor: a count is reused for this multiple of its
	// duration.
	recountFactor = 20
	// maxConditions limits the conditions of a type in an answer, and maxStatuses those that are counted.
	// Their names come from objects.
	maxConditions = 40
	maxStatuses   = 50_000
)

var conditionsPath = jsonpath.MustCompile(".status.conditions[*]")

// conditionStatus is a condition of the objects in a namespace. Cluster-scoped objects have no namespace.
type conditionStatus struct{ namespace, kind, status string }

// healthCount has the numbers of a type's objects and of their conditions, by namespace. It is immutable.
type healthCount struct {
	fingerprint [3]int64 // of the type's row when it was counted
	reuseTill   time.Time
	objects     map[string]namespaceCount
	statuses    map[conditionStatus]int
}

// healthCounts has the counts of informers, which are counted on request. It is safe for concurrent use.
type healthCounts struct {
	mu struct {
		sync.Mutex
		counts map[*dynamicinformer.Informer]*healthCount
	}
}

// update counts the changed types, and returns the counts of all.
func (c *healthCounts) update(ctx context.Context, types []*visibleType,
	rows []*sampledRow) (map[*dynamicinformer.Informer]*healthCount, error) {
	fingerprints := map[string][3]int64{}
	for _, r := range rows {
		fingerprints[r.ID] = [3]int64{r.Events, int64(r.Relists), int64(r.Objects)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := map[*dynamicinformer.Informer]*healthCount{}
	for _, typ := range types {
		if known := c.mu.counts[typ.informer]; known != nil &&
			(known.fingerprint == fingerprints[typ.id] || time.Now().Before(known.reuseTill)) {
			counts[typ.informer] = known
		} else if counts[typ.informer] == nil {
			began := time.Now()
			counted, err := countHealth(ctx, typ.informer)
			if err != nil {
				return nil, err
			}
			now := time.Now()
			counted.fingerprint = fingerprints[typ.id]
			counted.reuseTill = now.Add(recountFactor * now.Sub(began))
			counts[typ.informer] = counted
		}
	}
	c.mu.counts = counts
	return counts, nil
}

func countHealth(ctx context.Context, informer *dynamicinformer.Informer) (*healthCount, error) {
	counted := &healthCount{objects: map[string]namespaceCount{}, statuses: map[conditionStatus]int{}}
	for key, object := range informer.Snapshot().AllStored() {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		namespace, _, namespaced := strings.Cut(key, "/")
		if !namespaced {
			namespace = ""
		}
		count, exists := counted.objects[namespace]
		if !exists {
			namespace = strings.Clone(namespace) // keys share the memory of the objects
		}
		bytes := forEachCondition(object, func(kind, status string) {
			at := conditionStatus{namespace, kind, status}
			if counted.statuses[at] > 0 || len(counted.statuses) < maxStatuses {
				counted.statuses[at]++
			}
		})
		counted.objects[namespace] = namespaceCount{namespace, count.Objects + 1, count.Bytes + bytes}
	}
	return counted, nil
}

// forEachCondition reads the conditions of an object, and returns the length of its JSON, if it is packed.
func forEachCondition(object any, yield func(kind, status string)) (bytes int) {
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

func yieldCondition(value any, yield func(kind, status string)) {
	c, _ := value.(map[string]any)
	if kind := nestedString(c, "type"); kind != "" {
		yield(cellText(kind), cellText(nestedString(c, "status")))
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

// typeHealth has the visible objects of a type in the requested namespace, or in all.
type typeHealth struct {
	Type       string            `json:"type"`
	Objects    int               `json:"objects"`
	Conditions []conditionHealth `json:"conditions,omitempty"`
}

type conditionHealth struct {
	Type string `json:"type"`
	// Good, Bad and Open are the numbers of objects by the meaning of the status.
	Good int `json:"good"`
	Bad  int `json:"bad"`
	Open int `json:"open"`
	// BadStatus is the status of the bad objects, and Query matches these.
	BadStatus string `json:"badStatus,omitempty"`
	Query     string `json:"query,omitempty"`
}

// health returns the conditions of all types, and the namespaces. Types with hidden values have no
// conditions.
func (h *Handler) health(r *http.Request) (any, error) {
	types, err := h.scopedTypes(r)
	if err != nil {
		return nil, err
	}
	types = slices.DeleteFunc(types, func(typ *visibleType) bool { return typ.scope.empty() })
	rows, _ := h.figures.latest()
	counts, err := h.counts.update(r.Context(), types, rows)
	if err != nil {
		return nil, err
	}
	namespaceFilter, namespaces := r.FormValue("namespace"), map[string]namespaceCount{}
	out := healthAnswer{Namespaces: []namespaceCount{}, Types: []typeHealth{}}
	for _, typ := range types {
		counted, health := counts[typ.informer], typeHealth{Type: typ.id}
		selects := func(namespace string) bool {
			return typ.scope.allows(namespace+"/") && (namespace != "" || typ.scope.All)
		}
		for namespace, n := range counted.objects {
			if !selects(namespace) {
				continue
			}
			if namespace != "" {
				all := namespaces[namespace]
				all = namespaceCount{namespace, all.Objects + n.Objects, all.Bytes + n.Bytes}
				namespaces[namespace] = all
			}
			if namespaceFilter == "" || namespaceFilter == namespace {
				health.Objects += n.Objects
			}
		}
		if !h.hidesValues(typ) {
			health.Conditions = counted.conditions(func(namespace string) bool {
				return selects(namespace) && (namespaceFilter == "" || namespaceFilter == namespace)
			})
		}
		out.Types = append(out.Types, health)
	}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		out.Namespaces = append(out.Namespaces, namespaces[name])
	}
	return out, nil
}

// conditions returns the most frequent conditions in the selected namespaces, by name.
func (c *healthCount) conditions(selects func(namespace string) bool) []conditionHealth {
	byKind := map[string]*conditionHealth{}
	for status, objects := range c.statuses {
		if !selects(status.namespace) {
			continue
		}
		health := byKind[status.kind]
		if health == nil {
			health = &conditionHealth{Type: status.kind}
			byKind[status.kind] = health
		}
		switch guessTone(status.kind, status.status) {
		case "good":
			health.Good += objects
		case "bad":
			health.Bad += objects
			health.BadStatus = status.status
			health.Query = query.Where(fmt.Sprintf("@.status.conditions[?(@.type==%s && @.status==%s)]", quote(status.kind),
				quote(status.status))).String()
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
