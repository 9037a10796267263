package query_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// fieldDroppingOptions has options that drop fields of widgets.
var fieldDroppingOptions = map[string]dynamicinformer.ResourceOptions{
	"keep": {Keep: dynamicinformer.Keep{Paths: []string{".spec.class", ".spec.weight",
		".status.conditions[*].type"}}},
	"prune": {Prune: dynamicinformer.Prune{Paths: []string{".spec.hosts", ".status.conditions[*].status",
		".metadata.labels.tier", ".metadata.creationTimestamp"}}},
	"metadata": {Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}},
}

// TestDroppedFields verifies that a query fails and names the field if any part of it reads a dropped field.
func TestDroppedFields(t *testing.T) {
	f := functions(t)
	for name, queries := range map[string]map[string]query.Options{
		"keep": {`host=x`: {}, `where(".spec.hosts[*]")`: {}, `place=a/gold || network=10.0.0.0/8`: {},
			`where('.status.conditions[?(@.status=="True")].type')`: {}, `where("..name")`: {}, `where(".spec.*")`: {},
			`*`: {SortBy: "expiry"}, `place=a/gold`: {SortBy: ".spec.size"}},
		"prune": {`label("tier=web")`: {}, `webs=web`: {}, `condition^=Ready`: {}, `*`: {SortBy: "age"},
			`where("@.spec == @.metadata")`: {}, `!where(".status.conditions[0].status")`: {}},
		"metadata": {`class=gold`: {}, `heavy=x`: {}, `where(.spec)`: {}, `*`: {SortBy: "weight"}},
	} {
		s := newCacheOf(t, fieldDroppingOptions[name])
		noError(t, s.AddIndexes(f))
		for text, options := range queries {
			q, err := query.Parse(text)
			if err != nil {
				t.Fatalf("Parse(%s): %v", text, err)
			}
			querier := query.New(cacheSource{s}, f.Indexes()...)
			options.AllowScan = true
			var dropped *query.DroppedFieldError
			if _, err := querier.Query(t.Context(), q, options); !errors.As(err, &dropped) ||
				dropped.Field == "" || !strings.Contains(err.Error(), dropped.Field) {
				t.Errorf("%s: Query of %s: got the error %v, want a DroppedFieldError", name, text, err)
			}
		}
	}
	querier := query.New(cacheSource{newCacheOf(t, fieldDroppingOptions["keep"])}, f.Indexes()...)
	for _, a := range []query.Aggregation{{GroupBy: []string{".spec.hosts[*]"}},
		{Measures: []query.Measure{{Function: "sum", Operand: ".spec.size"}}}} {
		var dropped *query.DroppedFieldError
		_, err := querier.Aggregate(t.Context(), query.All(), a, query.Options{})
		if !errors.As(err, &dropped) {
			t.Errorf("Aggregate(%v): got the error %v, want a DroppedFieldError", a, err)
		}
	}
}

// TestMetricsOfDroppedFields verifies that a metric that reads a dropped field has no series, and that
// crdcache_stale reports it.
func TestMetricsOfDroppedFields(t *testing.T) {
	config, err := indexers.Parse(indexers.Source{Name: "config.yaml", Data: []byte(`
apiVersion: crdcache.dev/v1beta1
kind: IndexConfig
metadata: {name: widgets}
spec:
  resources:
  - name: widgets
    match: {group: example.com, resource: widgets}
    metrics:
    - {name: classes, help: Classes., labels: [{name: class, path: .spec.class}]}
    - {name: sizes, help: Sizes., value: {path: .spec.size}}
`)})
	noError(t, err)
	metrics := config.Resources[0].Metrics
	for option, want := range map[string]string{"": "[[1] [1] 0]", "keep": "[[1] [] 1]"} {
		s := newCacheOf(t, fieldDroppingOptions[option])
		noError(t, s.AddIndexes(indexers.CompileIndexes(config.Resources[0].CacheIndexes()...)))
		put(t, s, &unstructured.Unstructured{Object: m{"metadata": m{"name": "a"},
			"spec": m{"class": "gold", "size": int64(1)}}})
		source := query.MetricSource(widgets, metrics, cacheSource{s}.Snapshot())
		source.Synced = true // the informer has no server
		series := map[string][]float64{}
		for family := range indexers.ReadMetrics(source) {
			for _, s := range family.Series {
				series[family.Name] = append(series[family.Name], s.Value)
			}
		}
		got := fmt.Sprint([]any{series["classes"], series["sizes"], series["crdcache_stale"][0]})
		if got != want {
			t.Errorf("series with the option %q = %s, want %s", option, got, want)
		}
	}
}

