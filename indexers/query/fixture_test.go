package query_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/query"
)

// cacheSource is a source of an informer that does not run: tests fill its cache.
type cacheSource struct{ *dynamicinformer.Informer }

func (s cacheSource) Snapshot() query.Snapshot {
	return cacheSnapshot{bind.ForInformer(s.Informer).Snapshot().(limitedSnapshot)}
}

type cacheSnapshot struct{ limitedSnapshot }

func (cacheSnapshot) Freshness() query.Freshness { return query.Freshness{Synced: true} }

type limitedSnapshot interface {
	query.Snapshot
	Dropped(index string) uint64
	Skipped(index string) uint64
	Err() error
}

const config = `apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: test}
spec:
  resources:
  - name: widgets
    match: {group: example.com, kind: Widget}
    indexes:
    - {name: team, label: example.com/team}
    - {name: tier, path: .metadata.labels.tier, order: Sorted, regex: {match: '^.'}, transform: [Upper]}
    - {name: webs, label: tier, when: '@.metadata.labels.tier == "web"'}
    - {name: class, path: .spec.class, missing: AsNull}
    - {name: host, path: '.spec.hosts[*]', order: Sorted, transform: [Lower]}
    - {name: weight, path: .spec.weight, type: Int, order: Sorted}
    - {name: weights, path: '.spec.weights[*]', type: Int, order: Sorted, missing: AsNull}
    - {name: expiry, path: .status.notAfter, type: Time, order: Sorted}
    - {name: address, path: .spec.address, type: IP, order: Sorted}
    - {name: network, path: .spec.network, type: CIDR, order: Sorted}
    - {name: addresses, path: '.spec.addresses[*]', type: IP}
    - {name: size, path: .spec.size, type: Quantity}
    - name: place
      key: [{name: namespace, path: .metadata.namespace}, {name: class, path: .spec.class}]
    - name: ordered
      order: Sorted
      key: [{name: class, path: .spec.class}, {name: weight, path: .spec.weight, type: Int}]
    - name: condition
      each: '.status.conditions[*]'
      key: [{name: type, path: .type}, {name: status, path: .status}]
    - {name: heavy, path: .metadata.name, when: '@.spec.weight > 5'}
---
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: limited}
spec:
  defaults: {index: {maxValueBytes: 4}}
  resources:
  - name: limited
    match: {group: example.com, kind: Widget}
    indexes:
    - {name: short, label: example.com/team}
`

// functions returns the compiled indexes of the config.
func functions(t testing.TB) *indexers.Functions {
	t.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "test.yaml", Data: []byte(config)})
	noError(t, err)
	return indexers.CompileIndexes(slices.Concat(c.Resources[0].Indexes, c.Resources[1].Indexes)...)
}

type m = map[string]any

// randomWidget returns a random object made of few distinct values.
func randomWidget(random *rand.Rand, n int) *unstructured.Unstructured {
	setSometimes := func(into m, key string, v any) {
		if random.IntN(5) > 0 {
			into[key] = v
		}
	}
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	metadata, spec, status := m{"name": fmt.Sprintf("w%03d", n)}, m{}, m{}
	if random.IntN(8) > 0 {
		metadata["namespace"] = pick("a", "a-b", "b", "c")
	}
	setSometimes(metadata, "creationTimestamp", time.Date(2025, 6, 1, random.IntN(6), 0, 0, 0,
		time.UTC).Format(time.RFC3339))
	labels := m{}
	setSometimes(labels, "example.com/team", pick("edge", "payments", "core"))
	setSometimes(labels, "tier", pick("web", "db"))
	metadata["labels"] = labels
	setSometimes(spec, "class", pick("gold", "silver", "a/b", ""))
	hosts, weights, conditions := []any{}, []any{}, []any{}
	for range random.IntN(3) {
		hosts = append(hosts, pick("www.example.com", "WWW.example.org", "api.example.com", "x",
			"É/\\ö *", ""))
		weights = append(weights, int64(random.IntN(10)-3))
		conditions = append(conditions, m{"type": pick("Ready", "Issuing"), "status": pick("True", "False")})
	}
	setSometimes(spec, "hosts", hosts)
	setSometimes(spec, "weights", weights)
	setSometimes(spec, "weight", int64(random.IntN(12)-2))
	address := func() string {
		return pick("10.0.0.1", "10.255.255.255", "11.0.0.0", "::ffff:10.1.2.3", "2001:db8::1", "2001:db9::",
			"0.0.0.0", "text")
	}
	setSometimes(spec, "address", address())
	setSometimes(spec, "network", pick("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3/32", "0.0.0.0/0", "11.0.0.0/8",
		"2001:db8::/48", "text"))
	setSometimes(spec, "addresses", []any{address(), address()})
	setSometimes(spec, "size", pick("1Gi", "1024Mi", "500m", "2"))
	setSometimes(status, "notAfter", time.Date(2026, 1, 1+random.IntN(20), 0, 0, 0, 0,
		time.UTC).Format(time.RFC3339))
	setSometimes(status, "conditions", conditions)
	return &unstructured.Unstructured{Object: m{"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": metadata, "spec": spec, "status": status}}
}

func keyOf(u *unstructured.Unstructured) string {
	if ns := u.GetNamespace(); ns != "" {
		return ns + "/" + u.GetName()
	}
	return u.GetName()
}

// newCacheQuerier returns a querier over a client-go cache with the indexes of the config.
func newCacheQuerier(t testing.TB, objects ...*unstructured.Unstructured) *query.Querier {
	t.Helper()
	f := functions(t)
	all := f.Indexers()
	all[cache.NamespaceIndex] = cache.MetaNamespaceIndexFunc
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, all)
	for _, o := range objects {
		noError(t, indexer.Add(o))
	}
	return query.New(query.ForIndexer(indexer), f.Indexes()...)
}

// compileIndexes returns the compiled indexes of a config with the given indexes and default limits.
func compileIndexes(b testing.TB, text string, limits ...string) *indexers.Functions {
	b.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "x.yaml", Data: []byte(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: p}, spec: {defaults: {index: {` + strings.Join(limits, ", ") + `}}, resources: [
  {name: w, match: {group: example.com, kind: Widget}, indexes: [` + text + `]}]}}`)})
	noError(b, err)
	return indexers.Compile(c.Resources[0])
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
