package query_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// fillCache fills a cache with n packed objects.
func fillCache(b *testing.B, n int, indexes dynamicinformer.IndexSet) *dynamicinformer.Informer {
	b.Helper()
	cache := newCache(b, dynamicinformer.StoragePacked, indexes)
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := make([]any, n)
	for i := range all {
		text := fmt.Sprintf(
			`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d","namespace":"ns%d","uid":"u-%d","resourceVersion":"%d","labels":{"example.com/team":"team-%d"}},"spec":{"class":"class-%d","weight":%d,"hosts":["h%d.example.com"],"text":"%0900d"},"status":{"notAfter":%q}}`,
			i, i%100, i, i, i%50, i%7, i%1000, i, i, begin.Add(time.Duration(i)*time.Minute).
				Format(time.RFC3339))
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON([]byte(text)); err != nil {
			b.Fatal(err)
		}
		all[i] = u
	}
	if err := cache.GetIndexer().Replace(all, "1"); err != nil {
		b.Fatal(err)
	}
	return cache
}

func oneIndex(b testing.TB, text string) *indexers.Functions {
	b.Helper()
	c, err := indexers.Parse(indexers.Source{Name: "x.yaml", Data: []byte(`{apiVersion: crdcache.dev/v1beta1, kind: IndexConfig, metadata: {name: p}, spec: {resources: [
  {name: w, match: {group: example.com, kind: Widget}, indexes: [` + text + `]}]}}`)})
	if err != nil {
		b.Fatal(err)
	}
	return indexers.Compile(c.Resources[0])
}

const benchmarkObjects = 100_000

// BenchmarkAddIndex adds an index to 100,000 objects of 1.2 KB and reports the memory per object.
func BenchmarkAddIndex(b *testing.B) {
	for _, bc := range []struct{ name, index string }{
		{"few values", "{name: i, label: example.com/team}"},
		{"own values", "{name: i, path: '.spec.hosts[*]'}"},
		{"own values sorted", "{name: i, path: .status.notAfter, type: time, order: sorted}"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			s := fillCache(b, benchmarkObjects, nil)
			f := oneIndex(b, bc.index)
			before := heap()
			var grown uint64
			for b.Loop() {
				if err := s.AddIndexes(f); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if grown == 0 {
					grown = heap() - before
				}
				s.RemoveIndexes("i")
				b.StartTimer()
			}
			b.ReportMetric(float64(grown)/benchmarkObjects, "B/object")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchmarkObjects, "ns/object")
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkQuery queries 100,000 objects.
func BenchmarkQuery(b *testing.B) {
	f := functions(b)
	s := fillCache(b, benchmarkObjects, f)
	querier := query.New(query.CacheSource{Informer: s}, f.Indexes()...)
	for _, bc := range []struct {
		name, query string
		options     query.Options
		read        bool // the objects that are found
	}{
		{"one value", "host=h77.example.com", query.Options{}, false},
		{"two indexes", "team=team-7 && class=class-3", query.Options{}, false},
		{"range", "expiry in [2026-01-02T00:00:00Z, 2026-01-02T01:00:00Z)", query.Options{}, false},
		{"few", "weight=77 && team=team-27", query.Options{}, false},
		{"few, sorted", "weight=77 && team=team-27", query.Options{SortBy: "expiry"}, false},
		{"few, read", "weight=77 && team=team-27", query.Options{}, true},
		{"few, sorted and read", "weight=77 && team=team-27", query.Options{SortBy: "expiry"}, true},
		{"few and range", "host=h77.example.com && expiry>=2026-01-01T00:00:00Z", query.Options{}, false},
		{"first of an order", "*", query.Options{SortBy: "expiry", Limit: 10}, false},
		{"bodies", `team=team-7 && where("@.spec.weight > 500")`, query.Options{}, false},
		{"full scan", `where("@.spec.weight == 777")`, query.Options{AllowScan: true}, false},
	} {
		b.Run(bc.name, func(b *testing.B) {
			q, err := query.Parse(bc.query)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			found := 0
			for b.Loop() {
				r, err := querier.Query(b.Context(), q, bc.options)
				if err != nil {
					b.Fatal(err)
				}
				found = r.Len()
				if bc.read {
					r.Objects()
				}
			}
			b.ReportMetric(float64(found), "found")
		})
	}
}

// BenchmarkSortFew sorts 11 of 50,000 objects in several orders and reads keys or objects. Sorting by a
// declared index must cost little more than no order; a path is read from each object.
func BenchmarkSortFew(b *testing.B) {
	f := functions(b)
	querier := query.New(query.CacheSource{Informer: fillCache(b, 50_000, f)}, f.Indexes()...)
	q := query.Prefix("host", "h1234")
	for _, read := range []bool{false, true} {
		for _, sortBy := range []string{"", "expiry", "expiry desc, weight", ".spec.weight"} {
			b.Run(fmt.Sprintf("by=%s/read=%v", sortBy, read), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r, err := querier.Query(b.Context(), q, query.Options{SortBy: sortBy})
					if err != nil || r.Len() != 11 {
						b.Fatal(r, err)
					}
					if read {
						r.Objects()
					}
				}
			})
		}
	}
}

// BenchmarkMatch matches single objects, as a subscription does for each event.
func BenchmarkMatch(b *testing.B) {
	matcher, err := query.NewMatcher(query.And(query.Eq("team", "edge"), query.Less("weight", "10")),
		functions(b).Indexes()...)
	if err != nil {
		b.Fatal(err)
	}
	var u *unstructured.Unstructured = simple("a/x", "edge", 3, "gold")
	b.ReportAllocs()
	for b.Loop() {
		if !matcher.Match(u) {
			b.Fatal("it does not hold")
		}
	}
}
