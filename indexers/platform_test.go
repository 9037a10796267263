package indexers_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
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
