package dynamicinformer

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// incomparable is a Compression that cannot be compared.
type incomparable struct {
	Compression
	_ []int
}

func TestNewChecksOptions(t *testing.T) {
	config := &rest.Config{Host: "http://127.0.0.1:1"}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	defaults := func(o ResourceOptions) Options { return Options{Config: config, Defaults: o} }
	forType := func(gvr schema.GroupVersionResource, o ResourceOptions) Options {
		return Options{Config: config, Resources: map[schema.GroupVersionResource]ResourceOptions{gvr: o}}
	}
	tests := map[string]struct {
		options Options
		want    []string // parts of the error; empty if no error is expected
	}{
		"client":                 {Options{Client: client}, nil},
		"config":                 {Options{Config: config}, nil},
		"config and http client": {Options{Config: config, HTTPClient: http.DefaultClient}, nil},
		"index": {defaults(
			ResourceOptions{Indexers: cache.Indexers{"x": cache.MetaNamespaceIndexFunc}}), nil},
		"no resync": {defaults(ResourceOptions{Resync: new(time.Duration(0))}), nil},
		"a type":    {forType(widgets, ResourceOptions{Namespaces: InNamespaces("a", "b")}), nil},
		"nothing":   {Options{}, []string{"Client or Config is required"}},
		"http client alone": {Options{HTTPClient: http.DefaultClient},
			[]string{"Client or Config is required"}},
		"client and config": {Options{Client: client, Config: config}, []string{"set either Client"}},
		"client and http client": {Options{Client: client, HTTPClient: http.DefaultClient},
			[]string{"set either Client"}},
		"invalid config": {Options{Config: &rest.Config{Host: "http://a b"}},
			[]string{"making a dynamic client"}},
		"negative concurrency": {Options{Config: config, ListConcurrency: -1},
			[]string{"ListConcurrency is -1"}},
		"nil index function": {defaults(ResourceOptions{Indexers: cache.Indexers{"x": nil}}),
			[]string{`Defaults: the index function "x" is nil`}},
		"reserved index": {defaults(
			ResourceOptions{Indexers: cache.Indexers{"namespace": cache.MetaNamespaceIndexFunc}}),
			[]string{"cannot be replaced"}},
		"no namespaces": {defaults(ResourceOptions{Namespaces: InNamespaces()}),
			[]string{"list of namespaces is empty"}},
		"an empty namespace": {defaults(ResourceOptions{Namespaces: ExceptNamespaces("a", "")}),
			[]string{"empty name"}},
		"a pattern as a name": {defaults(ResourceOptions{Namespaces: InNamespaces("def*")}),
			[]string{`"def*" is a pattern`, "MatchingNamespaces"}},
		"a pattern as an except": {defaults(ResourceOptions{Namespaces: ExceptNamespaces("kube-*")}),
			[]string{`"kube-*" is a pattern`}},
		"an invalid namespace": {forType(widgets, ResourceOptions{Namespaces: InNamespaces("Bad/Name")}),
			[]string{`no namespace can have the name "Bad/Name"`}},
		"an invalid pattern": {defaults(ResourceOptions{Namespaces: MatchingNamespaces([]string{"a-*"},
			[]string{"B*"})}), []string{`no namespace can match "B*"`}},
		"a page size": {defaults(ResourceOptions{PageSize: 100,
			MinWatchTimeout: 5 * time.Minute}), nil},
		"a negative budget": {Options{MemoryBudget: -1}, []string{"MemoryBudget is -1"}},
		"no compression": {defaults(ResourceOptions{Storage: Storage{Mode: StorageAdaptive}}),
			[]string{"storage/s2"}},
		"a negative page size": {defaults(ResourceOptions{PageSize: -1}),
			[]string{"Defaults: PageSize is -1"}},
		"a short watch": {forType(widgets, ResourceOptions{MinWatchTimeout: time.Minute}),
			[]string{"widgets.v1.example.com: MinWatchTimeout is 1m0s; it must be at least 5m0s"}},
		"no versions": {defaults(ResourceOptions{Versions: VersionOrder()}),
			[]string{"order of versions is empty", "requires Options.Types"}},
		"an incomparable compression": {defaults(ResourceOptions{Storage: Storage{Mode: StorageCompressed,
			Compression: incomparable{}}}), []string{"type dynamicinformer.incomparable is not comparable"}},
		"an empty version": {defaults(ResourceOptions{Versions: VersionOrder("v1", "")}),
			[]string{"contains an empty version"}},
		"no source of types": {forType(widgets, ResourceOptions{Versions: PreferredVersion()}),
			[]string{
				"widgets.v1.example.com: a version policy other than PinnedVersion requires Options.Types"}},
		"a type without version": {forType(schema.GroupVersionResource{Resource: "x"}, ResourceOptions{}),
			[]string{"lacks a version"}},
		"a type without resource": {forType(schema.GroupVersionResource{Version: "v1"}, ResourceOptions{}),
			[]string{"lacks a version or a resource"}},
		"everything at once": {
			Options{ListConcurrency: -1, Defaults: ResourceOptions{Namespaces: InNamespaces()},
				Resources: map[schema.GroupVersionResource]ResourceOptions{
					widgets: {Indexers: cache.Indexers{"namespace": nil}},
					gadgets: {Resync: new(time.Duration(-1))},
				}},
			[]string{"Client or Config", "ListConcurrency", "Defaults: the list",
				"widgets.v1.example.com: the index", "gadgets.v1.example.com: option Resync is -1ns"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f, err := New(tt.options)
			if tt.want == nil {
				if err != nil || f == nil {
					t.Fatalf("New = %v, %v; want a factory", f, err)
				}
				return
			}
			if err == nil || f != nil {
				t.Fatalf("New = %v, %v; want an error", f, err)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("New() = %q, want an error that contains %q", err, part)
				}
			}
		})
	}
}