// TestQueriesOfNoObjects verifies that every query of an informer that stores no objects fails.
func TestQueriesOfNoObjects(t *testing.T) {
	querier := query.New(cacheSource{newCacheOf(t, dynamicinformer.ResourceOptions{
		Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageNone}})})
	if _, err := querier.Count(t.Context(), query.All(), query.Options{}); !errors.Is(err,
		dynamicinformer.ErrNotStored) {
		t.Errorf("Count of an informer that stores nothing: got the error %v, want ErrNotStored", err)
	}
}

// TestDroppedFieldsOfSubscriptions verifies that Subscribe rejects a query that reads a dropped field, unless
// a transform can add the field.
func TestDroppedFieldsOfSubscriptions(t *testing.T) {
	matcher, err := query.NewMatcher(query.Where(".spec.hosts[0]"))
	noError(t, err)
	options := fieldDroppingOptions["keep"]
	var dropped *query.DroppedFieldError
	_, err = query.Subscribe(newCacheOf(t, options), matcher, func(query.Event) {})
	if !errors.As(err, &dropped) {
		t.Errorf("Subscribe: got the error %v, want a DroppedFieldError", err)
	}
	options.Transform = cache.TransformFunc(func(o any) (any, error) { return o, nil })
	if _, err := query.Subscribe(newCacheOf(t, options), matcher, func(query.Event) {}); err != nil {
		t.Errorf("Subscribe with a transform: %v", err)
	}
}

// FuzzDroppedFields verifies that a condition that a reduced cache accepts has the same result as over whole
// objects.
func FuzzDroppedFields(f *testing.F) {
	for _, text := range []string{".spec.weight", "@.spec.class == 'gold'", "..type", ".spec.*", ".spec['class','size']",
		".status.conditions[?(@.type=='Ready')].status", ".status[?(@[0].type)]", "@ == @", "@.spec != @.status",
		".metadata.labels.*", ".metadata..team", ".spec.hosts[0:1]", "@.spec.hosts[0] && !@.status.conditions[1]",
		".spec.conditions[*]['type','status']", ".metadata['name'][?(@)]"} {
		f.Add(text)
	}
	querierOf := func(options dynamicinformer.ResourceOptions) *query.Querier {
		s, random := newCacheOf(f, options), rand.New(rand.NewPCG(31, 32))
		for n := range 40 {
			put(f, s, randomWidget(random, n))
		}
		return query.New(cacheSource{s})
	}
	whole, reduced := querierOf(dynamicinformer.ResourceOptions{}), map[string]*query.Querier{}
	for name, options := range fieldDroppingOptions {
		reduced[name] = querierOf(options)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q := query.Where(text)
		want, err := whole.Keys(t.Context(), q, query.Options{AllowScan: true})
		if err != nil {
			return
		}
		for name, querier := range reduced {
			var dropped *query.DroppedFieldError
			got, err := querier.Keys(t.Context(), q, query.Options{AllowScan: true})
			if !errors.As(err, &dropped) && (err != nil || !slices.Equal(got, want)) {
				t.Errorf("%s: Keys of %s = %v, %v; want %v or a DroppedFieldError", name, text, got, err,
					want)
			}
		}
	})
}

// TestDroppedFieldPosition verifies that the error marks the path in the text of the query.
func TestDroppedFieldPosition(t *testing.T) {
	querier := query.New(cacheSource{newCacheOf(t, fieldDroppingOptions["keep"])})
	for text, want := range map[string]string{
		`where('@.spec.weight > 1 && @.spec.size')`:                ".spec.size",
		`where("@.spec.class == \"x\" || @.status.x[\"a\"] == 1")`: `.status.x[\"a\"]`,
		`where(.spec.size)`: ".spec.size",
	} {
		q, err := query.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%s): %v", text, err)
		}
		_, err = querier.Count(t.Context(), q, query.Options{AllowScan: true})
		var located *query.Error
		if !errors.As(err, &located) || text[located.Offset:][:located.Length] != want {
			t.Errorf("Count of %s: got the error %v, want one at the position of %s", text, err, want)
		}
	}
}
