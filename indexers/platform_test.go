package indexers_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
)

// loadObjects reads the objects of a kind in the project's test data.
func loadObjects(t testing.TB, kind string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob("../testdata/objects/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []*unstructured.Unstructured
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			u := &unstructured.Unstructured{}
			if err := decoder.Decode(u); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(path, err)
			}
			if u.GetKind() == kind {
				out = append(out, u)
			}
		}
	}
	return out
}

// loadConfigs returns the example configs and verifies that they have no warnings.
func loadConfigs(t testing.TB) *indexers.Config {
	t.Helper()
	c, err := indexers.Load("../testdata/indexes/platform.yaml", "../testdata/indexes/cert-manager.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings of the example configs = %v, want none", c.Warnings)
	}
	return c
}

func TestExampleConfigsFitTheCRDs(t *testing.T) {
	warnings, err := loadConfigs(t).Check(definitions(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || warnings[0].Code != "W304" {
		t.Errorf("Check = %v, want only W304 for the certificates, which are optional", warnings)
	}
}

// TestExampleConfigsInAStore verifies that the indexes of the example configs work in a client-go store with
// the test data.
func TestExampleConfigsInAStore(t *testing.T) {
	tests := []struct {
		resource, kind, index, value string
		want                         []string
	}{
		{"workloads", "Workload", "environment", "production-eu",
			[]string{"payments/card-gateway", "payments/ledger"}},
		{"workloads", "Workload", "port", "9090", []string{"payments/ledger"}},
		{"workloads", "Workload", "owner", "ada@example.com", []string{"payments/ledger"}},
		{"workloads", "Workload", "condition", indexers.Value("Progressing", "False"),
			[]string{"payments/ledger"}},
		{"workloads", "Workload", "condition", indexers.Value("Progressing", "Never"), nil},
		{"workloads", "Workload", "tier-per-namespace", indexers.Value("payments", "critical"),
			[]string{"payments/card-gateway", "payments/ledger"}},
		{"workloads", "Workload", "image-host", "registry.example.com", []string{"payments/ledger"}},
		{"workloads", "Workload", "scrape", "true", []string{"payments/ledger"}},
		{"workloads", "Workload", "not-ready", "ledger", nil},
		{"routes", "Route", "host", "shop.example.com",
			[]string{"storefront/shop", "storefront/shop-search"}},
		{"routes", "Route", "workload", "search", []string{"storefront/shop-search"}},
		{"routes", "Route", "secret", "shop-tls", []string{"storefront/shop", "storefront/shop-search"}},
		{"routes", "Route", "secret", indexers.Null, []string{"storefront/cart"}},
		{"routes", "Route", "controller", indexers.Value("Route", "resolver"), []string{"edge/dns-probe"}},
		{"releases", "Release", "owner", indexers.Value("Environment", "production-ap"),
			[]string{"media/thumbnailer-2.0.3"}},
		{"releases", "Release", "workload", "thumbnailer", []string{"media/thumbnailer-2.0.3"}},
	}
	config := loadConfigs(t)
	for _, test := range tests {
		t.Run(test.resource+"/"+test.index+"="+test.value, func(t *testing.T) {
			r, ok := config.Resource(test.resource)
			if !ok {
				t.Fatalf("Resource(%q) found nothing", test.resource)
			}
			store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers.Compile(r).Indexers())
			for _, o := range loadObjects(t, test.kind) {
				if err := store.Add(o); err != nil {
					t.Fatal(err)
				}
			}
			keys, err := store.IndexKeys(test.index, test.value)
			if err != nil {
				t.Fatal(err)
			}
			// the test data may have further objects with this value
			for _, want := range test.want {
				if !slices.Contains(keys, want) {
					t.Errorf("IndexKeys = %v, want %s among them", keys, want)
				}
			}
			if len(test.want) == 0 && len(keys) > 0 {
				t.Errorf("IndexKeys = %v, want none", keys)
			}
		})
	}
}

// TestExampleConfigsMatchObjects verifies that every index of the example configs has values, that the
// statistics agree with the store, and that indexing does not change objects.
func TestExampleConfigsMatchObjects(t *testing.T) {
	kinds := map[string]string{"workloads": "Workload", "routes": "Route", "releases": "Release",
		"environments": "Environment"}
	config := loadConfigs(t)
	for name, kind := range kinds {
		r, _ := config.Resource(name)
		functions := indexers.Compile(r)
		store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, functions.Indexers())
		kindObjects := loadObjects(t, kind)
		for _, o := range kindObjects {
			before := o.DeepCopy()
			if err := store.Add(o); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before.Object, o.Object); diff != "" {
				t.Fatalf("Add changed %s (-before +after):\n%s", o.GetName(), diff)
			}
		}
		for _, s := range functions.Stats() {
			if s.Seen != uint64(len(kindObjects)) || s.Matched == 0 || s.Failed != 0 {
				t.Errorf("%s: Stats = %+v, want %d seen, some matched, none failed", name, s, len(kindObjects))
			}
			if n := len(store.ListIndexFuncValues(s.Index)); n == 0 || uint64(n) > s.Values {
				t.Errorf("%s: the store has %d values, want between 1 and Values of %+v", name, n, s)
			}
		}
	}
}
