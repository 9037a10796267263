package dynamicinformer

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/internal/store"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// indexNames is an IndexSet. The only value of each index is its name.
type indexNames string

func (n indexNames) Names() []string { return strings.Split(string(n), ",") }

func (n indexNames) Ordered(int) bool { return true }

func (n indexNames) Indexers() cache.Indexers {
	all := cache.Indexers{}
	for _, name := range n.Names() {
		all[name] = func(any) ([]string, error) { return []string{name}, nil }
	}
	return all
}

func (n indexNames) KeysJSON(_ []byte, keys [][]string) [][]string {
	for _, name := range n.Names() {
		keys = append(keys, []string{name})
	}
	return keys
}

func TestNamesOfIndexesAreUnique(t *testing.T) {
	own := func(any) ([]string, error) { return nil, nil }
	for _, test := range []struct {
		options ResourceOptions
		want    string
	}{
		{ResourceOptions{Indexes: indexNames("a,b")}, ""},
		{ResourceOptions{Indexes: indexNames("a,b"), Indexers: cache.Indexers{"c": own}}, ""},
		{ResourceOptions{Indexes: indexNames("a,b"), Indexers: cache.Indexers{"b": own}},
			`duplicate index "b"`},
		{ResourceOptions{Indexes: indexNames("a,a")}, `duplicate index "a"`},
		{ResourceOptions{Indexes: indexNames(cache.NamespaceIndex)}, `duplicate index "namespace"`},
	} {
		err := test.options.checkIndexes()
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%+v: error %v, want %q", test.options, err, test.want)
		}
	}
}

// TestIndexesAreAddedAndRemoved adds and removes indexes of a filled cache. An earlier snapshot keeps its
// indexes.
func TestIndexesAreAddedAndRemoved(t *testing.T) {
	for _, mode := range []StorageMode{StoragePacked, StorageObject} {
		i, err := newInformer(factoryDependencies{dictionaries: &store.Dictionaries{}}, widgets,
			ResourceOptions{Storage: Storage{Mode: mode},
				Indexes: indexNames("a")}, nil)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": "x",
				"namespace": "ns"},
		}}
		if err := i.GetIndexer().Add(u); err != nil {
			t.Fatal(err)
		}
		if err := i.AddIndexes(indexNames("b,c")); err != nil {
			t.Fatal(err)
		}
		if err := i.AddIndexes(indexNames("b")); err == nil {
			t.Error("AddIndexes() of an existing name succeeded, want an error")
		}
		if err := i.AddIndexes(indexNames("c"), "c", cache.NamespaceIndex); err != nil {
			t.Errorf("AddIndexes() that replaces an index = %v, want nil", err)
		}
		before := i.Snapshot()
		i.RemoveIndexes("a", "c", "none", cache.NamespaceIndex)
		for name, want := range map[string]int{"a": 0, "b": 1, "c": 0} {
			keys, _ := i.GetIndexer().IndexKeys(name, name)
			if len(keys) != want {
				t.Errorf("%v: index %s has the keys %v, want %d", mode, name, keys, want)
			}
			if keys, err := before.KeysByIndex(name, name); err != nil || len(keys) != 1 {
				t.Errorf("%v: the earlier snapshot has the keys %v in index %s (%v), want 1", mode, keys,
					name, err)
			}
		}
		if keys, err := i.GetIndexer().IndexKeys(cache.NamespaceIndex, "ns"); err != nil || len(keys) != 1 {
			t.Errorf("the index by namespace has the keys %v, %v, want 1", keys, err)
		}
		if err := i.AddIndexes(indexNames("a")); err != nil {
			t.Errorf("AddIndexes() of a removed name = %v, want nil", err)
		}
	}
}
